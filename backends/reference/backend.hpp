// SPDX-License-Identifier: Apache-2.0
// The reference backend: whole matrices in float64, every feature, no hurry. It is what the other backends are judged
// by.
//
//     recipe mx32, token, tile, tensor, bf16   R8: rounded exactly where the numerics contract rounds, sums in float64
//     recipe exact                             R64: nothing rounded but what goes through memory (M, l, O and results)
//
// It is a second copy of the mathematics on purpose and shares nothing with algorithm/ or the quantisers of scaling/
// but the names of recipes and policies. Unlike every other backend it allocates its matrices itself (they do not fit a
// workspace anybody would size), and runs on threads of its own that end with the call.
#pragma once

#include <octavo/attention.hpp>
#include <octavo/backends/reference/backward.hpp>
#include <octavo/backends/reference/forward.hpp>
#include <octavo/backends/reference/parallel.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends {
namespace reference_math {

template <class Config>
constexpr rules rules_of() {
  using recipe_t = typename Config::recipe;
  using delta_t = typename Config::delta;
  constexpr policy delta = std::is_same_v<delta_t, octavo::delta::stale>     ? policy::stale
                           : std::is_same_v<delta_t, octavo::delta::matched> ? policy::matched
                                                                             : policy::consistent;
  return {recipe_t::scale_per, format_of<typename recipe_t::element>(),
          format_of<typename recipe_t::gradient_element>(), delta};
}

/// Calls group(document, kv head) for all of them.
template <class Inputs, class Group>
void for_each_group(int threads, const problem& p, const Inputs& in, const Group& group) {
  for_each(p.b * p.h_kv, threads,
           [&](std::int64_t i) { group(document_at(p, in.cu_seqlens_q, in.cu_seqlens_kv, i / p.h_kv), i % p.h_kv); });
}

template <class Inputs>
status check_payloads(const problem& p, const rules& r, const Inputs& in) {
  if (!p.payload_inputs) return {};
  if (p.stat_rows() > 0)
    if (const status s = check_payload("q_payload", in.q_payload, r); !s) return s;
  if ((p.packed ? p.total_kv : p.b * p.s_kv) == 0) return {};
  if (const status s = check_payload("k_payload", in.k_payload, r); !s) return s;
  return check_payload("v_payload", in.v_payload, r);
}
inline status check_gradient_payloads(const problem& p, const rules& r, const backward_inputs& in) {
  if (const status s = check_payloads(p, r, in); !s) return s;
  return p.payload_inputs && in.dout_payload ? check_payload("dout_payload", in.dout_payload, r) : status{};
}

inline status forward(int threads, const problem& p, const rules& r, const forward_inputs& in,
                      const forward_outputs& out) {
  if (const status s = check_payloads(p, r, in); !s) return s;
  for_each_group(threads, p, in,
                 [&](const document& doc, std::int64_t kv_head) { forward_group(p, r, in, out, doc, kv_head); });
  for (std::int64_t head = 0; p.packed && head < p.h_q; ++head)
    store_empty(p, out, tail_rows(p, in.cu_seqlens_q[p.b], p.total_q, head, p.h_q));
  return {};
}

/// Gradients and diagnostics of what no document holds: zeros.
inline void store_tails(const problem& p, const backward_inputs& in, const backward_outputs& out) {
  for (std::int64_t head = 0; head < p.h_q; ++head) {
    const head_rows at = tail_rows(p, in.cu_seqlens_q[p.b], p.total_q, head, p.h_q);
    store(out.dq, at, matrix(at.rows, p.d_qk));
    for (float* diagnostic : {out.delta, out.row_sum, out.l1}) statistics(diagnostic, at).fill(at.rows, 0);
  }
  for (std::int64_t head = 0; head < p.h_kv; ++head) {
    const head_rows at = tail_rows(p, in.cu_seqlens_kv[p.b], p.total_kv, head, p.h_kv);
    store(out.dk, at, matrix(at.rows, p.d_qk));
    store(out.dv, at, matrix(at.rows, p.d_v));
  }
}

inline status backward(int threads, const problem& p, const rules& r, const backward_inputs& in,
                       const backward_outputs& out) {
  if (const status s = check_gradient_payloads(p, r, in); !s) return s;
  matrix dsink(p.b, p.h_q);  // per document, so that the sum has one order
  for_each_group(threads, p, in, [&](const document& doc, std::int64_t kv_head) {
    backward_group(p, r, in, out, doc, kv_head, dsink.row(doc.index));
  });
  if (p.packed) store_tails(p, in, out);
  for (std::int64_t head = 0; p.sink && head < p.h_q; ++head) {
    double sum = 0;
    for (std::int64_t document = 0; document < p.b; ++document) sum += dsink(document, head);
    out.dsink[head] = static_cast<float>(sum);
  }
  return {};
}

inline status delta_sums(int threads, const problem& p, const rules& r, const backward_inputs& in,
                         const delta_outputs& out) {
  if (const status s = check_gradient_payloads(p, r, in); !s) return s;
  for_each_group(threads, p, in,
                 [&](const document& doc, std::int64_t kv_head) { delta_group(p, r, in, out, doc, kv_head); });
  for (std::int64_t head = 0; p.packed && head < p.h_q; ++head) {
    const head_rows at = tail_rows(p, in.cu_seqlens_q[p.b], p.total_q, head, p.h_q);
    for (float* sum : {out.n, out.sum}) statistics(sum, at).fill(at.rows, 0);
  }
  return {};
}

/// Rows are merged one by one, so the documents of a packed tensor do not matter here.
inline status combine(int threads, const problem& p, const partial_forward* parts, int count,
                      const forward_outputs& out) {
  for (int k = 0; k < count; ++k)
    if (p.stat_rows() > 0 && !(parts[k].o && parts[k].m && parts[k].l && parts[k].lse))
      return {status_code::invalid_argument, text("part ") << k << " needs its o, m, l and lse"};
  const std::int64_t documents = p.packed ? 1 : p.b;
  for_each(documents * p.h_q, threads, [&](std::int64_t i) {
    const document whole{i / p.h_q, 0, p.packed ? p.total_q : p.s_q, 0, 0};
    combine_head(p, parts, count, out, query_rows(p, whole, i % p.h_q));
  });
  return {};
}

}  // namespace reference_math

struct reference {
  struct queue {
    int threads = 0;  ///< 0: as many as the machine has. Work is done when a call returns
  };
  static constexpr const char* name() { return "reference"; }

  static text unavailable() { return {}; }
  static text device() {
    return text("float64 on ") << static_cast<long long>(std::max(1u, std::thread::hardware_concurrency()))
                               << " host threads";
  }

  /// E5M2 has too few mantissa bits to stand in for BF16 or float64: it is an option of the scaled recipes.
  template <class Recipe>
  static constexpr bool computes = recipe::is_sound<Recipe>;

  template <class Config>
  static constexpr feature_set features() {
    return every_feature<Config>();
  }

  template <class Config>
  static text refusal(const problem&) {
    return {};
  }

  template <class Config>
  static std::size_t workspace_bytes(const problem&, pass) {
    return 0;
  }

  template <class Config>
  static status forward(queue& q, const problem& p, const forward_inputs& in, const forward_outputs& out, workspace) {
    report<Config>("reference forward");
    return reference_math::forward(q.threads, p, reference_math::rules_of<Config>(), in, out);
  }

  template <class Config>
  static status backward(queue& q, const problem& p, const backward_inputs& in, const backward_outputs& out,
                         workspace) {
    report<Config>("reference backward");
    return reference_math::backward(q.threads, p, reference_math::rules_of<Config>(), in, out);
  }

  template <class Config>
  static status delta_sums(queue& q, const problem& p, const backward_inputs& in, const delta_outputs& out, workspace) {
    report<Config>("reference delta");
    return reference_math::delta_sums(q.threads, p, reference_math::rules_of<Config>(), in, out);
  }

  template <class Config>
  static status combine_parts(queue& q, const problem& p, const partial_forward* parts, int count,
                              const forward_outputs& out, workspace) {
    report<Config>("reference combine");
    return reference_math::combine(q.threads, p, parts, count, out);
  }

 private:
  template <class Config>
  static void report(const char* main_loop) {
    if constexpr (requires { Config::backend::trace(main_loop); }) Config::backend::trace(main_loop);
  }
};

}  // namespace backends
OCTAVO_END_NAMESPACE
