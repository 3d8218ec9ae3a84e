#include "runtime/base/json.h"

template class nlohmann::basic_json<>;

namespace paceline {

nlohmann::json parse_json(std::string_view text) {
  return nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

std::string json_text(const nlohmann::json& value, int indent, bool ascii) {
  return value.dump(indent, ' ', ascii, nlohmann::json::error_handler_t::replace);  // The one place.
}

}  // namespace paceline
