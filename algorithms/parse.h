#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/instant.h"
#include "runtime/base/result.h"

namespace paceline::algorithms {

struct Argument;

/// What stands in a strategy's text: a word, alone or with arguments. "wagma(group=2)", "allreduce", "1.5x" are all
/// calls.
struct Call {
  std::string name;
  std::vector<Argument> arguments;
};

struct Argument {
  std::string key;  ///< Empty: given without a name.
  Call value;
};

/// Reads
///
///   call     = word [ "(" [ argument { "," argument } ] ")" ]
///   argument = [ word "=" ] call
///   word     = letters, digits and . + - _ /
///
/// Spaces between the parts do not matter. `invalid` quotes the text and says what is missing and where.
/// Bounds: kTextMax characters, kDepthMax nested parentheses.
Result<Call> parse_call(std::string_view text);
inline constexpr std::size_t kTextMax = 1000;
inline constexpr int kDepthMax = 4;

/// Splits "allreduce,nonblocking(batches=4),wagma" at the commas outside parentheses and trims the pieces. `invalid` if
/// a piece is empty or parentheses do not match. The pieces themselves are not parsed.
Result<std::vector<std::string>> split_strategies(std::string_view text);

// Values; nullopt: the word is none of the kind. No sign and no exponent beyond what is written here; always finite.
std::optional<std::int64_t> read_integer(std::string_view word);  ///< "12", "-3"
std::optional<double> read_real(std::string_view word);           ///< "0.5", "1e-3", "-2"
std::optional<Duration> read_duration(std::string_view word);  ///< "2s", "500ms", "20us", "1.5min", "1h"; not negative.
std::optional<double> read_factor(std::string_view word);      ///< "1.5x"

}  // namespace paceline::algorithms
