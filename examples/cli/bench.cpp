// SPDX-License-Identifier: Apache-2.0
// octavo bench: how fast a shape runs, and how much faster than unfused FP32.
#include <octavo/backend/trace.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <random>
#include <thread>

#include "baseline.hpp"
#include "call.hpp"
#include "commands.hpp"
#include "compare.hpp"
#include "memory.hpp"
#include "output_folder.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace cli {
namespace {

struct timing {
  double median_ms, min_ms;
};

/// One run to warm up, then `repeat` timed ones; `once` returns milliseconds.
template <class Once>
timing measure(int repeat, const Once& once) {
  once();
  std::vector<double> ms;
  for (int i = 0; i < repeat; ++i) ms.push_back(once());
  std::sort(ms.begin(), ms.end());
  const std::size_t middle = ms.size() / 2;
  return {ms.size() % 2 == 1 ? ms[middle] : (ms[middle - 1] + ms[middle]) / 2, ms.front()};
}

template <class Work>
double milliseconds(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

/// What one pass showed.
struct pass_figures {
  const char* name;
  double flops;
  timing library{};
  std::optional<timing> opponent{};

  double teraflops() const { return flops / library.median_ms * 1e-9; }
  double ratio() const { return opponent->median_ms / library.median_ms; }
};

/// Products alone, by the convention of the field: 4 b h s_q s_kv d forward, half of it under a causal mask, and 2.5
/// times as many backward, whatever a delta policy adds to that.
double forward_flops(const octavo::problem& p) {
  const double full = 2.0 * static_cast<double>(p.b * p.h_q) * static_cast<double>(p.s_q) *
                      static_cast<double>(p.s_kv) * static_cast<double>(p.d_qk + p.d_v);
  return p.mask.causal == octavo::causal_mask::none ? full : full / 2;
}

octavo::problem problem_of(const bench_options& o) {
  octavo::problem p;
  p.b = o.b, p.h_q = o.h_q, p.h_kv = o.h_kv, p.s_q = o.s_q, p.s_kv = o.s_kv, p.d_qk = p.d_v = o.d;
  p.element = o.element;
  p.mask.causal = o.causal;
  return p;
}

npy::array random_tensor(const npy::extents& shape, unsigned seed) {
  npy::array out{npy::dtype::float32, shape, {}};
  std::size_t n = 1;
  for (const std::int64_t extent : shape) n *= static_cast<std::size_t>(extent);
  out.data.resize(n * sizeof(float));
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  auto* values = reinterpret_cast<float*>(out.data.data());
  for (std::size_t i = 0; i < n; ++i) values[i] = normal(engine);
  return out;
}

std::vector<float> floats(const npy::array& a) { return {a.as<float>(), a.as<float>() + a.size()}; }

/// The tensors of the run, float32, each from a seed of its own: the baseline makes the same ones again.
struct random_inputs {
  npy::array q, k, v, dout;

  explicit random_inputs(const octavo::problem& p)
      : q(random_tensor({p.b, p.s_q, p.h_q, p.d_qk}, 1)),
        k(random_tensor({p.b, p.s_kv, p.h_kv, p.d_qk}, 2)),
        v(random_tensor({p.b, p.s_kv, p.h_kv, p.d_v}, 3)),
        dout(random_tensor({p.b, p.s_q, p.h_q, p.d_v}, 4)) {}
};

bool is_forward(const pass_figures& f) { return f.name == std::string_view("forward"); }

/// Times the passes of the library; its results are for the baseline to compare with.
std::optional<results> run_library(const device& on, const octavo::engine& engine, const inputs& in,
                                   const bench_options& options, std::vector<pass_figures>& passes,
                                   const progress& shown) {
  attention_call call(on, engine, in, in.problem);
  call.forward();  // the backward needs its statistics
  for (pass_figures& f : passes) {
    shown.step(f.name);
    f.library = measure(options.repeat, [&] { return is_forward(f) ? call.forward() : call.backward(); });
  }
  if (!options.baseline) return std::nullopt;
  return call.collect();
}

/// Times the baseline; returns how far its result (dV, or O without a backward) is from the library's. One that
/// computed something else would make the ratio worthless.
double run_baseline(const octavo::problem& p, const results& r, const bench_options& options, int threads,
                    std::vector<pass_figures>& passes, const progress& shown) {
  const random_inputs from(p);
  baseline opponent{p, floats(from.q), floats(from.k), floats(from.v), floats(from.dout)};
  opponent.forward(threads);
  for (pass_figures& f : passes) {
    shown.step(std::string("baseline, ") + f.name);
    f.opponent = measure(options.repeat, [&] {
      return milliseconds([&] { is_forward(f) ? opponent.forward(threads) : opponent.backward(threads); });
    });
  }
  return options.backward ? relative_l2(r.dv->values, opponent.dv) : relative_l2(r.o->values, opponent.o);
}

void print(const std::vector<pass_figures>& passes) {
  const bool opponent = passes.front().opponent.has_value();
  std::printf("%-9s %12s %12s %9s%s\n", "pass", "median ms", "min ms", "TFLOP/s",
              opponent ? "  baseline ms    ratio" : "");
  for (const pass_figures& f : passes) {
    std::printf("%-9s %12.3f %12.3f %9.4f", f.name, f.library.median_ms, f.library.min_ms, f.teraflops());
    if (opponent) std::printf(" %12.3f %7.2fx", f.opponent->median_ms, f.ratio());
    std::printf("\n");
  }
}

}  // namespace

void run_bench(const bench_options& options) {
  inputs in;
  const octavo::problem p = in.problem = problem_of(options);
  require(octavo::validate(p));
  const octavo::backend_entry& entry = runnable_backend(options.engine);
  const octavo::engine& engine = find_engine(entry, options.engine);
  if (const octavo::support s = engine.supports(p); !s) unsupported(std::string(s.reason.view()));
  const std::filesystem::path json_path = options.json.empty() ? "" : std::filesystem::absolute(options.json);
  std::optional<output_folder> out;
  if (!options.json.empty())
    out.emplace("--json", json_path.parent_path().string(), std::vector{json_path.filename().string()});

  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  {
    random_inputs from(p);
    in.q = to_element_type(std::move(from.q), p.element, "q");
    in.k = to_element_type(std::move(from.k), p.element, "k");
    in.v = to_element_type(std::move(from.v), p.element, "v");
    if (options.backward) in.dout = to_element_type(std::move(from.dout), p.element, "dout");
  }

  std::vector<pass_figures> passes;
  if (options.forward) passes.push_back({"forward", forward_flops(p)});
  if (options.backward) passes.push_back({"backward", 2.5 * forward_flops(p)});
  const device on(entry, options.engine);
  octavo::trace_log::clear();
  double memory = 0, baseline_memory = 0, baseline_difference = 0;
  {
    // Each side's peak is its own: the library has let go of its memory before the baseline takes any.
    const progress shown;
    reset_peak_memory();
    const auto library_results = run_library(on, engine, in, options, passes, shown);
    memory = peak_memory_mib();
    if (options.baseline) {
      reset_peak_memory();
      baseline_difference = run_baseline(p, *library_results, options, threads, passes, shown);
      baseline_memory = peak_memory_mib();
    }
  }

  std::printf("%s on %s, recipe %s, delta %s, %s, shape %lld,%lld,%lld,%lld,%lld,%lld%s\n",
              std::string(entry.name).c_str(), on.name().c_str(), std::string(engine.recipe).c_str(),
              std::string(engine.delta).c_str(), name_of(p.element), static_cast<long long>(p.b),
              static_cast<long long>(p.h_q), static_cast<long long>(p.h_kv), static_cast<long long>(p.s_q),
              static_cast<long long>(p.s_kv), static_cast<long long>(p.d_qk),
              p.mask.causal == octavo::causal_mask::none ? "" : ", causal");
  print(passes);
  std::printf("peak memory %.0f MiB\n", memory);
  if (options.baseline)
    std::printf(
        "baseline: unfused FP32, Eigen, %d threads, peak memory %.0f MiB; its %s differs by %.3g (relative L2)\n",
        threads, baseline_memory, options.backward ? "dV" : "O", baseline_difference);

  if (!out) return;
  json_writer json;
  json.begin_object().value("backend", entry.name).value("device", on.name()).value("recipe", engine.recipe);
  json.value("delta", engine.delta).value("element_type", name_of(p.element));
  report_shape(json, p);
  report_options(json, p, options.engine);
  json.list("main_loops", octavo::trace_log::loops()).value("repeat", options.repeat);
  for (const pass_figures& f : passes) {
    json.begin_object(f.name).value("median_ms", f.library.median_ms).value("min_ms", f.library.min_ms);
    json.value("flops", f.flops).value("tflops", f.teraflops());
    if (f.opponent) json.value("baseline_median_ms", f.opponent->median_ms).value("ratio", f.ratio());
    json.end_object();
  }
  if (options.baseline) {
    json.value("baseline_threads", threads).value("baseline_difference", baseline_difference);
    json.value("baseline_peak_memory_mib", baseline_memory);
  }
  json.value("peak_memory_mib", memory).end_object();
  out->add_text(json_path.filename().string(), json.text());
  out->commit();
}

}  // namespace cli
