// SPDX-License-Identifier: Apache-2.0
// The scaling recipes: which elements share a scale, what type the scale has, and what the operands are made of.
//
//     recipe   one scale per               scale         images   leak-free causal
//     mx32     32 elements along the       power of two  two      no
//              contraction axis
//     token    token (1 x d)               power of two  one      yes: the contracted token's scale is folded into
//                                                                 P or dS before they are quantised
//     tile     128 tokens x d              power of two  one      no
//     tensor   (batch, head)               FP32          one      no: what other libraries do, a baseline
//     bf16     none                                      one      yes: the BF16 baseline
#pragma once

#include <octavo/numeric/bf16.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e5m2.hpp>

OCTAVO_BEGIN_NAMESPACE

namespace recipe {

/// Which elements share a scale. (For P and dS the unit is fixed by the main loops: see algorithm/.)
enum class granularity { none, block32, token, tile128, tensor };

/// A recipe whose every scale is a power of two keeps mantissas: a payload rounds the same whatever the block, until
/// something underflows. The consistent delta needs that.
struct mx32 {
  static constexpr const char* name = "mx32";
  static constexpr granularity scale_per = granularity::block32;
  using element = e4m3;           ///< Q, K, V, P
  using gradient_element = e4m3;  ///< dO, dS
};
struct token {
  static constexpr const char* name = "token";
  static constexpr granularity scale_per = granularity::token;
  using element = e4m3;
  using gradient_element = e4m3;
};
struct tile {
  static constexpr const char* name = "tile";
  static constexpr granularity scale_per = granularity::tile128;
  using element = e4m3;
  using gradient_element = e4m3;
};
struct tensor {
  static constexpr const char* name = "tensor";
  static constexpr granularity scale_per = granularity::tensor;
  using element = e4m3;
  using gradient_element = e4m3;
};
struct bf16 {
  static constexpr const char* name = "bf16";
  static constexpr granularity scale_per = granularity::none;
  using element = octavo::bf16;
  using gradient_element = octavo::bf16;
};
/// No rounding at all, in float64: the truth R64. Only backends that compute whole matrices in float64 have it.
struct exact {
  static constexpr const char* name = "exact";
  static constexpr granularity scale_per = granularity::none;
  using element = double;
  using gradient_element = double;
};

/// The recipe R with dO and dS in E5M2.
template <class R>
struct e5m2_gradients : R {
  using gradient_element = e5m2;
};

template <class R>
inline constexpr bool is_fp8 = R::scale_per != granularity::none;
template <class R>
inline constexpr bool has_power_of_two_scales = R::scale_per != granularity::tensor && is_fp8<R>;
template <class R>
inline constexpr bool has_e5m2_gradients = false;
template <class R>
inline constexpr bool has_e5m2_gradients<e5m2_gradients<R>> = true;

/// E5M2 is an option of the scaled FP8 recipes: with its two mantissa bits it cannot stand in for BF16 or float64.
template <class R>
inline constexpr bool is_sound = is_fp8<R> || !has_e5m2_gradients<R>;

/// The recipe without the E5M2 option: the forward does not depend on it.
template <class R>
struct forward_of {
  using type = R;
};
template <class R>
struct forward_of<e5m2_gradients<R>> {
  using type = R;
};

}  // namespace recipe

OCTAVO_END_NAMESPACE
