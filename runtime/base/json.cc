#include "runtime/base/json.h"

template class nlohmann::basic_json<>;

namespace paceline {

nlohmann::json parse_json(std::string_view text) {
  return nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

}  // namespace paceline
