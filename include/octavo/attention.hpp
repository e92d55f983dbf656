// SPDX-License-Identifier: Apache-2.0
// Octavo's public API. Include this and the backend that computes:
//
//     #include <octavo/attention.hpp>
//     #include <octavo/backends/cpu/backend.hpp>
//     using fp8 = octavo::config<octavo::backends::cpu, octavo::recipe::token, octavo::delta::matched>;
//
// Forward, for every query row i and its allowed keys j (q, k, v rounded to FP8 by the recipe):
//
//     S_ij = scale * q_i . k_j      P_ij = exp(S_ij - LSE_i)      O_i = sum_j P_ij v_j      LSE_i = log sum_j exp(S_ij)
//
// Backward, given dO:
//
//     dV_j = sum_i P_ij dO_i        dP_ij = dO_i . v_j            dS_ij = P_ij (dP_ij - delta_i)
//     dQ_i = scale * sum_j dS_ij k_j                              dK_j = scale * sum_i dS_ij q_i
//
// with delta_i formed as Config::delta says (algorithm/delta.hpp). All seven products run on the recipe's operands.
//
// Every function orders its work on the caller's queue, allocates nothing, throws nothing and answers with a status.
#pragma once

#include <octavo/backend/support.hpp>
#include <octavo/tensor/arguments.hpp>
#include <octavo/tensor/check.hpp>

#include <cstddef>

OCTAVO_BEGIN_NAMESPACE

enum class pass { forward, backward, delta, combine, all };

/// Bytes of scratch that the pass needs (all: enough for each of them). 0 for a problem that is refused.
template <class Config>
std::size_t workspace_size(const problem& p, pass which = pass::all) {
  if (!validate(p) || !supports<Config>(p)) return 0;
  return Config::backend::template workspace_bytes<Config>(p, which);
}

namespace detail {

template <class Config>
constexpr payload_format payload_format_of() {
  using R = typename Config::recipe;
  if constexpr (recipe::is_fp8<R>)
    return {dtype_of<typename R::element>::value, dtype_of<typename R::gradient_element>::value,
            R::scale_per == recipe::granularity::block32};
  else
    return {};
}

/// The checks that every pass makes before it touches an output.
template <class Config>
status admit(const problem& p, status arguments, const workspace& scratch, pass which) {
  if (!arguments) return arguments;
  if (const support s = supports<Config>(p); !s) return {status_code::unsupported, s.reason};
  const std::size_t needed = Config::backend::template workspace_bytes<Config>(p, which);
  if (scratch.bytes < needed || (needed > 0 && scratch.data == nullptr))
    return {status_code::workspace_too_small, text("the workspace has ") << static_cast<long long>(scratch.bytes)
                                                                         << " bytes, workspace_size asks for "
                                                                         << static_cast<long long>(needed)};
  return {};
}

}  // namespace detail

/// O and LSE (and M, l, which the backward takes). Shapes: forward_inputs, forward_outputs.
template <class Config>
status attention_forward(typename Config::backend::queue& queue, const problem& p, const forward_inputs& in,
                         const forward_outputs& out, workspace scratch) {
  if (const status s =
          detail::admit<Config>(p, validate(p, detail::payload_format_of<Config>(), in, out), scratch, pass::forward);
      !s)
    return s;
  return Config::backend::template forward<Config>(queue, p, in, out, scratch);
}

/// dQ, dK, dV from dO and the forward's M and l. Shapes: backward_inputs, backward_outputs.
template <class Config>
status attention_backward(typename Config::backend::queue& queue, const problem& p, const backward_inputs& in,
                          const backward_outputs& out, workspace scratch) {
  const status arguments = validate<typename Config::delta>(p, detail::payload_format_of<Config>(), in, out);
  if (const status s = detail::admit<Config>(p, arguments, scratch, pass::backward); !s) return s;
  return Config::backend::template backward<Config>(queue, p, in, out, scratch);
}

/// The two sums of the matched delta over the keys of this call alone, relative to in.m and in.delta_shift, so that a
/// sequence whose keys are split over ranks adds them with one all-reduce and passes the totals to the backward.
template <class Config>
status attention_delta(typename Config::backend::queue& queue, const problem& p, const backward_inputs& in,
                       const delta_outputs& out, workspace scratch) {
  if constexpr (Config::delta::reads_o)
    return {status_code::unsupported, "only the matched delta is made of sums over keys"};
  const status arguments = validate(p, detail::payload_format_of<Config>(), in, out);
  if (const status s = detail::admit<Config>(p, arguments, scratch, pass::delta); !s) return s;
  return Config::backend::template delta_sums<Config>(queue, p, in, out, scratch);
}

/// The whole forward from `count` partial ones over disjoint keys (each with its O, M, l and LSE): O, LSE, M, l.
template <class Config>
status attention_combine(typename Config::backend::queue& queue, const problem& p, const partial_forward* parts,
                         int count, const forward_outputs& out, workspace scratch) {
  if (const status s = detail::admit<Config>(p, validate(p, parts, count, out), scratch, pass::combine); !s) return s;
  return Config::backend::template combine_parts<Config>(queue, p, parts, count, out, scratch);
}

OCTAVO_END_NAMESPACE
