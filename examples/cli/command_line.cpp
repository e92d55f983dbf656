// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include <CLI/CLI.hpp>

#include <string_view>

#include "exit.hpp"

namespace cli {
namespace {

constexpr const char* subcommands = "allowed: attention, audit, bench, backends, --help, --version";

std::string where_options_are_listed(const CLI::App& command) {
  return " (octavo " + command.get_name() + " --help lists the options)";
}

/// The subcommand that the first argument names; nullptr if it names none.
const CLI::App* command_named(const CLI::App& app, std::string_view name) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (command->get_name() == name) return command;
  return nullptr;
}

}  // namespace

void check_assignments(const CLI::App& app, std::span<const char* const> arguments) {
  const CLI::App* command = arguments.size() > 1 ? command_named(app, arguments[1]) : nullptr;
  if (command == nullptr) return;
  for (const char* argument : arguments.subspan(2)) {
    const std::string word = argument;
    const std::size_t assignment = word.find('=');
    if (!word.starts_with("--") || assignment == std::string::npos) continue;
    const std::string name = word.substr(0, assignment);
    const CLI::Option* option = command->get_option_no_throw(name);
    if (option == nullptr) continue;  // explain() names it
    if (option->get_disable_flag_override())
      bad_input(name + " takes no value, but stands as '" + word + "'; allowed: " + name);
    if (assignment + 1 == word.size()) bad_input(name + ": the value is empty" + where_options_are_listed(*command));
  }
}

std::string explain(const CLI::App& app, const CLI::ParseError& e) {
  const auto used = app.get_subcommands();
  const auto unknown = [](const std::string& word) {
    return (word.starts_with("-") ? "unknown option " : "unexpected argument ") + word;
  };
  if (used.empty()) {
    const auto rest = app.remaining();
    if (rest.empty()) return std::string(e.what()) + "; " + subcommands;
    if (rest.front().starts_with("-")) return unknown(rest.front()) + "; " + subcommands;
    return "there is no subcommand '" + rest.front() + "'; " + subcommands;
  }
  const CLI::App& command = *used.front();
  for (const CLI::App* owner : {&app, &command})
    if (const auto rest = owner->remaining(); !rest.empty())
      return unknown(rest.front()) + where_options_are_listed(command);

  std::string line = e.what();
  if (const std::size_t at = line.find(": At Most 1 required"); at != std::string::npos)
    line = line.substr(0, at) + " is given more than once; allowed: once";
  if (const std::size_t at = line.find(": 1 required "); at != std::string::npos) {
    const std::string name = line.substr(0, at);
    line = name + " needs a value";
    if (const CLI::Option* option = command.get_option_no_throw(name); option != nullptr)
      line += "; allowed: " + option->get_type_name() + ", " + option->get_description();
  }
  return line + where_options_are_listed(command);
}

}  // namespace cli
