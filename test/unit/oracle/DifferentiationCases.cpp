#include "test/unit/oracle/DifferentiationCases.h"

#include <ostream>

using namespace fsdpq::test;

using Case = DifferentiationCase;

static std::string tensor(int64_t rows, int64_t columns) {
  return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) +
         "xf64>";
}

/// y = op(a) op(b) with m, n, k = 5, 3, 4.
static Case matmul(bool transA, bool transB) {
  const std::vector<int64_t> a = transA ? std::vector<int64_t>{4, 5}
                                        : std::vector<int64_t>{5, 4};
  const std::vector<int64_t> b = transB ? std::vector<int64_t>{3, 4}
                                        : std::vector<int64_t>{4, 3};
  std::string attributes;
  if (transA || transB)
    attributes = std::string(" {") + (transA ? "trans_a" : "") +
                 (transA && transB ? ", " : "") + (transB ? "trans_b" : "") +
                 "}";
  return {"tfm.matmul",
          std::string("matmul_") + (transA ? "t" : "n") + (transB ? "t" : "n"),
          {{"a", a}, {"b", b}},
          {},
          "%y = tfm.matmul %a, %b" + attributes + " : " + tensor(a[0], a[1]) +
              ", " + tensor(b[0], b[1]),
          {{"%y", 5, 3}},
          // Emitted kernels lack the form with both transposed.
          /*emitProducts=*/!(transA && transB)};
}

/// Segment starts of rows that begin at `starts`.
static std::vector<int32_t> segments(int32_t tokens,
                                     const std::vector<int32_t> &starts) {
  std::vector<int32_t> result;
  size_t next = 0;
  for (int32_t t = 0; t < tokens; ++t) {
    if (next + 1 < starts.size() && starts[next + 1] == t)
      ++next;
    result.push_back(starts[next]);
  }
  return result;
}

/// 128 tokens, 4 heads of 4 columns.
static Case attention(const std::string &name, int64_t kvHeads, bool packed,
                      const std::string &options,
                      const std::vector<int32_t> &starts) {
  const int64_t kv = 4 * kvHeads;
  Case result{"tfm.attention", name, {}, {{"seg", segments(128, starts)}}, "",
              {{"%y", 128, 16}}};
  std::string operands, types;
  if (packed) {
    result.parameters = {{"qkv", {128, 16 + 2 * kv}}};
    operands = "%qkv";
    types = tensor(128, 16 + 2 * kv);
  } else {
    result.parameters = {{"q", {128, 16}}, {"k", {128, kv}}, {"v", {128, kv}}};
    operands = "%q, %k, %v";
    types = tensor(128, 16) + ", " + tensor(128, kv) + ", " + tensor(128, kv);
  }
  result.body = "%y, %lse = tfm.attention(" + operands +
                ") %seg {heads = 4 : i64, kv_heads = " +
                std::to_string(kvHeads) + " : i64" + options + "} : (" + types +
                "), tensor<128xi32>";
  return result;
}

/// Two heads of 6 columns and two columns that pass.
static Case rope(bool inverse) {
  return {"tfm.rope",
          inverse ? "rope_inverse" : "rope",
          {{"x", {8, 14}}},
          {{"positions", {0, 1, 2, 3, 4, 0, 1, 2}}},
          "%table = tfm.rope_table %positions {theta = 1.0e2} : tensor<8xi32> "
          "-> tensor<8x6xf64>\n"
          "%y = tfm.rope %x, %table {heads = 2 : i64" +
              std::string(inverse ? ", inverse" : "") +
              "} : tensor<8x14xf64>, tensor<8x6xf64>",
          {{"%y", 8, 14}}};
}

static std::vector<Case> makeCases() {
  std::vector<Case> cases = {
      {"tfm.embedding",
       "embedding", // 3 is repeated, 1 is never read
       {{"table", {6, 4}}},
       {{"ids", {3, 0, 5, 3, 2, 3, 4}}},
       "%y = tfm.embedding %ids, %table : tensor<7xi32>, tensor<6x4xf64>",
       {{"%y", 7, 4}}},
      {"tfm.linear",
       "linear",
       {{"x", {7, 5}}, {"w", {3, 5}}},
       {},
       "%y = tfm.linear %x, %w : tensor<7x5xf64>, tensor<3x5xf64>",
       {{"%y", 7, 3}}},
      {"tfm.lora_linear",
       "lora_one_part",
       {{"x", {7, 5}}, {"w", {6, 5}}, {"a", {2, 5}}, {"b", {6, 2}}},
       {},
       "%y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 1.5, parts = "
       "array<i64: 6>, adapted = array<i1: true>} : tensor<7x5xf64>, "
       "tensor<6x5xf64>, tensor<2x5xf64>, tensor<6x2xf64>",
       {{"%y", 7, 6}}},
      {"tfm.lora_linear",
       "lora_partly_adapted",
       {{"x", {7, 5}}, {"w", {12, 5}}, {"a", {4, 5}}, {"b", {10, 2}}},
       {},
       "%y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 1.5, parts = "
       "array<i64: 4, 2, 6>, adapted = array<i1: true, false, true>} : "
       "tensor<7x5xf64>, tensor<12x5xf64>, tensor<4x5xf64>, tensor<10x2xf64>",
       {{"%y", 7, 12}},
       /*emitProducts=*/false},
      {"tfm.lora_linear",
       "lora_dropout",
       {{"x", {7, 5}}, {"w", {12, 5}}, {"a", {4, 5}}, {"b", {10, 2}}},
       {},
       "%y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 1.5, parts = "
       "array<i64: 4, 2, 6>, adapted = array<i1: true, false, true>, mask = "
       "#tfm.dropout<rate = 0.4 : f64, site = 3>} : "
       "tensor<7x5xf64>, tensor<12x5xf64>, tensor<4x5xf64>, tensor<10x2xf64>",
       {{"%y", 7, 12}},
       /*emitProducts=*/false},
      {"tfm.dropout",
       "dropout",
       {{"x", {7, 5}}},
       {},
       "%y = tfm.dropout %x {mask = #tfm.dropout<rate = 0.4 : f64, site = 1>} : "
       "tensor<7x5xf64>",
       {{"%y", 7, 5}}},
      matmul(false, false),
      matmul(false, true),
      matmul(true, false),
      matmul(true, true),
      {"tfm.matmul",
       "matmul_square", // both operands are one value
       {{"a", {4, 4}}},
       {},
       "%y = tfm.matmul %a, %a {trans_b} : tensor<4x4xf64>, tensor<4x4xf64>",
       {{"%y", 4, 4}}},
      {"tfm.rms_norm",
       "rms_norm",
       {{"x", {7, 6}}, {"w", {6}}},
       {},
       "%y, %rstd = tfm.rms_norm %x, %w {eps = 1.0e-2} : tensor<7x6xf64>, "
       "tensor<6xf64>",
       {{"%y", 7, 6}}},
      {"tfm.add_rms_norm",
       "add_rms_norm", // both results are used
       {{"x", {7, 6}}, {"r", {7, 6}}, {"w", {6}}},
       {},
       "%sum, %y, %rstd = tfm.add_rms_norm %x, %r, %w {eps = 1.0e-2} : "
       "tensor<7x6xf64>, tensor<7x6xf64>, tensor<6xf64>",
       {{"%y", 7, 6}, {"%sum", 7, 6}}},
      {"tfm.add_rms_norm",
       "add_rms_norm_result_only",
       {{"x", {7, 6}}, {"r", {7, 6}}, {"w", {6}}},
       {},
       "%sum, %y, %rstd = tfm.add_rms_norm %x, %r, %w {eps = 1.0e-2} : "
       "tensor<7x6xf64>, tensor<7x6xf64>, tensor<6xf64>",
       {{"%y", 7, 6}}},
      rope(false),
      rope(true),
      attention("attention", 4, false, "", {0}),
      attention("attention_grouped_segments", 2, false, "", {0, 37, 40, 96}),
      attention("attention_window", 1, false,
                ", window = 20 : i64, scale = 0.7", {0, 50}),
      attention("attention_packed_window", 2, true, ", window = 33 : i64",
                {0, 70, 71}),
      attention("attention_packed", 4, true, ", scale = 0.9", {0, 64}),
      {"tfm.silu",
       "silu",
       {{"x", {7, 5}}},
       {},
       "%y = tfm.silu %x : tensor<7x5xf64>",
       {{"%y", 7, 5}}},
      {"tfm.gated_silu",
       "gated_silu",
       {{"gate", {7, 5}}, {"up", {7, 5}}},
       {},
       "%y = tfm.gated_silu %gate, %up : tensor<7x5xf64>, tensor<7x5xf64>",
       {{"%y", 7, 5}}},
      {"tfm.gated_silu",
       "gated_silu_packed",
       {{"gate_up", {7, 10}}},
       {},
       "%y = tfm.gated_silu %gate_up : tensor<7x10xf64>",
       {{"%y", 7, 5}}},
      {"tfm.add",
       "add",
       {{"a", {7, 5}}, {"b", {7, 5}}},
       {},
       "%y = tfm.add %a, %b : tensor<7x5xf64>, tensor<7x5xf64>",
       {{"%y", 7, 5}}},
      {"tfm.add",
       "add_twice", // both operands are one value
       {{"a", {7, 5}}},
       {},
       "%y = tfm.add %a, %a : tensor<7x5xf64>, tensor<7x5xf64>",
       {{"%y", 7, 5}}},
      {"tfm.mul",
       "mul",
       {{"a", {7, 5}}, {"b", {7, 5}}},
       {},
       "%y = tfm.mul %a, %b : tensor<7x5xf64>, tensor<7x5xf64>",
       {{"%y", 7, 5}}},
      {"tfm.mul",
       "mul_square",
       {{"a", {7, 5}}},
       {},
       "%y = tfm.mul %a, %a : tensor<7x5xf64>, tensor<7x5xf64>",
       {{"%y", 7, 5}}},
      {"tfm.scale",
       "scale",
       {{"x", {7, 5}}},
       {},
       "%y = tfm.scale %x {factor = -1.25} : tensor<7x5xf64>",
       {{"%y", 7, 5}}},
      {"tfm.cast",
       "cast",
       {{"x", {7, 5}}},
       {},
       "%y = tfm.cast %x : tensor<7x5xf64> -> tensor<7x5xf64>",
       {{"%y", 7, 5}}},
      {"tfm.gather_rows",
       "gather_rows",
       {{"x", {6, 5}}},
       {{"rows", {4, 0, 5}}, {"index", {1, -1, -1, -1, 0, 2}}},
       "%y = tfm.gather_rows %x, %rows, %index : tensor<6x5xf64>, "
       "tensor<3xi32>, tensor<6xi32>",
       {{"%y", 3, 5}}},
      {"tfm.cross_entropy",
       "cross_entropy", // rows 1 and 4 are ignored
       {{"logits", {6, 9}}},
       {{"targets", {3, -1, 0, 8, -1, 3}}},
       "%loss, %lse = tfm.cross_entropy %logits, %targets : tensor<6x9xf64>, "
       "tensor<6xi32>",
       {{"%loss", 6, 0}}},
      {"tfm.report_loss",
       "report_loss", // the same rows twice
       {{"x", {4, 3}}, {"w", {5, 3}}},
       {{"targets", {2, 0, 4, -1}}},
       "%l = tfm.linear %x, %w : tensor<4x3xf64>, tensor<5x3xf64>\n"
       "%loss, %lse = tfm.cross_entropy %l, %targets : tensor<4x5xf64>, "
       "tensor<4xi32>",
       {{"%loss", 4, 0}, {"%l", 4, 5}}},
      // Rules meet: a value used three times, a parameter used twice.
      {"tfm.add",
       "several_uses",
       {{"x", {7, 4}}, {"w", {4, 4}}},
       {},
       "%h = tfm.linear %x, %w : tensor<7x4xf64>, tensor<4x4xf64>\n"
       "%s = tfm.silu %h : tensor<7x4xf64>\n"
       "%m = tfm.mul %h, %s : tensor<7x4xf64>, tensor<7x4xf64>\n"
       "%p = tfm.linear %m, %w : tensor<7x4xf64>, tensor<4x4xf64>\n"
       "%y = tfm.add %p, %h : tensor<7x4xf64>, tensor<7x4xf64>",
       {{"%y", 7, 4}}},
  };
  return cases;
}

void fsdpq::test::PrintTo(const Case &test, std::ostream *os) {
  *os << test.name;
}

const std::vector<Case> &fsdpq::test::differentiationCases() {
  static const std::vector<Case> cases = makeCases();
  return cases;
}
