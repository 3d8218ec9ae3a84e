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

/// An empty one where it is missing or no object, or `from` is none.
inline nlohmann::json object_in(const nlohmann::json& from, const char* name) {
  const auto found = from.is_object() ? from.find(name) : from.end();
  return found != from.end() && found->is_object() ? *found : nlohmann::json::object();
}

}  // namespace paceline::recorded
