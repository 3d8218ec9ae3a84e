#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/transport/transport.h"
#include "runtime/wire/codec.h"

namespace paceline::cluster {

/// What came for jobs of which the head has not told this node yet. The head's word travels on a connection of its own:
/// a worker's session, or a node that heard it before, can be faster, and nobody says anything twice. Sans I/O.
class EarlyMessages {
 public:
  static constexpr std::size_t kMax = 4096;  ///< Who is heard before a job is open says little before it is answered.

  struct Message {
    transport::Peer from;
    std::unique_ptr<wire::Message> envelope;
    transport::Frame bulk;
  };

  /// Whether the head is still to tell of this job: it numbers them upwards. Else it is over.
  bool is_to_come(JobId job) const { return job > newest_; }
  /// The newest job that the head has told of.
  JobId newest() const { return newest_; }
  /// Keeps it for `open`; false: kMax are kept.
  bool keep(JobId job, const transport::Peer& from, const wire::Envelope::Reader& envelope, transport::Frame bulk);
  bool has(JobId job) const { return kept_.contains(job); }
  /// The head has told of this job: what came for it, in this order. What came for older ones is forgotten.
  std::vector<Message> open(JobId job);
  /// What came for this job, and nothing of others.
  std::vector<Message> take(JobId job);
  std::vector<Message> take_all();

 private:
  JobId newest_{0};
  std::size_t count_ = 0;
  std::map<JobId, std::vector<Message>> kept_;
};

}  // namespace paceline::cluster
