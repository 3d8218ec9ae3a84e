#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"

// What models of all engines are put together from.

namespace paceline::explorer {

/// Worker -> agent.
inline std::vector<NodeId> on(std::initializer_list<std::int32_t> agents) {
  std::vector<NodeId> result;
  for (const std::int32_t n : agents) result.push_back(NodeId{n});
  return result;
}

template <class Model>
Model with_a_death(Model model) {
  model.name += ", a death";
  model.crash = true;
  return model;
}
template <class Model>
Model with_a_pause(Model model) {
  model.name += ", a pause";
  model.pause = true;
  return model;
}
template <class Model>
Model with(decltype(Model::loss) loss, Model model) {
  model.name += " on " + std::to_string(model.nodes) + ", an agent ";
  model.name += loss == decltype(loss)::crash ? "crashes" : "pauses";
  model.loss = loss;
  return model;
}

}  // namespace paceline::explorer
