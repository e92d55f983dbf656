// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "arm.hpp"
#include "errors.hpp"
#include "memory.hpp"

namespace train_lm {
namespace {

/// --short replaces the defaults, never what was asked for.
void shorten(const CLI::App& app, options& o) {
  const auto unless_given = [&app](const char* name, auto& value, auto brief) {
    if (app.count(name) == 0) value = brief;
  };
  unless_given("--layers", o.shape.layers, index{2});
  unless_given("--width", o.shape.width, index{64});
  unless_given("--context", o.shape.context, index{128});
  unless_given("--steps", o.steps, 40);
}

void check(const options& o) {
  if (o.shape.width % o.shape.heads != 0)
    throw input_error("--width must be a multiple of --heads; got " + std::to_string(o.shape.width) + " and " +
                      std::to_string(o.shape.heads));
  if (!octavo::is_listed_head_dim(o.shape.head_dim()))
    throw input_error("--width / --heads is the head dimension and must be 32, 64, 96, 128, 192 or 256; got " +
                      std::to_string(o.shape.head_dim()));
  const double needed = gigabytes_of(o);
  if (needed > most_gigabytes) {
    std::ostringstream line;
    line.precision(3);
    line << "a job of this size needs about " << needed << " GiB; allowed: " << most_gigabytes
         << " GiB. Smaller --layers, --width, --context, --batch, --steps, --seeds or --threads";
    throw input_error(line.str());
  }
}

/// CLI11's own range lets NaN pass.
CLI::Validator rate_in(double least, double most) {
  std::ostringstream range;
  range << "a number from " << least << " to " << most;
  const auto check = [=, allowed = range.str()](const std::string& given) -> std::string {
    double x = 0;
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), x);
    const bool good = error == std::errc() && end == given.data() + given.size() && x >= least && x <= most;
    return good ? "" : "'" + given + "' is not allowed here; allowed: " + allowed;
  };
  return CLI::Validator(check, range.str());
}

/// Names between commas. One string and not CLI11's list, which would add up the options that are given twice.
std::vector<std::string> parse_arms(const std::string& list) {
  std::string allowed;
  for (const std::string_view key : arm_keys) allowed += (allowed.empty() ? "" : ", ") + std::string(key);
  std::vector<std::string> keys;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string key = list.substr(begin, end - begin);
    if (std::ranges::find(arm_keys, key) == std::end(arm_keys))
      throw input_error("--arms: '" + key + "' is no arm; allowed, separated by commas: " + allowed);
    if (std::ranges::find(keys, key) != keys.end())
      throw input_error("--arms: " + key + " is given more than once; allowed: once");
    keys.push_back(key);
    begin = end + 1;
  }
  return keys;
}

/// CLI11's complaint in one line, with what is allowed.
std::string explain(const CLI::ParseError& e) {
  const std::string line = e.what();
  if (const std::size_t at = line.find(": At Most 1 required"); at != std::string::npos)
    return line.substr(0, at) + " is given more than once; allowed: once";
  return line;
}

}  // namespace

std::optional<options> parse(int argc, char** argv, int& code) {
  options o;
  bool brief = false;
  std::string after_warm_up = "cosine", arms = "bf16,stale,matched,consistent";
  CLI::App app("Trains one small byte-level language model under several attention configs and compares them.",
               "train_lm");
  app.option_defaults()->always_capture_default();
  const CLI::Range positive(1, 1 << 20);
  const auto add_switch = [&app](const char* name, bool& into, const char* help) {
    app.add_flag(name, into, help)->multi_option_policy(CLI::MultiOptionPolicy::Throw);  // as options do
  };

  app.add_option("--text", o.text, "Text to train on; default: the files of /usr/share/common-licenses")
      ->capture_default_str();
  app.add_option("--out", o.out, "Folder for curves, tables and captured tensors");
  app.add_option("--recipe", o.recipe, "Scaling recipe of the FP8 arms")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(recipe_keys), std::end(recipe_keys))));
  app.add_option("--arms", arms, "Arms to train, separated by commas; also: residual");
  add_switch("--key-centring", o.key_centring,
             "FP8 arms subtract the mean key (which sees future keys) before rounding");
  app.add_option("--lr", o.rate, "Peak learning rate")->check(rate_in(1e-6, 1));
  app.add_option("--schedule", after_warm_up, "Learning rate after the warm-up")
      ->check(CLI::IsMember({"constant", "cosine"}));
  app.add_option("--steps", o.steps, "Optimiser steps")->check(positive);
  app.add_option("--seeds", o.seeds, "Runs per arm, with seeds 0, 1, ...")->check(CLI::Range(1, 1000));
  app.add_option("--layers", o.shape.layers)->check(positive);
  app.add_option("--width", o.shape.width, "Channels of the residual stream")->check(positive);
  app.add_option("--heads", o.shape.heads)->check(positive);
  app.add_option("--context", o.shape.context, "Bytes per sequence")->check(positive);
  app.add_option("--batch", o.shape.batch, "Sequences per step")->check(positive);
  app.add_option("--threads", o.threads, "Runs at a time; no result depends on it")->check(CLI::Range(1, 1024));
  add_switch("--short", brief, "Smaller defaults, for a quick check that everything works");
  add_switch("--self-check", o.self_check, "Compare the hand-written gradients with finite differences, and stop");
  app.add_option("--captured-path-file", o.captured_path_file,
                 "For scripts: write the folder of the captured tensors to this file, print no audit command");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    code = app.exit(e);
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    throw input_error(explain(e));
  }
  o.arms = parse_arms(arms);
  o.schedule = after_warm_up == "cosine" ? schedule::cosine : schedule::constant;
  if (brief) shorten(app, o);
  check(o);
  return o;
}

}  // namespace train_lm
