// SPDX-License-Identifier: Apache-2.0
// The forward on the lane-level schedules, host side: the workspace and the order of the kernels.
#pragma once

#include <octavo/backends/simt/forward.hpp>
#include <octavo/backends/simt/images_of_pass.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

template <class Config, class M, int D>
struct forward_pass {
  using B = typename Config::backend;
  using R = typename recipe::forward_of<typename Config::recipe>::type;
  using Delta = delta::of_forward<typename Config::delta>;
  using kernel = forward_kernel<M, R, Delta, D>;
  image_qkv<B, R, image_input<M, R, typename R::element, D>> qkv;

  void carve(detail::carver& memory, const problem& p, const forward_inputs& in, const forward_outputs& out) {
    qkv.carve(memory, p, in, out, {.rows = true}, {.rows = true}, {.columns = true, .fold = true});
  }
  status run(typename B::queue& queue, const problem& p, const forward_inputs& in, const forward_outputs& out) const {
    block_launcher<B> on(queue, p, nullptr);
    qkv.run(on, p, in);
    on.run(kernel{qkv.data(p, in), out, qkv.q.operand(), qkv.k.operand(), qkv.v.operand()});
    return on.status();
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
