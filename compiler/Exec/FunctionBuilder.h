//===- FunctionBuilder.h - One function of the plan -------------*- C++ -*-===//
//
// exec-build's working class: instructions for the body of a tfm.func, with its
// stacks and chunk loops.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Exec/PeriodicRuns.h"
#include "compiler/Exec/Storage.h"
#include "mlir/IR/Builders.h"

namespace fsdpq {

class FunctionBuilder {
public:
  FunctionBuilder(Storage &storage, tfm::FuncOp source, exec::FuncOp target);

  LogicalResult build();

private:
  using Slices = SmallVector<Value, 1>;

  /// The layers that a body stands for: layer i of the loop is `layers[i]`.
  /// Empty outside of loops over layers.
  using Layers = ArrayRef<int64_t>;

  LogicalResult buildBody(Block &body, Layers layers);
  LogicalResult buildOp(Operation &op, Layers layers);
  // FunctionBuilderComm.cpp
  void buildGather(fsdp::AllGatherStartOp op, Layers layers);
  void buildKept(fsdp::KeptOp op, Layers layers);
  LogicalResult buildView(fsdp::ViewOp op, Layers layers);
  LogicalResult buildGradient(fsdp::GradientOp op, Layers layers);
  void buildGradientStart(fsdp::GradientStartOp op, Layers layers);
  void buildReduceScatter(fsdp::ReduceScatterStartOp op, Layers layers);
  void buildReduceSums(fsdp::ReduceSumsOp op);
  void buildReduceReplicas(fsdp::ReduceReplicasOp op);
  void buildAllReduce(fsdp::AllReduceOp op);
  void buildAllGather(fsdp::AllGatherOp op);
  void buildStore(fsdp::StoreOp op);
  void buildPart(fsdp::PartOp op);
  void buildScratch(fsdp::ScratchOp op);
  /// Makes the buffers that the layers of a stack gather into and put whole
  /// gradients into; `kinds` and `order` are the layers' kinds and numbers as
  /// they come.
  void prepareUnits(MutableArrayRef<tfm::LayerOp> kinds, ArrayRef<int32_t> kindOf,
                    ArrayRef<int64_t> order);
  /// Waits for the reductions of the units that `prepareUnits` made buffers for.
  void finishUnits();
  SmallVector<int64_t> getOrdinals(fsdp::UnitOp unit, Layers layers) const;
  void makeWait(Location loc, int64_t event, ValueRange holds);

  LogicalResult buildStack(tfm::StackOp op);
  LogicalResult buildStackGrad(tfm::StackGradOp op);
  LogicalResult buildChunkLoop(tfm::ChunkLoopOp op);
  void buildCall(kern::CallOp op, Layers layers);
  void buildGemm(kern::GemmOp op);

  /// Slices behind a value; a quantised one has several.
  const Slices &get(Value value) const { return slices.find(value)->second; }
  Value getOnly(Value value) const { return get(value).front(); }

  /// The argument of a body is what the operand is.
  void shareSlices(Value argument, Value operand);

  /// A destination as it may be written: a copy when the value is needed later.
  Value getWritable(Value value, Operation *writer);

  Value makeAlloc(StringRef name, int64_t bytes);
  Value makeSlice(StringRef name, const Storage::Place &place,
                  ArrayRef<int64_t> ordinals);
  /// Part of `source` that lies at `offsets[i]` in iteration i.
  Value makeSubslice(Value source, int64_t bytes, ArrayRef<int64_t> offsets);
  /// The same, said to hold parameters of a unit.
  Value makeMember(Value source, int64_t offset, int64_t bytes,
                   fsdp::UnitOp unit, ArrayRef<int64_t> ordinals);
  /// Equal ordinals need but one entry.
  DenseI64ArrayAttr getOrdinalsAttr(ArrayRef<int64_t> ordinals);
  Value makeOffset(Value source, int64_t offset);
  int64_t getBytes(Value slice) const;

  /// Makes what computes `value` write to `place` instead of a temporary of its
  /// own, for `consumer`, or copies it there when it is needed elsewhere too.
  void placeAt(Value value, Value place, Block *scope, Operation *consumer);

  /// What is built until closeLoop is done `count` times. One time needs no loop,
  /// unless extents refer to its index.
  exec::LoopOp openLoop(Location loc, int64_t count, bool hasIndex = false);
  void closeLoop(exec::LoopOp loop);
  /// The block that is being built.
  Block *getBlock() { return builder.getInsertionBlock(); }

  /// Where the carried value of each layer lies.
  struct Carry {
    Value storage;
    int64_t bytes;
    int64_t slots; ///< layer l's input is in slot l % slots
    int64_t offset(int64_t layer) const { return layer % slots * bytes; }
  };
  /// One residual of each kind: its storage, a slot for each layer of the kind.
  struct Residuals {
    SmallVector<SmallVector<Value>> storage; ///< [kind][residual]
    SmallVector<SmallVector<bool>> isInput;  ///< the layer's own input
    Carry carry;
  };

  /// A buffer for what a unit's layers have in turn: layer l's is in slot
  /// sequence[l] % slots.
  struct UnitBuffer {
    Value storage;
    int64_t bytes = 0, slots = 1, event = 0;
    llvm::DenseMap<int64_t, int64_t> sequence;
    bool isReduced = false; ///< a reduction reads it
  };
  Value getSlot(const UnitBuffer &buffer, Layers layers);

  Storage &storage;
  tfm::FuncOp source;
  exec::FuncOp target;
  OpBuilder builder;
  unsigned level = 0;
  llvm::DenseMap<Value, Slices> slices;
  llvm::DenseMap<Value, Residuals> saved; ///< by the !tfm.saved value

  /// Of the stack that is being built, by unit.
  llvm::MapVector<StringRef, UnitBuffer> gathered, gradients;
  /// Of units that stay whole for the backward pass.
  llvm::MapVector<StringRef, UnitBuffer> kept;
  /// The whole gradient that a unit has at this place.
  llvm::DenseMap<StringRef, Value> currentGradients;
  llvm::DenseMap<Operation *, int64_t> gatherEvents; ///< by the gather
  int64_t events = 0;
};

} // namespace fsdpq
