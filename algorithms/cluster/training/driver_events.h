#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "algorithms/cluster/training/job_entry.h"
#include "runtime/wire/codec.h"

namespace paceline::cluster {

/// What this node tells a job's driver: numbered, and the newest of it kept: of what was sent the last minute, since a
/// job does not go on as long without a driver. One whose agent was lost comes back through another one, says up to
/// which number it has heard this node, and is told what followed.
class DriverEvents {
 public:
  /// Says what it is that is told.
  using Write = std::function<void(wire::JobEvent::Builder)>;
  /// False: the driver's node cannot be reached, perhaps for a while.
  using Send = std::function<bool(const JobDriver&, wire::Message&)>;

  static constexpr std::size_t kEventsMax = 4096;
  static constexpr std::size_t kBytesMax = std::size_t{4} << 20;
  static constexpr std::size_t kProgressMax = 240;  ///< A minute of it.

  /// `leg`: with which this node came back to the job; it tells nothing anew that it told before.
  DriverEvents(JobId job, NodeId self, JobDriver driver, Send send, std::int32_t leg = 0)
      : job_(job),
        self_(self),
        driver_(std::move(driver)),
        send_(std::move(send)),
        told_(static_cast<std::uint64_t>(leg) << kLegBits),
        unsent_(told_ + 1) {}

  void tell(const Write& write);
  /// Nothing happens where that is known, or the driver has moved on since.
  void on_driven(JobDriver driver, std::uint64_t heard);
  const JobDriver& driver() const { return driver_; }

 private:
  static constexpr int kLegBits = 40;  ///< Below which numbers count.
  struct Kept {
    std::uint64_t number = 0;  ///< From 1; where the node came back from what its leg begins with.
    bool is_progress = false;
    wire::Frame frame;
  };
  void forget_first();
  void send_from(std::uint64_t number);
  bool send(const Kept& kept);

  const JobId job_;
  const NodeId self_;
  JobDriver driver_;
  const Send send_;
  std::deque<Kept> kept_;
  std::size_t bytes_ = 0;
  std::uint64_t told_ = 0;
  std::uint64_t unsent_;      ///< The first that was not sent.
  std::size_t progress_ = 0;  ///< So many of those that are kept.
  bool is_sending_ = false;
};

}  // namespace paceline::cluster
