#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/protocol.h"
#include "algorithms/job/heard_events.h"
#include "algorithms/job/places.h"
#include "algorithms/job/sample_ledger.h"
#include "algorithms/simulate/cluster/trainee.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/transport/transport.h"

namespace paceline::simulate {

/// A process of a user's, at the agent of one node. It speaks the protocol of drivers. When its agent ends it does,
/// too, unless it runs jobs: it goes on with those through another agent.
class SimulatedDriver {
 public:
  /// A call that it has made, and what became of it.
  struct Made {
    ActorId actor;
    std::optional<Result<Bytes>> result;
  };
  struct Asked {
    std::string verb;
    std::optional<Result<std::string>> reply;
  };
  /// A training job, from submission to the answer to its close, as a script runs it: one actor a worker, one call
  /// each.
  struct Job {
    nlohmann::json options;
    Training training;
    std::uint64_t submitted = 0;                ///< The request.
    std::vector<std::optional<TaskId>> runs{};  ///< Of each place; nullopt: it is vacant.
    job::Places places{};
    Instant asks_from{};                    ///< Workers to leave,
    Instant moves_from{};                   ///< and the head to move places.
    std::optional<std::uint64_t> moving{};  ///< The request for that.
    bool has_begun = false;                 ///< A step is done.
    std::map<std::int32_t, nlohmann::json>
        starting{};                          ///< Of each node: its workers that have not shared their models.
    std::set<std::int32_t> lost{};           ///< Nodes: they may say something again.
    std::set<std::int32_t> ever_lost{};      ///< Those that are back, too.
    std::set<std::size_t> away{};            ///< Workers: they come back.
    std::string failure{};                   ///< The first one; empty: none.
    std::optional<Instant> stopped{};        ///< By its driver.
    std::optional<Instant> ended_early{};    ///< A worker has ended that its node does not know.
    std::optional<std::uint64_t> closing{};  ///< The request.
    bool refused = false;
    bool has_told_outcome = false;
    job::HeardEvents heard{};
    job::SampleLedger ledger{};
    std::optional<std::uint64_t> moved{};  ///< The request: it is to be told of through another agent,
    std::optional<Instant> asks_again{};   ///< which does not reach its nodes yet.
    std::vector<nlohmann::json> news{};    ///< Events but for progress, for who takes them.
  };

  /// To the agent of a node, under a driver's name; null: none can be reached there.
  using Connect = std::function<std::unique_ptr<transport::Transport>(NodeId, const std::string& name)>;

  /// `nodes`: how many there are.
  SimulatedDriver(NodeId node, std::int32_t nodes, std::string name, Connect connect, const Clock& clock,
                  std::vector<std::string>& findings);

  /// Whether anything happened.
  bool step();
  std::optional<Instant> next_deadline() const;

  ActorId create(NodeId node, const std::string& name, actors::RestartRule rule, JobId job = {});
  TaskId call(ActorId actor, std::vector<Bytes> arguments = {});
  std::uint64_t request(const std::string& verb, const std::string& json);
  Job& submit(nlohmann::json options, Training training);
  /// Nothing more happens in it.
  bool is_over(const Job& job) const;
  /// As words, for who looks for why: what its workers' calls and its requests have come to.
  std::string state_of(const Job& job) const;

  NodeId node() const { return node_; }
  const std::string& name() const { return name_; }
  bool is_welcome() const { return process_ > 0; }
  bool is_gone() const { return gone_; }
  /// So many nodes there are by now.
  void know_nodes(std::int32_t nodes) { nodes_ = nodes; }
  void kill() { gone_ = true; }
  void lose_agent();
  const std::map<TaskId, Made>& calls() const { return calls_; }
  const std::map<std::uint64_t, Asked>& requests() const { return requests_; }
  /// With the error of those that died, or never were.
  const std::map<ActorId, std::optional<Error>>& actors() const { return actors_; }
  const std::vector<std::unique_ptr<Job>>& jobs() const { return jobs_; }

 private:
  void say_hello();
  bool find_agent();
  void begin_anew();
  bool take_up(Job& job);
  std::uint64_t drive(const Job& job);
  bool hear();
  void on_message(const wire::Envelope::Reader& envelope, std::vector<transport::Frame>& frames);
  struct Event {
    std::uint64_t job = 0;
    NodeId from;
    std::uint64_t number = 0, oldest = 0;
    nlohmann::json body;
  };
  void on_job_event(const Event& event);
  bool carry_on(Job& job);
  void start_workers(Job& job, const nlohmann::json& placed);
  void start_worker(Job& job, std::int32_t rank);
  bool scale(Job& job);
  bool move_places(Job& job, const job::Places::Moves& moves);
  void let_go(TaskId run);
  const std::optional<Result<Bytes>>& result_of(TaskId run) const { return calls_.at(run).result; }
  void stop(Job& job, const std::string& reason);
  bool has_all_results(const Job& job) const;
  bool has_missing_worker(Job& job) const;

  NodeId node_;
  std::int32_t nodes_;
  const std::string name_;
  const Connect connect_;
  std::unique_ptr<transport::Transport> endpoint_;  ///< Null: its agent has ended, and it looks for another one.
  bool is_new_ = false;                             ///< That agent, which has not welcomed it yet.
  bool is_moved_ = false;                           ///< It is not the first one.
  const Clock& clock_;
  std::vector<std::string>& findings_;
  std::uint32_t process_ = 0;  ///< 0: it has not been welcomed.
  bool gone_ = false;
  std::map<TaskId, Made> calls_;
  std::map<std::uint64_t, Asked> requests_;
  std::map<ActorId, std::optional<Error>> actors_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Event> early_events_;  ///< Of a job whose number is not known yet.
  std::uint64_t next_call_ = 1, next_request_ = 1;
  std::uint32_t next_actor_ = 1;
};

}  // namespace paceline::simulate
