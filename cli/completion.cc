#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"

namespace paceline::cli {

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// For bash, and for zsh's bashcompinit: commands, the flags of the command that was named, its argument, else files.
std::string bash_script(const std::vector<CommandLine::Word>& words) {
  std::string commands, flags;
  for (const auto& word : words) {
    const std::string values = word.values.empty() ? "" : " values=\"" + joined(word.values) + "\"";
    if (!word.command.empty()) commands += (commands.empty() ? "" : " ") + word.command;
    flags += "    " + (word.command.empty() ? "*" : word.command) + ") flags=\"";
    for (const auto& [flag, help] : word.flags) flags += flag + " ";
    flags.back() = '"';
    flags += values + " ;;\n";
  }
  const auto own = flags.substr(0, flags.find('\n') + 1);  // Matches anything: comes last.
  return "_paceline() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} flags values\n"
         "  case ${COMP_WORDS[1]} in\n" +
         flags.substr(own.size()) + own +
         "  esac\n"
         "  if [[ $word == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
         "  elif [[ $COMP_CWORD -eq 1 ]]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         commands +
         "\" -- \"$word\"))\n"
         "  elif [[ $values && $COMP_CWORD -eq 2 ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _paceline paceline\n";
}

/// To be sourced, or to lie in a folder of fpath as _paceline, which zsh runs when it is first asked to complete.
std::string zsh_script(const std::vector<CommandLine::Word>& words) {
  return "#compdef paceline\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(words) +
         "if (( ${+compstate} )); then _bash_complete -o filenames -F _paceline; fi\n";
}

/// Between single quotes.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "\\'" : std::string(1, c);
  return out + "'";
}

std::string fish_script(const std::vector<CommandLine::Word>& words) {
  std::string script;
  for (const auto& word : words) {
    const bool own = word.command.empty();
    if (!own)
      script +=
          "complete -c paceline -f -n __fish_use_subcommand -a " + word.command + " -d " + quoted(word.help) + "\n";
    if (!word.values.empty())
      script += "complete -c paceline -f -n " + quoted("__fish_seen_subcommand_from " + word.command) + " -a " +
                quoted(joined(word.values)) + "\n";
    const std::string where = own ? "__fish_use_subcommand" : quoted("__fish_seen_subcommand_from " + word.command);
    for (const auto& [flag, help] : word.flags)
      script += "complete -c paceline -n " + where +
                (flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1)) + " -d " + quoted(help) +
                "\n";
  }
  return script;
}

}  // namespace

Action add_completion(Flags app, const CommandLine& line) {
  auto shell = std::make_shared<std::string>();
  Flags command = app.command("completion", "Print a script that completes commands and flags in a shell");
  command.add("shell", shell.get(), "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
  return [shell, &line] {
    if (*shell != "bash" && *shell != "zsh" && *shell != "fish")
      return report({ErrorKind::invalid, "no completion for " + *shell + ": give bash, zsh or fish"});
    const auto words = line.words();
    const std::string script = *shell == "fish"  ? fish_script(words)
                               : *shell == "zsh" ? zsh_script(words)
                                                 : bash_script(words);
    std::fputs(script.c_str(), stdout);
    return kDone;
  };
}

}  // namespace paceline::cli
