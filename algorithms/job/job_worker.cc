#include "algorithms/job/job_worker.h"

#include <stdexcept>
#include <utility>

#include "actors/worker/worker_main.h"
#include "algorithms/job/worker_start.h"

namespace paceline::job {
namespace {

template <class Function>
Function function_of(const actors::FunctionRef& name) {
  const auto address = actors::resolve(name);
  if (!address) throw std::runtime_error(address.error().text);
  return reinterpret_cast<Function>(*address);
}

}  // namespace

void JobWorker::run(actors::FunctionRef main, actors::FunctionRef call, std::vector<Bytes> arguments, std::uint64_t job,
                    std::int32_t rank, std::string options) {
  const auto run_worker = function_of<WorkerMain>(main);
  const auto& here = worker::current();
  const WorkerStart start{here.agent_address,
                          here.worker.value,
                          here.agent,
                          job,
                          rank,
                          std::move(options),
                          call.build.empty() ? nullptr : function_of<actors::Thunk>(call),
                          std::move(arguments)};
  const auto done = run_worker(start);
  if (!done && done.error().kind != ErrorKind::cancelled) throw std::runtime_error(done.error().text);
}

}  // namespace paceline::job
