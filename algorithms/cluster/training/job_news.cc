#include "algorithms/cluster/training/job_news.h"

#include "algorithms/job/options.h"
#include "runtime/base/readable.h"
#include "runtime/observe/format.h"

namespace paceline::cluster {
namespace {

constexpr std::size_t kTextMax = std::size_t{1} << 20;  // What scripts say may be of any length.

std::string bounded(const std::string& text) {
  return text.size() <= kTextMax ? text : readable(text.substr(0, kTextMax)) + "...";
}

}  // namespace

void JobNews::memory(double bytes_worker, std::size_t workers) const {
  to_driver_([&](auto event) {
    auto memory = event.initMemory();
    memory.setNode(self_.value);
    memory.setBytesWorker(bytes_worker);
    memory.setBytesNode(bytes_worker * static_cast<double>(workers));
  });
}

void JobNews::started(std::int64_t first, std::int64_t updates) const {
  to_driver_([&](auto event) {
    auto started = event.initStarted();
    started.setNode(self_.value);
    started.setFirst(first);
    started.setUpdates(updates);
  });
}

void JobNews::first_step(Rank worker) const {
  to_driver_([&](auto event) { event.initFirstStep().setWorker(worker.value); });
}

void JobNews::left(Rank worker, const std::string& text, Leaves how) const {
  to_driver_([&](auto event) {
    auto left = event.initLeft();
    left.setWorker(worker.value);
    left.setEnded(how == Leaves::ended_job);
    left.setReturns(how == Leaves::for_a_while);
    left.setDrained(how == Leaves::as_asked);
    left.setWithNode(how == Leaves::with_node);
    left.setText(bounded(text));
  });
}

void JobNews::returned(Rank worker, std::int64_t update, const Cost& cost, const std::string& text) const {
  to_driver_([&](auto event) {
    auto returned = event.initReturned();
    returned.setWorker(worker.value);
    returned.setUpdate(update);
    returned.setAfterS(cost.after_s);
    returned.setBytes(cost.bytes);
    returned.setSamples(cost.samples);
    returned.setText(bounded(text));
  });
}

void JobNews::node_lost(NodeId node, const std::string& text) const {
  to_driver_([&](auto event) {
    auto lost = event.initNodeLost();
    lost.setNode(node.value);
    lost.setText(bounded(text));
  });
}

void JobNews::node_joined(const std::vector<Rank>& places, const std::string& text) const {
  to_driver_([&](auto event) {
    auto joined = event.initNodeJoined();
    joined.setNode(self_.value);
    joined.setLeg(leg_);
    joined.setText(bounded(text));
    auto list = joined.initPlaces(static_cast<unsigned>(places.size()));
    for (unsigned i = 0; i < places.size(); ++i) list.set(i, places[i].value);
  });
}

void JobNews::evaluated(const JobEvaluation::Evaluated& evaluated) const {
  to_driver_([&](auto event) { write(evaluated, event.initEvaluated()); });
}

void JobNews::saved(Rank worker, std::int64_t update) const {
  to_driver_([&](auto event) {
    auto saved = event.initSaved();
    saved.setWorker(worker.value);
    saved.setUpdate(update);
  });
}

void JobNews::metric(Rank worker, std::int64_t update, double clock_s, const std::string& name, double value) const {
  to_driver_([&](auto event) {
    auto metric = event.initMetric();
    metric.setWorker(worker.value);
    metric.setUpdate(update);
    metric.setClockS(clock_s);
    metric.setName(bounded(name));
    metric.setValue(value);
  });
}

void JobNews::ledger(const std::vector<scheduler::Ledger::Row>& epochs) const {
  to_driver_([&](auto event) { write(epochs, self_, leg_, event.initLedger()); });
}

void JobNews::changed(std::int64_t update, const std::string& strategy, double lr_factor, double after_s) const {
  to_driver_([&](auto event) {
    auto changed = event.initChanged();
    changed.setUpdate(update);
    changed.setStrategy(bounded(strategy));
    changed.setLrFactor(lr_factor);
    changed.setAfterS(after_s);
    changed.setText(bounded(observe::format("from update %lld on with %s: its workers were held for %.2f s",
                                            static_cast<long long>(update) + 1,
                                            job::in_words(strategy, lr_factor).c_str(), after_s)));
  });
}

void JobNews::file(const std::string& path, const std::string& hash) const {
  to_driver_([&](auto event) {
    auto file = event.initFile();
    file.setPath(bounded(path));
    file.setHash(hash);
  });
}

void JobNews::final_model(Rank worker, const std::string& hash) const {
  to_driver_([&](auto event) {
    auto model = event.initFinal();
    model.setWorker(worker.value);
    model.setModel(hash);
  });
}

void JobNews::stopping(const std::string& why) const {
  to_driver_([&](auto event) {
    auto stopping = event.initStopping();
    stopping.setNode(self_.value);
    stopping.setText(bounded(why));
  });
}

void JobNews::warning(const std::string& text) const {
  to_driver_([&](auto event) { event.initWarning().setText(bounded(text)); });
}

void JobNews::failed(const std::string& text) const {
  to_driver_([&](auto event) { event.initFailed().setText(bounded(text)); });
}

void JobNews::progress(const std::function<void(wire::Progress::Builder)>& fill) const {
  to_driver_([&](auto event) { fill(event.initProgress()); });
}

void write(const JobEvaluation::Evaluated& evaluated, wire::JobEvent::Evaluated::Builder to) {
  to.setWorker(evaluated.worker.value);
  to.setUpdate(evaluated.update);
  to.setValue(evaluated.value);
  to.setClockS(evaluated.figures.clock_s);
  to.setSamples(evaluated.figures.samples);
  to.setLoss(evaluated.figures.loss);
  to.setBest(evaluated.best);
  to.setReached(evaluated.reached);
}

JobEvaluation::Evaluated evaluated_of(const wire::JobEvent::Evaluated::Reader& from) {
  return {Rank{from.getWorker()}, from.getUpdate(),
          from.getValue(),        {from.getClockS(), from.getSamples(), from.getLoss()},
          from.getBest(),         from.getReached()};
}

void write(const std::vector<scheduler::Ledger::Row>& epochs, NodeId node, std::int32_t leg, wire::Ledger::Builder to) {
  to.setNode(node.value);
  to.setLeg(leg);
  auto list = to.initEpochs(static_cast<unsigned>(epochs.size()));
  for (unsigned i = 0; const auto& row : epochs) {
    auto each = list[i++];
    each.setEpoch(row.epoch);
    each.setCommitted(row.committed);
    each.setAbandoned(row.abandoned);
    each.setSkipped(row.skipped);
    each.setLate(row.late);
    each.setLost(row.lost);
    each.setTwice(row.twice);
    each.setOpen(row.open);
    each.setTail(row.tail);
    each.setSamples(row.samples);
  }
}

std::string why_left(const scheduler::AveragingService::Left& left) {
  const auto update = static_cast<long long>(left.version.value);
  if (left.replayed) return "worker " + to_string(left.rank) + " left here in the run that is replayed: it leaves";
  if (left.silent < left.waited)
    return observe::format(
        "worker %d was waited for at update %lld for %.1f s, longer than patience allows: it leaves, the others go on "
        "without it",
        left.rank.value, update, seconds(left.waited));
  return observe::format(
      "worker %d was silent for %.1f s while the others waited for it at update %lld: it leaves, the others go on "
      "without it",
      left.rank.value, seconds(left.silent), update);
}

}  // namespace paceline::cluster
