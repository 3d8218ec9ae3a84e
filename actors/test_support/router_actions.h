#pragma once

#include <variant>
#include <vector>

#include "actors/router/actor_router.h"

namespace paceline::actors {

/// The actions of type T.
template <class T>
std::vector<T> all(const ActorRouter::Actions& actions) {
  std::vector<T> found;
  for (const auto& action : actions)
    if (const auto* one = std::get_if<T>(&action)) found.push_back(*one);
  return found;
}

}  // namespace paceline::actors
