#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace paceline {

/// The candidate closest to `word` if it is close enough to be meant (an edit distance of at most a third of its
/// length).
std::optional<std::string_view> did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace paceline
