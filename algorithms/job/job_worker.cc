#include "algorithms/job/job_worker.h"

#include <stdexcept>

#include "actors/worker/worker_main.h"
#include "algorithms/job/worker_start.h"

namespace paceline::job {

void JobWorker::run(actors::FunctionRef main, actors::FunctionRef function, std::uint64_t job, std::int32_t rank,
                    std::string options) {
  const auto main_address = actors::resolve(main);
  if (!main_address) throw std::runtime_error(main_address.error().text);
  const auto function_address = actors::resolve(function);
  if (!function_address) throw std::runtime_error(function_address.error().text);
  const auto& here = worker::current();
  const WorkerStart start{here.agent_address, here.worker.value, here.agent_socket, job, rank, std::move(options)};
  const auto run_worker = reinterpret_cast<WorkerMain>(*main_address);
  const auto done = run_worker(reinterpret_cast<void (*)()>(*function_address), start);
  if (!done && done.error().kind != ErrorKind::cancelled) throw std::runtime_error(done.error().text);
}

}  // namespace paceline::job
