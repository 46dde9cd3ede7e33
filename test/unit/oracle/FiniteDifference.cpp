//===- FiniteDifference.cpp - Derivative rules against differences --------===//
//
// Every operation of the tfm dialect with a derivative rule is differentiated by
// tfm-autodiff inside a small f64 function, the result runs as kernels, and the
// gradients must agree with differences of the function itself.
//
//===----------------------------------------------------------------------===//

#include "test/unit/oracle/DifferentiationCases.h"
#include "test/unit/oracle/KernelGraph.h"

#include "compiler/Grad/Passes.h"
#include "compiler/Kernel/Passes.h"
#include "compiler/Pipelines/Registration.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::test;

namespace {
std::vector<double> uniform(size_t count, double bound, std::mt19937 &generator) {
  std::uniform_real_distribution<double> distribution(-bound, bound);
  std::vector<double> values(count);
  for (double &value : values)
    value = distribution(generator);
  return values;
}

std::string f64Tensor(ArrayRef<int64_t> shape) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + "f64>";
}

/// A case as an architecture whose @micro_step reports the objective.
class Program {
public:
  explicit Program(const DifferentiationCase &test) {
    std::string params, uses, signature, objective;
    auto addArgument = [&](const std::string &name, const std::string &type) {
      signature += (signature.empty() ? "%" : ", %") + name + ": " + type;
    };
    for (const auto &[name, shape] : test.parameters) {
      params += "tfm.param @" + name + " : " + f64Tensor(shape) +
                " {init = \"zeros\", trainable}\n";
      uses += "%" + name + " = tfm.use [@" + name + "] : " + f64Tensor(shape) +
              "\n";
    }
    for (const auto &[name, values] : test.ids) {
      addArgument(name, "tensor<" + std::to_string(values.size()) + "xi32>");
      arguments.push_back({{}, values});
    }
    for (auto [index, output] : llvm::enumerate(test.outputs)) {
      const std::string n = std::to_string(index);
      std::string rows = output.value;
      std::string rowsType = f64Tensor(output.rows);
      if (output.columns > 0) {
        // sum(y * weights), by way of the sums of its rows.
        const std::string type = f64Tensor({output.rows, output.columns});
        const std::string ones = f64Tensor({output.columns, 1});
        addArgument("weights" + n, type);
        arguments.push_back(
            {uniform(output.rows * output.columns, 1, generator), {}});
        addArgument("ones" + n, ones);
        arguments.push_back({std::vector<double>(output.columns, 1.0), {}});
        rows = "%rows" + n;
        rowsType = f64Tensor({output.rows, 1});
        objective += "%z" + n + " = tfm.mul " + output.value + ", %weights" + n +
                     " : " + type + ", " + type + "\n" + rows +
                     " = tfm.matmul %z" + n + ", %ones" + n + " : " + type +
                     ", " + ones + "\n";
      }
      objective += "tfm.report_loss " + rows +
                   " {weight = \"loss_weight\"} : " + rowsType + "\n";
    }
    text = "tfm.architecture @m {\n" + params + "tfm.func @micro_step(" +
           signature + ") {\n" + uses + test.body + "\n" + objective +
           "tfm.return\n}\n}\n";

    DialectRegistry registry;
    registerCompilerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      errors += diagnostic.str() + "\n";
    });
    module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    if (!module)
      return;
    PassManager manager(&context);
    manager.addPass(createTfmCheckDifferentiable());
    manager.addPass(createTfmAutodiff());
    manager.addPass(createKernOutline());
    if (test.emitProducts) {
      KernSelectImplOptions implementation;
      implementation.impl = "emitted";
      manager.addPass(createKernSelectImpl(implementation));
    }
    if (failed(manager.run(*module)))
      return;
    auto architecture = *module->getOps<tfm::ArchitectureOp>().begin();
    step = architecture.lookupSymbol<tfm::FuncOp>("micro_step");
    graph = std::make_unique<KernelGraph>(architecture);
    if (graph->failed()) {
      graph.reset();
      return;
    }
    graph->parameters = uniform(graph->parameters.size(), 1.5, generator);
  }

  double objective() { return graph->run(step, arguments); }

  /// The derivative of the objective along `direction`, by the five-point
  /// difference: its error is of order h^4.
  double difference(const std::vector<double> &direction) {
    constexpr double h = 1e-3;
    const std::vector<double> centre = graph->parameters;
    auto at = [&](double factor) {
      for (size_t i = 0; i < centre.size(); ++i)
        graph->parameters[i] = centre[i] + factor * h * direction[i];
      return objective();
    };
    const double result = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h);
    graph->parameters = centre;
    return result;
  }

  std::mt19937 generator{7};
  std::vector<KernelGraph::Argument> arguments;
  std::string text, errors;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  tfm::FuncOp step;
  std::unique_ptr<KernelGraph> graph;
};

class FiniteDifference : public testing::TestWithParam<DifferentiationCase> {};
} // namespace

/// Single elements of every parameter (all, or some chosen at random), then
/// directions through all of them.
TEST_P(FiniteDifference, AgreesWithTheRule) {
  Program program(GetParam());
  ASSERT_TRUE(program.graph) << program.text << program.errors;
  KernelGraph &graph = *program.graph;
  ASSERT_NE(program.objective(), 0);
  const std::vector<double> once = graph.gradients;
  program.objective();
  const std::vector<double> twice = graph.gradients;
  const size_t count = once.size();
  // Gradients add up.
  for (size_t i = 0; i < count; ++i)
    ASSERT_NEAR(twice[i], 2 * once[i], 1e-12 * (1 + std::abs(once[i]))) << i;

  for (const auto &[name, shape] : GetParam().parameters) {
    auto [begin, size] = graph.place(name);
    double squares = 0;
    for (size_t i = begin; i < begin + size; ++i)
      squares += once[i] * once[i];
    ASSERT_GT(squares, 0) << name;
    const double usual = std::sqrt(squares / double(size));
    std::vector<size_t> chosen(size);
    for (size_t i = 0; i < size; ++i)
      chosen[i] = begin + i;
    if (size > 64) {
      std::shuffle(chosen.begin(), chosen.end(), program.generator);
      chosen.resize(64);
    }
    for (size_t i : chosen) {
      std::vector<double> direction(count);
      direction[i] = 1;
      ASSERT_NEAR(once[i], program.difference(direction),
                  1e-6 * std::max(usual, std::abs(once[i])))
          << name << "[" << i - begin << "]";
    }
  }
  for (int i = 0; i < 4; ++i) {
    const std::vector<double> direction = uniform(count, 1, program.generator);
    double along = 0, squares = 0;
    for (size_t k = 0; k < count; ++k) {
      along += once[k] * direction[k];
      squares += once[k] * once[k] * direction[k] * direction[k];
    }
    ASSERT_NEAR(along, program.difference(direction), 1e-6 * std::sqrt(squares));
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, FiniteDifference,
                         testing::ValuesIn(differentiationCases()),
                         [](const auto &info) { return info.param.name; });

TEST(FiniteDifferenceTable, HasEveryOperationWithARule) {
  DialectRegistry registry;
  registerCompilerDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  llvm::StringSet<> covered;
  for (const DifferentiationCase &test : differentiationCases()) {
    covered.insert(test.op);
    // tfm.report_loss is part of every objective.
    EXPECT_TRUE(test.op == "tfm.report_loss" ||
                test.body.find(test.op + " ") != std::string::npos ||
                test.body.find(test.op + "(") != std::string::npos)
        << test.name << " does not use " << test.op;
  }
  int rules = 0;
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    if (!name.hasInterface<tfm::DifferentiableOpInterface>())
      continue;
    ++rules;
    EXPECT_TRUE(covered.contains(name.getStringRef()))
        << name.getStringRef().str() << " registers a derivative; add a case";
  }
  EXPECT_GT(rules, 0);
}
