// SPDX-License-Identifier: Apache-2.0
// When a result is right. It is compared with R8, the same recipe and policy with every rounding in its place and sums
// in float64, and not with exact attention: FP8 is allowed to be as wrong as FP8 is, and not more.
//
//     matched, consistent   relative L2 of O, dQ, dK, dV against R8 <= 2e-3 (2e-2: token on spread tokens)
//     consistent            dQ, dK, dsink also against R8 of the O that was left, if but roundings of ties differ
//     stale                 error against R64 within 30 % of R8's own: it depends on the key tile by nature
//     truncating units      against R8 2e-2, dQ and dK up to half of R8's own error; against R64 1.1 of it + 2e-3;
//                           simulated, against R8 with the sums of the unit 2e-3 (unit_sums.cpp)
//     all                   |LSE - R8's| <= 1e-3 (truncating: 1/8, root mean square 2e-2); rows without keys exactly zero
//     matched               sum_i |sum_j dS_ij| <= 1e-5 sum_ij |dS_ij|
#pragma once

#include <algorithm>
#include <optional>
#include <sstream>
#include <tuple>

#include "conformance/flipped_roundings.hpp"
#include "support/inputs.hpp"
#include "support/metrics.hpp"
#include "support/run.hpp"
#include "support/units.hpp"

namespace octavo_tests {

/// R8 and R64 of one case; computed when first asked for.
class truth {
 public:
  /// Whether the reference adds as the unit of the backend does (support/unit_reference.hpp): then no more is allowed than
  /// to units with FP32 sums.
  bool sums_as_the_unit = false;

  truth(const octavo::backend_entry& reference, const test_case& c, const storage& how)
      : reference_(reference), case_(c), how_(how) {}

  const results& r8(std::string_view recipe, std::string_view delta, bool e5m2_gradients) {
    if (r8_key_ != key{recipe, delta, e5m2_gradients}) {
      r8_ = compute(recipe, delta, e5m2_gradients, case_, how_);
      r8_key_ = {recipe, delta, e5m2_gradients};
    }
    return r8_;
  }
  /// R8's gradients of the O, M and l that another backend's forward left.
  results r8_after(const results& forward, std::string_view recipe, std::string_view delta, bool e5m2_gradients) const {
    return succeeded(run_backward(reference_, engine_of(recipe, delta, e5m2_gradients), case_, how_, forward));
  }
  const storage& how() const { return how_; }
  const results& r64() {
    if (!r64_) {
      test_case exact = case_;  // the options that are about rounding do not concern it
      exact.p.key_centring = octavo::key_centring::off, exact.key_shift.clear();
      exact.p.o_residual = exact.p.save_payloads = exact.p.payload_inputs = false;
      exact.p.delta_halves = case_.p.part_of_keys();  // without them a part cannot tell its delta
      if (!exact.p.delta_halves) exact.delta_shift.clear();
      r64_ = compute("exact", "matched", false, exact, {.o_in_f32 = true});
    }
    return *r64_;
  }

 private:
  using key = std::tuple<std::string_view, std::string_view, bool>;

  results compute(std::string_view recipe, std::string_view delta, bool e5m2, const test_case& c,
                  const storage& how) const {
    return succeeded(run(reference_, engine_of(recipe, delta, e5m2), c, how));
  }
  static results succeeded(results r) {
    if (!r.ok()) throw std::runtime_error("the reference failed: " + std::string(r.status.message.c_str()));
    return r;
  }
  const octavo::engine& engine_of(std::string_view recipe, std::string_view delta, bool e5m2) const {
    const octavo::engine* e = reference_.find(recipe, delta, e5m2);
    if (!e)
      throw std::runtime_error("the reference has no engine for " + std::string(recipe) + ", " + std::string(delta));
    return *e;
  }

  const octavo::backend_entry& reference_;
  const test_case& case_;
  storage how_;
  key r8_key_;
  results r8_;
  std::optional<results> r64_;
};

/// The payloads that the reference makes of a case, for a run with payload_inputs.
inline payload_set make_payloads(const octavo::backend_entry& reference, const test_case& c, std::string_view recipe,
                                 std::string_view delta, bool e5m2_gradients) {
  test_case saving = c;
  saving.p.payload_inputs = false, saving.p.save_payloads = true;
  return run(reference, *reference.find(recipe, delta, e5m2_gradients), saving).payloads;
}

/// Judges one result. Every complaint is a line that names what is wrong by how much.
class judge {
 public:
  using complaints = std::vector<std::string>;

  static complaints on(const octavo::backend_entry& backend, const octavo::engine& e, const test_case& c,
                       input_family inputs, const results& got, truth& known) {
    judge j(e, c, got, known.r8(e.recipe, e.delta, e.e5m2_gradients), known);
    if (!j.ran()) return j.complaints_;
    j.wide_ = !known.sums_as_the_unit && e.recipe == "token" && inputs == input_family::token_spread;
    j.truncating_ = !known.sums_as_the_unit && truncates(backend, e, c.p);
    if (j.truncating_ || e.delta == "stale") j.r64_ = &known.r64();
    j.forward();
    if (c.backward) j.backward();
    return j.complaints_;
  }

 private:
  judge(const octavo::engine& e, const test_case& c, const results& got, const results& r8, const truth& known)
      : engine_(e), case_(c), got_(got), r8_(r8), known_(known) {}

  bool ran() {
    if (!got_.status.ok()) complain("refused when called", got_.status.message.c_str());
    for (const std::string& v : got_.violations) complain(v);
    return complaints_.empty();
  }

  void forward() {
    compare("O", &results::o, 0);
    log_sums();
    rows_without_keys("O", got_.o, case_.p.d_v);
    if (case_.p.o_residual) residual();
    if (case_.p.save_payloads) {
      same_payload("q", got_.payloads.q, r8_.payloads.q);
      same_payload("k", got_.payloads.k, r8_.payloads.k);
      same_payload("v", got_.payloads.v, r8_.payloads.v);
    }
  }

  void backward() {
    compare("dQ", &results::dq,
            score_gradient() * largest(case_.k, case_.p.d_qk) * std::sqrt(double(case_.statistics())));
    compare("dK", &results::dk,
            score_gradient() * largest(case_.q, case_.p.d_qk) * std::sqrt(double(case_.statistics())));
    compare("dV", &results::dv, 0);
    if (case_.p.sink) compare("dsink", &results::dsink, score_gradient() * std::sqrt(double(case_.statistics())));
    rows_without_keys("dQ", got_.dq, case_.p.d_qk);
    keys_without_rows();
    if (engine_.delta == "matched") row_sums();
    if (case_.p.save_payloads) same_payload("dO", got_.payloads.dout, r8_.payloads.dout);
  }

  /// A score that is off in its last bits moves a weight to the neighbouring E4M3 number now and then: in a row of one
  /// heavy key that is up to an eighth of the sum, so a unit that truncates scores is held to that, and to little of it
  /// over all rows.
  void log_sums() {
    const double largest = largest_difference(got_.lse, r8_.lse);
    if (!(largest <= (truncating_ ? 0.125 : 1e-3))) complain("LSE differs by", largest);
    if (!truncating_) return;
    double squares = 0;
    for (std::size_t i = 0; i < got_.lse.size(); ++i)
      if (const double d = double(got_.lse[i]) - r8_.lse[i]; got_.lse[i] != r8_.lse[i]) squares += d * d;
    const double mean = std::sqrt(squares / double(std::max<std::size_t>(got_.lse.size(), 1)));
    if (!(mean <= 2e-2)) complain("LSE differs in the mean by", mean);
  }

  /// natural: what the result's norm could be if nothing cancelled. Where R8 cancels to nothing (a row of one key has
  /// no gradient), relative errors mean nothing and the result has to be as small as FP32 makes it.
  void compare(const char* name, floats results::* field, double natural) {
    const floats &x = got_.*field, &want = r8_.*field;
    if (norm(want) <= 1e-5 * natural) {
      if (!(norm(x) <= 1e-5 * natural)) complain(name, "should vanish; its norm is", norm(x));
      return;
    }
    const double error = relative_error(x, want);
    if (engine_.delta == "stale" && field != &results::dsink) return compare_stale(name, field);
    double allowed = wide_ ? 2e-2 : 2e-3;
    if (truncating_) {
      const double own = relative_error(want, r64_->*field), truth_error = relative_error(x, r64_->*field);
      const bool steered = field == &results::dq || field == &results::dk;
      allowed = steered ? std::max(2e-2, own / 2) : 2e-2;
      if (!(truth_error <= 1.1 * own + 2e-3)) complain(name, "against R64:", truth_error, own);
    }
    if (error <= allowed) return;
    const results* own = field == &results::o || field == &results::dv ? nullptr : r8_of_own_o();
    if (own && relative_error(x, own->*field) <= allowed) return;
    complain(name, own ? "against R8, and against R8 of its O:" : "against R8:", error, allowed);
  }

  /// The consistent delta is a sum over the stored O, and under a key bias dQ is a small difference of large terms: one
  /// element of a BF16 O beside a tie, rounded the other way, moves it by up to .04. Both are roundings of a right O,
  /// and the gradients of the one that was made are as right. Null where O is not R8's but for such elements.
  const results* r8_of_own_o() {
    if (engine_.delta != "consistent" || known_.how().o_in_f32) return nullptr;
    if (!flipped_roundings::all(got_.o, r8_.o, case_.p.element, case_.p.d_v)) return nullptr;
    if (!own_) own_ = known_.r8_after(got_, engine_.recipe, engine_.delta, engine_.e5m2_gradients);
    return &*own_;
  }

  void compare_stale(const char* name, floats results::* field) {
    const double own = distance(r8_.*field, r64_->*field), error = distance(got_.*field, r64_->*field);
    if (!(error >= 0.7 * own && error <= 1.3 * own)) complain(name, "distance to R64, and R8's:", error, own);
  }

  /// O + R carries more digits than O, and R is what the rounding of O left: at most half a step.
  void residual() {
    const int digits = case_.p.element == octavo::dtype::f16 ? 11 : 8;
    floats sum = got_.o, want = r8_.o;
    bool half_a_step = true;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const float o = got_.o[i], r = got_.o_residual[i];
      half_a_step = half_a_step && std::fabs(r) <= std::max(std::ldexp(std::fabs(o), -digits), 3e-8f);
      sum[i] += r, want[i] += r8_.o_residual[i];
    }
    if (!half_a_step) complain("the residual is more than the rounding of O");
    if (engine_.delta != "stale")
      if (const double error = relative_error(sum, want); !(error <= 2e-3))
        complain("O + residual", "against R8:", error, 2e-3);
  }

  /// Rows that see no key, and rows behind the last document: LSE -inf, zeros.
  void rows_without_keys(const char* name, const floats& x, std::int64_t d) {
    const tensor_shape rows = case_.q_side(d);
    for (std::int64_t i = 0; i < rows.rows(); ++i) {
      const std::int64_t batch = i / (rows.s * rows.h), token = i / rows.h % rows.s, head = i % rows.h;
      if (r8_.lse[static_cast<std::size_t>((batch * rows.h + head) * rows.s + token)] != -infinite) continue;
      if (!is_zero(x, i, d)) return complain(name, "is not zero in a row without keys");
    }
  }
  void keys_without_rows() {
    for (std::int64_t j = 0; j < case_.kv_side(1).rows(); ++j)
      if (is_zero(r8_.dv, j, case_.p.d_v) && !(is_zero(got_.dv, j, case_.p.d_v) && is_zero(got_.dk, j, case_.p.d_qk)))
        return complain("dK or dV", "is not zero at a key that no row sees");
  }
  static bool is_zero(const floats& x, std::int64_t row, std::int64_t d) {
    const auto first = x.begin() + row * d;
    return std::all_of(first, first + d, [](float value) { return value == 0; });
  }

  void row_sums() {
    double l1 = 0;
    for (const float x : r8_.l1) l1 += x;
    if (l1 <= 1e-5 * score_gradient() * double(case_.statistics())) return;  // nothing there to sum
    if (const double ratio = row_sum_ratio(got_.row_sum, got_.l1); !(ratio <= 1e-5)) complain("row sum / L1 is", ratio);
  }

  /// Payloads with power-of-two scales are the same byte for byte; an FP32 scale may move a value over a rounding edge.
  void same_payload(const char* name, const payload& x, const payload& want) {
    const double allowed = engine_.recipe == "tensor" ? 1e-3 : 0;
    if (!(different(x.rowwise, want.rowwise) <= allowed && different(x.columnwise, want.columnwise) <= allowed))
      complain(name, "payload: bytes differ");
    if (engine_.recipe != "tensor" &&
        (x.rowwise_scale != want.rowwise_scale || x.columnwise_scale != want.columnwise_scale))
      complain(name, "payload: scales differ");
  }
  static double different(const std::vector<std::uint8_t>& x, const std::vector<std::uint8_t>& y) {
    if (x.size() != y.size()) return infinite;
    std::size_t count = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      count += x[i] != y[i] && !(x[i] % 128 == 0 && y[i] % 128 == 0);  // -0 is 0
    return x.empty() ? 0 : double(count) / double(x.size());
  }

  /// A bound on |dS|: dP is at most the largest dO row times the largest V row.
  double score_gradient() const { return largest(case_.dout, case_.p.d_v) * largest(case_.v, case_.p.d_v); }
  static double largest(const floats& x, std::int64_t d) {
    double most = 0;
    for (std::size_t i = 0; i + static_cast<std::size_t>(d) <= x.size(); i += static_cast<std::size_t>(d))
      most = std::max(most, norm(std::span(x).subspan(i, static_cast<std::size_t>(d))));
    return most;
  }

  template <class... Words>
  void complain(const Words&... words) {
    std::ostringstream line;
    ((line << words << ' '), ...);
    complaints_.push_back(line.str());
  }

  const octavo::engine& engine_;
  const test_case& case_;
  const results &got_, &r8_;
  const truth& known_;
  std::optional<results> own_;
  const results* r64_ = nullptr;
  bool wide_ = false, truncating_ = false;
  complaints complaints_;
};

}  // namespace octavo_tests
