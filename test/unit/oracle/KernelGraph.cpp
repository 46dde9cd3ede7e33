#include "test/unit/oracle/KernelGraph.h"

#include "compiler/Target/Cpu/ObjectCompiler.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::test;

KernelGraph::KernelGraph(tfm::ArchitectureOp architecture)
    : architecture(architecture) {
  size_t elements = 0;
  for (auto param : architecture.getBody().getOps<tfm::ParamOp>()) {
    size_t size = param.getTensorType().getNumElements();
    places[param.getSymName().str()] = {elements, size};
    elements += size;
  }
  parameters.resize(elements);
  gradients.resize(elements);

  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  SmallVector<kern::FuncOp> kernels(
      architecture.getBody().getOps<kern::FuncOp>());
  auto compiled =
      cpu::compileKernels(kernels, cpu::TargetMachineOptions::host(), "", 0);
  if (mlir::failed(compiled))
    return;
  jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  jit->getMainJITDylib().addGenerator(llvm::cantFail(
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
          jit->getDataLayout().getGlobalPrefix())));
  for (const cpu::CompiledKernel &kernel : *compiled)
    llvm::cantFail(jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(
        StringRef(reinterpret_cast<const char *>(kernel.object.data()),
                  kernel.object.size()))));
}

size_t KernelGraph::bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

int64_t KernelGraph::valueOf(kern::ExtentAttr extent) {
  int64_t scalar = extent.getScalar().empty() ? 0 : 1;
  return std::min(extent.getCap(),
                  extent.getMul() * scalar / extent.getDiv() + extent.getAdd());
}

char *KernelGraph::allocate(size_t bytes, char fill) {
  buffers.push_back(std::make_unique<char[]>(bytes));
  std::memset(buffers.back().get(), fill, bytes);
  return buffers.back().get();
}

KernelGraph::Place KernelGraph::destination(Value out) {
  Place place = values.at(out);
  if (place.isState)
    return place;
  char *copy = allocate(bytesOf(out), 0);
  std::memcpy(copy, place.data, bytesOf(out));
  return {copy, false};
}

/// Parameters taken as one lie one after the other here, in the order named.
KernelGraph::Place KernelGraph::parameterPlace(std::vector<double> &all,
                                               ArrayAttr names) {
  auto nameOf = [](Attribute symbol) {
    return cast<FlatSymbolRefAttr>(symbol).getValue();
  };
  auto [begin, size] = place(nameOf(names[0]));
  size_t end = begin + size;
  for (Attribute symbol : names.getValue().drop_front()) {
    auto [next, count] = place(nameOf(symbol));
    EXPECT_EQ(next, end) << "declare joined parameters one after the other";
    end = next + count;
  }
  return {reinterpret_cast<char *>(all.data() + begin), &all == &gradients};
}

void KernelGraph::runCall(kern::CallOp call) {
  using Entry = void (*)(void *const *, int64_t, int64_t);
  auto symbol = jit->lookup(call.getCallee());
  ASSERT_TRUE(bool(symbol)) << llvm::toString(symbol.takeError());

  std::vector<void *> pointers;
  for (Value input : call.getInputs())
    pointers.push_back(values.at(input).data);
  for (auto [index, out] : llvm::enumerate(call.getOuts())) {
    Place place = destination(out);
    values[call.getResult(index)] = place;
    int64_t offset = call.getOutOffsets() ? (*call.getOutOffsets())[index] : 0;
    auto type = cast<RankedTensorType>(out.getType());
    pointers.push_back(place.data + offset * type.getElementTypeBitWidth() / 8);
  }
  std::vector<int64_t> extents;
  for (Attribute extent : call.getExtents())
    extents.push_back(valueOf(cast<kern::ExtentAttr>(extent)));
  for (int64_t &extent : extents)
    pointers.push_back(&extent);
  std::vector<double> scalars(call.getScalars().size(), 1.0);
  for (double &scalar : scalars)
    pointers.push_back(&scalar);

  int64_t items = valueOf(call.getGrid());
  Entry entry = symbol->toPtr<Entry>();
  entry(pointers.data(), 0, items / 3);
  entry(pointers.data(), items / 3, items);
}

void KernelGraph::runGemm(kern::GemmOp op) {
  ASSERT_TRUE(op.getOut().getType().getElementType().isF64());
  auto *a = reinterpret_cast<double *>(values.at(op.getA()).data) +
            op.getAOffset();
  auto *b = reinterpret_cast<double *>(values.at(op.getB()).data) +
            op.getBOffset();
  Place place = destination(op.getOut());
  values[op.getResult()] = place;
  auto *c = reinterpret_cast<double *>(place.data) + op.getCOffset();
  int64_t lda = op.getLda(), ldb = op.getLdb(), ldc = op.getLdc();
  int64_t m = valueOf(op.getM()), n = valueOf(op.getN()), k = valueOf(op.getK());
  double alpha = op.getAlpha().convertToDouble();
  bool adds = op.getBeta().convertToDouble() != 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += (op.getTransA() ? a[l * lda + i] : a[i * lda + l]) *
               (op.getTransB() ? b[j * ldb + l] : b[l * ldb + j]);
      c[i * ldc + j] = alpha * sum + (adds ? c[i * ldc + j] : 0);
    }
}

double KernelGraph::run(tfm::FuncOp function,
                        const std::vector<Argument> &arguments) {
  buffers.clear();
  values.clear();
  loss = 0;
  Block &body = function.getBody().front();
  EXPECT_EQ(arguments.size(), body.getNumArguments());
  for (auto [argument, given] : llvm::zip(body.getArguments(), arguments)) {
    const void *data = given.i32.empty()
                           ? static_cast<const void *>(given.f64.data())
                           : given.i32.data();
    EXPECT_EQ(bytesOf(argument), given.f64.size() * sizeof(double) +
                                     given.i32.size() * sizeof(int32_t));
    char *copy = allocate(bytesOf(argument), 0);
    std::memcpy(copy, data, bytesOf(argument));
    values[argument] = {copy, false};
  }
  for (Operation &op : body.without_terminator())
    TypeSwitch<Operation *>(&op)
        .Case([&](tfm::UseOp use) {
          values[use] = parameterPlace(parameters, use.getParams());
        })
        .Case([&](fsdp::GradientOp gradient) {
          values[gradient] = parameterPlace(gradients, gradient.getParams());
        })
        .Case([&](kern::PortOp port) {
          EXPECT_EQ(port.getPort(), "loss");
          values[port] = {reinterpret_cast<char *>(&loss), true};
        })
        .Case([&](kern::EmptyOp empty) {
          values[empty] = {allocate(bytesOf(empty), '\xff'), false};
        })
        .Case([&](kern::FillOp fill) {
          Place place = destination(fill.getOut());
          std::memset(place.data, 0, bytesOf(fill.getOut()));
          values[fill] = place;
        })
        .Case([&](kern::CopyOp copy) {
          Place place = destination(copy.getOut());
          std::memcpy(place.data, values.at(copy.getInput()).data,
                      bytesOf(copy.getOut()));
          values[copy] = place;
        })
        .Case([&](kern::CallOp call) { runCall(call); })
        .Case([&](kern::GemmOp gemm) { runGemm(gemm); })
        .Default([](Operation *unknown) {
          ADD_FAILURE() << "cannot run " << unknown->getName().getStringRef().str();
        });
  return loss;
}
