#include "scheduler/contents.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace paceline::scheduler {
namespace {

auto key_of(const Content& content) { return std::tuple(content.rank, content.from); }
bool is_before(const Content& a, const Content& b) { return key_of(a) < key_of(b); }

}  // namespace

void add(Contents& to, const Contents& more) {
  if (to.empty()) to = more;
  if (to == more) return;
  Contents sum;
  sum.reserve(to.size() + more.size());
  auto other = more.begin();
  for (const Content& one : to) {
    for (; other != more.end() && is_before(*other, one); ++other) sum.push_back(*other);
    sum.push_back(one);
    if (other != more.end() && key_of(*other) == key_of(one)) {
      sum.back().through = std::max(one.through, other->through);
      ++other;
    }
  }
  sum.insert(sum.end(), other, more.end());
  to = std::move(sum);
}

void write(const Contents& contents, capnp::List<wire::Content>::Builder to) {
  for (unsigned i = 0; i < to.size(); ++i) {
    to[i].setRank(contents[i].rank.value);
    to[i].setFrom(contents[i].from);
    to[i].setThrough(contents[i].through);
  }
}

/// In no order that can be relied on.
Contents contents_of(const capnp::List<wire::Content>::Reader& list) {
  Contents contents;
  contents.reserve(list.size());
  for (const auto& each : list) contents.push_back({Rank{each.getRank()}, each.getFrom(), each.getThrough()});
  std::sort(contents.begin(), contents.end(), is_before);
  const auto same = [](const Content& a, const Content& b) { return key_of(a) == key_of(b); };
  contents.erase(std::unique(contents.begin(), contents.end(), same), contents.end());
  return contents;
}

}  // namespace paceline::scheduler
