// SPDX-License-Identifier: Apache-2.0
// The option parser on any arguments (one per line): it parses, or it throws CLI11's ParseError. What it accepts is in
// range.
#include "cli/options.hpp"

#include <octavo/engines.hpp>

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

/// The names that the parser allows come from the compiled backends; two entries stand for them here.
std::span<const octavo::backend_entry> octavo::all_backends() {
  static const octavo::backend_entry entries[] = {{.name = "cpu"}, {.name = "reference"}};
  return entries;
}

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const cli::problem_options& p) {
  require(!p.scale || std::isfinite(*p.scale));
  require(std::isfinite(p.softcap) && p.softcap >= 0);
  require(p.mask.window_left >= -1 && p.mask.window_right >= -1);
  require(!p.q.empty() && !p.k.empty() && !p.v.empty());
  require(p.cu_seqlens_q.empty() == p.cu_seqlens_kv.empty());
}

template <class Options, class Check>
void parse(std::vector<std::string> arguments, Check check_options) {
  CLI::App app("fuzz", "octavo");
  Options options;
  cli::add_options(app, options);
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError&) {
    return;
  }
  check_options(options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::vector<std::string> arguments(1);
  for (std::size_t i = 0; i < size; ++i)
    if (bytes[i] == '\n')
      arguments.emplace_back();
    else
      arguments.back() += static_cast<char>(bytes[i]);
  // CLI11 takes a vector from its end.
  const std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  parse<cli::attention_options>(reversed, [](const cli::attention_options& o) { check(o.problem); });
  parse<cli::audit_options>(reversed, [](const cli::audit_options& o) { check(o.problem); });
  parse<cli::bench_options>(reversed, [](const cli::bench_options& o) {
    require(o.b >= 0 && o.h_q > 0 && o.h_kv > 0 && o.s_q >= 0 && o.s_kv >= 0 && o.d > 0 && o.repeat > 0);
  });
  return 0;
}
