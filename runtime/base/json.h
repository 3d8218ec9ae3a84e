#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

/// The one way to include nlohmann's JSON; headers that only name the type take <nlohmann/json_fwd.hpp>. What all units
/// would instantiate again is compiled once, in json.cc.
extern template class nlohmann::basic_json<>;

namespace paceline {

/// What others wrote. Never throws: text that is no JSON is a value for which is_discarded() holds, and is_object() and
/// the like do not.
nlohmann::json parse_json(std::string_view text);

}  // namespace paceline
