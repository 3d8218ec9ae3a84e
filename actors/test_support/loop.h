#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "actors/resumer.h"

namespace paceline::test {

/// A thread's other work: what is to go on lies in `ready` until the test lets it.
class Loop final : public actors::Resumer {
 public:
  Loop() { actors::set_resumer(this); }
  ~Loop() override { actors::set_resumer(nullptr); }
  std::function<void()> later(std::function<void()> go_on) override {
    return [this, go_on = std::move(go_on)] { ready.push_back(go_on); };
  }
  void after(Duration, std::function<void()> go_on) override { ready.push_back(std::move(go_on)); }

  void run() {
    while (!ready.empty()) {
      auto go_on = std::move(ready.front());
      ready.pop_front();
      go_on();
    }
  }

  std::deque<std::function<void()>> ready;
};

}  // namespace paceline::test
