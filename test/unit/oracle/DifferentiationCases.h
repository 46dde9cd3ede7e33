//===- DifferentiationCases.h - One use of each operation -------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace fsdpq::test {

/// A small function of trainable parameters.
struct DifferentiationCase {
  std::string op;   ///< what it is for, "tfm.add"
  std::string name; ///< of the test
  struct Parameter {
    std::string name;
    std::vector<int64_t> shape;
  };
  /// Inside `body`, %NAME is the parameter's value.
  std::vector<Parameter> parameters;
  struct Ids {
    std::string name;
    std::vector<int32_t> values;
  };
  std::vector<Ids> ids;
  std::string body;
  /// A result of `body`. A matrix counts with fixed random weights; a vector
  /// (columns = 0) is reported as it is.
  struct Output {
    std::string value;
    int64_t rows, columns;
  };
  std::vector<Output> outputs;
  /// Products are computed by emitted kernels, otherwise by kern.gemm's
  /// definition (the only form for parts of wider matrices in f64).
  bool emitProducts = true;
};

/// For GoogleTest's messages.
void PrintTo(const DifferentiationCase &test, std::ostream *os);

const std::vector<DifferentiationCase> &differentiationCases();

} // namespace fsdpq::test
