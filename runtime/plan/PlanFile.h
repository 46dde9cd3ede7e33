//===- PlanFile.h - Plans as bytes ------------------------------*- C++ -*-===//
//
// The file format is described at the head of plan.fbs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

/// Raised with every incompatible change of plan.fbs.
inline constexpr uint32_t planVersion = 3;
/// The header of a plan file, before the FlatBuffer.
inline constexpr size_t planHeaderBytes = 24;

/// The file form of `plan`: header, checksum, FlatBuffer. Equal plans have
/// equal bytes.
std::vector<uint8_t> encodePlan(const plan::PlanT &plan);

/// A plan that passed every check (header, checksum, FlatBuffers' verifier,
/// checkPlan) together with the bytes it lives in. Immutable.
class LoadedPlan {
public:
  /// `where` names the source in messages. Throws Error (BadInput): 3001 not a
  /// plan, 3002 other version, 3003 checksum, 3004 broken structure, 3010-3025
  /// see PlanCheck.h.
  static std::shared_ptr<const LoadedPlan> fromBytes(std::vector<uint8_t> bytes,
                                                     const std::string &where);
  /// Also throws Error 1301, 1302 when the file cannot be read.
  static std::shared_ptr<const LoadedPlan> fromFile(const std::string &path);

  const plan::Plan &plan() const { return *root; }
  /// The checksum as 16 hexadecimal digits: equal for equal plans only.
  const std::string &hash() const { return hash_; }

  std::optional<uint32_t> findFunction(std::string_view name) const;
  std::optional<uint32_t> findScalar(std::string_view name) const;
  std::optional<uint32_t> findInput(std::string_view name) const;
  std::optional<uint32_t> findOutput(std::string_view name) const;

private:
  LoadedPlan(std::vector<uint8_t> bytes, const std::string &where);

  std::vector<uint8_t> bytes;
  const plan::Plan *root;
  std::string hash_;
};

} // namespace fsdpq::rt
