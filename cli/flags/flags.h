#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace paceline::cli {

/// Where the value of a flag goes once the command line is parsed; a flag of a bool takes no value. What it points to
/// outlives the parsing.
using FlagTarget = std::variant<bool*, std::int32_t*, std::int64_t*, std::string*, std::vector<std::string>*,
                                std::optional<std::int32_t>*, std::optional<std::int64_t>*,
                                std::optional<std::uint64_t>*, std::optional<double>*, std::optional<std::string>*>;

/// A flag that was added, to say more about it.
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  Flag required();
  /// May be given several times, each with one value.
  Flag repeated();
  /// --help shows the value that the target had when the flag was added.
  Flag shows_default();
  /// A number from `low` to `high`.
  Flag between(std::int64_t low, std::int64_t high);
  /// Not together with `other`.
  Flag excludes(Flag other);
  /// Only together with `other`.
  Flag needs(Flag other);
  /// A heading of its own in --help.
  Flag group(const std::string& heading);
  /// What --help calls its value.
  Flag value_name(const std::string& name);
  /// --help names these values, and shells complete an argument with them; others are not refused.
  Flag one_of(const std::vector<std::string>& values);

 private:
  CLI::Option* option_;
};

/// The flags and arguments of one command, or of the program. A handle: the CommandLine owns it.
/// This folder is all that includes CLI11, whose headers take seconds to compile.
class Flags {
 public:
  /// Of each command that takes what follows "--", where it goes.
  using Rests = std::map<const CLI::App*, std::vector<std::string>*>;

  Flags(CLI::App* app, Rests* rests) : app_(app), rests_(rests) {}

  /// `names`: "--lines,-n", or "run" for an argument.
  Flag add(const std::string& names, FlagTarget target, const std::string& help = "");
  /// A subcommand.
  Flags command(const std::string& name, const std::string& help);
  /// What follows "--" goes there, whatever it looks like.
  Flags rest(std::vector<std::string>* target);
  /// Below the flags in --help, made when it is asked for.
  Flags footer(std::function<std::string()> text);
  Flags footer(const std::string& text);
  /// --help of the program does not name this command.
  Flags hidden();

 private:
  CLI::App* app_;
  Rests* rests_;
};

/// A program's command line.
class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& help);
  ~CommandLine();

  /// To add to; valid as long as this is.
  Flags flags();
  /// What --version prints.
  void version(const std::string& text);
  /// Sets the targets. Returns the exit status if the program is to end: 0 after --help or --version, 2 after a usage
  /// error; all have been printed.
  std::optional<int> parse(int argc, const char* const* argv);
  /// Sets the targets from those of `words` that are long flags of ours ("--lines"), and from their values; passes over
  /// all others, --help and what follows "--" among them. Prints nothing: `invalid` says what is wrong.
  Result<void> parse_among_others(const std::vector<std::string>& words);
  /// What can be written: commands, and the flags of each.
  struct Word {
    std::string command;  ///< Or "": the program's own.
    std::string help;
    std::vector<std::pair<std::string, std::string>> flags;  ///< "--lines" or "-n", and what it says of itself.
    std::vector<std::string> values;                         ///< Of its arguments that are one of some.
  };
  std::vector<Word> words() const;
  /// The subcommand that was named; where there are any, one has to be.
  std::string command() const;

 private:
  std::unique_ptr<CLI::App> app_;
  Flags::Rests rests_;
};

}  // namespace paceline::cli
