#include "tests/sim/explorer/cluster_shell.h"

namespace paceline::explorer {

std::string print(const ClusterMove& m) {
  static constexpr const char* kNames[] = {"begins: worker ",
                                           "does a mini-batch: worker ",
                                           "the report arrives of worker ",
                                           "contributes: worker ",
                                           "waits: worker ",
                                           "is passed over: worker ",
                                           "complains: worker ",
                                           "a message arrives from agent ",
                                           "averages: agent ",
                                           "hears of the loss: agent ",
                                           "dies: worker ",
                                           "stands still: worker ",
                                           "wakes: worker ",
                                           "is lost: agent "};
  const std::string text = kNames[static_cast<int>(m.kind)] + std::to_string(m.who);
  return m.kind == ClusterMove::Kind::deliver ? text + " at agent " + std::to_string(m.to) : text;
}

}  // namespace paceline::explorer
