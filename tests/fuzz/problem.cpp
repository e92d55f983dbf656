// SPDX-License-Identifier: Apache-2.0
// Any problem description: validate and supports answer, with a sentence where the answer is no; a workspace size
// exists for what is accepted; and what is accepted and small runs, forward and backward, inside its memory.
#include <octavo/backends/cpu/backend.hpp>

#include <cstdlib>
#include <cstring>
#include <vector>

using namespace octavo;

namespace {

using matched = config<backends::cpu, recipe::token, delta::matched>;
using consistent = config<backends::cpu, recipe::mx32, delta::consistent>;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Numbers from the fuzzer's bytes: mostly small, sometimes anything.
class source {
 public:
  source(const std::uint8_t* bytes, std::size_t size) : bytes_(bytes), size_(size) {}
  std::uint8_t byte() { return at_ < size_ ? bytes_[at_++] : std::uint8_t{0}; }
  std::int64_t extent(int small) {
    const int kind = byte();
    if (kind < 240) return kind % (small + 1);
    std::int64_t any = 0;
    for (int i = 0; i < 8; ++i) any = static_cast<std::int64_t>(static_cast<std::uint64_t>(any) << 8 | byte());
    return any;
  }
  /// An end of a window: mostly -1 or small, sometimes anything.
  std::int64_t window() {
    const std::int64_t end = extent(40);
    return end >= 0 && end <= 40 ? end - 2 : end;
  }
  float number() {
    std::uint32_t word = 0;
    for (int i = 0; i < 4; ++i) word = word << 8 | byte();
    return detail::bit_cast<float>(word);
  }

 private:
  const std::uint8_t* bytes_;
  std::size_t size_, at_ = 0;
};

problem describe(source& from) {
  problem p;
  p.b = from.extent(3);
  p.h_kv = from.extent(2);
  p.h_q = (p.h_kv >= 0 && p.h_kv <= 2 ? p.h_kv : 1) * (from.byte() % 3) + from.byte() % 2;
  p.s_q = from.extent(70);
  p.s_kv = from.extent(70);
  p.d_qk = from.byte() < 250 ? 32 : from.extent(300);
  p.d_v = from.byte() < 250 ? 32 : from.extent(300);
  p.element = static_cast<dtype>(from.byte() % 5);
  p.mask = {static_cast<causal_mask>(from.byte() % 3), from.window(), from.window()};
  if (from.byte() % 4 == 0) p.softmax_scale = from.number();
  if (from.byte() % 4 == 0) p.softcap = from.number();
  p.sink = from.byte() % 3 == 0;
  p.key_centring = static_cast<key_centring>(from.byte() % 3);
  p.packed = from.byte() % 3 == 0;
  p.total_q = from.extent(200);
  p.total_kv = from.extent(200);
  if (from.byte() % 4 == 0) p.shard = {from.extent(50), from.extent(50), from.extent(200), from.extent(200)};
  p.o_residual = from.byte() % 4 == 0;
  p.deterministic = from.byte() % 2 == 0;
  if (from.byte() % 16 == 0) p.wants = static_cast<feature>(from.byte() % static_cast<int>(feature::count));
  return p;
}

/// One tensor of ones in the problem's element type, exactly as large as it has to be: the sanitizer guards its ends.
struct buffer {
  std::vector<std::uint8_t> bytes;
  tensor t;
  buffer(const problem& p, std::int64_t s, std::int64_t total, std::int64_t h, std::int64_t d) {
    const std::int64_t rows = p.packed ? total : p.b * s;
    bytes.resize(static_cast<std::size_t>(rows * h * d * bytes_of(p.element)), 0x3c);
    t = contiguous(static_cast<void*>(bytes.data()), p.element, p.packed ? total : s, h, d);
  }
};

std::vector<std::int32_t> offsets_within(std::int64_t documents, std::int64_t total, source& from) {
  std::vector<std::int32_t> cu(static_cast<std::size_t>(documents) + 1, 0);
  for (std::size_t i = 1; i < cu.size(); ++i) {
    const std::int64_t left = total - cu[i - 1];
    cu[i] = cu[i - 1] + static_cast<std::int32_t>(left > 0 ? from.byte() % (left + 1) : 0);
  }
  return cu;
}

template <class Config>
void run(problem p, source& from) {
  buffer q(p, p.s_q, p.total_q, p.h_q, p.d_qk), k(p, p.s_kv, p.total_kv, p.h_kv, p.d_qk),
      v(p, p.s_kv, p.total_kv, p.h_kv, p.d_v);
  buffer o(p, p.s_q, p.total_q, p.h_q, p.d_v), r = o, dout = o, dq = q, dk = k, dv = v;
  r.t.data = r.bytes.data(), dout.t.data = dout.bytes.data();
  dq.t.data = dq.bytes.data(), dk.t.data = dk.bytes.data(), dv.t.data = dv.bytes.data();
  const std::size_t statistics = static_cast<std::size_t>(p.stat_rows() * p.h_q);
  std::vector<float> lse(statistics), m(statistics), l(statistics),
      sink(static_cast<std::size_t>(p.h_q), from.number()), dsink = sink;
  std::vector<float> shift(static_cast<std::size_t>(p.b * p.h_kv * p.d_qk), .5f), n = m, sum = m, c = m;
  const auto cu_q = offsets_within(p.b, p.total_q, from), cu_kv = offsets_within(p.b, p.total_kv, from);
  std::vector<char> scratch(workspace_size<Config>(p));
  const workspace w{scratch.data(), scratch.size()};
  backends::cpu::queue queue{.threads = 1};

  forward_inputs in{q.t, k.t, v.t};
  backward_inputs back{q.t, k.t, v.t, dout.t, o.t, r.t, m.data(), l.data()};
  if (p.packed) {
    in.cu_seqlens_q = back.cu_seqlens_q = offsets_of(cu_q.data());
    in.cu_seqlens_kv = back.cu_seqlens_kv = offsets_of(cu_kv.data());
  }
  if (p.sink) in.sink = back.sink = sink.data();
  if (p.key_centring == key_centring::given) in.key_shift = back.key_shift = shift.data();
  require(
      attention_forward<Config>(queue, p, in, {o.t, lse.data(), m.data(), l.data(), p.o_residual ? r.t : tensor{}}, w)
          .ok());
  if (p.part_of_keys() && !Config::delta::reads_o) {
    back.delta_shift = c.data();
    require(attention_delta<Config>(queue, p, back, {n.data(), sum.data()}, w).ok());
    p.delta_halves = true;
    back.delta_n = n.data(), back.delta_sum = sum.data();
    scratch.resize(workspace_size<Config>(p));
  }
  backward_outputs out{dq.t, dk.t, dv.t, p.sink ? dsink.data() : nullptr};
  require(attention_backward<Config>(queue, p, back, out, {scratch.data(), scratch.size()}).ok());
}

template <class Config>
void ask(const problem& p, source& from) {
  const support answer = supports<Config>(p);
  require(answer.ok == answer.reason.empty());
  if (!answer) return;
  require(answer.missing.empty());
  const std::size_t bytes = workspace_size<Config>(p);
  require(bytes > 0);
  const bool small = p.b <= 3 && p.h_q <= 6 && p.s_q <= 70 && p.s_kv <= 70 && p.total_q <= 250 && p.total_kv <= 250;
  if (small) run<Config>(p, from);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  source from(bytes, size);
  const problem p = describe(from);
  const status valid = validate(p);
  require(valid.ok() == valid.message.empty());
  if (!valid) return 0;
  ask<matched>(p, from);
  ask<consistent>(p, from);
  return 0;
}
