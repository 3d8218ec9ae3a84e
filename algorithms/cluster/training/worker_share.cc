#include "algorithms/cluster/training/worker_share.h"

#include "algorithms/payloads.h"
#include "algorithms/plan.h"
#include "algorithms/session/job_terms.h"

namespace paceline::cluster {
namespace {

constexpr std::int32_t kOwnPaceBuffers = 4;   // Written; published or sealed; result in progress; evaluated.
constexpr std::int32_t kExchangeBuffers = 3;  // What was published becomes the result.

session::JobTerms terms_of(const JobSettings& settings, Rank rank) {
  const algorithms::Strategy& strategy = settings.strategy;
  const std::int32_t workers = settings.workers();
  const bool own_pace = algorithms::has_own_pace(strategy, workers);
  const bool by_samples = weighs_by_samples(strategy);
  const auto plan = algorithms::make_plan(strategy, workers, std::int64_t{1} << 40);
  session::JobTerms terms;
  terms.workers = workers;
  terms.bodies = strategy.batches;
  terms.next_round = own_pace ? 0 : plan->next_round(Version{0}).value;
  terms.seed = settings.options().seed;
  terms.node = settings.self.value;
  terms.time_limit = from_seconds(settings.options().time_limit_s);
  terms.payloads = algorithms::Payloads::of(strategy);
  terms.loss_window = strategy.tiers.empty() ? 1 : strategy.tiers.back().period.loss_window;
  terms.publishes_every = !own_pace && plan->publishes_every_iteration();
  terms.abandons = plan->round(plan->next_round(Version{0})).late == scheduler::Lateness::abandons;
  terms.own_pace = own_pace;
  terms.shows_start = own_pace || by_samples;
  terms.finishes = strategy.tiers.front().late == scheduler::Lateness::finishes;
  terms.steps_apart = strategy.code_parity;
  terms.accumulates = strategy.tiers.front().late == scheduler::Lateness::accumulates;
  terms.weighs_by_samples = by_samples;
  terms.rotate_shards = strategy.rotate_shards;
  terms.reset_momentum = strategy.outer.clears_momentum();
  terms.lr_factor = settings.options().lr_factor;
  terms.lr_may_decay = workers == 1 || plan->lr_may_decay();
  if (!by_samples && !exchanges(strategy)) terms.outer = strategy.outer;
  if (const auto& directory = settings.options().run_directory; !directory.empty())
    terms.trace = directory + "/worker-" + to_string(rank) + trace_suffix(settings);
  terms.job = settings.named().value;
  terms.first_update = settings.first;
  terms.place = settings.place;
  return terms;
}

}  // namespace

Result<void> check_model(const algorithms::Strategy& strategy, const SharedModel& model) {
  const auto refuse = [](const char* why) { return fail(ErrorKind::invalid, why); };
  if (model.outer_elements > model.elements) return refuse("its model has more parameters than elements");
  if (model.elements == 0) return refuse("the model has no trainable parameters");
  if ((strategy.outer.kind != algorithms::Outer::Kind::none || strategy.code_parity) &&
      model.dtype > static_cast<std::uint8_t>(memory::Dtype::f64))
    return refuse("block momentum and other outer steps, and parity=code, work on float32 and float64 parameters");
  if (model.dtype > static_cast<std::uint8_t>(memory::Dtype::f16)) return refuse("unknown type of parameters");
  return {};
}

std::string trace_suffix(const JobSettings& settings) {
  return (settings.leg > 0 ? "-leg-" + std::to_string(settings.leg) : "") + ".trace";
}

bool exchanges(const algorithms::Strategy& strategy) {
  return algorithms::coordination(strategy) == algorithms::Coordination::exchanges;
}

bool weighs_by_samples(const algorithms::Strategy& strategy) { return strategy.tiers.back().weighs_by_samples; }

Result<void> WorkerShare::make() {
  auto made = memory::Window::create(layout);
  if (!made) return tl::unexpected(made.error());
  window.emplace(std::move(*made));
  auto& progress = window->progress();
  progress.samples.store(worked.samples, std::memory_order_relaxed);
  progress.compute_ns.store(worked.compute_ns, std::memory_order_relaxed);
  progress.wait_ns.store(worked.wait_ns, std::memory_order_relaxed);
  return make_control();
}

Result<void> WorkerShare::make_control() {
  auto page = memory::ControlPage::create();
  if (!page) return tl::unexpected(page.error());
  control.emplace(std::move(*page));
  if (waits_for_turn) control->words().may_publish.store(INT64_MIN, std::memory_order_release);
  auto descriptor = control->read_only_fd();
  if (!descriptor) return tl::unexpected(descriptor.error());
  read_only = *std::move(descriptor);
  return {};
}

WorkerShare share_of(const JobSettings& settings, Rank rank, const SharedModel& model) {
  const algorithms::Strategy& strategy = settings.strategy;
  const auto buffers = exchanges(strategy) ? kExchangeBuffers
                       : algorithms::has_own_pace(strategy, settings.workers())
                           ? kOwnPaceBuffers
                           : algorithms::make_plan(strategy, settings.workers(), 1)->buffers();
  session::JobTerms terms = terms_of(settings, rank);
  terms.buffers = buffers;
  WorkerShare share{.layout = {model.elements, static_cast<memory::Dtype>(model.dtype), buffers},
                    .outer_elements = model.outer_elements,
                    .waits_for_turn = !settings.options().replay.empty(),
                    .terms = std::move(terms)};
  if (const auto worked = settings.worked.find(rank); worked != settings.worked.end()) share.worked = worked->second;
  return share;
}

}  // namespace paceline::cluster
