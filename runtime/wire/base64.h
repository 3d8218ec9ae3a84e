#pragma once

#include <string>
#include <string_view>

namespace paceline::wire {

/// Bytes within JSON.
std::string to_base64(std::string_view bytes);
/// Empty where it is none.
std::string from_base64(std::string_view text);

}  // namespace paceline::wire
