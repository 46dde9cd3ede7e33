// Compiled into the tests: see FakeCuda.h. The layout is read by FakeDriver.cpp.
#include "test/unit/device/fake_cuda/FakeCuda.h"

#include <cstring>
#include <elf.h>

std::vector<uint8_t> fsdpq::fake::makeCode(const std::string &symbol,
                                           uint32_t arguments, uint32_t maps,
                                           uint32_t architecture) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_flags = architecture;
  const uint32_t counts[] = {arguments, maps};
  std::vector<uint8_t> code(sizeof header + sizeof counts + symbol.size() + 1);
  std::memcpy(code.data(), &header, sizeof header);
  std::memcpy(code.data() + sizeof header, counts, sizeof counts);
  std::memcpy(code.data() + sizeof header + sizeof counts, symbol.c_str(),
              symbol.size() + 1);
  return code;
}
