#include "cli/cells.h"

#include <algorithm>
#include <cstdio>

#include "actors/protocol.h"
#include "runtime/base/instant.h"
#include "runtime/base/json.h"
#include "runtime/observe/format.h"
#include "runtime/observe/progress.h"

namespace paceline::cli {

using nlohmann::json;

namespace {

/// nullptr where there is none.
const json* field(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace

std::string cell(const json& object, const char* name) {
  const json* const found = field(object, name);
  if (found == nullptr || found->is_null()) return "-";
  if (found->is_string()) return found->get<std::string>();
  if (found->is_number_float()) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", found->get<double>());
    return text;
  }
  return json_text(*found);
}

std::string duration(const json& object, const char* name) {
  const json* const found = field(object, name);
  if (found == nullptr || !found->is_number()) return "-";
  return observe::duration_text(from_seconds(std::min(found->get<double>(), 1e9)));
}

std::string megabytes(const json& object, const char* name) {
  const json* const found = field(object, name);
  if (found == nullptr || !found->is_number()) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.0f MB", found->get<double>() / 1e6);
  return text;
}

const json& list(const json& object, const char* name) {
  static const json kEmpty = json::array();
  const json* const found = field(object, name);
  return found != nullptr && found->is_array() ? *found : kEmpty;
}

double number(const json& object, const char* name) {
  const json* const found = field(object, name);
  return found != nullptr && found->is_number() ? found->get<double>() : 0;
}

std::string capacity_text(const json& object) {
  return actors::to_string(actors::Capacity{number(object, "cpus"), number(object, "memory")});
}

std::string memory_cell(const json& object, const char* name) {
  return number(object, name) > 0 ? observe::memory_text(number(object, name)) : "-";
}

std::string number_text(double number) { return observe::format("%.6g", number); }

}  // namespace paceline::cli
