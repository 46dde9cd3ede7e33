//===- Elements.h - Sizes of the plan's element types -----------*- C++ -*-===//
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace fsdpq::rt {

/// Bytes of one element of a GEMM operand; 0 for a value the schema lacks.
inline int64_t elementBytes(plan::DType type) {
  switch (type) {
  case plan::DType::F32:
    return 4;
  case plan::DType::F64:
    return 8;
  case plan::DType::BF16:
    return 2;
  }
  return 0;
}

/// Bytes of one element of a collective; 0 for a value the schema lacks.
inline int64_t elementBytes(plan::CommType type) {
  switch (type) {
  case plan::CommType::U8:
    return 1;
  case plan::CommType::F32:
    return 4;
  case plan::CommType::F64:
    return 8;
  }
  return 0;
}

/// Bytes of one element of a port or of a parameter's component.
inline std::optional<int64_t> elementBytes(std::string_view type) {
  if (type == "f32" || type == "i32")
    return 4;
  if (type == "bf16")
    return 2;
  if (type == "u8")
    return 1;
  return std::nullopt;
}

} // namespace fsdpq::rt
