#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/support/Error.h"
#include "runtime/support/MappedFile.h"

#include <cstdio>
#include <cstring>

namespace fsdpq::rt {

namespace {

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t zero;
  uint64_t checksum;
};
static_assert(sizeof(Header) == 24 && sizeof(Header) % 8 == 0,
              "the FlatBuffer behind the header must stay 8-byte aligned");

constexpr char magic[8] = {'F', 'S', 'D', 'P', 'Q', 'P', 'L', 'N'};

/// 64-bit FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv.
uint64_t fnv1a(const uint8_t *data, size_t bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < bytes; ++i)
    hash = (hash ^ data[i]) * 0x100000001b3u;
  return hash;
}

template <typename Table>
std::optional<uint32_t>
find(const flatbuffers::Vector<flatbuffers::Offset<Table>> &tables,
     std::string_view name) {
  for (uint32_t i = 0; i < tables.size(); ++i)
    if (tables.Get(i)->name()->string_view() == name)
      return i;
  return std::nullopt;
}

} // namespace

std::vector<uint8_t> encodePlan(const plan::PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder;
  plan::FinishPlanBuffer(builder, plan::Plan::Pack(builder, &plan));
  Header header{};
  std::memcpy(header.magic, magic, sizeof magic);
  header.version = planVersion;
  header.checksum = fnv1a(builder.GetBufferPointer(), builder.GetSize());

  std::vector<uint8_t> bytes(sizeof header + builder.GetSize());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, builder.GetBufferPointer(),
              builder.GetSize());
  return bytes;
}

LoadedPlan::LoadedPlan(std::vector<uint8_t> source, const std::string &where)
    : bytes(std::move(source)) {
  const std::string remake = "make the plan again with this version's compiler";
  Header header;
  if (bytes.size() <= sizeof header ||
      std::memcmp(bytes.data(), magic, sizeof magic) != 0)
    throw Error(3001, ExitCode::BadInput, "not an fsdpq plan", where,
                "name a file that `fsdpq-run plan` or the compiler wrote");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version != planVersion || header.zero != 0)
    throw Error(3002, ExitCode::BadInput,
                "the plan has version " + std::to_string(header.version) +
                    ", this program reads version " +
                    std::to_string(planVersion),
                where, remake);

  const uint8_t *body = bytes.data() + sizeof header;
  const size_t size = bytes.size() - sizeof header;
  if (fnv1a(body, size) != header.checksum)
    throw Error(3003, ExitCode::BadInput,
                "the plan's checksum does not match its content", where,
                "the file is damaged or cut short: copy it again");

  // A table and the offset that refers to it take 8 bytes. More visits than
  // that mean tables shared to unfold into more than the file holds, which the
  // object API never writes.
  flatbuffers::Verifier::Options limits;
  limits.max_tables = static_cast<flatbuffers::uoffset_t>(size / 8);
  if (size >= FLATBUFFERS_MAX_BUFFER_SIZE)
    throw Error(3004, ExitCode::BadInput,
                "the plan has " + std::to_string(size) +
                    " bytes, at most 2 GiB are possible",
                where, remake);
  flatbuffers::Verifier verifier(body, size, limits);
  if (!plan::VerifyPlanBuffer(verifier))
    throw Error(3004, ExitCode::BadInput, "the plan's structure is broken",
                where, remake);
  root = plan::GetPlan(body);
  checkPlan(*root, size, where);

  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(header.checksum));
  hash_ = digits;
}

std::shared_ptr<const LoadedPlan>
LoadedPlan::fromBytes(std::vector<uint8_t> bytes, const std::string &where) {
  return std::shared_ptr<const LoadedPlan>(
      new LoadedPlan(std::move(bytes), where));
}

std::shared_ptr<const LoadedPlan>
LoadedPlan::fromFile(const std::string &path) {
  MappedFile file(path);
  return fromBytes({file.data(), file.data() + file.size()}, path);
}

std::optional<uint32_t> LoadedPlan::findFunction(std::string_view name) const {
  return find(*root->functions(), name);
}

std::optional<uint32_t> LoadedPlan::findScalar(std::string_view name) const {
  return find(*root->scalars(), name);
}

std::optional<uint32_t> LoadedPlan::findInput(std::string_view name) const {
  return find(*root->inputs(), name);
}

std::optional<uint32_t> LoadedPlan::findOutput(std::string_view name) const {
  return find(*root->outputs(), name);
}

} // namespace fsdpq::rt
