#pragma once

namespace paceline {

/// Whether tests are built with the address or the thread sanitizer, which are after what a piece of code does at all,
/// and need ten times as long: what looks at each of many cases looks at fewer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace paceline
