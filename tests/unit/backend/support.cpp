// SPDX-License-Identifier: Apache-2.0
// Refusals: what is required, supported and missing, and a sentence that says what to do.
#include <octavo/attention.hpp>
#include <octavo/backends/cpu/backend.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace octavo;

namespace {

using matched = config<backends::cpu, recipe::token, delta::matched>;
using consistent = config<backends::cpu, recipe::mx32, delta::consistent>;
using baseline = config<backends::cpu, recipe::bf16, delta::stale>;
using fixed = config<backends::cpu, recipe::token, delta::matched, head_dim<192, 128>>;

template <class Config>
std::string reason(const problem& p) {
  const support s = supports<Config>(p);
  CHECK(s.ok == s.reason.empty());
  return s.reason.c_str();
}

constexpr problem plain{.h_q = 4, .h_kv = 2, .s_q = 8, .s_kv = 8};

template <class Change>
problem with(Change change) {
  problem p = plain;
  change(p);
  return p;
}

}  // namespace

TEST_CASE("a plain problem is supported") {
  CHECK(reason<matched>(plain) == "");
  CHECK(reason<consistent>(plain) == "");
  CHECK(reason<baseline>(plain) == "");
}

TEST_CASE("known wishes are refused by name, with what is required, supported and missing") {
  const support s = supports<matched>(with([](problem& p) { p.wants = feature::dropout | feature::alibi; }));
  CHECK_FALSE(s.ok);
  CHECK(s.missing == (feature::dropout | feature::alibi));
  CHECK(s.required == (feature::dropout | feature_set(feature::alibi) | feature::grouped_queries));
  CHECK(s.supported.has(feature::sink));
  CHECK(std::string(s.reason.c_str())
            .find("does not compute: dropout alibi (required: grouped-queries dropout alibi; ") != std::string::npos);
}

TEST_CASE("combinations that the numerics exclude") {
  CHECK(reason<matched>(with([](problem& p) {
          p.softcap = 5, p.key_centring = key_centring::batch;
        })).find("softcap") != std::string::npos);
  CHECK(reason<matched>(with([](problem& p) { p.element = dtype::f32, p.o_residual = true; })).find("16-bit") !=
        std::string::npos);
  CHECK(reason<baseline>(with([](problem& p) { p.save_payloads = true; })).find("no FP8 payloads") !=
        std::string::npos);
  CHECK(reason<matched>(with([](problem& p) {
          p.save_payloads = p.payload_inputs = true;
        })).find("exclude each other") != std::string::npos);
  CHECK(reason<matched>(with([](problem& p) {
          p.payload_inputs = true, p.key_centring = key_centring::batch;
        })).find("give key_shift") != std::string::npos);
  CHECK(reason<matched>(with([](problem& p) {
          p.shard.kv_begin = 4, p.key_centring = key_centring::batch;
        })).find("the same key_shift") != std::string::npos);
  CHECK(reason<consistent>(with([](problem& p) { p.delta_halves = true; })).find("delta-halves") != std::string::npos);
}

TEST_CASE("head dimensions: listed, and those that a config is compiled for") {
  CHECK(reason<matched>(with([](problem& p) { p.d_qk = p.d_v = 48; })) ==
        "d_qk and d_v must be 32, 64, 96, 128, 192 or 256, not 48 and 48");
  CHECK(reason<matched>(with([](problem& p) { p.d_qk = 192, p.d_v = 128; })) == "");
  CHECK(reason<fixed>(with([](problem& p) { p.d_qk = 192, p.d_v = 128; })) == "");
  CHECK(reason<fixed>(plain) == "this config is compiled for d_qk 192, d_v 128, not 64, 64");
}

TEST_CASE("a refused call writes nothing and asks for no workspace") {
  const problem p = with([](problem& x) { x.wants = feature::paged_kv; });
  CHECK(workspace_size<matched>(p) == 0);
  CHECK(workspace_size<matched>(plain) > 0);
  bf16 x[8 * 4 * 64] = {};
  backends::cpu::queue queue;
  const status s =
      attention_forward<matched>(queue, p, {contiguous(x, 8, 4, 64), contiguous(x, 8, 2, 64), contiguous(x, 8, 2, 64)},
                                 {contiguous(x, 8, 4, 64)}, {});
  CHECK(s.code == status_code::unsupported);
}

TEST_CASE("a workspace one byte too small is refused") {
  bf16 q[8 * 4 * 64] = {}, k[8 * 2 * 64] = {};
  std::vector<char> scratch(workspace_size<matched>(plain));
  backends::cpu::queue queue;
  bf16 o[8 * 4 * 64];
  const forward_inputs in{contiguous(q, 8, 4, 64), contiguous(k, 8, 2, 64), contiguous(k, 8, 2, 64)};
  CHECK(attention_forward<matched>(queue, plain, in, {contiguous(o, 8, 4, 64)}, {scratch.data(), scratch.size()}).ok());
  const std::size_t needed = workspace_size<matched>(plain, pass::forward);
  const status s =
      attention_forward<matched>(queue, plain, in, {contiguous(o, 8, 4, 64)}, {scratch.data(), needed - 1});
  CHECK(s.code == status_code::workspace_too_small);
}
