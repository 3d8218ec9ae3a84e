#include "runtime/wire/base64.h"

#include <kj/encoding.h>

namespace paceline::wire {

std::string to_base64(std::string_view bytes) {
  const auto text = kj::encodeBase64(kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
  return {text.begin(), text.size()};
}

std::string from_base64(std::string_view text) {
  const auto bytes = kj::decodeBase64(kj::arrayPtr(text.data(), text.size()));
  if (bytes.hadErrors) return {};
  return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
}

}  // namespace paceline::wire
