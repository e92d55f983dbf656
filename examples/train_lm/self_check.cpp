// SPDX-License-Identifier: Apache-2.0
// A gradient g of f is right when along any direction u  (f(x + h u) - f(x - h u)) / 2h = g . u.  For a block, f is the
// dot product of its output with fixed random numbers and u is random. For the model, u is g / |g|, one parameter
// tensor at a time: the derivative is then |g|, the largest there is, and stands out of the noise of rounding to BF16.
#include "self_check.hpp"

#include <cmath>
#include <cstdio>
#include <functional>

#include "blocks/cross_entropy.hpp"
#include "blocks/embedding.hpp"
#include "blocks/linear.hpp"
#include "blocks/rms_norm.hpp"
#include "blocks/rope.hpp"
#include "blocks/silu.hpp"
#include "model.hpp"

namespace train_lm {
namespace {

class checker {
 public:
  matrix normal(index rows, index cols) {
    return matrix::NullaryExpr(rows, cols, [this] { return random_.normal(); });
  }
  std::vector<std::uint8_t> bytes(index n) {
    std::vector<std::uint8_t> out(static_cast<std::size_t>(n));
    for (std::uint8_t& b : out) b = static_cast<std::uint8_t>(random_.below(model_shape::vocabulary));
    return out;
  }

  /// gradient: of f with respect to x, which f reads by reference.
  void block(const char* name, matrix& x, in_ref gradient, const std::function<double()>& f) {
    constexpr float h = 1e-2f;  // FP32 blocks: truncation h^2 and cancellation 1e-7 / h are both about 1e-4
    const matrix u = normal(x.rows(), x.cols()), kept = x;
    x = kept + h * u;
    const double above = f();
    x = kept - h * u;
    const double below = f();
    x = kept;
    compare(name, (above - below) / (2.0 * static_cast<double>(h)), dot(gradient, u), gradient.norm(), 2e-3);
  }

  /// Agreement up to tolerance times `size`, the scale of the quantity: a derivative may itself be near zero.
  void compare(const std::string& name, double numeric, double analytic, double size, double tolerance) {
    const double error = std::abs(numeric - analytic) / size;
    const bool agree = error <= tolerance;  // false for NaN
    passed_ = passed_ && agree;
    std::printf("%-6s %-28s finite difference %+.5e  gradient %+.5e  error %.1e (limit %.0e)\n",
                agree ? "ok" : "FAILED", name.c_str(), numeric, analytic, error, tolerance);
  }

  static double dot(in_ref a, in_ref b) { return a.cast<double>().cwiseProduct(b.cast<double>()).sum(); }
  bool passed() const { return passed_; }

 private:
  random_source random_{0, stream::self_check};
  bool passed_ = true;
};

void check_blocks(checker& c) {
  constexpr index rows = 6, width = 8;
  const matrix probe = c.normal(rows, width);  // f = probe . y, so dy = probe
  matrix x = c.normal(rows, width), y(rows, width), dx(rows, width);

  matrix w = c.normal(width, width), b = c.normal(1, width), dw = w, db = b;
  const auto linear = [&] { return linear::forward(x, w, b, y), checker::dot(y, probe); };
  linear::backward(x, w, probe, dw, db, dx);
  c.block("linear, input", x, dx, linear);
  c.block("linear, weight", w, dw, linear);
  c.block("linear, bias", b, db, linear);

  column r(rows);
  matrix g = c.normal(1, width), dg = g;
  const auto norm = [&] { return rms_norm::forward(x, g, y, r), checker::dot(y, probe); };
  norm();
  dx.setZero();
  rms_norm::backward(x, g, r, probe, dg, dx);
  c.block("rms_norm, input", x, dx, norm);
  c.block("rms_norm, gain", g, dg, norm);

  dx = probe;
  silu::backward(x, dx);
  c.block("silu", x, dx, [&] { return silu::forward(x, y), checker::dot(y, probe); });

  const rope turn(rows / 2, width / 2);  // two sequences, two heads
  dx = probe;
  turn.backward(dx);
  c.block("rope", x, dx, [&] { return y = x, turn.forward(y), checker::dot(y, probe); });

  const std::vector<std::uint8_t> tokens = c.bytes(rows);
  matrix table = c.normal(model_shape::vocabulary, width), dtable = table;
  embedding::backward(tokens, probe, dtable);
  c.block("embedding", table, dtable, [&] { return embedding::forward(tokens, table, y), checker::dot(y, probe); });

  matrix logits = c.normal(rows, model_shape::vocabulary), dlogits = logits;
  cross_entropy::forward_backward(tokens, dlogits);
  c.block("cross_entropy", logits, dlogits, [&] {
    matrix z = logits;
    return cross_entropy::forward_backward(tokens, z);
  });
}

void check_model(checker& c, const arm& a) {
  const model_shape shape{.layers = 2, .width = 64, .heads = 2, .context = 32, .batch = 2};
  model m(shape, a, random_source(0, stream::initialisation));
  // Norms and biases start at 1 and 0, where a wrong gradient could look right: move them away.
  for (const tensor_info& t : m.weights.tensors)
    if (!t.decays()) m.weights.values.segment(t.offset, t.size()) += 0.2f * c.normal(t.cols, 1).array();
  const batch data{.tokens = c.bytes(shape.tokens()), .targets = c.bytes(shape.tokens())};
  m.forward(data);
  m.backward(data);
  for (const tensor_info& t : m.weights.tensors) {
    auto w = m.weights.values.segment(t.offset, t.size());
    const auto g = m.gradients.values.segment(t.offset, t.size());
    const flat kept = w;
    // A step of 2 % of a typical row: larger than the roundings to BF16, small against the curvature.
    const float norm = g.matrix().norm(), h = 0.02f * kept.matrix().norm() / std::sqrt(static_cast<float>(t.rows));
    w = kept + h / norm * g;
    const double above = m.forward(data);
    w = kept - h / norm * g;
    const double below = m.forward(data);
    w = kept;
    // Rounding q, k, v, P and dO to BF16 (2^-9 each) leaves differences and gradients about a percent apart.
    const auto size = static_cast<double>(norm);
    c.compare(t.name, (above - below) / (2.0 * static_cast<double>(h)), size, size, 5e-2);
  }
}

}  // namespace

bool self_check(const arm& a) {
  checker c;
  check_blocks(c);
  check_model(c, a);
  return c.passed();
}

}  // namespace train_lm
