// SPDX-License-Identifier: Apache-2.0
// The options of the subcommands, parsed: what the user asked for, before any file is opened.
#pragma once

#include <octavo/tensor/problem.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace cli {

/// Which engine computes.
struct engine_options {
  std::string backend = "cpu";
  std::string recipe = "token";
  std::string delta = "matched";
  bool e5m2_gradients = false;
  std::string accumulator;  ///< of a simulated device; empty: not asked for
};

/// The files and what the problem makes of them; `attention` and `audit` share these.
struct problem_options {
  std::string q, k, v, dout;                ///< .npy files; dout may be empty
  std::string sink;                         ///< .npy file or empty
  std::string cu_seqlens_q, cu_seqlens_kv;  ///< .npy files or empty
  std::string key_centring = "off";         ///< off, batch, or a .npy file
  std::optional<octavo::dtype> element;     ///< absent: that of the files
  octavo::mask mask;
  std::optional<float> scale;
  float softcap = 0;
  bool deterministic = false;
};

struct attention_options {
  engine_options engine;
  problem_options problem;
  bool o_residual = false;
  bool save_payloads = false;
  std::string out;  ///< folder
};

struct audit_options {
  engine_options engine;  ///< recipe and delta are empty for all of them
  problem_options problem;
  std::string out;
};

struct bench_options {
  engine_options engine;
  std::int64_t b = 1, h_q = 8, h_kv = 8, s_q = 1024, s_kv = 1024, d = 64;
  octavo::dtype element = octavo::dtype::bf16;
  octavo::causal_mask causal = octavo::causal_mask::none;
  bool forward = true, backward = true;
  bool baseline = false;
  int repeat = 5;
  std::string json;  ///< file or empty
};

void add_options(CLI::App& command, attention_options& into);
void add_options(CLI::App& command, audit_options& into);
void add_options(CLI::App& command, bench_options& into);

}  // namespace cli
