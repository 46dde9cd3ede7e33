//===- ReferenceModel.h - A transformer by its definition, in f64 -*- C++ -*-===//
//
// The architecture of test/Inputs/oracle/two_kinds.mlir, row by row and token by
// token, without any of the code under test.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "test/unit/oracle/OracleModel.h"

namespace fsdpq::test {

struct ReferenceShape {
  int hidden, inner, heads, kvHeads, vocabulary;
  double eps, theta;
  int window;
  std::vector<bool> sliding; ///< of each layer
};

using ReferenceParameters = std::map<std::string, std::vector<double>>;

/// The mean loss over the labelled tokens of all rows.
double referenceLoss(const ReferenceShape &shape,
                     const ReferenceParameters &parameters,
                     const std::vector<rt::Row> &rows);

} // namespace fsdpq::test
