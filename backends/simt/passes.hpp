// SPDX-License-Identifier: Apache-2.0
// The passes of attention.hpp on the lane-level schedules: which problems they take. What they do not take runs on the
// generic loops.
#pragma once

#include <octavo/attention.hpp>
#include <octavo/backends/simt/backward_pass.hpp>
#include <octavo/backends/simt/forward_pass.hpp>

#include <utility>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// Recipes that a machine's atoms compute.
template <class M, class Recipe>
inline constexpr bool has_schedule = M::template computes<Recipe> && std::is_same_v<typename Recipe::element, e4m3>;

/// Whether the schedules take a problem; the generic loops take the others.
inline bool takes(const problem& p) {
  const documents q = query_documents(p, {}), kv = key_documents(p, {});
  const std::int64_t longest =
      p.packed ? (p.total_q > p.total_kv ? p.total_q : p.total_kv) : (p.s_q > p.s_kv ? p.s_q : p.s_kv);
  // A negative scale turns maxima into minima, and one beyond these bounds leaves scores no digits.
  const bool ordinary_scale = p.scale() > 1e-10f && p.scale() < 1e6f;
  constexpr std::int64_t most_blocks = std::int64_t{1} << 29;
  const auto whole = [](std::int64_t d) { return d > 0 && d <= 256 && d % 32 == 0; };
  return whole(p.d_qk) && whole(p.d_v) && ordinary_scale && longest < longest_document && p.h_q < most_blocks &&
         q.slots(tile_tokens) < most_blocks / p.h_q && kv.slots(tile_tokens) < most_blocks / p.h_kv;
}

/// Calls f with the head dimension that the kernels are compiled for: d_qk and d_v filled up with zeros.
template <class F>
auto with_head_dim(const problem& p, F f) {
  const std::int64_t d = p.d_qk > p.d_v ? p.d_qk : p.d_v;
  if (d <= 64) return f(std::integral_constant<int, 64>{});
  if (d <= 128) return f(std::integral_constant<int, 128>{});
  return f(std::integral_constant<int, 256>{});
}

/// Shared memory of the pass's largest block.
template <class Config, class M, int D>
constexpr int most_shared_bytes() {
  using R = typename Config::recipe;
  using Delta = typename Config::delta;
  const int of_kernels[] = {forward_pass<Config, M, D>::kernel::shared_bytes, delta_sums_kernel<M, R, D>::shared_bytes,
                            dq_kernel<M, R, Delta, D>::shared_bytes, dkv_kernel<M, R, Delta, D>::shared_bytes};
  int most = 0;
  for (const int bytes : of_kernels) most = bytes > most ? bytes : most;
  return most;
}

/// The passes of a backend B that runs these schedules on machine M: B::launch_blocks(queue, kernel) is what they ask of
/// it, and, where that is known only at run time, B::most_shared_bytes() of a block.
template <class M>
struct passes : generic_passes {
  template <class Config>
  static std::size_t workspace_bytes(const problem& p, pass which) {
    return choose<Config>(
        p,
        [&](auto d) -> std::size_t {
          detail::carver forward(nullptr), backward(nullptr), sums(nullptr);
          forward_pass<Config, M, d>{}.carve(forward, p, {}, {});
          backward_pass<Config, M, d>{}.carve(backward, p, {}, {}, true);
          backward_pass<Config, M, d>{}.carve(sums, p, {}, {}, false);
          const std::size_t larger = forward.used() > backward.used() ? forward.used() : backward.used();
          return which == pass::forward    ? forward.used()
                 : which == pass::backward ? backward.used()
                 : which == pass::delta    ? sums.used()
                 : which == pass::combine  ? 0
                                           : larger;
        },
        [&] { return generic_passes::workspace_bytes<Config>(p, which); });
  }
  template <class Config>
  static status forward(typename Config::backend::queue& queue, const problem& p, const forward_inputs& in,
                        const forward_outputs& out, const workspace& scratch) {
    return choose<Config>(
        p,
        [&](auto d) {
          detail::carver memory(scratch.data);
          forward_pass<Config, M, d> pass;
          pass.carve(memory, p, in, out);
          return pass.run(queue, p, in, out);
        },
        [&] { return generic_passes::forward<Config>(queue, p, in, out, scratch); });
  }
  template <class Config>
  static status backward(typename Config::backend::queue& queue, const problem& p, const backward_inputs& in,
                         const backward_outputs& out, const workspace& scratch) {
    return choose<Config>(
        p,
        [&](auto d) {
          detail::carver memory(scratch.data);
          backward_pass<Config, M, d> pass;
          pass.carve(memory, p, in, out.dout_payload, true);
          return pass.run(queue, p, in, out);
        },
        [&] { return generic_passes::backward<Config>(queue, p, in, out, scratch); });
  }
  template <class Config>
  static status delta_sums(typename Config::backend::queue& queue, const problem& p, const backward_inputs& in,
                           const delta_outputs& out, const workspace& scratch) {
    return choose<Config>(
        p,
        [&](auto d) {
          detail::carver memory(scratch.data);
          backward_pass<Config, M, d> pass;
          pass.carve(memory, p, in, {}, false);
          return pass.run_delta(queue, p, in, out);
        },
        [&] { return generic_passes::delta_sums<Config>(queue, p, in, out, scratch); });
  }

 private:
  /// scheduled(d) where the schedules take the problem, d being the head dimension that they are compiled for.
  template <class Config, class Scheduled, class Generic>
  static auto choose(const problem& p, Scheduled scheduled, Generic generic) {
    if constexpr (has_schedule<M, typename Config::recipe>)
      if (takes(p))
        return with_head_dim(p, [&](auto d) {
          constexpr int shared = most_shared_bytes<Config, M, d>();
          if constexpr (shared <= M::shared_bytes)
            if (device_has<typename Config::backend>(shared)) return scheduled(d);
          return generic();
        });
    return generic();
  }
  template <class B>
  static bool device_has(int shared) {
    if constexpr (requires { B::most_shared_bytes(); }) return shared <= B::most_shared_bytes();
    return true;
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
