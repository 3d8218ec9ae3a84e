#pragma once

#include <stdexcept>
#include <utility>

#include "runtime/base/result.h"

namespace paceline::simulate {

/// What can only fail where the simulator is wrong.
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text);
  return *std::move(result);
}
inline void must(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().text);
}

}  // namespace paceline::simulate
