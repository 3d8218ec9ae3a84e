#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "actors/call_windows.h"
#include "actors/causes.h"
#include "actors/looking.h"
#include "actors/outbox.h"
#include "actors/pending_result.h"
#include "actors/protocol.h"
#include "actors/stream/incoming_stream.h"
#include "actors/tasks/deadlines.h"
#include "actors/tasks/owned_tasks.h"
#include "runtime/channel/lines.h"
#include "runtime/process/fd.h"
#include "runtime/process/this_process.h"
#include "runtime/transport/transport.h"

struct pollfd;
namespace paceline {
enum class Cancelled;  // actors/cancel.h
}
namespace paceline::wire {
class Received;
}

namespace paceline::actors {

/// An argument as the caller has it: bytes, or what a call will give.
using ArgumentSource = std::variant<Bytes, PendingResultPtr>;
/// What an agent asks a worker to do.
using Work = std::variant<CreateActor, Call>;

/// A process's connection to its agent: driver, worker or CLI. Owns the transport on one I/O thread; all public methods
/// may be called from any thread.
///
/// To an actor of its own node that it calls again and again it asks its agent for a *line* (runtime/channel/lines.h),
/// and then calls past the agent: in order, whichever way each call goes (CallWindows). Its tasks stay here until
/// agents have lent it workers for them (OwnedTasks), to which lines go as well. Bounds: Outbox::kMessagesMax unsent
/// messages, kPendingMax calls without a result; CallWindows::Options and OwnedTasks::Options, beyond which the
/// caller's thread waits.
class Client final : public ResultLooker {
 public:
  static constexpr std::size_t kPendingMax = std::size_t{1} << 20;
  using TransportFactory = std::function<Result<std::unique_ptr<transport::Transport>>(const std::string& name)>;

  /// A message and its bulk frames (the first is used up).
  using OtherHandler = std::function<void(const wire::Received&, std::vector<transport::Frame>&)>;

  struct Options {
    std::string role;           ///< "driver", "worker" or "cli".
    std::string name;           ///< Of the endpoint; unique in the cluster, at most 255 bytes.
    std::string agent_address;  ///< As Transport::connect takes it.
    Executable executable;      ///< How its workers are started; empty for the CLI, which asks for none.
    Duration welcome_patience = std::chrono::seconds(10);
    Duration send_patience = std::chrono::seconds(30);  ///< How long a caller waits for room in the outbox,
    Duration call_patience = std::chrono::minutes(10);  ///< and for results, where it has made too many calls.
    int hang_up = -1;            ///< Watched descriptor (a worker's socket to its agent); not read, not owned.
    std::string line_path = {};  ///< Where others find this worker; empty: it takes no lines.

    // All of these run on the I/O thread, or on one that waits and takes in what comes; they must not block.
    std::function<void()> on_hang_up;
    std::function<void(const Error&)> on_lost;  ///< The agent is gone.
    std::function<bool(Work)> on_work;          ///< False: no room; the caller hears `overloaded`.
    std::function<void(Client&, const Signal&)> on_signal;
    OtherHandler on_other;  ///< Messages that are not this class's.
    /// Run in every turn; when it wants to be run again if nothing else happens.
    std::function<std::optional<Instant>(Client&)> on_turn;
  };

  /// Connects and waits for the agent's welcome. `timed_out`, `invalid` (refused: other version), `disconnected`.
  static Result<std::unique_ptr<Client>> connect(Options options, TransportFactory factory);
  ~Client() override { close(); }
  /// Sends what is queued, then disconnects. Calls in flight, and later ones, fail as `cancelled`.
  void close();

  /// Of a task.
  struct TaskNeeds {
    Shape shape{};
    OwnedTasks::Retries retries{};
    std::optional<Duration> timeout{};  ///< From now on; then it ends, and is cancelled.
  };
  /// A task, or a call if `call.actor` is set; fills in the id. It leaves when its arguments are there, without
  /// blocking for them. The result also tells of every failure.
  /// `stream`: of the values that it gives; nobody else's yet.
  PendingResultPtr submit(Call call, std::vector<ArgumentSource> arguments, const TaskNeeds& needs,
                          const std::shared_ptr<IncomingStream>& stream = nullptr);
  struct Created {
    ActorId actor;
    bool owned = true;  ///< Ends by its release.
  };
  /// Asks for an actor on `node` (-1: nodes in turn). The id is valid at once; calls to it wait for, or fail with, its
  /// constructor. One that claims its name blocks until that is decided: `invalid` if another has it.
  Result<Created> create(FunctionRef constructor, std::vector<Bytes> arguments, ActorName name, NodeId node,
                         RestartRule rule = {}, Concurrency concurrency = {});
  /// The actor of this name, if it is of this class (empty: of any). `not_found`, `invalid`.
  Result<ActorId> find(const std::string& name, const std::string& type);
  /// Ends an actor at once; returns when it takes no more calls. How it had ended before, if it had.
  Result<std::optional<Error>> end(ActorId actor);
  /// Calls that have no result, to actors that work for this job; where the agent is gone, to those of other nodes.
  /// They are for whoever takes them to complete, or to make again through another agent.
  std::vector<PendingResultPtr> take_calls_of(JobId job);
  /// Makes them again, to actors that know them: their results come here.
  void make_again(JobId job, const std::vector<PendingResultPtr>& calls);
  /// Why nothing can be asked for any more; nullopt: it can.
  std::optional<Error> ended() const;

  /// How the workers are started that are asked for from here on.
  Result<void> set_executable(const Executable& executable);
  /// Where an actor's owner says that it may end: outlives the client, and then does nothing.
  const std::shared_ptr<Outbox>& outbox() const { return outbox_; }

  /// A request of the given verb to the agent, and its reply (JSON). Blocks at most `timeout`.
  Result<std::string> request(const std::string& verb, const std::string& json,
                              Duration timeout = std::chrono::seconds(30));
  /// Any other message to the agent.
  Result<void> post(std::vector<transport::Frame> frames) {
    return outbox_->push(std::move(frames), options_.send_patience);
  }

  /// The result of a call, back the way that it came.
  Result<void> answer(CallResult result);
  /// What became of a wish that a task or a call ends.
  /// `invalid` for a call by force.
  Result<Cancelled> cancel(const PendingResultPtr& result, bool force);
  /// What gives the stream hears how many values have been asked for, if it is time.
  void tell_taken(IncomingStream& stream);

  // Who waits for what comes by lines takes it in itself, for a moment (client_guests.cc).
  /// Whether the result has come.
  bool look_for(const PendingResult& result) override;
  /// Whether `there()`, which calls of others make so, or somebody who then calls wake(). Not longer than `until`.
  bool look_for_work(const std::function<bool()>& there, std::optional<Instant> until);
  /// Of a thread that does one short thing after the other.
  void look_between_calls();
  /// Further threads do what is called: from here on they are woken for it at once, whatever others do.
  void work_is_for_many();
  void wake() override;
  void sleeps(bool begins) override;

  /// The actor that is to answer this call; 0: none.
  ActorId actor_of(TaskId task);

  void on_job_event(std::function<void(const wire::Received&)> handler);
  void on_other(OtherHandler handler);

  NodeId node() const { return NodeId(node_.load()); }
  const std::string& name() const { return options_.name; }
  /// As it was given.
  const Executable& executable() const { return options_.executable; }
  const std::string& agent_address() const { return options_.agent_address; }

 private:
  struct InFlight {
    PendingResultPtr result;
    ActorId actor;
    std::size_t bytes = 0;  ///< In the actor's window.
  };

  /// Of an actor of this node: how calls to it get there.
  struct Line {
    enum class State { none, asked, open, lost, refused };
    int results = 0;                    ///< Through the agent.
    std::optional<RestartRule> rule{};  ///< Of an actor that may be started again;
    int restarts = 0;                   ///< so often before this line was there.
    State state = State::none;
    std::string peer;
    std::optional<Instant> ask_again;  ///< Lost: when the agent is asked once more how the actor ended,
    Instant give_up;                   ///< and when no more.
  };

  Client(Options options, TransportFactory factory);
  void open_lines();
  struct Guest;
  bool may_be_guest() const;
  bool look(Guest& guest, channel::Lines::Watch& watch, const std::function<bool()>& there);
  bool give_way(OwnersTurn::Turn& turn);
  bool sleep_on_lines(OwnersTurn::Turn& turn, Instant until, const std::function<bool()>& there);
  bool wait_as_guest(Guest& guest, OwnersTurn::Turn turn, Instant until, const std::function<bool()>& there,
                     const std::function<bool()>& is_much);
  bool doze(OwnersTurn::Turn& turn, Instant until, const std::function<bool()>& there,
            const std::function<bool()>& is_much);
  void sleep_as_guest(std::span<pollfd> waits, Duration time, const std::function<bool()>& there);
  void look_in_passing();
  void look_on_the_way(Guest& guest);
  void lead();
  OwnersTurn::Turn sleep(std::span<pollfd, 4> waits, Duration timeout, OwnersTurn::Turn turn);
  void take_lines_back(Instant now);
  void run();
  void loop(transport::Transport& transport);
  bool flush(transport::Transport& transport);
  void on_event(transport::Event event);
  void on_message(std::vector<transport::Frame> frames);
  void on_call(Call call);
  void on_create(CreateActor create);
  /// For handlers that other threads may replace.
  template <class Handler>
  Handler copy_of(const Handler& handler) {
    std::lock_guard lock(mutex_);
    return handler;
  }
  void on_result(CallResult result);
  // client_streams.cc
  void expect(const std::shared_ptr<IncomingStream>& stream, const PendingResultPtr& end);
  void on_item(CallResult item);
  void forget_streams(const std::vector<PendingResultPtr>& dropped);
  void on_actor(const ActorReady& message);
  // client_names.cc
  PendingResultPtr expect_name(ActorId actor);
  Result<Created> await_name(ActorId actor, const PendingResultPtr& decided, bool detached);
  bool on_name(const ActorReady& message);
  std::vector<transport::Frame> release_message(const Release& release);
  void on_reply(std::uint64_t id, Result<std::string> reply);
  void finish(Error error);
  void send_now(Call call, PendingResultPtr result, std::vector<ArgumentSource> arguments, const TaskNeeds& needs,
                Duration patience);
  Place here() const;
  bool is_wanted_no_more(TaskId task, Duration patience);
  void end_cancelled(std::vector<PendingResultPtr> over);
  std::vector<Deadlines::Late> cancel_late(Instant now);
  std::optional<Cancelled> cancel_task(TaskId task, bool force);
  void on_wish(const Signal& wish);
  void signal_call(TaskId task, ActorId actor, Signal::Kind kind, std::uint64_t taken = 0);
  void signal_task(TaskId task, const OwnedTasks::With& with, Signal::Kind kind, std::uint64_t taken = 0);
  void send_signal(const Signal& signal, const std::string& line);
  bool send_signals();
  void send_task(const Call& call, PendingResultPtr result, const TaskNeeds& needs, Duration patience);
  void push_tasks(Instant now);
  void on_push(PushTask push);
  void on_loan(const Loan& loan);
  void on_worker_gone(WorkerId worker, const Error& error);
  bool open_line_to(WorkerId worker);
  std::optional<Error> wait_for_room(std::unique_lock<std::mutex>& lock, ActorId actor, Duration patience,
                                     const std::function<bool()>& has_room);
  void send_to_actor(Call call, const PendingResultPtr& result, Duration patience);
  void send_kept(ActorId actor);
  void add_fence(ActorId actor, CallWindows::Leaving& leaving);
  void ask_for_line(ActorId actor, Line& line);
  void on_line(ActorId actor, const Result<std::string>& reply);
  void on_line_ended(const std::string& peer, std::size_t untaken);
  std::vector<PendingResultPtr> on_restarted(ActorId actor, Line& line);
  std::optional<Duration> look_after_lines(Instant now);
  void fail_calls_to(ActorId actor, const Error& error);
  std::optional<Error> refusal(ActorId actor) const;

  Options options_;
  TransportFactory factory_;
  const std::shared_ptr<Outbox> outbox_ = std::make_shared<Outbox>();
  std::atomic<ProcessId> process_{0};  ///< From the welcome on, that is before anybody has the client.
  std::atomic<std::uint64_t> next_task_{1};
  std::atomic<std::uint32_t> next_actor_{1};
  std::atomic<std::uint64_t> next_request_{1};
  std::atomic<std::uint32_t> turn_{0};
  std::atomic<std::int32_t> node_{0};
  std::atomic<bool> stopping_{false};

  mutable std::mutex mutex_;      ///< Guards what follows.
  std::condition_variable room_;  ///< In windows_, or the end.
  std::unordered_map<TaskId, InFlight> in_flight_;
  CallWindows windows_{{.line_bytes = channel::Lines::kMessageMax}};
  std::uint64_t calls_ = 0;  ///< To actors: their numbers.
  std::unordered_map<ActorId, Line> line_to_;
  std::map<std::uint64_t, ActorId> line_requests_;
  std::unordered_map<TaskId, std::weak_ptr<IncomingStream>> streams_;  ///< Until they are dropped.
  OwnedTasks tasks_;
  Deadlines deadlines_;  ///< Of tasks, also of those whose arguments are not there yet.
  std::unordered_map<TaskId, PendingResultPtr> deferred_;  ///< Calls and tasks whose arguments are not there yet.
  bool crowded_ = false;                                   ///< A line to a worker had no room for a task.
  bool retries_ = false;           ///< The I/O thread sends what lines had no room for, and will again.
  std::set<WorkerId> task_lines_;  ///< Workers for tasks to which lines go.
  int lost_ = 0;                   ///< Of line_to_.
  std::map<std::string, std::deque<std::vector<transport::Frame>>> signals_;  ///< For which the line had none.
  std::set<ActorId> full_;                                                    ///< Whose lines had no room.
  std::unordered_map<ActorId, Error> dead_;    ///< Own actors that died, with the reason; erased by their release.
  std::unordered_map<ActorId, JobId> job_of_;  ///< Own actors that work for one.
  std::map<JobId, std::vector<PendingResultPtr>> left_over_;  ///< Of take_calls_of().
  std::map<std::uint64_t, PendingResultPtr> requests_;
  std::map<ActorId, PendingResultPtr> names_;  ///< Of actors of ours whose names are not decided.
  std::map<TaskId, PendingResultPtr> ends_;    ///< Of actors that are to end.
  std::vector<NodeId> nodes_;
  std::size_t spread_turn_ = 0;  ///< Of tasks that go to them in turn.
  std::function<void(const wire::Received&)> job_event_;
  OtherHandler other_;
  std::optional<Error> ended_;

  const PendingResultPtr welcome_ = std::make_shared<PendingResult>(TaskId{});
  std::optional<std::vector<transport::Frame>> unsent_;  ///< I/O thread: the transport had no room for it.
  std::unique_ptr<channel::Lines> lines_;                ///< Made by connect(); null: none can be had.
  OwnersTurn lines_turn_;  ///< With them: the I/O thread's but while it sleeps, and of guests, which wait.

  /// Threads that wait for one kind of thing. In their turn.
  struct Guest {
    Looking looking{};
    Steadiness steadiness{};
  };
  Guest for_results_, for_work_;
  std::atomic<std::uint64_t> visits_{0};  ///< Of guests,
  std::uint64_t visits_seen_ = 0;         ///< and as the I/O thread last saw them,
  Instant asked_{};                       ///< at that time.
  std::uint64_t called_ = 0;              ///< Calls that came by lines.
  std::atomic<bool> led_{false};          ///< The I/O thread leaves the lines to guests, which come again and again.
  std::atomic<bool> may_lead_{true};
  std::atomic<int> sleepers_{0};  ///< Threads that wait for results that others are to bring.
  std::atomic<std::uint32_t> passings_{0};
  std::atomic<bool> guest_sleeps_{false};
  process::Fd guest_bell_;  ///< Wakes it.
  const pid_t pid_ = process::this_process();
  std::thread thread_;
};

}  // namespace paceline::actors
