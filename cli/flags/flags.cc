#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string_view>

#include "runtime/base/did_you_mean.h"

namespace paceline::cli {
namespace {

constexpr const char* kOr = "|";

std::string with_hint(std::string text, std::string_view word, const std::vector<std::string>& known,
                      const std::string& before) {
  const auto meant = did_you_mean(word, {known.begin(), known.end()});
  return meant ? text + "; did you mean " + before + std::string(*meant) + "?" : text;
}

/// The first flag that nobody knows, if there is one.
std::optional<std::string> unknown_flag(const CLI::App& app) {
  for (const std::string& word : app.remaining())
    if (word.size() > 1 && word.starts_with('-')) return word.substr(0, word.find('='));
  return std::nullopt;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) names.push_back(name);
  return names;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); }))
    names.push_back(command->get_name());
  return names;
}

}  // namespace

Flag Flag::required() { return Flag(option_->required()); }
Flag Flag::repeated() { return Flag(option_->take_all()->allow_extra_args(false)); }
Flag Flag::shows_default() { return Flag(option_->capture_default_str()); }
Flag Flag::between(std::int64_t low, std::int64_t high) { return Flag(option_->check(CLI::Range(low, high))); }
Flag Flag::excludes(Flag other) { return Flag(option_->excludes(other.option_)); }
Flag Flag::needs(Flag other) { return Flag(option_->needs(other.option_)); }
Flag Flag::group(const std::string& heading) { return Flag(option_->group(heading)); }
Flag Flag::value_name(const std::string& name) { return Flag(option_->type_name(name)); }

Flag Flag::one_of(const std::vector<std::string>& values) {
  std::string names;
  for (const auto& value : values) names += (names.empty() ? "" : kOr) + value;
  return value_name("{" + names + "}");
}

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
  return {app_->add_subcommand(name, help), rests_};
}

Flags Flags::rest(std::vector<std::string>* target) {
  (*rests_)[app_] = target;
  return *this;
}

Flags Flags::footer(std::function<std::string()> text) { return {app_->footer(std::move(text)), rests_}; }
Flags Flags::footer(const std::string& text) { return {app_->footer(text), rests_}; }
Flags Flags::hidden() { return {app_->group(""), rests_}; }

CommandLine::CommandLine(const std::string& program, const std::string& help)
    : app_(std::make_unique<CLI::App>(help, program)) {}
CommandLine::~CommandLine() = default;

Flags CommandLine::flags() { return {app_.get(), &rests_}; }

void CommandLine::version(const std::string& text) { app_->set_version_flag("--version", text); }

std::optional<int> CommandLine::parse(int argc, const char* const* argv) {
  if (!app_->get_subcommands({}).empty()) app_->require_subcommand(1);
  const auto asked = app_->get_subcommands([&](const CLI::App* one) { return argc > 1 && one->get_name() == argv[1]; });
  const auto rest = rests_.find(asked.empty() ? app_.get() : asked.front());
  const int ours = static_cast<int>(std::find(argv, argv + argc, std::string_view("--")) - argv);
  const bool split = rest != rests_.end() && ours < argc;
  try {
    app_->parse(split ? ours : argc, argv);
    if (split) rest->second->assign(argv + ours + 1, argv + argc);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);  // Help was asked for, and is printed.
    const bool no_such_command =
        !app_->get_subcommands({}).empty() && command().empty() && argc > 1 && argv[1][0] != '-';
    const std::string named_so = app_->get_name() + (command().empty() ? "" : " " + command());
    const CLI::App& named = command().empty() ? *app_ : *app_->get_subcommands().front();
    std::string text = error.what();
    if (no_such_command)
      text = with_hint("there is no command " + std::string(argv[1]), argv[1], commands_of(*app_), "");
    else if (const auto flag = unknown_flag(named);
             flag && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))
      text = with_hint("there is no flag " + *flag, flag->substr(flag->find_first_not_of('-')), flags_of(named), "--");
    std::replace(text.begin(), text.end(), '\n', ' ');
    std::fprintf(stderr, "%s: %s: see `%s --help`\n", app_->get_name().c_str(), text.c_str(), named_so.c_str());
    return 2;
  }
  return std::nullopt;
}

Result<void> CommandLine::parse_among_others(const std::vector<std::string>& words) {
  std::vector<std::string> ours;  // CLI11 takes them from the back.
  for (const auto& word : words) {
    if (word == "--") break;
    const bool is_short_flag = word.size() > 1 && word[0] == '-' && word[1] != '-' && !std::isdigit(word[1]);
    if (!is_short_flag) ours.insert(ours.begin(), word);
  }
  app_->allow_extras();
  app_->set_help_flag();
  try {
    app_->parse(std::move(ours));
  } catch (const CLI::ParseError& error) {
    return fail(ErrorKind::invalid, error.what());
  }
  return {};
}

std::vector<CommandLine::Word> CommandLine::words() const {
  const auto word_of = [](const CLI::App& app, std::string name) {
    Word word{std::move(name), app.get_description(), {}, {}};
    for (const auto* option : app.get_options()) {
      if (const auto type = option->get_type_name(); option->get_positional() && type.starts_with('{'))
        for (const auto& value : CLI::detail::split(type.substr(1, type.size() - 2), *kOr))
          word.values.push_back(value);
      for (const auto& flag : option->get_lnames()) word.flags.emplace_back("--" + flag, option->get_description());
      for (const auto& flag : option->get_snames()) word.flags.emplace_back("-" + flag, option->get_description());
    }
    return word;
  };
  std::vector<Word> words{word_of(*app_, "")};
  for (const auto& name : commands_of(*app_)) words.push_back(word_of(*app_->get_subcommand(name), name));
  return words;
}

std::string CommandLine::command() const {
  const auto named = app_->get_subcommands();
  return named.empty() ? "" : named.front()->get_name();
}

}  // namespace paceline::cli
