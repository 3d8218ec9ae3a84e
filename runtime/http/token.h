#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace paceline::http {

/// The secret in a file that only its owner can read: what is there, else a new one of 256 random bits. `invalid`: it
/// holds something else, or others can read it.
Result<std::string> token_in(const std::filesystem::path& file);

/// Takes as long whatever the texts are, if they are equally long.
bool same_secret(std::string_view one, std::string_view other);

}  // namespace paceline::http
