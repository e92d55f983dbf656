// SPDX-License-Identifier: Apache-2.0
// The program octavo: attention, audit, bench and backends over every compiled backend.
#include <octavo/version.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>
#include <new>
#include <string>

#include "command_line.hpp"
#include "commands.hpp"
#include "exit.hpp"

namespace {

#define OCTAVO_STRING_OF(x) #x
#define OCTAVO_STRING(x) OCTAVO_STRING_OF(x)
constexpr const char* version = "octavo " OCTAVO_STRING(OCTAVO_VERSION_MAJOR) "." OCTAVO_STRING(
    OCTAVO_VERSION_MINOR) "." OCTAVO_STRING(OCTAVO_VERSION_PATCH);

/// The error of a run: one line, whatever a file name or a driver put into it.
int complain(cli::exit_code code, std::string line) {
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  std::fprintf(stderr, "octavo: %s\n", line.c_str());
  return static_cast<int>(code);
}

int run(int argc, char** argv) {
  CLI::App app("Attention in 8 bits: forward, backward and how exact they are.", "octavo");
  app.set_version_flag("--version", version);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 launch or device failure, 2 bad input, 3 not supported here.");

  cli::attention_options attention;
  cli::audit_options audit;
  cli::bench_options bench;
  CLI::App* on_attention = app.add_subcommand("attention", "O and LSE of .npy files; with --dout the gradients too");
  CLI::App* on_audit =
      app.add_subcommand("audit", "every recipe and delta against float64: a table, a report, a picture");
  CLI::App* on_bench = app.add_subcommand("bench", "time a shape");
  CLI::App* on_backends = app.add_subcommand("backends", "what was compiled and what can run here");
  add_options(*on_attention, attention);
  add_options(*on_audit, audit);
  add_options(*on_bench, bench);

  try {
    cli::check_assignments(app, {argv, static_cast<std::size_t>(argc)});
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    cli::bad_input(cli::explain(app, e));
  }
  if (on_attention->parsed()) cli::run_attention(attention);
  if (on_audit->parsed()) cli::run_audit(audit);
  if (on_bench->parsed()) cli::run_bench(bench);
  if (on_backends->parsed()) cli::run_backends();
  return static_cast<int>(cli::exit_code::done);
}

/// What was printed may still be in a buffer, and the disk behind it full: a lost result is a failure.
void flush_output() {
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout)
    cli::failed("standard output cannot be written; what was printed is lost");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    flush_output();
    return code;
  } catch (const cli::stop& e) {
    return complain(e.code, e.what());
  } catch (const std::bad_alloc&) {
    return complain(cli::exit_code::failed, "out of memory; try a smaller problem");
  } catch (const std::exception& e) {
    return complain(cli::exit_code::failed, e.what());
  }
}
