#include "algorithms/parse.h"

#include <cmath>

#include "runtime/base/read_number.h"

namespace paceline::algorithms {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '+' ||
         c == '-' || c == '_' || c == '/';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Call> whole() {
    auto call = this->call(0);
    if (call && peek() != '\0') return error("unexpected '" + std::string(1, peek()) + "'");
    return call;
  }

 private:
  Result<Call> call(int depth) {
    if (depth > kDepthMax) return error("more than " + std::to_string(kDepthMax) + " nested parentheses");
    Call call{.name = word(), .arguments = {}};
    if (call.name.empty()) return error("a name or value is missing");
    if (peek() != '(') return call;
    ++at_;
    if (peek() == ')') {
      ++at_;
      return call;
    }
    while (true) {
      auto argument = this->argument(depth);
      if (!argument) return tl::unexpected(std::move(argument).error());
      call.arguments.push_back(std::move(*argument));
      const char next = peek();
      if (next != ',' && next != ')') return error(next == '\0' ? "a ')' is missing" : "',' or ')' is missing");
      ++at_;
      if (next == ')') return call;
    }
  }

  Result<Argument> argument(int depth) {
    Argument argument;
    const std::size_t start = at_;
    argument.key = word();
    if (peek() == '=') {
      if (argument.key.empty()) return error("the parameter's name is missing");
      ++at_;
    } else {
      argument.key.clear();
      at_ = start;
    }
    auto value = call(depth + 1);
    if (!value) return tl::unexpected(std::move(value).error());
    argument.value = std::move(*value);
    return argument;
  }

  char peek() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::string word() {
    peek();
    const std::size_t start = at_;
    while (at_ < text_.size() && in_word(text_[at_])) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  tl::unexpected<Error> error(const std::string& what) {
    const std::string where = at_ >= text_.size() ? "at the end" : "at character " + std::to_string(at_ + 1);
    return fail(ErrorKind::invalid, "strategy '" + std::string(text_) + "': " + what + " " + where +
                                        "; strategies are written like wagma(group=2,sync=10)");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<Call> parse_call(std::string_view text) {
  if (text.size() > kTextMax)
    return fail(ErrorKind::invalid, "the strategy is longer than " + std::to_string(kTextMax) + " characters");
  return Parser(trimmed(text)).whole();
}

Result<std::vector<std::string>> split_strategies(std::string_view text) {
  if (text.size() > 20 * kTextMax)
    return fail(ErrorKind::invalid,
                "the list of strategies is longer than " + std::to_string(20 * kTextMax) + " characters");
  std::vector<std::string> pieces;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t k = 0; k <= text.size(); ++k) {
    const char c = k < text.size() ? text[k] : ',';
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth < 0 || (k == text.size() && depth > 0)) {
      return fail(ErrorKind::invalid, "list of strategies '" + std::string(text) + "': a '" + (depth < 0 ? "(" : ")") +
                                          "' is missing; write e.g. 'allreduce,wagma(late=skip)'");
    }
    if (c != ',' || depth > 0) continue;
    const auto piece = trimmed(text.substr(start, k - start));
    if (piece.empty()) {
      return fail(ErrorKind::invalid, "list of strategies '" + std::string(text) + "': entry " +
                                          std::to_string(pieces.size() + 1) +
                                          " is empty; write e.g. 'allreduce,wagma(late=skip)'");
    }
    pieces.emplace_back(piece);
    start = k + 1;
  }
  return pieces;
}

std::optional<std::int64_t> read_integer(std::string_view word) { return read_number<std::int64_t>(word); }

std::optional<double> read_real(std::string_view word) {
  const auto value = read_number<double>(word);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<Duration> read_duration(std::string_view word) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  // Longer names first: "ms" ends in "s".
  for (const Unit& unit :
       {Unit{"min", 60}, Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"ns", 1e-9}, Unit{"s", 1}, Unit{"h", 3600}}) {
    if (!word.ends_with(unit.name)) continue;
    const auto value = read_real(word.substr(0, word.size() - unit.name.size()));
    constexpr double kSecondsMax = 1e9;
    if (!value || *value < 0 || *value * unit.seconds > kSecondsMax) return std::nullopt;
    return from_seconds(*value * unit.seconds);
  }
  return std::nullopt;
}

std::optional<double> read_factor(std::string_view word) {
  return word.ends_with('x') ? read_real(word.substr(0, word.size() - 1)) : std::nullopt;
}

}  // namespace paceline::algorithms
