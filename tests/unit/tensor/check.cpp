// SPDX-License-Identifier: Apache-2.0
#include <octavo/algorithm/delta.hpp>
#include <octavo/tensor/check.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace octavo;

namespace {

struct call {
  problem p{.h_q = 4, .h_kv = 2, .s_q = 8, .s_kv = 16, .d_qk = 64, .d_v = 32};
  float memory[1] = {};
  forward_inputs in;
  forward_outputs out;
  backward_inputs back_in;
  backward_outputs back_out;

  call() {
    auto* x = reinterpret_cast<bf16*>(memory);
    in.q = contiguous(x, 8, 4, 64);
    in.k = contiguous(x, 16, 2, 64);
    in.v = contiguous(x, 16, 2, 32);
    out.o = contiguous(x, 8, 4, 32);
    back_in.q = in.q, back_in.k = in.k, back_in.v = in.v, back_in.dout = out.o, back_in.o = out.o;
    back_in.m = back_in.l = memory;
    back_out.dq = contiguous(x, 8, 4, 64), back_out.dk = contiguous(x, 16, 2, 64),
    back_out.dv = contiguous(x, 16, 2, 32);
  }
  std::string forward() const { return validate(p, {}, in, out).message.c_str(); }
  template <class Delta = delta::stale>
  std::string backward() const {
    return validate<Delta>(p, {}, back_in, back_out).message.c_str();
  }
};

}  // namespace

TEST_CASE("complete calls are valid") {
  CHECK(call().forward() == "");
  CHECK(call().backward() == "");
}

TEST_CASE("a missing or mistyped tensor is named") {
  call c;
  c.in.k = {};
  CHECK(c.forward() == "k is missing");
  c = {};
  c.in.v.type = dtype::f16;
  CHECK(c.forward() == "v is f16, but problem.element is bf16");
  c = {};
  c.out.o.type = dtype::f32;  // results may be unrounded
  CHECK(c.forward() == "");
  c.out.o.type = dtype::f16;
  CHECK(c.forward() == "o is f16, but problem.element is bf16");
  c = {};
  c.back_in.l = nullptr;
  CHECK(c.backward() == "l (from the forward) is missing");
  c = {};
  c.back_in.o = {};
  CHECK(c.backward() == "o is missing");
  CHECK(c.backward<delta::matched>() == "");
}

TEST_CASE("inputs may broadcast, outputs may not") {
  call c;
  c.in.q.stride_s = 0;
  CHECK(c.forward() == "");
  c.out.o.stride_s = 0;
  CHECK(c.forward() == "o is written, but its strides let elements share memory");
  c = {};
  c.back_in.dout.stride_s = c.back_in.dout.stride_h = 0;  // the gradient of a sum
  CHECK(c.backward() == "");
  c = {};
  c.in.q.stride_h = -64;
  CHECK(c.forward() == "q has a negative stride");
}

TEST_CASE("outputs whose elements share memory are refused, interleaved ones are not") {
  call c;                                        // o: [1, 8, 4, 32]
  c.out.o.stride_s = 32, c.out.o.stride_h = 32;  // row 1 of head 0 is row 0 of head 1
  CHECK(c.forward() == "o is written, but its strides let elements share memory");
  c.out.o.stride_s = 32, c.out.o.stride_h = 8 * 32;  // heads first
  CHECK(c.forward() == "");
  c.out.o.stride_s = 31;
  CHECK(c.forward() != "");
  c.out.o = contiguous(reinterpret_cast<bf16*>(c.memory), 8, 4, 40);  // gaps between heads
  CHECK(c.forward() == "");
}

TEST_CASE("payloads are checked like tensors") {
  call c;
  c.p.payload_inputs = true;
  CHECK(c.forward() == "q_payload is missing");
  auto* x = reinterpret_cast<e4m3*>(c.memory);
  quantized q;
  q.rowwise = contiguous(x, 8, 4, 64);
  c.in.q_payload = q;
  CHECK(c.forward() == "q_payload lacks its row-wise payload or scales");
  q.rowwise_scale = c.memory;
  c.in.q_payload = q;
  CHECK(c.forward() == "k_payload is missing");
  q.rowwise.type = dtype::e5m2;
  c.in.q_payload = q;
  CHECK(c.forward() == "q_payload is e5m2, but the recipe's element is e4m3");
  c = {};
  c.in.q_payload = q;
  CHECK(c.forward() == "payloads are given, but problem.payload_inputs is not set");
  c = {};
  c.p.save_payloads = true;
  CHECK(c.forward() == "the memory for q_payload is missing");
  c = {};
  c.out.o_residual = c.out.o;
  CHECK(c.forward() == "o_residual is given, but problem.o_residual is not set");
}

TEST_CASE("options and the arguments they need go together") {
  call c;
  c.p.sink = true;
  CHECK(c.forward() == "sink is missing");
  c.p.sink = false;
  c.in.sink = c.memory;
  CHECK(c.forward() == "sink is given, but problem.sink is not set");
  c = {};
  c.p.packed = true, c.p.total_q = 8, c.p.total_kv = 16;
  CHECK(c.forward() == "cu_seqlens_q is missing");
  c = {};
  c.p.key_centring = key_centring::given;
  CHECK(c.forward() == "key_shift is missing");
  c = {};
  c.out.m = c.memory;
  CHECK(c.forward() == "m and l go together: give both to the forward, or neither");
}

TEST_CASE("tensors without elements need no memory") {
  call c;
  c.p.b = 0;
  c.in = {};
  c.out = {};
  CHECK(c.forward() == "");
}
