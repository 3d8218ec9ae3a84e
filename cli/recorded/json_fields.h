#pragma once

#include <optional>
#include <string>

#include "runtime/base/json.h"

namespace paceline::recorded {

/// A field of an object that others wrote; nullopt where it is missing or no number.
inline std::optional<double> number(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

/// "" where it is missing or no text.
inline std::string text_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace paceline::recorded
