#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/instant.h"

namespace paceline::cluster {

/// What this node has asked of the head and has no answer to. A head may end and be started again at any time: then the
/// new one is asked all of it again, in order. It may have been done already, so the head takes a request that it knows
/// for the same one (`submit`), or does what is done already once more (the others). Sans I/O.
class HeadRequests {
 public:
  static constexpr std::size_t kMax = 4096;
  static constexpr Duration kPatience = std::chrono::seconds(10);  ///< For a head that is gone.
  static constexpr const char* kSelf = "agent";                    ///< Who asks where it is this agent itself.

  struct Request {
    std::string from;  ///< Who asks; with the id, whose answer it is.
    std::uint64_t id = 0;
    std::string verb;
    std::string json;
  };

  /// false: kMax wait already.
  bool add(Request request);
  /// False: it waits for no answer. Of two heads that were asked, one may answer late.
  bool answered(const std::string& from, std::uint64_t id);
  /// In the order in which they were asked.
  const std::deque<Request>& waiting() const { return waiting_; }

  void on_head_gone(Instant now);
  void on_head_back() { gone_.reset(); }
  /// Since when there is no head.
  std::optional<Instant> gone() const { return gone_; }
  /// All, where the head has been gone for kPatience: they get no answer any more.
  std::vector<Request> given_up(Instant now);
  /// When given_up() may have some.
  std::optional<Instant> next_deadline() const;

 private:
  std::deque<Request> waiting_;
  std::optional<Instant> gone_;
};

}  // namespace paceline::cluster
