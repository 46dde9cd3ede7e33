//===- InstructionRemoval.cpp - Every instruction of a plan matters -------===//
//
// A plan that lacks one instruction must be refused, or must compute something
// else: otherwise the compiler emits work that nothing needs, or tests would not
// notice that it fails to emit it.
//
//===----------------------------------------------------------------------===//

#include "test/unit/oracle/OracleModel.h"

#include "runtime/support/Error.h"
#include "runtime/train/AdapterInit.h"

#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::test;

using Body = std::vector<std::unique_ptr<plan::InstructionT>>;

namespace {
/// What a step shows to its user.
struct Outcome {
  std::vector<double> losses;
  std::vector<float> norms;
  TensorMap gradients, parameters;
  bool operator==(const Outcome &) const = default;
};

/// Where an instruction stands: positions from the function's body inwards.
struct Site {
  std::string function;
  std::vector<size_t> path;
  std::string text;
};
} // namespace

static std::string describe(const plan::PlanT &plan,
                            const plan::InstructionT &instruction) {
  std::string text = plan::EnumNameOp(instruction.op.type);
  if (const plan::LaunchT *launch = instruction.op.AsLaunch())
    text += " " + plan.kernels[launch->kernel]->name;
  return text + " (" + instruction.location + ")";
}

static void collect(const plan::PlanT &plan, const std::string &function,
                    const Body &body, std::vector<size_t> &path,
                    std::vector<Site> &sites) {
  for (size_t i = 0; i < body.size(); ++i) {
    path.push_back(i);
    sites.push_back({function, path, describe(plan, *body[i])});
    if (const plan::LoopT *loop = body[i]->op.AsLoop())
      collect(plan, function, loop->body, path, sites);
    path.pop_back();
  }
}

static std::vector<Site> sitesOf(const plan::PlanT &plan) {
  std::vector<Site> sites;
  std::vector<size_t> path;
  for (const auto &function : plan.functions)
    if (function->name == "micro_step" || function->name == "optimizer_step")
      collect(plan, function->name, function->body, path, sites);
  return sites;
}

static void remove(plan::PlanT &plan, const Site &site) {
  for (const auto &function : plan.functions) {
    if (function->name != site.function)
      continue;
    Body *body = &function->body;
    for (size_t depth = 0; depth + 1 < site.path.size(); ++depth)
      body = &(*body)[site.path[depth]]->op.AsLoop()->body;
    body->erase(body->begin() + static_cast<ptrdiff_t>(site.path.back()));
  }
}

/// Two accumulated micro-batches, an update, another micro-batch: what must be
/// cleared or added to shows.
static Outcome execute(const std::vector<uint8_t> &bytes,
                       const std::string &folder) {
  OracleModel model(rt::LoadedPlan::fromBytes(bytes, "less one"));
  model.load(folder);
  rt::initialiseAdapters(model.executor(), 1);
  TensorMap parameters = model.parameters();
  // B is zero at first, which would hide the gradient of A.
  for (auto &[name, values] : parameters)
    if (name.find("lora_B") != std::string::npos)
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = 0.01f * static_cast<float>(int(i % 7) - 3);
  model.setParameters(parameters);

  const rt::MicroBatch batches[] = {
      rt::packRows(randomRows({40, 30}, 384, 1, 3), 512),
      rt::packRows(randomRows({60}, 384, 2), 512),
      rt::packRows(randomRows({33, 5, 20}, 384, 4), 512)};
  Outcome outcome;
  for (int k : {0, 1})
    outcome.losses.push_back(model.microStep(batches[k], 0.01));
  outcome.gradients = model.gradients();
  outcome.norms.push_back(model.optimizerStep(1, 1e-2, 0.1));
  outcome.losses.push_back(model.microStep(batches[2], 0.02));
  outcome.norms.push_back(model.optimizerStep(2, 1e-2, 0.1));
  outcome.parameters = model.parameters();
  return outcome;
}

static void expectAllMatter(const CompileOptions &options,
                            const std::string &model) {
  const std::vector<uint8_t> bytes = compileBytes(options);
  const std::string folder = oraclePath(model);
  const auto loaded = rt::LoadedPlan::fromBytes(bytes, "whole");
  std::unique_ptr<plan::PlanT> whole(loaded->plan().UnPack());
  const Outcome outcome = execute(bytes, folder);
  ASSERT_EQ(outcome, execute(rt::encodePlan(*whole), folder));
  const std::vector<Site> sites = sitesOf(*whole);
  ASSERT_GT(sites.size(), 30u);
  size_t changed = 0, refused = 0;
  for (const Site &site : sites) {
    std::unique_ptr<plan::PlanT> less(loaded->plan().UnPack());
    remove(*less, site);
    try {
      if (execute(rt::encodePlan(*less), folder) != outcome) {
        ++changed;
        continue;
      }
    } catch (const rt::Error &) {
      ++refused;
      continue;
    }
    std::string path;
    for (const size_t position : site.path)
      path += "/" + std::to_string(position);
    ADD_FAILURE() << site.function << path << ": " << site.text
                  << " changes nothing";
  }
  testing::Test::RecordProperty("instructions", static_cast<int>(sites.size()));
  testing::Test::RecordProperty("refused", static_cast<int>(refused));
  // A plan is refused for its form; most removals leave a plan that runs.
  EXPECT_GT(changed, sites.size() / 2);
}

TEST(InstructionRemoval, FullTraining) {
  expectAllMatter(llamaOptions("llama_mha", {"micro_step"}), "llama_mha");
}

TEST(InstructionRemoval, QuantisedBaseWithCheckpointing) {
  CompileOptions options = llamaOptions("llama_mha", {"micro_step"});
  options.trainAll = false;
  options.loraRank = 4;
  options.loraScale = 2;
  options.loraTargets = {"q_proj", "v_proj", "up_proj"};
  options.quantScheme = "!qt.nf4<block = 64, scale = dq<256>>";
  options.checkpointing = true;
  expectAllMatter(options, "llama_mha");
}
