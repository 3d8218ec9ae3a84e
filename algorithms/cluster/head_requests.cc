#include "algorithms/cluster/head_requests.h"

#include <iterator>
#include <utility>

namespace paceline::cluster {

bool HeadRequests::add(Request request) {
  if (waiting_.size() == kMax) return false;
  waiting_.push_back(std::move(request));
  return true;
}

bool HeadRequests::answered(const std::string& from, std::uint64_t id) {
  return std::erase_if(waiting_, [&](const Request& request) { return request.id == id && request.from == from; }) > 0;
}

void HeadRequests::on_head_gone(Instant now) {
  if (!gone_) gone_ = now;
}

std::vector<HeadRequests::Request> HeadRequests::given_up(Instant now) {
  if (!gone_ || now < *gone_ + kPatience) return {};
  std::vector<Request> all(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
  waiting_.clear();
  return all;
}

std::optional<Instant> HeadRequests::next_deadline() const {
  if (!gone_ || waiting_.empty()) return std::nullopt;
  return *gone_ + kPatience;
}

}  // namespace paceline::cluster
