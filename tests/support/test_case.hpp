// SPDX-License-Identifier: Apache-2.0
// A problem with its data. Values are floats in the order [b, s, h, d] (packed: [total, h, d]); they are rounded to the
// problem's element type on their way to a backend. A test may change any of them before it runs the case.
#pragma once

#include <octavo/tensor/problem.hpp>

#include <cstdint>
#include <vector>

#include "support/tensor_memory.hpp"

namespace octavo_tests {

/// One tensor as an FP8 payload with its scales, byte for byte as octavo::basic_quantized describes them.
struct payload {
  std::vector<std::uint8_t> rowwise, rowwise_scale, columnwise, columnwise_scale;
  friend bool operator==(const payload&, const payload&) = default;
};
struct payload_set {
  payload q, k, v, dout;
};

using offsets = std::vector<std::int32_t>;  // cumulative, one more than there are documents

struct test_case {
  octavo::problem p;
  offsets cu_q, cu_kv;
  floats q, k, v, dout;
  floats sink;           // [h_q]
  floats key_shift;      // [b, h_kv, d_qk], with key_centring::given
  floats delta_shift;    // [b, h_q, s_q] or empty: the caller's c of the matched delta
  payload_set payloads;  // with payload_inputs: what an earlier run saved
  bool backward = true;

  tensor_shape q_side(std::int64_t d, layout order = layout::tokens_first) const {
    return p.packed ? tensor_shape{1, p.total_q, p.h_q, d, order} : tensor_shape{p.b, p.s_q, p.h_q, d, order};
  }
  tensor_shape kv_side(std::int64_t d, layout order = layout::tokens_first) const {
    return p.packed ? tensor_shape{1, p.total_kv, p.h_kv, d, order} : tensor_shape{p.b, p.s_kv, p.h_kv, d, order};
  }
  /// Row statistics, [b, h_q, s_q] or packed [h_q, total_q].
  std::int64_t statistics() const { return p.stat_rows() * p.h_q; }
};

}  // namespace octavo_tests
