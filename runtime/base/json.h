#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

/// The one way to include nlohmann's JSON; headers that only name the type take <nlohmann/json_fwd.hpp>. What all units
/// would instantiate again is compiled once, in json.cc.
extern template class nlohmann::basic_json<>;

namespace paceline {

/// What others wrote. Never throws: text that is no JSON is a value for which is_discarded() holds, and is_object() and
/// the like do not. So is what is nested more than kJsonDepthMax deep: copying and writing it would need a stack as
/// deep.
inline constexpr std::size_t kJsonDepthMax = 200;
nlohmann::json parse_json(std::string_view text);

/// The one way to write it: bytes that are no UTF-8, as in a path, become U+FFFD, where nlohmann's dump() would throw.
/// `indent`: spaces of a level; -1: all on one line. `ascii`: other characters as \uXXXX.
std::string json_text(const nlohmann::json& value, int indent = -1, bool ascii = false);

}  // namespace paceline
