// SPDX-License-Identifier: Apache-2.0
// What only a GPU can be asked: graphs, many repeats, rows of 2^17 keys, tensors beyond 2^31 bytes. Every CUDA backend
// that finds its device; without one each case is skipped.
#include <cstring>
#include <cuda_runtime.h>
#include <map>
#include <string_view>

#include "support/judged.hpp"

using namespace octavo_tests;

namespace {

/// What a queue of the CUDA backends begins with.
struct cuda_queue {
  cudaStream_t stream;
};

void require(cudaError_t e) {
  if (e != cudaSuccess) throw std::runtime_error(cudaGetErrorString(e));
}

bool is_cuda(const octavo::backend_entry& entry) { return entry.name.starts_with("cuda-"); }

bool can_run(const octavo::backend_entry& entry) {
  return is_cuda(entry) && entry.compiled && entry.unavailable().empty();
}
/// Hopper has no block scales: its mx32 is the generic loops', which would take minutes here.
bool is_generic(const candidate& on) { return on.backend.name == "cuda-hopper" && on.is("mx32"); }

/// Whether any CUDA backend finds its device; else says that the case is skipped.
bool has_device() {
  for (const octavo::backend_entry& entry : octavo::all_backends())
    if (can_run(entry)) return true;
  MESSAGE("skipped: no CUDA backend finds a device");
  return false;
}

/// Calls f with the native engines of each CUDA backend that can run here. Each must have some that compute p.
template <class F>
void for_each_cuda_engine(const octavo::problem& p, F f) {
  std::map<std::string_view, int> visits;
  for (const octavo::backend_entry& entry : octavo::all_backends())
    if (can_run(entry)) visits[entry.name] = 0;
  const selection native{.recipes = {"mx32", "tile", "token"}, .deltas = {"matched", "consistent"}};
  for_each_engine(p, native, [&](const candidate& on) {
    if (!can_run(on.backend) || is_generic(on)) return;
    f(on);
    ++visits[on.backend.name];
  });
  for (const auto& [name, count] : visits) CHECK_MESSAGE(count > 0, name, " has no native engine for this problem");
}

/// A stream of its own, as graphs want one.
class stream_of {
 public:
  explicit stream_of(const session& on) : queue_(static_cast<cuda_queue*>(on.queue())) {
    require(cudaStreamCreate(&queue_->stream));
  }
  ~stream_of() {
    (void)cudaStreamDestroy(queue_->stream);
    queue_->stream = nullptr;
  }
  cudaStream_t get() const { return queue_->stream; }

 private:
  cuda_queue* queue_;
};

/// A problem with one head dimension whose tensors all lie in one allocation, head h at h * stride_h elements.
class strided_attention {
 public:
  strided_attention(const session& on, const octavo::problem& p, std::int64_t stride_h) : on_(on), p_(p) {
    rows_ = std::max(p.s_q, p.s_kv);
    const std::int64_t tensors = 8, tensor = rows_ * p.d_qk;
    stride_h_ = stride_h == 0 ? tensor * tensors : stride_h;
    elements_ = stride_h_ * (p.h_q - 1) + tensor * tensors;
    memory_ = static_cast<std::byte*>(on.entry().memory.allocate(static_cast<std::size_t>(elements_) * 2));
    if (!memory_) throw std::runtime_error("no memory for " + std::to_string(elements_ * 2) + " bytes");
  }
  ~strided_attention() { on_.entry().memory.release(memory_); }

  /// Q, K, V, dO are 0 to 3; O, dQ, dK, dV are 4 to 7.
  octavo::tensor at(int number) const {
    octavo::tensor t =
        octavo::contiguous(memory_ + number * rows_ * p_.d_qk * 2, octavo::dtype::bf16, rows_, 1, p_.d_qk);
    t.stride_h = stride_h_, t.stride_b = 0;
    return t;
  }
  void fill(int number, std::int64_t head, const floats& values) const {
    std::vector<octavo::bf16> x(values.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = octavo::bf16::nearest_even(values[i]);
    session::require(on_.entry().memory.to_device(on_.queue(), row(number, head), x.data(), x.size() * 2));
  }
  bytes read(int number, std::int64_t head, std::int64_t tokens) const {
    bytes out(static_cast<std::size_t>(tokens * p_.d_qk) * 2);
    session::require(on_.entry().memory.to_host(on_.queue(), out.data(), row(number, head), out.size()));
    return out;
  }
  /// Offset of the last head's tensors.
  std::int64_t reach() const { return stride_h_ * (p_.h_q - 1) * 2; }

 private:
  std::byte* row(int number, std::int64_t head) const {
    return static_cast<std::byte*>(at(number).data) + head * stride_h_ * 2;
  }
  const session& on_;
  octavo::problem p_;
  std::int64_t rows_, stride_h_, elements_;
  std::byte* memory_ = nullptr;
};

/// Forward and backward with statistics and workspace of their own.
class passes_of {
 public:
  passes_of(const session& on, const octavo::engine& e, const octavo::problem& p)
      : on_(on),
        engine_(e),
        p_(p),
        statistics_(on, 3 * p.b * p.h_q * p.s_q),
        size_(e.workspace_size(p, octavo::pass::all)),
        workspace_(on, static_cast<std::int64_t>(size_)) {}

  octavo::status operator()(const strided_attention& x) const {
    const std::int64_t n = p_.b * p_.h_q * p_.s_q;
    float* const lse = statistics_.data();
    const octavo::workspace w{workspace_.data(), size_};
    octavo::forward_inputs in;
    in.q = x.at(0), in.k = x.at(1), in.v = x.at(2);
    octavo::forward_outputs out;
    out.o = x.at(4), out.lse = lse, out.m = lse + n, out.l = lse + 2 * n;
    if (const octavo::status s = engine_.forward(on_.queue(), p_, in, out, w); !s.ok()) return s;
    octavo::backward_inputs back;
    back.q = in.q, back.k = in.k, back.v = in.v, back.dout = x.at(3), back.o = out.o, back.m = out.m, back.l = out.l;
    octavo::backward_outputs gradients;
    gradients.dq = x.at(5), gradients.dk = x.at(6), gradients.dv = x.at(7);
    return engine_.backward(on_.queue(), p_, back, gradients, w);
  }

 private:
  const session& on_;
  const octavo::engine& engine_;
  octavo::problem p_;
  array_memory<float> statistics_;
  std::size_t size_;
  array_memory<std::uint8_t> workspace_;
};

void fill_inputs(const strided_attention& x, const octavo::problem& p, unsigned seed) {
  octavo::problem one_head = p;
  one_head.h_q = one_head.h_kv = 1;
  for (std::int64_t h = 0; h < p.h_q; ++h) {
    const test_case c = make_case(one_head, input_family::randn, seed + static_cast<unsigned>(h));
    x.fill(0, h, c.q), x.fill(1, h, c.k), x.fill(2, h, c.v), x.fill(3, h, c.dout);
  }
}
std::vector<bytes> outputs(const strided_attention& x, const octavo::problem& p) {
  std::vector<bytes> all;
  for (int number = 4; number < 8; ++number)
    for (std::int64_t h = 0; h < p.h_q; ++h) all.push_back(x.read(number, h, number < 6 ? p.s_q : p.s_kv));
  return all;
}

constexpr octavo::problem two_heads{.h_q = 2,
                                    .h_kv = 2,
                                    .s_q = 300,
                                    .s_kv = 300,
                                    .d_qk = 128,
                                    .d_v = 128,
                                    .element = octavo::dtype::bf16,
                                    .mask = {.causal = octavo::causal_mask::top_left}};

}  // namespace

TEST_CASE("cuda: a captured graph gives what the calls give") {
  if (!has_device()) return;
  for_each_cuda_engine(two_heads, [](const candidate& on) {
    const session s(on.backend);
    const stream_of stream(s);
    const strided_attention x(s, two_heads, 0);
    const passes_of passes(s, on.engine, two_heads);
    fill_inputs(x, two_heads, 1);
    session::require(passes(x));  // once before: a first launch loads code

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t instance = nullptr;
    require(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    const octavo::status captured = passes(x);
    require(cudaStreamEndCapture(stream.get(), &graph));
    session::require(captured);
    require(cudaGraphInstantiate(&instance, graph, 0));

    fill_inputs(x, two_heads, 5);  // other inputs than at the capture
    require(cudaGraphLaunch(instance, stream.get()));
    s.synchronise();
    const std::vector<bytes> replayed = outputs(x, two_heads);
    session::require(passes(x));
    s.synchronise();
    CHECK(replayed == outputs(x, two_heads));
    require(cudaGraphExecDestroy(instance));
    require(cudaGraphDestroy(graph));
  });
}

TEST_CASE("cuda: 200 deterministic passes give the same bits") {
  if (!has_device()) return;
  octavo::problem p = two_heads;
  p.deterministic = true;
  for_each_cuda_engine(p, [&](const candidate& on) {
    const session s(on.backend);
    const strided_attention x(s, p, 0);
    const passes_of passes(s, on.engine, p);
    fill_inputs(x, p, 9);
    session::require(passes(x));
    const std::vector<bytes> first = outputs(x, p);
    int different = 0;
    for (int i = 1; i < 200; ++i) {
      session::require(passes(x));
      different += outputs(x, p) != first;
    }
    CHECK(different == 0);
  });
}

TEST_CASE("cuda: tensors that reach beyond 2^31 bytes and 2^31 elements") {
  if (!has_device()) return;
  constexpr std::int64_t far = (std::int64_t{1} << 31) + 4096;  // elements, of two bytes
  for_each_cuda_engine(two_heads, [](const candidate& on) {
    const session s(on.backend);
    const passes_of passes(s, on.engine, two_heads);
    std::vector<bytes> near_bits;
    {
      const strided_attention x(s, two_heads, 0);
      fill_inputs(x, two_heads, 3);
      session::require(passes(x));
      near_bits = outputs(x, two_heads);
    }
    const strided_attention x(s, two_heads, far);
    REQUIRE(x.reach() > std::int64_t{1} << 32);
    fill_inputs(x, two_heads, 3);
    session::require(passes(x));
    CHECK(outputs(x, two_heads) == near_bits);
  });
}

// As in the conformance suite ("the error of a long row does not grow with it"), on a row that a CPU takes long for.
TEST_CASE("cuda: a row over 131,072 keys finds its needle") {
  if (!has_device()) return;
  for (const std::int64_t d : {64, 128}) {
    CAPTURE(d);
    const octavo::problem p{.s_q = 1, .s_kv = 131072, .d_qk = d, .d_v = d};
    test_case c = make_case(p, input_family::randn, 143);
    multiply(c.q, 0.01f);
    for (float& x : c.v) x += 1;
    for_tokens(c.v, c.kv_side(d), 43690, 43691, [](auto values, std::int64_t) { values[5] = 400; });
    const results truth = exact(c);
    for_each_cuda_engine(p, [&](const candidate& on) {
      const results got = finite_run(on, c, {.o_in_f32 = true});
      CHECK(relative_error(got.o, truth.o) < 0.01);
      CHECK(std::fabs(got.o[5] - truth.o[5]) < 0.5 * 400 / 131072);  // half of what the needle adds
      CHECK(relative_error(got.dv, truth.dv) < 0.1);                 // P of 1/131072 has not vanished
    });
  }
}
