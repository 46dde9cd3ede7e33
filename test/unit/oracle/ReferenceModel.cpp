#include "test/unit/oracle/ReferenceModel.h"

#include <algorithm>
#include <cmath>

using namespace fsdpq;
using namespace fsdpq::test;

using Vector = std::vector<double>;

/// w x, with w stored [out, in].
static Vector product(const Vector &w, const Vector &x) {
  Vector y(w.size() / x.size());
  for (size_t o = 0; o < y.size(); ++o)
    for (size_t i = 0; i < x.size(); ++i)
      y[o] += w[o * x.size() + i] * x[i];
  return y;
}

static Vector normalised(const Vector &x, const Vector &w, double eps) {
  double squares = 0;
  for (const double value : x)
    squares += value * value;
  const double factor = 1 / std::sqrt(squares / double(x.size()) + eps);
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = x[i] * factor * w[i];
  return y;
}

static double silu(double x) { return x / (1 + std::exp(-x)); }

static void add(Vector &x, const Vector &y) {
  for (size_t i = 0; i < x.size(); ++i)
    x[i] += y[i];
}

/// Rotates the pairs (i, i + E/2) of each head.
static void rotate(Vector &x, int headDim, int position, double theta) {
  for (size_t head = 0; head < x.size(); head += size_t(headDim))
    for (int i = 0; i < headDim / 2; ++i) {
      const double angle = position * std::pow(theta, -2.0 * i / headDim);
      double &a = x[head + size_t(i)], &b = x[head + size_t(i + headDim / 2)];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = b * std::cos(angle) + a * std::sin(angle);
      a = turned;
    }
}

/// What token `t` reads of tokens [begin, t].
static Vector attend(const Vector &q, const std::vector<Vector> &keys,
                     const std::vector<Vector> &values, size_t begin, size_t t,
                     int heads, int kvHeads) {
  const size_t size = q.size() / size_t(heads);
  Vector result(q.size());
  for (size_t h = 0; h < size_t(heads); ++h) {
    const size_t shared = h * size_t(kvHeads) / size_t(heads) * size;
    Vector weights;
    double sum = 0;
    for (size_t s = begin; s <= t; ++s) {
      double score = 0;
      for (size_t i = 0; i < size; ++i)
        score += q[h * size + i] * keys[s][shared + i];
      weights.push_back(std::exp(score / std::sqrt(double(size))));
      sum += weights.back();
    }
    for (size_t s = begin; s <= t; ++s)
      for (size_t i = 0; i < size; ++i)
        result[h * size + i] += weights[s - begin] / sum * values[s][shared + i];
  }
  return result;
}

double fsdpq::test::referenceLoss(const ReferenceShape &shape,
                                  const ReferenceParameters &parameters,
                                  const std::vector<rt::Row> &rows) {
  double loss = 0;
  int labelled = 0;
  for (const rt::Row &row : rows) {
    const size_t tokens = row.ids.size();
    std::vector<Vector> x;
    for (const int32_t id : row.ids) {
      const auto begin = parameters.at("embed").begin() + id * shape.hidden;
      x.emplace_back(begin, begin + shape.hidden);
    }
    for (size_t layer = 0; layer < shape.sliding.size(); ++layer) {
      const auto weight = [&](const char *name) -> const Vector & {
        return parameters.at(std::to_string(layer) + "." + name);
      };
      std::vector<Vector> queries, keys, values;
      for (size_t t = 0; t < tokens; ++t) {
        const Vector h = normalised(x[t], weight("attn_norm"), shape.eps);
        queries.push_back(product(weight("q"), h));
        keys.push_back(product(weight("k"), h));
        values.push_back(product(weight("v"), h));
        for (Vector *each : {&queries.back(), &keys.back()})
          rotate(*each, shape.hidden / shape.heads, int(t), shape.theta);
      }
      for (size_t t = 0; t < tokens; ++t) {
        const auto window = size_t(shape.window);
        const size_t begin =
            shape.sliding[layer] && t + 1 > window ? t + 1 - window : 0;
        add(x[t], product(weight("o"), attend(queries[t], keys, values, begin,
                                              t, shape.heads, shape.kvHeads)));
        const Vector m = normalised(x[t], weight("mlp_norm"), shape.eps);
        Vector f;
        if (shape.sliding[layer]) {
          f = product(weight("gate"), m);
          const Vector up = product(weight("up"), m);
          for (size_t i = 0; i < f.size(); ++i)
            f[i] = silu(f[i]) * up[i];
        } else {
          f = product(weight("in"), m);
          for (double &value : f)
            value = silu(value);
        }
        add(x[t], product(weight("down"), f));
      }
    }
    for (size_t t = 0; t + 1 < tokens; ++t) {
      if (row.labels[t + 1] == rt::kIgnoredLabel)
        continue;
      const Vector logits =
          product(parameters.at("head"),
                  normalised(x[t], parameters.at("final_norm"), shape.eps));
      double sum = 0;
      for (const double logit : logits)
        sum += std::exp(logit);
      loss += std::log(sum) - logits[size_t(row.labels[t + 1])];
      ++labelled;
    }
  }
  return loss / labelled;
}
