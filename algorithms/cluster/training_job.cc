#include "algorithms/cluster/training_job.h"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "algorithms/cluster/strategy_service.h"
#include "algorithms/payloads.h"
#include "algorithms/plan.h"
#include "algorithms/session/job_terms.h"
#include "algorithms/session/session_state.h"
#include "runtime/base/json.h"
#include "runtime/observe/format.h"
#include "runtime/process/fd.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;
using scheduler::AveragingService;

constexpr Duration kProgressEvery = std::chrono::milliseconds(250);
constexpr Duration kEvaluatorPatience = std::chrono::seconds(5);
constexpr Duration kLeaveBehindAfter = std::chrono::seconds(1);
constexpr Duration kReplayPatience = std::chrono::seconds(30);  // Nobody was left behind then.
constexpr Duration kSettleLook = std::chrono::milliseconds(5);
constexpr std::int32_t kOwnPaceBuffers = 4;              // Written; published or sealed; result in progress; evaluated.
constexpr std::int32_t kExchangeBuffers = 3;             // What was published becomes the result.
constexpr std::size_t kStepsMax = std::size_t{1} << 16;  // Step times that the median is taken of.

const char* name_of(session::State state) {
  switch (state) {
    case session::State::compute: return "compute";
    case session::State::wait: return "wait";
    case session::State::averaging: return "averaging";
    case session::State::evaluate: return "evaluate";
    case session::State::restore: return "restore";
    case session::State::ended: return "ended";
  }
  return "unknown";
}

double median_of(std::vector<float> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// What all decisions of a job rest on.
std::string record_head(const TrainingJob::Settings& settings, std::int64_t first, std::int64_t updates,
                        std::int64_t evaluate_every) {
  json nodes = json::array();
  for (const NodeId node : settings.entry.node_of) nodes.push_back(node.value);
  return json_text(json{{"strategy", settings.entry.options.strategy},
                        {"accumulate", settings.entry.options.accumulate},
                        {"seed", settings.entry.options.seed},
                        {"node", settings.self.value},
                        {"node_of", nodes},
                        {"first", first},
                        {"updates", updates},
                        {"evaluate_every", evaluate_every}});
}

}  // namespace

TrainingJob::TrainingJob(Settings settings, scheduler::TaskGraph& graph, collective::Averager& averager, Outbox outbox)
    : settings_(std::move(settings)),
      graph_(graph),
      averager_(averager),
      outbox_(std::move(outbox)),
      objects_(outbox_.to_worker),
      replicas_(settings_.self, settings_.entry.node_of),
      evaluations_(
          {settings_.entry.options.metric, settings_.entry.options.target, settings_.entry.options.early_stopping}),
      kept_(settings_.entry.options.run_directory, settings_.entry.options.keep_checkpoints),
      end_(settings_.self, {settings_.entry.node_of.begin(), settings_.entry.node_of.end()}) {}

void TrainingJob::beside(std::function<Result<void>()> work, std::function<void(const Result<void>&)> follows) {
  outbox_.beside(std::move(work),
                 [here = std::weak_ptr(here_), follows = std::move(follows)](const Result<void>& done) {
                   if (!here.expired()) follows(done);
                 });
}

void TrainingJob::let_go() {
  here_.reset();
  if (averagings_) averagings_->end_work();
}

/// A worker's memory: made beside the loop, since zeroing it takes long.
struct TrainingJob::Share {
  memory::Window::Layout layout;
  std::uint64_t outer_elements = 0;
  bool waits_for_turn = false;  ///< A replay: it publishes nothing before its agent has read what it published then.
  nlohmann::json answer;
  std::optional<memory::Window> window{};
  std::optional<memory::ControlPage> control{};
  process::Fd read_only{};

  Result<void> make();
};

Result<void> TrainingJob::Share::make() {
  auto made = memory::Window::create(layout);
  if (!made) return tl::unexpected(made.error());
  window.emplace(std::move(*made));
  auto page = memory::ControlPage::create();
  if (!page) return tl::unexpected(page.error());
  control.emplace(std::move(*page));
  if (waits_for_turn) control->words().may_publish.store(INT64_MIN, std::memory_order_release);
  const auto descriptor = control->read_only_fd();
  if (!descriptor) return tl::unexpected(descriptor.error());
  read_only.reset(*descriptor);
  return {};
}

std::vector<Rank> TrainingJob::local_ranks() const {
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < settings_.entry.node_of.size(); ++i)
    if (settings_.entry.node_of[i] == settings_.self) ranks.emplace_back(static_cast<std::int32_t>(i));
  return ranks;
}

void TrainingJob::on_open_share(const wire::OpenShare::Reader& share, Instant now) {
  const WorkerId worker{share.getWorker()};
  const Rank rank{share.getRank()};
  if (outbox_.process_id(worker) < 0) return;  // It has ended, and what it said came later.
  const auto refuse = [&](const std::string& text) { outbox_.to_worker(worker, {{"error", text}}, {}); };
  const auto workers = static_cast<std::int32_t>(settings_.entry.node_of.size());
  if (rank.value < 0 || rank.value >= workers ||
      settings_.entry.node_of[static_cast<std::size_t>(rank.value)] != settings_.self)
    return refuse("worker " + to_string(rank) + " does not belong to this node");
  if (gone_.contains(rank)) return refuse("worker " + to_string(rank) + " has left the job: " + not_in_time());
  if (worker_of_.contains(rank)) return refuse("a job has one share a worker: me.share() was called twice");
  if (share.getOuterElements() > share.getElements()) return refuse("its model has more parameters than elements");
  if (share.getElements() == 0) return refuse("the model has no trainable parameters");
  if ((settings_.strategy.outer.kind != algorithms::Outer::Kind::none || settings_.strategy.code_parity) &&
      share.getDtype() > static_cast<std::uint8_t>(memory::Dtype::f64))
    return refuse("block momentum and other outer steps, and parity=code, work on float32 and float64 parameters");
  if (share.getDtype() > static_cast<std::uint8_t>(memory::Dtype::f16)) return refuse("unknown type of parameters");

  const auto plan = algorithms::make_plan(settings_.strategy, workers, 1);
  const memory::Window::Layout layout{share.getElements(), static_cast<memory::Dtype>(share.getDtype()),
                                      exchanges()  ? kExchangeBuffers
                                      : own_pace() ? kOwnPaceBuffers
                                                   : plan->buffers()};
  const auto long_plan = algorithms::make_plan(settings_.strategy, workers, std::int64_t{1} << 40);
  session::JobTerms terms;
  terms.workers = workers;
  terms.bodies = settings_.strategy.batches;
  terms.buffers = layout.buffers;
  terms.next_round = own_pace() ? 0 : long_plan->next_round(Version{0}).value;
  terms.seed = settings_.entry.options.seed;
  terms.node = settings_.self.value;
  terms.time_limit = from_seconds(settings_.entry.options.time_limit_s);
  terms.payloads = algorithms::Payloads::of(settings_.strategy);
  terms.loss_window = settings_.strategy.tiers.empty() ? 1 : settings_.strategy.tiers.back().period.loss_window;
  terms.publishes_every = !own_pace() && long_plan->publishes_every_iteration();
  terms.abandons = long_plan->round(long_plan->next_round(Version{0})).late == scheduler::Lateness::abandons;
  terms.own_pace = own_pace();
  terms.shows_start = own_pace() || weighs_by_samples();
  terms.finishes = settings_.strategy.tiers.front().late == scheduler::Lateness::finishes;
  terms.steps_apart = settings_.strategy.code_parity;
  terms.accumulates = settings_.strategy.tiers.front().late == scheduler::Lateness::accumulates;
  terms.weighs_by_samples = weighs_by_samples();
  terms.rotate_shards = settings_.strategy.rotate_shards;
  terms.reset_momentum = settings_.strategy.outer.clears_momentum();
  terms.lr_may_decay = workers == 1 || long_plan->lr_may_decay();
  if (!weighs_by_samples() && !exchanges()) terms.outer = settings_.strategy.outer;
  if (!settings_.entry.options.run_directory.empty())
    terms.trace = settings_.entry.options.run_directory + "/worker-" + to_string(rank) + ".trace";
  life_.join(rank, now);
  rank_of_[worker] = rank;
  worker_of_[rank] = worker;
  const auto made = std::make_shared<Share>();
  made->layout = layout;
  made->outer_elements = share.getOuterElements();
  made->waits_for_turn = !settings_.entry.options.replay.empty();
  made->answer = session::to_json(terms);
  beside([made] { return made->make(); },
         [this, made, rank, worker](const Result<void>& done) {
           if (done) return on_share_made(rank, worker, *made);
           worker_of_.erase(rank);
           rank_of_.erase(worker);
           outbox_.to_worker(worker, {{"error", done.error().text}}, {});
         });
}

void TrainingJob::on_share_made(Rank rank, WorkerId worker, Share& share) {
  if (gone_.contains(rank)) return;
  outbox_.to_worker(worker, share.answer, {share.window->fd(), share.read_only.get()});
  outer_elements_ = share.outer_elements;
  const auto bytes = static_cast<double>(memory::Window::bytes_needed(share.layout));
  outbox_.to_driver({{"event", "memory"},
                     {"node", settings_.self.value},
                     {"bytes_worker", bytes},
                     {"bytes_node", bytes * static_cast<double>(local_ranks().size())}});
  if (stopped_) share.control->words().stop.store(1, std::memory_order_release);
  if (averagings_) {
    if (auto joined = averagings_->join(rank, *std::move(share.window), *std::move(share.control)); !joined)
      fail_job(joined.error().text, settings_.clock->now());
  } else {
    opened_.insert_or_assign(rank, Opened{*std::move(share.window), *std::move(share.control)});
  }
}

/// Here the agent makes the outer step.
bool TrainingJob::exchanges() const {
  return algorithms::coordination(settings_.strategy) == algorithms::Coordination::exchanges;
}

bool TrainingJob::own_pace() const {
  return algorithms::has_own_pace(settings_.strategy, static_cast<std::int32_t>(settings_.entry.node_of.size()));
}

/// The recorded decisions are of the same job only.
Result<void> TrainingJob::read_replay(AveragingService::JobOptions& job) const {
  if (settings_.entry.options.replay.empty()) return {};
  auto record = scheduler::read_record(scheduler::record_path(settings_.entry.options.replay, settings_.self));
  if (!record) return tl::unexpected(record.error());
  const json now = parse_json(job.record_head);
  const json then = parse_json(record->head);
  for (const auto& [name, value] : now.items()) {
    const json before = then.is_object() ? then.value(name, json()) : json();
    if (before != value)
      return fail(ErrorKind::invalid, "this is another job than the recorded one: " + name + " was " +
                                          json_text(before) + ", is " + json_text(value));
  }
  job.replay = std::move(record->decisions);
  return {};
}

void TrainingJob::on_plan(const json& plan, Instant now) {
  if (averagings_ || stopped_) return;
  const std::int64_t first = plan.value("first", std::int64_t{0});
  const std::int64_t updates = plan.value("updates", std::int64_t{0});
  const std::int64_t evaluate_every = plan.value("evaluate_every", std::int64_t{0});
  if (updates <= first || first < 0)
    return fail_job("nothing to do: the job would end at update " + std::to_string(updates) +
                        ", and goes on from update " + std::to_string(first) + ": give more --epochs",
                    now);

  AveragingService::JobOptions job;
  job.job = settings_.job;
  job.clock = settings_.clock;
  job.self = settings_.self;
  job.node_of = settings_.entry.node_of;
  job.first = Version{first};
  job.last = Version{updates - 1};
  if (settings_.entry.options.patience_s > 0) job.wait_limit = from_seconds(settings_.entry.options.patience_s);
  if (settings_.strategy.patience) job.wait_limit = settings_.strategy.patience;
  job.evaluates = evaluate_every >= 0;
  job.evaluate_every = std::max<std::int64_t>(0, evaluate_every);
  if (!settings_.entry.options.run_directory.empty()) {
    job.trace_path = settings_.entry.options.run_directory + "/node-" + to_string(settings_.self) + ".trace";
    job.record_path = scheduler::record_path(settings_.entry.options.run_directory, settings_.self);
  }
  job.record_head = record_head(settings_, first, updates, evaluate_every);
  if (const auto read = read_replay(job); !read) return fail_job(read.error().text, now);
  auto service =
      make_strategy_service({std::move(job), settings_.strategy, settings_.entry.options.seed, outer_elements_}, graph_,
                            averager_, outbox_.to_node);
  if (!service) return fail_job(service.error().text, now);
  averagings_ = std::move(*service);
  averagings_->start_clock(now);
  first_version_ = first;
  last_version_ = Version{first - 1};
  for (auto& [rank, opened] : std::exchange(opened_, {})) {
    if (auto joined = averagings_->join(rank, std::move(opened.window), std::move(opened.control)); !joined)
      fail_job(joined.error().text, now);
  }
  for (const Rank rank : gone_) averagings_->on_gone(rank, now);
  for (const auto& message : std::exchange(early_, {})) message();  // Of nodes that are lost now, what came before.
  for (const NodeId node : lost_nodes_) averagings_->on_node_gone(node, now);
  outbox_.to_driver({{"event", "started"}, {"node", settings_.self.value}, {"updates", updates}, {"first", first}});
  drain(now);
}

void TrainingJob::on_arrive(const wire::Arrive::Reader& arrive, Instant now) {
  if (!averagings_) return;
  if (settings_.entry.node_of.size() == 1) last_loss_ = arrive.getLoss();  // Alone it publishes nothing.
  if (arrive.getIteration() >= first_version_ && !std::exchange(stepped_, true))
    outbox_.to_driver({{"event", "first_step"}, {"worker", arrive.getRank()}});
  const Rank rank{arrive.getRank()};
  const Version t{arrive.getIteration()};
  const Duration took(arrive.getComputeNs());
  life_.heard(rank, now);
  arrive.getBodies() >= 0 ? averagings_->on_batch(rank, t, arrive.getBodies(), took, now)
                          : averagings_->on_arrival(rank, t, took, now);
  drain(now);
}

void TrainingJob::on_report(const wire::Report::Reader& report, Instant now) {
  const std::string kind = wire::text(report.getKind());
  const Rank rank{report.getRank()};
  if (kind == "plan") {
    const auto plan = parse_json(wire::text(report.getText()));
    if (plan.is_object()) on_plan(plan, now);
  } else if (kind == "evaluated") {
    on_evaluated(rank, report.getUpdate(), report.getValue(), now);
  } else if (kind == "saved") {
    on_saved(rank, report.getUpdate());
  } else if (kind == "metric") {
    const std::string name = wire::text(report.getName());
    const double clock = averagings_ ? seconds(averagings_->clock(now)) : 0;
    logged_.on_value(name, rank, report.getUpdate() + 1, clock, report.getValue());
    outbox_.to_driver({{"event", "metric"},
                       {"worker", rank.value},
                       {"update", report.getUpdate() + 1},
                       {"clock_s", clock},
                       {"name", name},
                       {"value", report.getValue()}});
  } else if (kind == "final") {
    outbox_.to_driver({{"event", "final"}, {"worker", rank.value}, {"model", wire::text(report.getText())}});
  } else if (kind == "file") {
    outbox_.to_driver(
        {{"event", "file"}, {"path", wire::text(report.getName())}, {"hash", wire::text(report.getText())}});
  } else if (kind == "warning") {
    outbox_.to_driver({{"event", "warning"}, {"text", wire::text(report.getText())}});
  } else if (kind == "stop") {
    if (!std::exchange(stops_soon_, true))
      outbox_.to_driver(
          {{"event", "stopping"}, {"node", settings_.self.value}, {"text", wire::text(report.getText())}});
    if (averagings_) averagings_->stop_soon(now);
  } else if (kind == "fail") {
    fail_job(wire::text(report.getText()), now);
  }
}

void TrainingJob::on_alive(WorkerId worker, Instant now) {
  const auto it = rank_of_.find(worker);
  if (it == rank_of_.end() || gone_.contains(it->second)) return;
  life_.answered(it->second, now);
  if (averagings_) averagings_->on_alive(it->second, now);
}

/// Who computes for long is asked whether it is there; nobody is silent who was not given the chance to speak.
void TrainingJob::look_for_life(Instant now) {
  const auto look = life_.look(now);
  for (const Rank rank : look.ask) outbox_.ask_for_life(worker_of_.at(rank));
  if (averagings_)
    for (const Rank rank : look.unheard) averagings_->on_alive(rank, now);
  if (!began_) began_ = now;
  for (const Rank rank : starting()) {
    if (seconds(now - *began_) < settings_.entry.options.start_limit_s) {
      if (averagings_) averagings_->on_alive(rank, now);
      continue;
    }
    if (worker_of_.contains(rank)) return fail_job("worker " + to_string(rank) + ": " + not_in_time(), now);
    lose(rank);
    tell_left(rank, "worker " + to_string(rank) + " leaves: " + not_in_time() + "; the others go on without it");
    go_on_without(rank, not_in_time(), now);
  }
}

/// Workers of this node that have not shared their models yet. Worker 0 has when the others can start from its.
std::vector<Rank> TrainingJob::starting() const {
  std::vector<Rank> ranks = local_ranks();
  const bool others_wait = settings_.entry.node_of.size() > 1 && !replicas_.has_start();
  std::erase_if(ranks, [&](Rank rank) {
    return gone_.contains(rank) || (worker_of_.contains(rank) && !(rank.value == 0 && others_wait));
  });
  return ranks;
}

std::string TrainingJob::not_in_time() const {
  return observe::format("it did not share its model within %.0f s, see --start-limit",
                         settings_.entry.options.start_limit_s);
}

/// Whether it was there until now.
bool TrainingJob::lose(Rank rank) {
  life_.leave(rank);
  if (saving_.erase(rank) > 0) kept_.drop_fresh(rank);
  return gone_.insert(rank).second;
}

void TrainingJob::tell_left(Rank rank, const std::string& text) {
  outbox_.to_driver({{"event", "left"}, {"worker", rank.value}, {"text", text}});
}

void TrainingJob::tell_ended(Rank rank, const std::string& text) {
  outbox_.to_driver({{"event", "left"}, {"worker", rank.value}, {"ended", true}, {"text", text}});
}

// Evaluation
// ------------------------------------------------------------------------------------------------------------

void TrainingJob::handle(const AveragingService::Executed& executed, Instant now) {
  if (executed.sums.loss_count > 0) last_loss_ = executed.sums.loss_sum / static_cast<double>(executed.sums.loss_count);
  samples_ += executed.sums.samples;
  if (executed.version > last_version_) {
    // Time per update, evaluations excluded: the training clock stands still while they run.
    const double clock = seconds(averagings_->clock(now));
    const auto steps = static_cast<double>(executed.version.value - last_version_.value);
    if (last_version_.value >= first_version_ && step_s_.size() < kStepsMax)
      step_s_.push_back(static_cast<float>((clock - last_clock_s_) / steps));
    last_clock_s_ = clock;
    last_version_ = executed.version;
  }
  if (executed.over) end_.begin(executed.version, now);
  if (!executed.evaluate || settings_.self.value != 0) return;
  evaluating_ = executed.version;
  evaluating_since_ = now;
  saved_ = now;
  evaluator_ = executed.evaluator;
  if (!evaluator_) end_evaluation(now);
}

void TrainingJob::on_evaluated(Rank rank, std::int64_t update, double value, Instant now) {
  if (settings_.self.value != 0 || !evaluating_ || evaluating_->value != update) return;
  const double clock = seconds(averagings_->clock(now));
  const auto outcome = evaluations_.on_value(update + 1, value);
  if (!std::isnan(value)) {
    evaluation_ = job::to_json(settings_.entry.options.metric);
    evaluation_.update({{"update", update + 1}, {"clock_s", clock}, {"value", value}, {"best", outcome.is_best}});
  }
  if (const auto kept = kept_.keep(update + 1, outcome.is_best); !kept)
    outbox_.to_driver({{"event", "warning"}, {"text", kept.error().text}});
  outbox_.to_driver({{"event", "evaluated"},
                     {"worker", rank.value},
                     {"update", update + 1},
                     {"value", value},
                     {"clock_s", clock},
                     {"samples", samples_},
                     {"loss", last_loss_},
                     {"best", outcome.is_best},
                     {"reached", outcome.reached}});
  if (!outcome.stop.empty() && !end_.version()) {
    outbox_.to_driver({{"event", "stopping"}, {"node", settings_.self.value}, {"text", outcome.stop}});
    if (averagings_->evaluations_hold()) {
      end_here(*evaluating_, now);
      send_released(*evaluating_, true);
    } else {
      averagings_->stop_soon(now);
    }
  }
  end_evaluation(now);
}

/// Node 0: one worker writes a checkpoint between two of its updates, if that is due, and the others do not wait for
/// it. The one that is furthest: it stands still least likely.
void TrainingJob::ask_for_checkpoint(Instant now) {
  const Duration every = from_seconds(settings_.entry.options.checkpoint_every_s);
  if (every <= Duration::zero() || settings_.self.value != 0 || !averagings_ || end_.version()) return;
  if (!saved_) saved_ = now;
  if (now - *saved_ < every) return;
  std::optional<Rank> furthest;
  const auto step = [this](Rank rank) {
    return averagings_->window(rank)->progress().step.load(std::memory_order_relaxed);
  };
  for (const auto& [rank, worker] : worker_of_) {
    if (gone_.contains(rank) || saving_.contains(rank) || !averagings_->window(rank)) continue;
    if (!furthest || step(rank) > step(*furthest)) furthest = rank;
  }
  if (!furthest) return;
  saved_ = now;
  saving_.insert(*furthest);
  averagings_->control(*furthest)->words().save_wanted.fetch_add(1, std::memory_order_release);
}

void TrainingJob::on_saved(Rank rank, std::int64_t update) {
  saving_.erase(rank);
  if (evaluating_) return kept_.drop_fresh(rank);  // It saves, too.
  const auto taken = kept_.take_fresh(rank, update + 1);
  if (!taken) outbox_.to_driver({{"event", "warning"}, {"text", taken.error().text}});
  if (taken && *taken) outbox_.to_driver({{"event", "saved"}, {"worker", rank.value}, {"update", update + 1}});
}

/// Node 0: the others go on, or the job ends.
void TrainingJob::end_evaluation(Instant now) {
  const Version v = *std::exchange(evaluating_, std::nullopt);
  end_.wait_from(now);
  end_.is_settling() ? settle(now) : release(v, now);
}

void TrainingJob::send_released(Version v, bool ends) {
  wire::Message message;
  auto body = message.root().initReleased();
  body.setJob(settings_.job.value);
  body.setVersion(v.value);
  body.setEnds(ends);
  to_all_nodes(message);
}

void TrainingJob::release(Version v, Instant now) {
  if (settings_.self.value == 0) send_released(v, false);
  averagings_->release(v);
  if (end_.version() != v) return;
  end_.on_released();
  finished_at_ = now;
}

void TrainingJob::on_released(const wire::Released::Reader& released, Instant now) {
  if (!averagings_) return;
  const Version v{released.getVersion()};
  released.getEnds() ? end_here(v, now) : release(v, now);
}

void TrainingJob::end_here(Version v, Instant now) {
  averagings_->end_at(v);
  end_.begin(v, now);
  settle(now);
}

void TrainingJob::on_settled(const wire::Settled::Reader& settled, Instant now) {
  end_.on_settled(NodeId{settled.getNode()});
  settle(now);
}

/// Whether this worker's model is the last one, or will never be.
bool TrainingJob::is_settled(Rank rank) {
  const auto* window = averagings_->window(rank);
  return gone_.contains(rank) || !window ||
         window->progress().step.load(std::memory_order_relaxed) > end_.version()->value;
}

bool TrainingJob::is_evaluating(Rank rank) const { return evaluating_ && evaluator_ == rank; }

void TrainingJob::settle(Instant now) {
  while (end_.is_settling()) {
    const auto ranks = local_ranks();
    const bool all_there = std::all_of(ranks.begin(), ranks.end(), [this](Rank r) { return is_settled(r); });
    switch (end_.next(all_there, evaluating_.has_value(), leave_patience(), now)) {
      case JobEnd::Step::none: return;
      case JobEnd::Step::release: release(*end_.version(), now); break;
      case JobEnd::Step::leave_behind:
        for (const auto& [rank, worker] : worker_of_)
          if (!is_settled(rank) && !is_evaluating(rank)) leave_behind(rank, worker);
        break;
      case JobEnd::Step::tell_settled: {
        wire::Message message;
        auto body = message.root().initSettled();
        body.setJob(settings_.job.value);
        body.setVersion(end_.version()->value);
        body.setNode(settings_.self.value);
        outbox_.to_node(NodeId{0}, message, {});
        break;
      }
    }
  }
}

Duration TrainingJob::leave_patience() const {
  if (!settings_.entry.options.replay.empty()) return kReplayPatience;
  return std::max<Duration>(kLeaveBehindAfter, 10 * averagings_->median_step());
}

void TrainingJob::leave_behind(Rank rank, WorkerId worker) {
  lose(rank);
  tell_ended(rank, "worker " + to_string(rank) + " was left behind: the job had ended and it did not answer");
  outbox_.end_worker(worker, "left behind at the end of the job");
}

// Replicas
// ----------------------------------------------------------------------------------------------------------------

/// Local workers that can be asked for their state.
ReplicaExchange::Donors TrainingJob::donors() {
  ReplicaExchange::Donors donors;
  if (!averagings_ || stopped_) return donors;
  for (const auto& [rank, worker] : worker_of_) {
    auto* window = averagings_->window(rank);
    if (!window || gone_.contains(rank) || outbox_.process_state(worker) == 'T') continue;
    donors.push_back({rank, window->progress().step.load(std::memory_order_relaxed)});
  }
  return donors;
}

void TrainingJob::act(const ReplicaExchange::Actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& a) { carry_out(a); }, action);
}

void TrainingJob::carry_out(const ReplicaExchange::Give& give) {
  const auto it = worker_of_.find(give.rank);
  if (it == worker_of_.end()) return;
  outbox_.to_worker(it->second, {{"kind", "replica"}, {"update", give.replica.update}, {"size", give.replica.size}},
                    {give.replica.object->fd()});
}

void TrainingJob::carry_out(const ReplicaExchange::Send& send) {
  wire::Message message;
  auto body = message.root().initReplicaData();
  body.setJob(settings_.job.value);
  body.setRank(send.from.value);
  body.setUpdate(send.replica.update);
  body.setSize(send.replica.size);
  const auto data = send.replica.object->data();
  std::vector<std::vector<std::byte>> bulk;
  bulk.emplace_back(data.begin(), data.end());
  outbox_.to_node(send.node, message, std::move(bulk));
}

void TrainingJob::carry_out(const ReplicaExchange::Capture& capture) {
  auto* control = averagings_->control(capture.donor);
  control->words().capture_wanted.fetch_add(1, std::memory_order_release);
  control->ring();
}

void TrainingJob::carry_out(const ReplicaExchange::AskNode& ask) {
  wire::Message message;
  auto body = message.root().initReplicaWanted();
  body.setJob(settings_.job.value);
  body.setRank(ask.rank.value);
  body.setUpdate(ask.least);
  outbox_.to_node(ask.node, message, {});
}

void TrainingJob::carry_out(const ReplicaExchange::SendNone& none) {
  wire::Message message;
  auto body = message.root().initReplicaNone();
  body.setJob(settings_.job.value);
  body.setRank(none.furthest.rank.value);
  body.setUpdate(none.furthest.step);
  outbox_.to_node(none.node, message, {});
}

void TrainingJob::carry_out(const ReplicaExchange::GoOn& go_on) {
  const auto it = worker_of_.find(go_on.rank);
  if (it == worker_of_.end() || !averagings_) return;
  outbox_.to_worker(it->second, {{"kind", "go_on"}, {"update", averagings_->done().value + 1}}, {});
  outbox_.to_driver(
      {{"event", "warning"},
       {"text", "worker " + to_string(go_on.rank) + " missed update " + std::to_string(averagings_->done().value + 1) +
                    ", and who has its model is frozen or gone: it goes on with its own"}});
}

void TrainingJob::on_replica_none(const wire::Replica::Reader& none, NodeId from, Instant now) {
  act(replicas_.on_none(from, {Rank{none.getRank()}, none.getUpdate()}, donors(), now));
}

void TrainingJob::on_replica_wanted(const wire::Replica::Reader& wanted, NodeId from, Instant now) {
  std::int64_t least = from == settings_.self ? 0 : wanted.getUpdate();
  if (end_.version()) least = std::max(least, end_.version()->value + 1);
  act(replicas_.on_wanted(Rank{wanted.getRank()}, from, least, donors(), now));
}

void TrainingJob::on_captured(Rank rank, std::int64_t update, std::uint64_t size, int fd, Instant now) {
  auto object = memory::SharedObject::map(fd, std::max<std::uint64_t>(1, size));
  if (!object)
    return fail_job("worker " + to_string(rank) + " gave a replica that cannot be mapped: " + object.error().text, now);
  act(replicas_.on_captured(rank, {std::make_shared<memory::SharedObject>(std::move(*object)), update, size}));
}

void TrainingJob::on_replica_data(const wire::Replica::Reader& header, std::vector<std::byte> bytes) {
  const auto fd = std::make_shared<process::Fd>();
  const auto bytes_in = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  beside(
      [bytes_in, fd]() -> Result<void> {
        const auto object = memory::SharedObject::sealed_copy(*bytes_in);
        if (!object) return tl::unexpected(object.error());
        fd->reset(fcntl(object->fd(), F_DUPFD_CLOEXEC, 0));
        return {};
      },
      [this, fd, rank = Rank{header.getRank()}, update = header.getUpdate(),
       size = header.getSize()](const Result<void>& done) {
        if (!done) return fail_job(done.error().text, settings_.clock->now());
        on_captured(rank, update, size, fd->release(), settings_.clock->now());
      });
}

// Shared objects
// ------------------------------------------------------------------------------------------------------------

void TrainingJob::on_open_object(WorkerId worker, const wire::ObjectKey::Reader& request) {
  objects_.open(worker, wire::text(request.getKey()), request.getSize());
}

void TrainingJob::on_seal_object(const wire::ObjectKey::Reader& request) {
  objects_.seal(wire::text(request.getKey()));
}

// Rounds
// --------------------------------------------------------------------------------------------------------------------

void TrainingJob::on_averaging_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                       Instant now) {
  if (averagings_) {
    averagings_->on_message(from, message, std::move(bulk), now);
    return drain(now);
  }
  auto copy = std::make_shared<wire::Message>(message);
  auto bytes = std::make_shared<std::vector<std::byte>>(std::move(bulk));
  early_.push_back([this, from, copy, bytes] {
    averagings_->on_message(from, copy->root().asReader(), std::move(*bytes), settings_.clock->now());
  });
}

bool TrainingJob::on_reduced(std::uint64_t id, Instant now) {
  if (!averagings_ || !averagings_->on_reduced(id, now)) return false;
  drain(now);
  return true;
}

void TrainingJob::drain(Instant now) {
  for (const auto& event : averagings_->take_events()) std::visit([&](const auto& e) { handle(e, now); }, event);
  settle(now);
}

void TrainingJob::handle(const AveragingService::Left& left, Instant now) {
  const std::string text =
      left.replayed ? "worker " + to_string(left.rank) + " left here in the run that is replayed: it leaves"
      : left.silent < left.waited
          ? observe::format(
                "worker %d was waited for at update %lld for %.1f s, longer than patience allows: it leaves, the "
                "others go on without it",
                left.rank.value, static_cast<long long>(left.version.value), seconds(left.waited))
          : observe::format(
                "worker %d was silent for %.1f s while the others waited for it at update %lld: it leaves, the others "
                "go on without it",
                left.rank.value, seconds(left.silent), static_cast<long long>(left.version.value));
  if (!lose(left.rank)) return;
  tell_left(left.rank, text);
  if (const auto it = worker_of_.find(left.rank); it != worker_of_.end()) outbox_.end_worker(it->second, text);
  if (is_evaluating(left.rank)) end_evaluation(now);
}

void TrainingJob::handle(const AveragingService::Failed& failed, Instant now) { fail_job(failed.text, now); }

void TrainingJob::on_worker_gone(WorkerId worker, const std::string& how, bool failed, Instant now) {
  const auto it = rank_of_.find(worker);
  if (it == rank_of_.end()) return;
  const Rank rank = it->second;
  if (!lose(rank)) return;
  if (failed && !stopped_) return fail_job("worker " + to_string(rank) + " ended: " + how, now);
  if (rank.value == 0 && !replicas_.has_start() && settings_.entry.node_of.size() > 1 && !stopped_)
    return fail_job("worker 0 ended before it gave the others the model to start from: " + how, now);
  if (!finished_at_ && !stopped_) {
    tell_left(rank, "worker " + to_string(rank) + " ended (" + how + "): the others go on without it");
  } else if (end_.version() && !failed) {
    tell_ended(rank, "worker " + to_string(rank) + " ended (" + how + ") when the job had");
  }
  if (is_evaluating(rank)) end_evaluation(now);
  go_on_without(rank, how, now);
}

void TrainingJob::on_node_gone(NodeId node, const std::string& cause, Instant now) {
  if (!other_nodes().contains(node)) return;
  lost_nodes_.insert(node);
  const std::string why = "node " + to_string(node) + " is lost" + (cause.empty() ? "" : " (" + cause + ")");
  for (std::size_t i = 0; i < settings_.entry.node_of.size(); ++i) {
    const Rank rank{static_cast<std::int32_t>(i)};
    if (settings_.entry.node_of[i] != node || !lose(rank) || settings_.self.value != 0) continue;
    const bool has_ended = finished_at_ || stopped_;
    outbox_.to_driver({{"event", "left"},
                       {"worker", rank.value},
                       {"ended", has_ended},
                       {"text", "worker " + to_string(rank) + " is gone: " + why +
                                    (has_ended ? "" : "; the others go on without it")}});
  }
  if (settings_.self.value == 0) outbox_.to_driver({{"event", "node_lost"}, {"node", node.value}, {"text", why}});
  end_.on_settled(node);
  act(replicas_.on_node_gone(node, donors(), now));
  if (!averagings_) return;
  averagings_->on_node_gone(node, now);
  drain(now);
}

void TrainingJob::go_on_without(Rank rank, const std::string& how, Instant now) {
  if (averagings_) {
    averagings_->on_gone(rank, now);
    return drain(now);
  }
  bool any = false;  // Else nobody tells this node how long the job is, and the other nodes would wait for it for ever.
  for (std::size_t i = 0; i < settings_.entry.node_of.size(); ++i)
    any |= settings_.entry.node_of[i] == settings_.self && !gone_.contains(Rank{static_cast<std::int32_t>(i)});
  if (!any && !stopped_)
    fail_job("all workers of node " + to_string(settings_.self) + " ended before they began to train: " + how, now);
}

// The end
// -------------------------------------------------------------------------------------------------------------------

void TrainingJob::fail_job(const std::string& text, Instant now) {
  outbox_.to_driver({{"event", "failed"}, {"text", text}});
  stop_everywhere(text, now);
}

void TrainingJob::stop_everywhere(const std::string& reason, Instant now) {
  wire::Message message;
  auto body = message.root().initStopRounds();
  body.setJob(settings_.job.value);
  body.setVersion(averagings_ ? averagings_->done().value : -1);
  body.setReason(reason);
  to_all_nodes(message);
  stop(reason, now);
}

void TrainingJob::stop(const std::string& reason, Instant now) {
  if (std::exchange(stopped_, true)) return;
  finished_at_ = now;
  outbox_.to_driver({{"event", "stopping"}, {"node", settings_.self.value}, {"text", reason}});
  if (averagings_) averagings_->stop();
  for (auto& [rank, opened] : opened_) {
    opened.control.words().stop.store(1, std::memory_order_release);
    opened.control.ring();
  }
}

std::set<NodeId> TrainingJob::other_nodes() const {
  std::set<NodeId> nodes(settings_.entry.node_of.begin(), settings_.entry.node_of.end());
  std::erase_if(nodes, [this](NodeId node) { return node == settings_.self || lost_nodes_.contains(node); });
  return nodes;
}

void TrainingJob::to_all_nodes(wire::Message& message) {
  for (const NodeId node : other_nodes()) outbox_.to_node(node, message, {});
}

void TrainingJob::tick(Instant now) {
  looked_ = now;
  const bool news = now >= next_progress_;
  if (news) look_for_life(now);
  if (news) ask_for_checkpoint(now);
  if (averagings_) {
    averagings_->tick(now);
    drain(now);
  }
  if (replicas_.is_due(now)) act(replicas_.ask_again(donors(), now));
  if (evaluating_ && evaluator_ && now - evaluating_since_ >= kEvaluatorPatience) {
    const auto* window = averagings_->window(*evaluator_);
    const auto state = window ? window->progress().state.load(std::memory_order_relaxed) : 0;
    const bool evaluates = state == static_cast<std::uint32_t>(session::State::evaluate);
    const auto worker = worker_of_.find(*evaluator_);
    const bool frozen = worker != worker_of_.end() && outbox_.process_state(worker->second) == 'T';
    if (!evaluates || frozen) end_evaluation(now);
  }
  if (averagings_) settle(now);
  if (finished_at_ && !evaluating_ && averagings_ && now - *finished_at_ >= leave_patience()) {
    for (const auto& [rank, worker] : worker_of_) {
      const auto* window = averagings_->window(rank);
      const auto state = window ? window->progress().state.load(std::memory_order_relaxed) : 0;
      if (!gone_.contains(rank) && state != static_cast<std::uint32_t>(session::State::ended))
        leave_behind(rank, worker);
    }
  }
  if (news) {
    next_progress_ = now + kProgressEvery;
    auto event = view(now);
    if (averagings_) count(event, now);
    event["event"] = "progress";
    outbox_.to_driver(event);
  }
}

void TrainingJob::count(const json& view, Instant now) {
  std::int64_t samples = 0;
  int waiting = 0;
  for (const auto& worker : view.value("workers", json::array())) {
    samples += worker.value("samples", std::int64_t{0});
    waiting += worker.value("state", "") == name_of(session::State::wait);
  }
  const double since = counted_.at == Instant{} ? 0 : seconds(now - counted_.at);
  averagings_->count("samples/s", since > 0 ? static_cast<double>(samples - counted_.samples) / since : 0, now);
  averagings_->count("workers that wait", waiting, now);
  averagings_->count("loss", last_loss_, now);
  counted_ = {now, samples};
}

std::optional<Instant> TrainingJob::next_deadline() const {
  Instant deadline = next_progress_;
  if (end_.is_settling()) deadline = std::min(deadline, looked_ + kSettleLook);  // Workers tell by their windows only.
  if (const auto replicas = replicas_.due()) deadline = std::min(deadline, *replicas);
  if (averagings_)
    if (const auto rounds = averagings_->next_deadline()) deadline = std::min(deadline, *rounds);
  return deadline;
}

json TrainingJob::view(Instant now) const {
  json view{{"job", settings_.job.value}, {"node", settings_.self.value}, {"strategy", settings_.strategy.name}};
  if (const auto ranks = starting(); !ranks.empty() && began_) {
    json names = json::array();
    for (const Rank rank : ranks) names.push_back(rank.value);
    view["starting"] = {{"workers", names}, {"since_s", seconds(now - *began_)}};
  }
  if (!averagings_) return view;
  const auto& counters = averagings_->counters();
  view["update"] = averagings_->done().value + 1;
  view["period"] = averagings_->period();
  const double clock = seconds(averagings_->clock(finished_at_.value_or(now)));  // What workers do then is no training.
  view["clock_s"] = clock;
  view["updates"] = averagings_->last().value + 1;
  view["median_step_s"] = seconds(averagings_->median_step());
  view["step_s"] = median_of(step_s_);
  view["loss"] = last_loss_;
  view["samples"] = samples_;
  view["counters"] = {{"group_averages", counters.group_averages},
                      {"global_averages", counters.global_averages},
                      {"skipped", counters.skipped},
                      {"late_merges", counters.late_merges},
                      {"abandoned_bodies", counters.abandoned_bodies},
                      {"staleness", counters.staleness}};
  for (const auto& [rank, worker] : worker_of_) {
    const auto* window = averagings_->window(rank);
    if (!window) continue;
    const auto& progress = window->progress();
    std::string state = name_of(static_cast<session::State>(progress.state.load(std::memory_order_relaxed)));
    if (gone_.contains(rank))
      state = "left";
    else if (outbox_.process_state(worker) == 'T')
      state = "frozen";
    view["workers"].push_back(
        {{"rank", rank.value},
         {"node", settings_.self.value},
         {"pid", outbox_.process_id(worker)},
         {"step", progress.step.load(std::memory_order_relaxed)},
         {"lag",
          std::max<std::int64_t>(0, averagings_->done().value + 1 - progress.step.load(std::memory_order_relaxed))},
         {"samples_per_s",
          clock > 0 ? static_cast<double>(progress.samples.load(std::memory_order_relaxed)) / clock : 0.0},
         {"samples", progress.samples.load(std::memory_order_relaxed)},
         {"state", state},
         {"compute_s", seconds(Duration(progress.compute_ns.load(std::memory_order_relaxed)))},
         {"wait_s", seconds(Duration(progress.wait_ns.load(std::memory_order_relaxed)))}});
  }
  if (const auto waiting = averagings_->waiting()) {
    json names = json::array();
    for (const Rank rank : waiting->missing) names.push_back(rank.value);
    view["waiting"] = {
        {"update", waiting->version.value}, {"missing", names}, {"since_s", seconds(now - waiting->since)}};
  }
  return view;
}

json TrainingJob::status(Instant now) const {
  auto status = view(now);
  if (auto logged = logged_.list(); !logged.empty()) status["logged"] = std::move(logged);
  if (!evaluation_.is_null()) status["evaluation"] = evaluation_;
  return status;
}

}  // namespace paceline::cluster
