#include "runtime/comm/nccl/AddKernel.h"

#include <algorithm>

namespace fsdpq::rt {

namespace {

constexpr unsigned threads = 256;

/// An entry add_<name>(to, from, count) for elements that are loaded as `memory`
/// and added as `sum`, 1 << `shift` bytes each. Threads take elements in turn.
std::string entry(const std::string &name, const std::string &memory,
                  const std::string &sum, const std::string &file,
                  const std::string &shift) {
  return ".visible .entry add_" + name + R"((
  .param .u64 to, .param .u64 from, .param .u64 count)
{
  .reg .pred done;
  .reg .b32 block, width, lane, blocks;
  .reg .b64 index, step, limit, target, source, offset, place;
  .reg .)" +
         file + R"( value, term;
  mov.u32 block, %ctaid.x;
  mov.u32 width, %ntid.x;
  mov.u32 lane, %tid.x;
  mov.u32 blocks, %nctaid.x;
  mul.wide.u32 index, block, width;
  cvt.u64.u32 offset, lane;
  add.u64 index, index, offset;
  mul.wide.u32 step, blocks, width;
  ld.param.u64 target, [to];
  ld.param.u64 source, [from];
  ld.param.u64 limit, [count];
  cvta.to.global.u64 target, target;
  cvta.to.global.u64 source, source;
next:
  setp.ge.u64 done, index, limit;
  @done bra end;
  shl.b64 offset, index, )" +
         shift + R"(;
  add.u64 place, source, offset;
  ld.global.)" +
         memory + R"( term, [place];
  add.u64 place, target, offset;
  ld.global.)" +
         memory + R"( value, [place];
  add.)" +
         sum + R"( value, value, term;
  st.global.)" +
         memory + R"( [place], value;
  add.u64 index, index, step;
  bra next;
end:
  ret;
}
)";
}

std::string text() {
  return ".version 7.0\n.target sm_70\n.address_size 64\n" +
         entry("u8", "u8", "u16", "b16", "0") +
         entry("f32", "f32", "rn.f32", "f32", "2") +
         entry("f64", "f64", "rn.f64", "f64", "3");
}

} // namespace

AddKernel::AddKernel(CudaDevice &device)
    : device(device), driver(DriverApi::get()) {
  device.makeCurrent();
  CUresult result = driver.cuModuleLoadData(&module, text().c_str());
  for (plan::CommType type : plan::EnumValuesCommType()) {
    static constexpr const char *names[] = {"add_u8", "add_f32", "add_f64"};
    if (result == CUDA_SUCCESS)
      result =
          driver.cuModuleGetFunction(&functions[static_cast<size_t>(type)],
                                     module, names[static_cast<size_t>(type)]);
  }
  if (result != CUDA_SUCCESS)
    throw Error(4003, ExitCode::RunFailure,
                "the driver does not compile the kernel that adds sums: " +
                    driver.text(result));
}

AddKernel::~AddKernel() {
  try {
    device.makeCurrent();
    driver.cuModuleUnload(module);
  } catch (const Error &) { // the context has ended, and the module with it
  }
}

void AddKernel::run(DeviceAddress to, DeviceAddress from, int64_t elements,
                    plan::CommType type, CUstream stream) const {
  if (elements <= 0)
    return;
  const int64_t most = int64_t(device.info().processors) * 8;
  const int64_t blocks = std::min((elements - 1) / threads + 1, most);
  void *values[] = {&to, &from, &elements};
  driver.check(driver.cuLaunchKernel(functions[static_cast<size_t>(type)],
                                     static_cast<unsigned>(blocks), 1, 1,
                                     threads, 1, 1, 0, stream, values, nullptr),
               "adding a sum of several ranks");
}

} // namespace fsdpq::rt
