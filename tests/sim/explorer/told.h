#pragma once

#include <memory>
#include <string>
#include <utility>

namespace paceline::explorer {

/// An engine that does not change, and its fingerprint: states share it.
template <class Engine>
struct Told {
  explicit Told(Engine of) : engine(std::move(of)), print(engine.fingerprint()) {}

  Engine engine;
  std::string print;
};
template <class Engine>
using ToldPtr = std::shared_ptr<const Told<Engine>>;

/// What follows, and the engine from there on.
template <class Engine, class Say>
auto tell(ToldPtr<Engine>& told, Say&& say) {
  Engine engine = told->engine;
  auto actions = say(engine);
  told = std::make_shared<const Told<Engine>>(std::move(engine));
  return actions;
}

}  // namespace paceline::explorer
