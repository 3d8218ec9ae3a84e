#pragma once

#include <cstddef>

namespace paceline {

/// Asks for huge pages for memory that is about to be written for the first time: a fault for each 2 MiB, not for each
/// 4 KiB, which for a large copy takes as long as the copying. A wish only; small and used memory is left as it is.
void offer_huge_pages(void* memory, std::size_t bytes);

}  // namespace paceline
