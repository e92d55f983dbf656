// SPDX-License-Identifier: Apache-2.0
#include <octavo/tensor/problem.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace octavo;

namespace {

std::string complaint(const problem& p) { return validate(p).message.c_str(); }

problem valid() { return {.b = 2, .h_q = 8, .h_kv = 2, .s_q = 100, .s_kv = 200}; }

}  // namespace

TEST_CASE("a sensible problem is valid, and so are empty ones") {
  CHECK(validate(valid()).ok());
  CHECK(validate(problem{.b = 0, .s_q = 4, .s_kv = 4}).ok());
  CHECK(validate(problem{.s_q = 0, .s_kv = 4}).ok());
  CHECK(validate(problem{.s_q = 4, .s_kv = 0}).ok());
}

TEST_CASE("what makes no sense is named") {
  const auto with = [](auto change) {
    problem p = valid();
    change(p);
    return complaint(p);
  };
  CHECK(with([](problem& p) { p.s_q = -1; }).find("must not be negative") != std::string::npos);
  CHECK(with([](problem& p) { p.h_q = 7; }) == "h_q must be a positive multiple of h_kv: h_q 7, h_kv 2");
  CHECK(with([](problem& p) { p.h_kv = 0; }).find("positive multiple") != std::string::npos);
  CHECK(with([](problem& p) { p.d_qk = 0; }).find("d_qk and d_v must be positive") != std::string::npos);
  CHECK(with([](problem& p) { p.element = dtype::e4m3; }).find("not e4m3") != std::string::npos);
  CHECK(with([](problem& p) { p.mask.window_left = -2; }).find("a window counts keys") != std::string::npos);
  CHECK(with([](problem& p) { p.softcap = -1; }).find("softcap") != std::string::npos);
  CHECK(with([](problem& p) { p.softcap = std::numeric_limits<float>::quiet_NaN(); }).find("softcap") !=
        std::string::npos);
  CHECK(with([](problem& p) { p.softmax_scale = std::numeric_limits<float>::infinity(); }).find("softmax_scale") !=
        std::string::npos);
  CHECK(with([](problem& p) { p.shard.q_begin = -1; }) ==
        "extents and positions must not be negative, nor above 2^48: -1");
  CHECK(with([](problem& p) { p.shard = {.q_begin = 10, .s_q_total = 50}; }).find("beyond s_q_total 50") !=
        std::string::npos);
  CHECK(with([](problem& p) { p.packed = true, p.shard.q_begin = 1; }).find("exclude each other") != std::string::npos);
}

TEST_CASE("extents whose product overflows 64 bits are refused before anything is multiplied") {
  problem p = valid();
  p.s_q = std::int64_t{1} << 48;
  CHECK(complaint(p) == "the tensors are larger than 64-bit offsets can address");
  for (const std::int64_t huge : {std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 62}) {
    p = valid();
    p.b = p.s_q = p.total_kv = p.shard.q_begin = huge;
    CHECK(complaint(p).find("above 2^48") != std::string::npos);
  }
  p = valid();
  p.b = p.s_q = p.s_kv = std::int64_t{1} << 31;
  CHECK_FALSE(validate(p).ok());
  // 2^31 elements and beyond are ordinary.
  p = valid();
  p.b = 8300, p.h_q = p.h_kv = 16, p.s_q = p.s_kv = 1 << 16;
  CHECK(validate(p).ok());
}

TEST_CASE("the softmax scale comes from d_qk, whatever a kernel pads it to") {
  problem p = valid();
  p.d_qk = 96;
  CHECK(p.scale() == doctest::Approx(0.10206207f));
  p.softmax_scale = 0.0f;
  CHECK(p.scale() == 0.0f);
}

TEST_CASE("a problem says which features it needs") {
  CHECK(required_features(problem{}) == feature_set{});
  problem p = valid();
  CHECK(required_features(p) == feature_set(feature::grouped_queries));
  p.mask = {.causal = causal_mask::bottom_right, .window_left = 3};
  p.sink = true;
  p.wants = feature::dropout;
  CHECK(required_features(p) == (feature::grouped_queries | feature::causal_bottom_right |
                                 feature_set(feature::window) | feature::sink | feature::dropout));
}

TEST_CASE("feature sets print as names") {
  text t;
  t << (feature::sink | feature::alibi) << "; " << feature_set{};
  CHECK(t.view() == "sink alibi; none");
}

TEST_CASE("text is cut, never overrun, and prints every integer") {
  text t;
  for (int i = 0; i < 100; ++i) t << "0123456789";
  CHECK(t.view().size() == 383);
  CHECK(std::string(t.c_str()).size() == 383);
  CHECK(std::string((text() << std::numeric_limits<long long>::min()).c_str()) == "-9223372036854775808");
  CHECK(std::string((text() << 0).c_str()) == "0");
}
