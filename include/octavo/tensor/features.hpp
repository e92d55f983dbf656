// SPDX-License-Identifier: Apache-2.0
// The features a problem can ask for, as a set, so that a refusal can say what is required, supported and missing.
#pragma once

#include <octavo/tensor/text.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE

enum class feature : std::uint8_t {
  causal,  ///< top-left
  causal_bottom_right,
  window,
  softcap,
  sink,
  packed,           ///< packed documents by cumulative offsets
  grouped_queries,  ///< h_q != h_kv
  key_centring,
  o_residual,
  save_payloads,
  payload_inputs,
  shard,         ///< a part of the keys or queries of a longer sequence
  delta_halves,  ///< the two sums of the matched delta computed alone, or passed in
  deterministic,
  // Known wishes that no backend computes; named so that a caller is refused in words instead of being ignored.
  dropout,
  additive_bias,
  alibi,
  arbitrary_mask,
  paged_kv,
  fp8_outputs,
  count
};

constexpr const char* name_of(feature f) {
  constexpr const char* names[] = {
      "causal",          "causal-bottom-right", "window",     "softcap",       "sink",           "packed",
      "grouped-queries", "key-centring",        "o-residual", "save-payloads", "payload-inputs", "shard",
      "delta-halves",    "deterministic",       "dropout",    "additive-bias", "alibi",          "arbitrary-mask",
      "paged-kv",        "fp8-outputs"};
  static_assert(sizeof(names) / sizeof(names[0]) == static_cast<int>(feature::count), "every feature needs a name");
  return names[static_cast<int>(f)];
}

class feature_set {
 public:
  constexpr feature_set() = default;
  constexpr feature_set(feature f) : bits_(1u << static_cast<int>(f)) {}

  constexpr bool has(feature f) const { return (bits_ & feature_set(f).bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr feature_set& operator|=(feature_set o) { return bits_ |= o.bits_, *this; }
  friend constexpr feature_set operator|(feature_set a, feature_set b) { return a |= b; }
  friend constexpr feature_set operator-(feature_set a, feature_set b) { return a.bits_ &= ~b.bits_, a; }
  friend constexpr bool operator==(feature_set, feature_set) = default;

 private:
  std::uint32_t bits_ = 0;
};
constexpr feature_set operator|(feature a, feature b) { return feature_set(a) | feature_set(b); }

/// The names of a set, separated by spaces ("none" for the empty set).
constexpr text& operator<<(text& out, feature_set set) {
  if (set.empty()) return out << "none";
  const char* gap = "";
  for (int i = 0; i < static_cast<int>(feature::count); ++i)
    if (const auto f = static_cast<feature>(i); set.has(f)) {
      out << gap << name_of(f);
      gap = " ";
    }
  return out;
}

OCTAVO_END_NAMESPACE
