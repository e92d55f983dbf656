// SPDX-License-Identifier: Apache-2.0
// The description of one attention problem: extents, mask and options, everything known before any tensor is.
#pragma once

#include <octavo/numeric/dtype.hpp>
#include <octavo/tensor/features.hpp>
#include <octavo/tensor/status.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

OCTAVO_BEGIN_NAMESPACE

/// Where a causal mask is anchored. Row i of s_q stands at key position i (top_left) or i + s_kv - s_q (bottom_right).
enum class causal_mask : std::uint8_t { none, top_left, bottom_right };

/// Which keys a row sees. Drawn for s_q = 3, s_kv = 5 (x: allowed):
///
///     top_left     bottom_right   window {1, 0}, no causal   window {1, 0}, bottom_right
///     x . . . .    x x x . .      x . . . .                  . x x . .
///     x x . . .    x x x x .      x x . . .                  . . x x .
///     x x x . .    x x x x x      . x x . .                  . . . x x
struct mask {
  causal_mask causal = causal_mask::none;
  std::int64_t window_left = -1;   ///< keys before the row's own position, -1: unbounded
  std::int64_t window_right = -1;  ///< keys after it, -1: unbounded
};

/// What is subtracted from every key before it is quantised (softmax does not change; see delta.hpp).
enum class key_centring : std::uint8_t {
  off,
  batch,  ///< the mean over the valid keys per batch or document and kv head; with a causal mask future keys reach the
          ///< rounding
  given,  ///< the caller's key_shift, for instance an average of earlier steps
};

/// The place of this problem's rows and keys in a longer sequence that is split over calls or ranks.
/// Masks are those of the whole sequence. All zero: the problem is the whole.
struct shard {
  std::int64_t q_begin = 0;     ///< position of row 0 among all queries
  std::int64_t kv_begin = 0;    ///< position of key 0 among all keys
  std::int64_t s_q_total = 0;   ///< queries of the whole sequence; 0: q_begin + s_q
  std::int64_t s_kv_total = 0;  ///< keys of the whole sequence; 0: kv_begin + s_kv

  friend constexpr bool operator==(const shard&, const shard&) = default;
};

struct problem {
  std::int64_t b = 1;           ///< batches; with packed documents, their number
  std::int64_t h_q = 1;         ///< query heads, a multiple of h_kv
  std::int64_t h_kv = 1;        ///< key and value heads
  std::int64_t s_q = 0;         ///< queries per batch; with packed documents, an upper bound over them
  std::int64_t s_kv = 0;        ///< keys per batch; with packed documents, an upper bound over them
  std::int64_t d_qk = 64;       ///< channels of Q and K
  std::int64_t d_v = 64;        ///< channels of V and O
  dtype element = dtype::bf16;  ///< T: the element type of q, k, v, o, dout, dq, dk, dv

  octavo::mask mask{};
  std::optional<float> softmax_scale{};  ///< 1 / sqrt(d_qk) when absent
  float softcap = 0;                     ///< 0: off; else S = softcap * tanh(S / softcap)
  bool sink = false;                     ///< one extra logit per query head in the denominator
  octavo::key_centring key_centring = octavo::key_centring::off;

  bool packed = false;        ///< documents one after another: [total, h, d] and cumulative offsets
  std::int64_t total_q = 0;   ///< rows of the packed q, o, dout, dq
  std::int64_t total_kv = 0;  ///< rows of the packed k, v, dk, dv

  octavo::shard shard{};
  bool o_residual = false;  ///< the forward also writes T(O - T(O)), for the consistent delta
  bool save_payloads =
      false;  ///< the forward (for dO the backward) also writes the FP8 payloads and scales that it made
  bool payload_inputs = false;  ///< q, k, v (dout) come as payloads with scales
  bool delta_halves = false;    ///< the sums of the matched delta are inputs of the backward
  bool deterministic = false;   ///< bit-identical results from run to run
  feature_set wants{};          ///< wishes without a field of their own (dropout, additive bias, ...)

  /// Whether this call sees only some keys of the sequence.
  OCTAVO_HD constexpr bool part_of_keys() const {
    return shard.kv_begin > 0 || (shard.s_kv_total != 0 && shard.s_kv_total != s_kv);
  }
  OCTAVO_HD constexpr std::int64_t group() const { return h_q / h_kv; }
  float scale() const { return softmax_scale ? *softmax_scale : 1.0f / std::sqrt(static_cast<float>(d_qk)); }
  /// Rows per query head in the statistics [b, h_q, s_q] or, packed, [h_q, total_q].
  constexpr std::int64_t stat_rows() const { return packed ? total_q : b * s_q; }
};

/// One side of a problem, queries or keys, as its tensors' extents.
struct side_of_problem {
  std::int64_t batches, tokens, heads;  ///< packed: one batch of total tokens
  constexpr std::int64_t rows() const { return batches * tokens; }
};
constexpr side_of_problem query_side(const problem& p) {
  return {p.packed ? 1 : p.b, p.packed ? p.total_q : p.s_q, p.h_q};
}
constexpr side_of_problem key_side(const problem& p) {
  return {p.packed ? 1 : p.b, p.packed ? p.total_kv : p.s_kv, p.h_kv};
}

/// The features that a problem needs.
constexpr feature_set required_features(const problem& p) {
  feature_set f = p.wants;
  const auto need = [&f](bool asked, feature what) {
    if (asked) f |= what;
  };
  need(p.mask.causal == causal_mask::top_left, feature::causal);
  need(p.mask.causal == causal_mask::bottom_right, feature::causal_bottom_right);
  need(p.mask.window_left >= 0 || p.mask.window_right >= 0, feature::window);
  need(p.softcap != 0, feature::softcap);
  need(p.sink, feature::sink);
  need(p.packed, feature::packed);
  need(p.h_q != p.h_kv, feature::grouped_queries);
  need(p.key_centring != key_centring::off, feature::key_centring);
  need(p.o_residual, feature::o_residual);
  need(p.save_payloads, feature::save_payloads);
  need(p.payload_inputs, feature::payload_inputs);
  need(p.shard != octavo::shard{}, feature::shard);
  need(p.delta_halves, feature::delta_halves);
  need(p.deterministic, feature::deterministic);
  return f;
}

/// Whether the description makes sense at all, whoever computes it. invalid_argument with a sentence otherwise.
inline status validate(const problem& p) {
  const auto bad = [](text why) { return status{status_code::invalid_argument, why}; };
  // Each extent alone first, so that no sum or product below can overflow.
  constexpr std::int64_t longest = std::int64_t{1} << 48;
  for (const std::int64_t n : {p.b, p.h_q, p.h_kv, p.s_q, p.s_kv, p.total_q, p.total_kv, p.d_qk, p.d_v, p.shard.q_begin,
                               p.shard.kv_begin, p.shard.s_q_total, p.shard.s_kv_total})
    if (n < 0 || n > longest) return bad(text("extents and positions must not be negative, nor above 2^48: ") << n);
  if (p.h_q < 1 || p.h_kv < 1 || p.h_q % p.h_kv != 0)
    return bad(text("h_q must be a positive multiple of h_kv: h_q ") << p.h_q << ", h_kv " << p.h_kv);
  if (p.d_qk < 1 || p.d_v < 1) return bad(text("d_qk and d_v must be positive: ") << p.d_qk << ", " << p.d_v);
  if (p.element != dtype::f32 && p.element != dtype::f16 && p.element != dtype::bf16)
    return bad(text("the element type must be f32, f16 or bf16, not ") << name_of(p.element));
  if (p.mask.window_left < -1 || p.mask.window_right < -1)
    return bad(text("a window counts keys, or is -1 for unbounded: ")
               << p.mask.window_left << ", " << p.mask.window_right);
  if (!(p.softcap >= 0) || p.softcap > 1e30f) return bad("softcap must be positive and at most 1e30, or 0 for none");
  if (p.softmax_scale && !std::isfinite(*p.softmax_scale)) return bad("softmax_scale must be finite");
  if (p.shard.s_q_total != 0 && p.shard.s_q_total < p.shard.q_begin + p.s_q)
    return bad(text("the shard's queries end at ")
               << p.shard.q_begin + p.s_q << ", beyond s_q_total " << p.shard.s_q_total);
  if (p.shard.s_kv_total != 0 && p.shard.s_kv_total < p.shard.kv_begin + p.s_kv)
    return bad(text("the shard's keys end at ")
               << p.shard.kv_begin + p.s_kv << ", beyond s_kv_total " << p.shard.s_kv_total);
  if (static_cast<int>(p.mask.causal) > static_cast<int>(causal_mask::bottom_right))
    return bad("the causal mask is none, top_left or bottom_right");
  if (p.packed && p.shard != shard{}) return bad("packed documents and shards exclude each other");
  // Offsets are 64-bit; an extent product that does not fit them is refused before anything is multiplied.
  constexpr std::int64_t limit = std::numeric_limits<std::int64_t>::max() / 64;
  const std::int64_t widest = p.d_qk > p.d_v ? p.d_qk : p.d_v;
  std::int64_t room = limit / widest;
  for (const std::int64_t n : {p.b + 1, p.h_q, std::int64_t{1} + p.s_q + p.s_kv + p.total_q + p.total_kv}) {
    if (n > room) return bad("the tensors are larger than 64-bit offsets can address");
    room /= n;
  }
  return {};
}

OCTAVO_END_NAMESPACE
