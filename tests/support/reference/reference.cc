#include "tests/support/reference/reference.h"

#include <utility>

#include "tests/support/reference/internal.h"

namespace paceline::reference {
namespace {

void execute(Run& run) {
  switch (run.strategy.kind) {
    case Kind::allreduce: run_shared(run); break;
    case Kind::local_sgd:
    case Kind::post_local: run.job.views.empty() ? run_wait_avoiding(run) : run_views(run); break;
    case Kind::tiers:
    case Kind::wagma: run_wait_avoiding(run); break;
    case Kind::adacomm:
    case Kind::qsr: run_adaptive(run); break;
    case Kind::nonblocking: run_nonblocking(run); break;
    case Kind::hier_avg: run_hier_avg(run); break;
    case Kind::d_psgd:
    case Kind::matcha: run_gossip(run); break;
    case Kind::sgp: run_sgp(run); break;
    case Kind::osgp: run_osgp(run); break;
    case Kind::eager_sgd: run_eager(run); break;
    case Kind::server: run.strategy.server == Strategy::Server::sync ? run_shared(run) : run_server(run); break;
    case Kind::bmuf:
    case Kind::slowmo:
    case Kind::diloco: run_outer(run); break;
    case Kind::ad_psgd: run_ad_psgd(run); break;
    case Kind::decoupled_diloco: run_decoupled(run); break;
    case Kind::streaming_diloco:
    case Kind::noloco: run_exchanges(run); break;
  }
  run.sort();
}

}  // namespace

std::vector<Row> run(const Job& job) {
  Run state(job);
  execute(state);
  return std::move(state.rows);
}

Summary summarise(const Job& job) {
  Run state(job);
  execute(state);
  Summary summary{.model = divided(sum_of(state.models), static_cast<double>(state.models.size())),
                  .wait_s = std::vector<double>(job.workers.size()),
                  .messages = state.messages,
                  .bytes = state.bytes};
  for (const Row& row : state.rows) {
    const auto i = static_cast<std::size_t>(row.worker);
    summary.wait_s[i] = row.time_s - static_cast<double>(state.computed[i]) * 1e-9;
    summary.virtual_s = row.time_s;
  }
  return summary;
}

Job t4(Strategy strategy, int steps) {
  Job job;
  const double a[] = {1, 2, 1, 2}, c[] = {0, 4, 8, 12};
  for (int i = 0; i < 4; ++i) {
    job.workers.push_back({{a[i]}, {c[i]}});
    job.start.push_back({0});
  }
  job.strategy = std::move(strategy);
  job.steps = steps;
  job.compute_s = {{1, 1, 1, 1}};
  return job;
}

}  // namespace paceline::reference
