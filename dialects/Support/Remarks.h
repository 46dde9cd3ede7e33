//===- Remarks.h - Why the compiler did what it did -------------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/IR/Remarks.h"

#include "llvm/ADT/DenseMapInfo.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

#include "dialects/Support/Remarks.h.inc"

namespace fsdpq {

/// Something was done: `remarkPassed(loc, RemarkId::FuseQkv) << "..."`. Costs
/// nothing unless remarks are asked for.
inline remark::detail::InFlightRemark remarkPassed(Location loc, RemarkId id) {
  return remark::passed(
      loc, remark::RemarkOpts::name(stringifyRemarkId(id)).category("fsdpq"));
}

/// Something worth having was not done, and why.
inline remark::detail::InFlightRemark remarkMissed(Location loc, RemarkId id) {
  return remark::missed(
      loc, remark::RemarkOpts::name(stringifyRemarkId(id)).category("fsdpq"));
}

/// A size or choice to know about.
inline remark::detail::InFlightRemark remarkAnalysis(Location loc, RemarkId id) {
  return remark::analysis(
      loc, remark::RemarkOpts::name(stringifyRemarkId(id)).category("fsdpq"));
}

/// Bytes as people read them: "1.3 GiB".
std::string formatBytes(int64_t bytes);

} // namespace fsdpq
