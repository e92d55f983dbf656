// SPDX-License-Identifier: Apache-2.0
// One attention on one engine: the inputs on the device, both passes, and the results back as float32.
#pragma once

#include <octavo/backend/engine.hpp>

#include <optional>
#include <string>
#include <vector>

#include "device.hpp"
#include "inputs.hpp"
#include "payload.hpp"

namespace cli {

struct float_array {
  npy::extents shape;
  std::vector<float> values;
};

/// What does not apply stays empty: gradients without dout, dsink without a sink, o_residual unless asked for.
struct results {
  std::optional<float_array> o, lse, o_residual, dq, dk, dv, dsink, delta, row_sum, l1;
  std::vector<host_payload> payloads;  ///< of q, k, v, do where problem.save_payloads is set
};

/// Uploads once; the passes can then be run again and again.
class attention_call {
 public:
  /// `p` is in.problem or a variation of its options; its extents are those of the inputs.
  attention_call(const device& on, const octavo::engine& engine, const inputs& in, const octavo::problem& p);

  double forward();   ///< milliseconds, until the queue has drained
  double backward();  ///< the same; needs a forward before it, and dout
  results collect() const;

 private:
  octavo::const_tensor tensor_of(const buffer& data, octavo::dtype type, bool queries, std::int64_t d) const;
  buffer allocate_tensor(octavo::dtype type, bool queries, std::int64_t d) const;
  octavo::tensor result_of(const buffer& data, octavo::dtype type, bool queries, std::int64_t d) const;
  float_array fetch(const buffer& from, octavo::dtype type, bool queries, std::int64_t d) const;
  float_array fetch_statistic(const buffer& from) const;
  void prepare_forward(const inputs& in);
  void prepare_backward(const inputs& in);

  const device& on_;
  const octavo::engine& engine_;
  octavo::problem p_;
  octavo::dtype result_type_;  ///< T; for the recipe exact f32, so that the truth is not rounded to T

  buffer q_, k_, v_, dout_, cu_q_, cu_kv_, sink_, key_shift_;
  buffer o_, lse_, m_, l_, o_residual_, dq_, dk_, dv_, dsink_, delta_, row_sum_, l1_, workspace_;
  std::vector<device_payload> payloads_;
  octavo::forward_inputs forward_in_;
  octavo::forward_outputs forward_out_;
  octavo::backward_inputs backward_in_;
  octavo::backward_outputs backward_out_;
  bool has_backward_ = false;
};

}  // namespace cli
