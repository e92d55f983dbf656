// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <octavo/engines.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "join.hpp"
#include "values.hpp"

namespace cli {
namespace {

using parse_function = std::function<void(const std::string&)>;

/// A parser's complaint, with the option's name before it.
[[noreturn]] void reject(const std::string& option, const std::string& value, const std::string& allowed) {
  throw CLI::ValidationError(option, "'" + value + "' is not allowed here; allowed: " + allowed);
}

/// Comma-separated integers >= smallest, exactly `count` of them.
std::vector<std::int64_t> parse_list(const std::string& option, const std::string& value, std::size_t count,
                                     std::int64_t smallest, const std::string& allowed) {
  const auto numbers = integers_of(value);
  if (!numbers || numbers->size() != count || *std::min_element(numbers->begin(), numbers->end()) < smallest)
    reject(option, value, allowed);
  return *numbers;
}

float parse_float(const std::string& option, const std::string& value, float smallest, const std::string& allowed) {
  const auto number = real_of(value);
  if (!number || *number < smallest) reject(option, value, allowed);
  return *number;
}

octavo::dtype parse_dtype(const std::string& value) {
  for (const octavo::dtype t : {octavo::dtype::f32, octavo::dtype::f16, octavo::dtype::bf16})
    if (value == name_of(t)) return t;
  reject("--dtype", value, "f32, f16, bf16");
}

/// An option with one value, parsed at once. No value begins with "--", so that a forgotten one is noticed where it is
/// missing: CLI11 would take the option after it instead.
CLI::Option* add_parsed(CLI::App& command, const std::string& name, const std::string& type, parse_function parse,
                        const std::string& help) {
  const parse_function checked = [name, type, parse = std::move(parse)](const std::string& value) {
    if (value.empty()) throw CLI::ValidationError(name, "the value is empty; allowed: " + type);
    if (value.starts_with("--")) {
      const bool path = type.ends_with("FILE") || type == "DIR";
      throw CLI::ValidationError(name, "needs a value, but '" + value + "' stands in its place; allowed: " + type +
                                           (path ? " (a path that begins so is written ./" + value + ")" : ""));
    }
    parse(value);
  };
  return command.add_option_function<std::string>(name, checked, help)->type_name(type);
}

/// A path, or a word that may stand for one.
CLI::Option* add_path(CLI::App& command, const std::string& name, const std::string& type, std::string& into,
                      const std::string& help) {
  return add_parsed(command, name, type, [&into](const std::string& value) { into = value; }, help);
}

CLI::Option* add_file(CLI::App& command, const std::string& name, std::string& into, const std::string& help) {
  return add_path(command, name, "FILE", into, help);
}

/// A switch takes no value, and like every option here it may be given once (CLI11 would let a flag's last value win).
CLI::Option* add_switch(CLI::App& command, const std::string& name, bool& into, const std::string& help) {
  return command.add_flag(name, into, help)
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
      ->disable_flag_override();
}

CLI::Option* add_choice(CLI::App& command, const std::string& name, std::string& into,
                        const std::vector<std::string>& allowed, const std::string& help) {
  const std::string list = join(allowed);
  const parse_function parse = [name, allowed, list, &into](const std::string& value) {
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) reject(name, value, list);
    into = value;
  };
  return add_parsed(command, name, "NAME", parse, help + ": " + list + (into.empty() ? "" : " [" + into + "]"));
}

/// --causal is a flag that may carry a value behind '=', so that it never takes the argument after it.
void add_causal(CLI::App& command, octavo::causal_mask& into) {
  const auto parse = [&into](const std::string& value) -> std::string {
    if (value != "top-left" && value != "bottom-right")
      return "'" + value +
             "' is not allowed here; allowed: --causal (top-left), --causal=top-left, --causal=bottom-right";
    into = value == "top-left" ? octavo::causal_mask::top_left : octavo::causal_mask::bottom_right;
    return {};
  };
  command.add_flag("--causal{top-left}")
      ->description("causal mask: --causal or --causal=top-left, --causal=bottom-right")
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
      ->check(parse, "");  // CLI11 puts the option's name before the sentence
}

void add_engine(CLI::App& command, engine_options& into) {
  std::vector<std::string> backends;
  for (const octavo::backend_entry& entry : octavo::all_backends()) backends.emplace_back(entry.name);
  add_choice(command, "--backend", into.backend, backends, "who computes");
  add_choice(command, "--recipe", into.recipe, {"mx32", "token", "tile", "tensor", "bf16", "exact"},
             into.recipe.empty() ? "only this scaling recipe" : "how operands are scaled");
  add_choice(command, "--delta", into.delta, {"stale", "matched", "consistent"},
             into.delta.empty() ? "only this delta policy" : "what the backward subtracts from dP");
  add_switch(command, "--e5m2-gradients", into.e5m2_gradients, "dO and dS in E5M2 instead of E4M3");
  add_choice(command, "--accumulator", into.accumulator, {"ideal", "model"},
             "sim- backends: how matrix instructions add up, exactly or as the device does [ideal]");
}

void add_problem(CLI::App& command, problem_options& into) {
  add_file(command, "--q", into.q, "[b, s_q, h_q, d_qk]; with offsets [total_q, h_q, d_qk]")->required();
  add_file(command, "--k", into.k, "[b, s_kv, h_kv, d_qk]")->required();
  add_file(command, "--v", into.v, "[b, s_kv, h_kv, d_v]")->required();
  add_file(command, "--dout", into.dout, "[b, s_q, h_q, d_v]: the gradient of O; asks for the backward");
  add_parsed(
      command, "--dtype", "T", [&into](const std::string& value) { into.element = parse_dtype(value); },
      "element type: f32, f16, bf16 [that of the files]; float32 files are rounded to it");
  add_causal(command, into.mask.causal);
  const std::string window = "L,R: keys on each side of the row's own position, -1 for unbounded";
  add_parsed(
      command, "--window", "L,R",
      [&into, window](const std::string& value) {
        const auto sides = parse_list("--window", value, 2, -1, window);
        into.mask.window_left = sides[0];
        into.mask.window_right = sides[1];
      },
      window);
  add_parsed(
      command, "--scale", "X",
      [&into](const std::string& value) {
        into.scale = parse_float("--scale", value, std::numeric_limits<float>::lowest(), "a finite number");
      },
      "softmax scale [1/sqrt(d_qk)]");
  add_parsed(
      command, "--softcap", "X",
      [&into](const std::string& value) { into.softcap = parse_float("--softcap", value, 0, "a finite number >= 0"); },
      "S becomes X tanh(S / X); 0: off [0]");
  add_file(command, "--sink", into.sink, "float32 [h_q]: a logit more in every row's denominator");
  CLI::Option* q =
      add_file(command, "--cu-seqlens-q", into.cu_seqlens_q, "int32 or int64 [n+1]: where documents begin");
  CLI::Option* kv = add_file(command, "--cu-seqlens-kv", into.cu_seqlens_kv, "the same for keys and values");
  q->needs(kv);
  kv->needs(q);
  add_path(command, "--key-centring", "off|batch|FILE", into.key_centring,
           "subtract from every key: off, batch (their mean), or a float32 file [b, h_kv, d_qk] [off]");
  add_switch(command, "--deterministic", into.deterministic, "bit-identical results from run to run");
}

void add_shape(CLI::App& command, bench_options& into) {
  static constexpr const char* allowed = "b,hq,hkv,sq,skv,d: six integers >= 1";
  add_parsed(
      command, "--shape", "b,hq,hkv,sq,skv,d",
      [&into](const std::string& value) {
        const auto n = parse_list("--shape", value, 6, 1, allowed);
        into.b = n[0], into.h_q = n[1], into.h_kv = n[2], into.s_q = n[3], into.s_kv = n[4], into.d = n[5];
      },
      "extents [1,8,8,1024,1024,64]");
}

}  // namespace

void add_options(CLI::App& command, attention_options& into) {
  add_engine(command, into.engine);
  add_problem(command, into.problem);
  add_switch(command, "--o-residual", into.o_residual, "also T(O - T(O)), which the consistent delta adds to O");
  add_switch(command, "--save-payloads", into.save_payloads, "also the FP8 payloads of Q, K, V, dO with their scales");
  add_path(command, "--out", "DIR", into.out, "folder for the results, created if needed")->required();
}

void add_options(CLI::App& command, audit_options& into) {
  into.engine.recipe = into.engine.delta = "";
  add_engine(command, into.engine);
  add_problem(command, into.problem);
  command.get_option("--dout")->required();
  add_path(command, "--out", "DIR", into.out, "folder for report.json and audit.png, created if needed")->required();
}

void add_options(CLI::App& command, bench_options& into) {
  add_engine(command, into.engine);
  add_shape(command, into);
  add_parsed(
      command, "--dtype", "T", [&into](const std::string& value) { into.element = parse_dtype(value); },
      "element type: f32, f16, bf16 [bf16]");
  add_causal(command, into.causal);
  add_parsed(
      command, "--pass", "NAME",
      [&into](const std::string& value) {
        if (value != "forward" && value != "backward") reject("--pass", value, "forward, backward");
        into.forward = value == "forward";
        into.backward = value == "backward";
      },
      "only this pass: forward, backward [both]");
  add_parsed(
      command, "--repeat", "N",
      [&into](const std::string& value) {
        const auto number = integer_of(value);
        if (!number || *number < 1 || *number > 100000) reject("--repeat", value, "an integer from 1 to 100000");
        into.repeat = static_cast<int>(*number);
      },
      "timed runs after one to warm up [5]");
  add_switch(command, "--baseline", into.baseline, "also an unfused FP32 attention whose products are Eigen's");
  add_file(command, "--json", into.json, "also write the figures to this file");
}

}  // namespace cli
