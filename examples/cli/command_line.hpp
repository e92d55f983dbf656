// SPDX-License-Identifier: Apache-2.0
// What CLI11 leaves to its user: assignments that it would accept, and complaints in plain words.
#pragma once

#include <span>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace cli {

/// Ends the program on --option= without a value, and on a switch with one. CLI11 reads `--causal=` as `--causal`,
/// `--out= x` as `--out x` and `--deterministic=true` as the switch. No value begins with "--" (see options.cpp), so a
/// word that does is an option wherever it stands.
void check_assignments(const CLI::App& app, std::span<const char* const> arguments);

/// A complaint of CLI11's in one line, with what is allowed. What is unknown is named before what is missing: the
/// one is mostly the reason for the other.
std::string explain(const CLI::App& app, const CLI::ParseError& e);

}  // namespace cli
