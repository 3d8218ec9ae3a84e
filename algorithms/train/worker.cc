#include "paceline/worker.h"

#include "algorithms/train/core.h"
#include "algorithms/train/prefetch.h"

namespace paceline {

void Shared::step(const torch::Tensor& loss, const StepOptions& options) { core_->step(number_, loss, options); }
void Shared::step(const LossClosure& closure, const StepOptions& options) { core_->step(number_, closure, options); }
void Shared::schedule(torch::optim::LRScheduler& scheduler, Advance advance) {
  core_->schedule(number_, scheduler, advance);
}
torch::OrderedDict<std::string, torch::Tensor> Shared::snapshot() const { return core_->snapshot(number_); }

Batches::Batches(std::shared_ptr<train::Core> core, Dataset data, const BatchOptions& options)
    : core_(std::move(core)),
      data_(std::move(data)),
      batch_(options.batch),
      prefetch_(options.prefetch ? std::make_shared<train::Prefetch>(data_) : nullptr) {}

Batch Batches::next() {
  core_->require_body("batches.next");
  std::vector<std::int64_t> indices;
  core_->indices(core_->body_number(), data_.size(), batch_, indices);
  core_->note_drawn(batch_);
  if (!prefetch_) return data_.get(indices);
  std::vector<std::int64_t> following;
  core_->indices(core_->body_number() + 1, data_.size(), batch_, following);
  return prefetch_->get(indices, std::move(following));
}

Sampler::Sampler(std::shared_ptr<train::Core> core, std::int64_t samples) : core_(std::move(core)), samples_(samples) {}
void Sampler::reset(detail::OptionalSize) {}

detail::SampledIndices Sampler::next(std::size_t batch_size) {
  if (static_cast<std::int64_t>(batch_size) != core_->settings().options.batch)
    throw std::invalid_argument("sampler: the data loader takes batches of " + std::to_string(batch_size) +
                                ", but the run's batch is " + std::to_string(core_->settings().options.batch) +
                                ": make it with me.batch()");
  core_->open();
  if (core_->leg() != leg_) following_ = 0;  // Its mini-batches are dealt, and numbered, anew.
  leg_ = core_->leg();
  following_ = std::max(following_, core_->body_number());
  std::vector<std::int64_t> drawn;
  core_->indices(following_++, samples_, static_cast<std::int64_t>(batch_size), drawn);
  return detail::SampledIndices(std::vector<std::size_t>(drawn.begin(), drawn.end()));
}

void Sampler::save(torch::serialize::OutputArchive&) const {
}  // The replica knows the position: it is the body's number.
void Sampler::load(torch::serialize::InputArchive&) {}

Worker::Worker(const train::WorkerStart& start) : core_(std::make_shared<train::Core>(start)) {}
Worker::~Worker() { core_->close(); }

Shared Worker::share(std::shared_ptr<torch::nn::Module> net, torch::optim::Optimizer& optimizer) {
  const std::size_t number = core_->share(std::move(net), optimizer);
  return Shared(core_, number);
}

Batches Worker::batches(Dataset data, const BatchOptions& options) {
  const auto& settings = core_->settings();
  if (options.batch != 0 && options.batch != settings.options.batch) {
    throw std::invalid_argument("batches: " + std::to_string(options.batch) + " samples, but the run's batch is " +
                                std::to_string(settings.options.batch) +
                                ": say it in RunOptions (.batch) or with --batch only");
  }
  if (data.size() < 1) throw std::invalid_argument("batches: the data set is empty");
  core_->set_epoch_samples(data.size());
  return Batches(core_, std::move(data), {.batch = settings.options.batch, .prefetch = options.prefetch});
}

Sampler Worker::sampler(std::int64_t samples) {
  if (samples < 1) throw std::invalid_argument("sampler: the data set is empty");
  core_->set_epoch_samples(samples);
  return Sampler(core_, samples);
}
void Worker::evaluate(std::function<double()> metric) { core_->metric = std::move(metric); }
bool Worker::next() { return core_->next(); }

std::int32_t Worker::rank() const { return core_->start().rank; }
std::int32_t Worker::workers() const { return core_->settings().options.workers; }
std::int32_t Worker::present() const { return core_->present(); }
void Worker::on_view(std::function<void()> f) { core_->on_view = std::move(f); }
std::int64_t Worker::batch() const { return core_->settings().options.batch; }
std::int64_t Worker::update() const { return core_->update(); }
std::int64_t Worker::epoch() const { return core_->epoch(); }

void Worker::log(const std::string& name, double value) {
  core_->with_session([=](paceline_session* session) { paceline_session_log(session, name.c_str(), value); });
}
void Worker::uses_file(const std::string& path) { core_->uses_file(path); }
void Worker::stop(const std::string& reason) {
  core_->with_session([=](paceline_session* session) { paceline_session_stop(session, reason.c_str()); });
}

void Worker::add_state(std::function<std::string()> save, std::function<void(const std::string&)> load) {
  core_->user_states.push_back({std::move(save), std::move(load)});
}

namespace {

/// What the user wrote, without torch's list of addresses.
std::string text_of(const std::exception& error) {
  const auto* const torchs = dynamic_cast<const c10::Error*>(&error);
  return torchs ? torchs->what_without_backtrace() : error.what();
}

}  // namespace

void Worker::fail(const std::string& reason) { core_->fail_job(reason); }

Result<void> train::run_worker(const WorkerStart& start) {
  try {
    Worker me(start);
    try {
      actors::Invocation call{&me, start.arguments, {}, {}, {}};
      if (const auto called = start.call(call); !called) throw std::invalid_argument(called.error().text);
      return {};
    } catch (const Stopped&) {
      throw;
    } catch (const std::exception& error) {
      me.fail("worker " + std::to_string(start.rank) + ": " + text_of(error));
      throw;
    } catch (...) {
      me.fail("worker " + std::to_string(start.rank) + ": an exception that is no std::exception");
      throw;
    }
  } catch (const Stopped& stopped) {
    return paceline::fail(ErrorKind::cancelled, stopped.what());
  } catch (const std::exception& error) {
    return paceline::fail(ErrorKind::internal, text_of(error));
  } catch (...) {
    return paceline::fail(ErrorKind::internal, "an exception that is no std::exception");
  }
}

}  // namespace paceline
