#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace paceline {

/// Calls of an actor that have threads of their own: those made through Handle::in_group().
struct ConcurrencyGroup {
  std::string name{};
  int threads = 1;
  bool operator==(const ConcurrencyGroup&) const = default;
};

namespace actors {

/// How many calls of an actor run at a time.
struct Concurrency {
  static constexpr int kThreadsMax = 1024;  ///< Of all groups.
  static constexpr std::size_t kNameMax = 255;

  int threads = 1;  ///< For what is called in no group.
  std::vector<ConcurrencyGroup> groups{};

  bool is_one_at_a_time() const { return threads == 1 && groups.empty(); }
  bool operator==(const Concurrency&) const = default;

  Result<void> check() const {
    std::int64_t all = threads;
    std::set<std::string> names;
    for (const auto& group : groups) {
      all += group.threads;
      if (group.name.empty() || group.name.size() > kNameMax)
        return fail(ErrorKind::invalid, "the name of a concurrency group has 1 to " + std::to_string(kNameMax) +
                                            " bytes: this one has " + std::to_string(group.name.size()));
      if (!names.insert(group.name).second)
        return fail(ErrorKind::invalid, "an actor with two concurrency groups '" + group.name + "'");
      if (group.threads < 1)
        return fail(ErrorKind::invalid, "the concurrency group '" + group.name + "' has " +
                                            std::to_string(group.threads) + " threads: it needs at least 1");
    }
    if (threads < 1)
      return fail(ErrorKind::invalid,
                  "the concurrency of an actor is " + std::to_string(threads) + ": it is at least 1");
    if (all > kThreadsMax)
      return fail(ErrorKind::invalid, "an actor with " + std::to_string(all) + " threads: at most " +
                                          std::to_string(kThreadsMax) + " are possible, of all its groups");
    return {};
  }
};

}  // namespace actors
}  // namespace paceline
