//===- KernelCases.h - Kernels with inputs to check them on -----*- C++ -*-===//
#pragma once

#include "dialects/Kern/Kern.h"
#include "mlir/IR/Builders.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace fsdpq::test {

enum class ElementKind { F32, F64, BF16, I32, I8 };

inline size_t bytesOf(ElementKind kind) {
  constexpr size_t sizes[] = {4, 8, 2, 4, 1};
  return sizes[static_cast<int>(kind)];
}

enum class Role { In, Out, InOut };

/// An array argument. Outputs begin as NaN (or 0xA5).
struct Array {
  ElementKind kind;
  int64_t count;
  Role role = Role::In;
  double low = -1, high = 1; ///< of uniform random values
  std::vector<int32_t> values{}; ///< of an I32 array, instead
};

/// A kernel and what to run it on. Arguments: the arrays, then integers, then
/// reals.
struct Case {
  std::string name;
  std::function<kern::FuncOp(OpBuilder &, Location)> build;
  std::vector<Array> arrays;
  int64_t items;
  std::vector<int64_t> integers{};
  std::vector<double> reals{};
  double tolerance = 0; ///< 0: by the output's type

  std::vector<std::vector<uint8_t>> makeArrays() const;
  /// Bytes of all arrays, those of InOut twice.
  double touchedBytes() const;
};

/// Cases by group.
std::map<std::string, std::vector<Case>> makeCases();

} // namespace fsdpq::test
