#include "actors/shown_output.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace paceline::actors {
namespace {

/// 12,345
std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t from_end = 3; from_end < text.size(); from_end += 4) text.insert(text.size() - from_end, ",");
  return text;
}

}  // namespace

std::string shown(const Output::Part& part, bool colour) {
  const std::string who = (colour ? "\x1b[36m(" : "(") + part.who + (colour ? ")\x1b[0m " : ") ");
  std::string text;
  if (part.left_out > 0)
    text += who + "... " + with_commas(part.left_out) +
            (part.left_out == 1 ? " line left out, which stands in " : " lines left out, which stand in ") + part.log +
            "\n";
  for (std::string_view rest = part.lines; !rest.empty();) {
    const auto line = rest.substr(0, rest.find('\n'));
    text += who;
    text += line;
    text += '\n';
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return text;
}

std::string shown(const Output& output, bool colour) {
  std::string text;
  for (const auto& part : output.parts) text += shown(part, colour);
  return text;
}

bool wants_colour(int descriptor) {
  const auto variable = [](const char* name) -> std::string_view {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
  };
  const auto terminal = variable("TERM");
  return ::isatty(descriptor) == 1 && !terminal.empty() && terminal != "dumb" && variable("NO_COLOR").empty();
}

}  // namespace paceline::actors
