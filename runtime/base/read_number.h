#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace paceline {

/// All of `word` as a number: "12", "-3", "0.5", "1e-3"; nullopt where it is none, or none that the type holds. Of
/// floating point also "inf" and "nan".
template <class Number>
std::optional<Number> read_number(std::string_view word) {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

}  // namespace paceline
