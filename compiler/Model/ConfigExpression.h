//===- ConfigExpression.h - Values out of a model's configuration -*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/IR/Attributes.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace fsdpq {

/// Evaluates an expression of `tfm.architecture`'s `config` (the op documents
/// the grammar) over a JSON object. The result is an i64, f64, bool, string,
/// array or dictionary attribute, or null for `none`. An error names the keys
/// that were looked for or the value that does not fit.
llvm::Expected<Attribute> evaluateConfig(StringRef expression,
                                         const llvm::json::Object &config,
                                         MLIRContext *context);

} // namespace fsdpq
