#include "runtime/comm/nccl/NcclChannel.h"

#include "runtime/plan/Elements.h"

namespace fsdpq::rt {

using Kind = CollectiveCall::Kind;

//===--- Sums ---------------------------------------------------------------//

void GpuChannel::add(DeviceAddress to, DeviceAddress from, int64_t elements,
                     plan::CommType type) {
  device.check();
  device.makeCurrent();
  if (!adder)
    adder.emplace(device);
  adder->run(to, from, elements, type, handle());
}

void GpuChannel::put(DeviceAddress to, DeviceAddress from, int64_t elements,
                     plan::CommType type, bool accumulate) {
  if (accumulate)
    add(to, from, elements, type);
  else if (to != from)
    device.copy(to, from, elements * elementBytes(type), stream);
}

//===--- One member ---------------------------------------------------------//

void LoneGpuChannel::allGather(DeviceAddress from, DeviceAddress to,
                               int64_t bytes, const char *) {
  put(to, from, bytes, plan::CommType::U8, false);
}

void LoneGpuChannel::reduceScatter(DeviceAddress from, DeviceAddress to,
                                   int64_t elements, plan::CommType type,
                                   uint32_t, bool accumulate, const char *) {
  put(to, from, elements, type, accumulate);
}

void LoneGpuChannel::allReduce(DeviceAddress, int64_t, plan::CommType,
                               const char *) {} // it is the sum

//===--- Several ------------------------------------------------------------//

static ncclDataType_t dataType(plan::CommType type) {
  switch (type) {
  case plan::CommType::U8:
    return ncclUint8;
  case plan::CommType::F32:
    return ncclFloat32;
  case plan::CommType::F64:
    break;
  }
  return ncclFloat64;
}

static void *pointer(DeviceAddress address) {
  return reinterpret_cast<void *>(address);
}

NcclChannel::NcclChannel(NcclWatch &watch, CudaDevice &device, uint16_t stream,
                         std::string name, ncclComm_t ownComm, int64_t size,
                         int64_t position)
    : GpuChannel(device, stream), nccl(NcclApi::get()), watch(watch),
      name(std::move(name)),
      comm(device, static_cast<CUstream>(device.stream(stream)), this->name,
           ownComm),
      size(size), position(position) {
  watch.add(comm);
}

NcclChannel::~NcclChannel() { watch.remove(comm); }

/// Does collective(comm) of NCCL on the stream.
template <typename Call>
void NcclChannel::give(CollectiveCall call, const char *where,
                       const Call &collective) {
  device.check();
  device.makeCurrent();
  call.sequence = ++sequence;
  const ncclComm_t alive = comm.get();
  if (!alive)
    throw Error(7003, ExitCode::PeerFailure,
                "the run has failed before " + call.text() +
                    " on the channel '" + name + "'");
  if (const ncclResult_t result = collective(alive); result != ncclSuccess) {
    device.check(); // the watch may have ended it meanwhile, and says why
    throw Error(7001, ExitCode::PeerFailure,
                "NCCL failed in " + call.text() + " on the channel '" + name +
                    "': " + nccl.text(result),
                where ? where : "", "NCCL_DEBUG=INFO says more");
  }
  comm.given(call, where);
}

void NcclChannel::allGather(DeviceAddress from, DeviceAddress to, int64_t bytes,
                            const char *where) {
  give({Kind::AllGather, plan::CommType::U8, false, 1, 0, bytes}, where,
       [&](ncclComm_t alive) {
         return nccl.ncclAllGather(pointer(from), pointer(to),
                                   static_cast<size_t>(bytes), ncclUint8, alive,
                                   handle());
       });
  received += static_cast<uint64_t>((size - 1) * bytes);
}

void NcclChannel::reduceScatter(DeviceAddress from, DeviceAddress to,
                                int64_t elements, plan::CommType type,
                                uint32_t ranges, bool accumulate,
                                const char *where) {
  const int64_t bytes = elements * elementBytes(type);
  const CollectiveCall call{
      Kind::ReduceScatter, type, accumulate, ranges, 0, bytes};
  const DeviceAddress own =
      from + static_cast<uint64_t>(position % ranges * bytes);
  if (ranges == size) {
    // In place, where it must not replace what it is added to.
    give(call, where, [&](ncclComm_t alive) {
      return nccl.ncclReduceScatter(pointer(from),
                                    pointer(accumulate ? own : to),
                                    static_cast<size_t>(elements),
                                    dataType(type), ncclSum, alive, handle());
    });
    received += static_cast<uint64_t>((size - 1) * bytes);
    if (accumulate)
      add(to, own, elements, type);
    return;
  }
  // Several ranks get the same range.
  give(call, where, [&](ncclComm_t alive) {
    return nccl.ncclAllReduce(pointer(from), pointer(from),
                              static_cast<size_t>(elements) * ranges,
                              dataType(type), ncclSum, alive, handle());
  });
  received += static_cast<uint64_t>(2 * (size - 1) * bytes * ranges / size);
  put(to, own, elements, type, accumulate);
}

void NcclChannel::allReduce(DeviceAddress data, int64_t elements,
                            plan::CommType type, const char *where) {
  const int64_t bytes = elements * elementBytes(type);
  give({Kind::AllReduce, type, false, 1, 0, bytes}, where,
       [&](ncclComm_t alive) {
         return nccl.ncclAllReduce(pointer(data), pointer(data),
                                   static_cast<size_t>(elements),
                                   dataType(type), ncclSum, alive, handle());
       });
  received += static_cast<uint64_t>(2 * (size - 1) * bytes / size);
}

} // namespace fsdpq::rt
