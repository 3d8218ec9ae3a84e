#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

namespace paceline::cli {

Flag Flag::required() { return Flag(option_->required()); }
Flag Flag::repeated() { return Flag(option_->take_all()); }
Flag Flag::shows_default() { return Flag(option_->capture_default_str()); }
Flag Flag::between(std::int64_t low, std::int64_t high) { return Flag(option_->check(CLI::Range(low, high))); }
Flag Flag::excludes(Flag other) { return Flag(option_->excludes(other.option_)); }
Flag Flag::needs(Flag other) { return Flag(option_->needs(other.option_)); }
Flag Flag::group(const std::string& heading) { return Flag(option_->group(heading)); }
Flag Flag::value_name(const std::string& name) { return Flag(option_->type_name(name)); }

Flag Flags::add(const std::string& names, FlagTarget target, const std::string& help) {
  return std::visit(
      [&](auto* value) {
        if constexpr (std::is_same_v<decltype(value), bool*>)
          return Flag(app_->add_flag(names, *value, help));
        else
          return Flag(app_->add_option(names, *value, help));
      },
      target);
}

Flags Flags::command(const std::string& name, const std::string& help) {
  return Flags(app_->add_subcommand(name, help));
}

Flags Flags::footer(std::function<std::string()> text) { return Flags(app_->footer(std::move(text))); }
Flags Flags::footer(const std::string& text) { return Flags(app_->footer(text)); }
Flags Flags::hidden() { return Flags(app_->group("")); }

CommandLine::CommandLine(const std::string& program, const std::string& help)
    : app_(std::make_unique<CLI::App>(help, program)) {}
CommandLine::~CommandLine() = default;

Flags CommandLine::flags() { return Flags(app_.get()); }

std::optional<int> CommandLine::parse(int argc, const char* const* argv) {
  if (!app_->get_subcommands({}).empty()) app_->require_subcommand(1);
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);  // Help was asked for, and is printed.
    const bool no_such_command =
        !app_->get_subcommands({}).empty() && command().empty() && argc > 1 && argv[1][0] != '-';
    const std::string asked = app_->get_name() + (command().empty() ? "" : " " + command());
    std::string text = no_such_command ? "there is no command " + std::string(argv[1]) : error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    std::fprintf(stderr, "%s: %s: see `%s --help`\n", app_->get_name().c_str(), text.c_str(), asked.c_str());
    return 2;
  }
  return std::nullopt;
}

std::string CommandLine::command() const {
  const auto named = app_->get_subcommands();
  return named.empty() ? "" : named.front()->get_name();
}

}  // namespace paceline::cli
