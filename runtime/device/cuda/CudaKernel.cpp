#include "runtime/device/cuda/CudaKernel.h"

#include "runtime/plan/PlanCheck.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <elf.h>

namespace fsdpq::rt {

/// Blocks of a grid's first dimension at most.
static constexpr int64_t mostBlocksOfGrid = 0x7fffffff;
/// Dynamic shared memory that a kernel may have without asking for it.
static constexpr unsigned freeSharedBytes = 48 * 1024;

CudaKernel::CudaKernel(const DriverApi &driver, const KernelImage &image,
                       int processors, const std::string &architecture)
    : driver(driver), name_(image.name) {
  if (image.form != plan::KernelForm::CudaCubin)
    refuse(4003, "is not a cubin", "make the plan for the GPU: --device cuda");
  if (!image.launch)
    refuse(4003, "does not say how it is started");
  load(image, architecture);
  try {
    setUp(*image.launch);
    countParameters();
  } catch (...) {
    driver.cuModuleUnload(module);
    throw;
  }
  if (image.launch->blocks_per_processor() > 0)
    mostBlocks = int64_t(image.launch->blocks_per_processor()) * processors;
}

CudaKernel::~CudaKernel() { driver.cuModuleUnload(module); }

void CudaKernel::refuse(int id, const std::string &what,
                        const std::string &hint) const {
  throw Error(id, id == 4003 ? ExitCode::BadInput : ExitCode::RunFailure,
              "kernel '" + name_ + "' " + what, "", hint);
}

/// The driver believes what an ELF file says of its own length.
static bool isWhole(const KernelImage &image) {
  Elf64_Ehdr header;
  if (image.codeBytes < sizeof header)
    return false;
  std::memcpy(&header, image.code, sizeof header);
  const auto holds = [&](uint64_t offset, uint64_t count, uint64_t size) {
    return offset <= image.codeBytes &&
           count * size <= image.codeBytes - offset;
  };
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 &&
         holds(header.e_shoff, header.e_shnum, header.e_shentsize) &&
         holds(header.e_phoff, header.e_phnum, header.e_phentsize);
}

void CudaKernel::load(const KernelImage &image,
                      const std::string &architecture) {
  if (!isWhole(image))
    refuse(4003, "cannot be loaded: its code is no cubin, or cut off",
           "make the plan again");
  const CUresult result = driver.cuModuleLoadData(&module, image.code);
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
    refuse(4003,
           "cannot be loaded: it was made for another GPU than this one, whose "
           "architecture is " +
               architecture,
           "make the plan on this machine");
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    throw driver.error(result, "loading kernel '" + name_ + "'");
  if (result != CUDA_SUCCESS)
    refuse(
        4003, "cannot be loaded: " + driver.text(result),
        "a newer driver may be needed: `fsdpq-run doctor` says which there is");
  const std::string symbol(image.symbol);
  if (driver.cuModuleGetFunction(&function, module, symbol.c_str()) !=
      CUDA_SUCCESS) {
    driver.cuModuleUnload(module);
    refuse(4003, "has no entry '" + symbol + "'");
  }
}

void CudaKernel::setUp(const plan::LaunchShape &shape) {
  threads = shape.threads();
  sharedBytes = shape.shared_bytes();
  itemsPerBlock = std::max<int64_t>(shape.items_per_block(), 1);
  int most = 0;
  driver.check(driver.cuFuncGetAttribute(
                   &most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function),
               "asking how a kernel can be started");
  if (threads == 0 || threads > static_cast<unsigned>(most))
    refuse(4003, "cannot be started with " + std::to_string(threads) +
                     " threads a block: its registers allow " +
                     std::to_string(most));
  if (sharedBytes > freeSharedBytes &&
      driver.cuFuncSetAttribute(function,
                                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                static_cast<int>(sharedBytes)) != CUDA_SUCCESS)
    refuse(4003, "needs " + std::to_string(sharedBytes) +
                     " bytes of shared memory a block, more than this GPU has");
  if (shape.maps())
    for (const plan::TensorMap *map : *shape.maps())
      maps.push_back({*map, {}});
}

void CudaKernel::countParameters() {
  size_t offset, bytes;
  while (driver.cuFuncGetParamInfo(function, parameters, &offset, &bytes) ==
         CUDA_SUCCESS)
    ++parameters;
}

CUtensorMap CudaKernel::encode(const plan::TensorMap &shape,
                               DeviceAddress address, uint64_t bytes) const {
  constexpr uint64_t elementBytes = 2; // bf16
  const uint64_t pitch = static_cast<uint64_t>(shape.pitch()) * elementBytes;
  const uint64_t width = static_cast<uint64_t>(shape.columns()) * elementBytes;
  // Rows that are there to the last element.
  const uint64_t rows = bytes < width ? 0 : 1 + (bytes - width) / pitch;
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(shape.columns()),
                                std::min<uint64_t>(rows, uint64_t(1) << 32)};
  const cuuint64_t pitches[] = {pitch};
  const cuuint32_t box[] = {shape.box_columns(), shape.box_rows()};
  const cuuint32_t steps[] = {1, 1};
  CUtensorMap map;
  const CUresult result =
      rows == 0
          ? CUDA_ERROR_INVALID_VALUE
          : driver.cuTensorMapEncodeTiled(
                &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
                reinterpret_cast<void *>(address), extents, pitches, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    refuse(4008, "reads through a tensor map that cannot be: " +
                     std::to_string(shape.columns()) + " columns, " +
                     std::to_string(rows) + " rows of pitch " +
                     std::to_string(shape.pitch()) + ", boxes of " +
                     std::to_string(shape.box_rows()) + " x " +
                     std::to_string(shape.box_columns()) + " at " +
                     std::to_string(address % 256) +
                     " modulo 256: " + driver.text(result));
  return map;
}

CUtensorMap *CudaKernel::tensorMap(Map &map, const LaunchArg *args,
                                   uint32_t argCount,
                                   const Allocations &allocations) const {
  const plan::TensorMap &shape = map.shape;
  if (shape.arg() >= argCount ||
      args[shape.arg()].kind != LaunchArg::Kind::Address)
    refuse(4008, "has a tensor map of argument " + std::to_string(shape.arg()) +
                     ", which is no slice");
  const DeviceAddress argument = args[shape.arg()].address;
  const auto found = map.encoded.find(argument);
  if (found != map.encoded.end())
    return &found->second;
  if (shape.columns() <= 0 || shape.pitch() < shape.columns() ||
      shape.begin() < 0)
    refuse(4008, "has a tensor map of " + std::to_string(shape.columns()) +
                     " columns with pitch " + std::to_string(shape.pitch()) +
                     " from " + std::to_string(shape.begin()));
  const DeviceAddress address =
      argument + static_cast<uint64_t>(shape.begin()) * 2;
  return &map.encoded
              .emplace(argument,
                       encode(shape, address, allocations.bytesFrom(address)))
              .first->second;
}

void CudaKernel::launch(const LaunchArg *args, uint32_t argCount, int64_t grid,
                        const Allocations &allocations, CUstream stream) const {
  if (argCount + 1 + maps.size() != parameters)
    refuse(4008, "takes " + std::to_string(parameters) + " parameters; " +
                     std::to_string(argCount) +
                     " arguments, the number of items and " +
                     std::to_string(maps.size()) + " tensor maps were given");
  if (generation != allocations.generation()) {
    for (Map &map : maps)
      map.encoded.clear();
    generation = allocations.generation();
  }

  constexpr size_t inlineParameters = maxLaunchArgs + 1 + 8;
  std::array<void *, inlineParameters> few;
  std::vector<void *> many;
  void **values = few.data();
  if (parameters > inlineParameters) {
    many.resize(parameters);
    values = many.data();
  }
  size_t count = 0;
  for (uint32_t i = 0; i < argCount; ++i) // all are 8 bytes, whatever they are
    values[count++] = const_cast<int64_t *>(&args[i].integer);
  long long items = grid;
  values[count++] = &items;
  for (Map &map : maps)
    values[count++] = tensorMap(map, args, argCount, allocations);

  int64_t blocks = (grid - 1) / itemsPerBlock + 1;
  if (mostBlocks > 0)
    blocks = std::min(blocks, mostBlocks);
  if (blocks > mostBlocksOfGrid)
    refuse(4008,
           "cannot be started with " + std::to_string(blocks) + " blocks");
  const CUresult result = driver.cuLaunchKernel(
      function, static_cast<unsigned>(blocks), 1, 1, threads, 1, 1, sharedBytes,
      stream, values, nullptr);
  if (result != CUDA_SUCCESS)
    throw driver.error(result, "launching kernel '" + name_ + "'");
}

} // namespace fsdpq::rt
