// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <CLI/CLI.hpp>

#include <set>

#include "arm.hpp"
#include "errors.hpp"

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
}

}  // namespace

std::optional<options> parse(int argc, char** argv, int& code) {
  options o;
  bool brief = false;
  std::string after_warm_up = "cosine";
  CLI::App app("Trains one small byte-level language model under several attention configs and compares them.",
               "train_lm");
  app.option_defaults()->always_capture_default();
  const CLI::Range positive(1, 1 << 20);

  app.add_option("--text", o.text, "Text to train on; default: the files of /usr/share/common-licenses")
      ->capture_default_str();
  app.add_option("--out", o.out, "Folder for curves, tables and captured tensors");
  app.add_option("--recipe", o.recipe, "Scaling recipe of the FP8 arms")
      ->check(CLI::IsMember({"token", "tile", "mx32"}));
  app.add_option("--arms", o.arms, "Arms to train, separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember(std::set<std::string>(std::begin(arm_keys), std::end(arm_keys))));
  app.add_flag("--key-centring", o.key_centring,
               "FP8 arms subtract the mean key (which sees future keys) before rounding");
  app.add_option("--lr", o.rate, "Peak learning rate")->check(CLI::Range(1e-6, 1.0));
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
  app.add_flag("--short", brief, "Smaller defaults, for a quick check that everything works");
  app.add_flag("--self-check", o.self_check, "Compare the hand-written gradients with finite differences, and stop");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    code = app.exit(e);
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    throw input_error(e.what());
  }
  o.schedule = after_warm_up == "cosine" ? schedule::cosine : schedule::constant;
  if (brief) shorten(app, o);
  check(o);
  return o;
}

}  // namespace train_lm
