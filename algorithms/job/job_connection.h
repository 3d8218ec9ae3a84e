#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "actors/client.h"
#include "runtime/base/instant.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace paceline::job {

/// A driver's way to its job: what its nodes tell, in order and once, and what it asks of them. When the driver's agent
/// is gone the job goes on, and this finds another agent (go_on_elsewhere()). One thread.
class JobConnection {
 public:
  JobConnection();

  /// The job's number and where its workers go, as the head answers.
  Result<nlohmann::json> submit(const nlohmann::json& options);
  JobId job() const { return job_; }

  /// What the job's nodes have told since; waits up to `timeout` where that is nothing.
  std::deque<nlohmann::json> take(Duration timeout);
  /// Of the head, for this job.
  Result<nlohmann::json> request(const std::string& verb, nlohmann::json body, Duration patience);

  /// The agent is gone, or has been silent for so long that it may stand still.
  bool is_cut_off(Instant now) const;
  /// Through another agent: events follow from where they ended, and calls of the job's workers get their results that
  /// way. Where that cannot be had they fail, with why.
  Result<void> go_on_elsewhere();

 private:
  class Events;
  void listen(actors::Client& client);
  Result<void> move();
  Result<void> drive();
  void take_calls(actors::Client& from);

  const std::shared_ptr<Events> events_;  // The client's thread has it, too.
  JobId job_;
  std::vector<actors::PendingResultPtr> unmade_;  // Of workers, and to be made again through the agent of now.
  Instant drives_from_{};
};

}  // namespace paceline::job
