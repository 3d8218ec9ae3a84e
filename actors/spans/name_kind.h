#pragma once

#include <cstdint>

namespace paceline::actors {

/// What the text of a name is.
enum class NameKind : std::uint32_t {
  text = 1,      ///< As it is.
  type = 2,      ///< A type's, as type_info has it.
  method = 3,    ///< A class's, as type_info has it, of which a method is meant.
  function = 4,  ///< Where a function is: "OFFSET BUILD PATH", the offset in hex.
};

}  // namespace paceline::actors
