#include "algorithms/train/train_worker.h"

#include <stdexcept>

#include "actors/worker/worker_main.h"
#include "algorithms/train/worker_main.h"

namespace paceline::train {

void TrainWorker::run(actors::FunctionRef function, std::uint64_t job, std::int32_t rank, std::string options) {
  const auto address = actors::resolve(function);
  if (!address) throw std::runtime_error(address.error().text);
  const auto& here = worker::current();
  const WorkerStart start{here.agent_address, here.worker.value, here.agent_socket, job, rank, std::move(options)};
  const auto done = run_worker(reinterpret_cast<void (*)(Worker&)>(*address), start);
  if (!done && done.error().kind != ErrorKind::cancelled) throw std::runtime_error(done.error().text);
}

}  // namespace paceline::train
