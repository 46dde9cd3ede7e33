//===- TfmInterfaces.td - What passes may ask of an operation -------------===//

#ifndef FSDPQ_TFM_INTERFACES_TD
#define FSDPQ_TFM_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Tfm_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::fsdpq::tfm";
  let description = [{
    An operation whose gradient `tfm-autodiff` can build. The rule sees forward
    values only through `GradientBuilder::saved`, so one set of values feeds
    both what the forward pass keeps and what the backward pass uses.
  }];
  let methods = [
    InterfaceMethod<[{
      Adds the gradients of those operands that need one, given the gradients
      of the results (null for a result whose gradient is zero).
    }], "void", "buildGradient", (ins "::fsdpq::tfm::GradientBuilder &":$grad)>
  ];
}

#endif // FSDPQ_TFM_INTERFACES_TD
