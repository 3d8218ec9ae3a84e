#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/wire/codec.h"

namespace paceline::scheduler {

/// All that a worker had in hand before its mini-batch `through`, while the process lived that began with `from`
/// (ledger.h).
struct Content {
  Rank rank;
  std::int64_t from = 0;
  std::int64_t through = 0;

  bool operator==(const Content&) const = default;
};
/// What is in a model, or in a sum of gradients: by rank and `from`, of each one.
using Contents = std::vector<Content>;

/// The contents of a sum of both.
void add(Contents& to, const Contents& more);

void write(const Contents& contents, capnp::List<wire::Content>::Builder to);
Contents contents_of(const capnp::List<wire::Content>::Reader& list);

}  // namespace paceline::scheduler
