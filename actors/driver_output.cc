#include "actors/driver_output.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include "actors/process_client.h"
#include "runtime/base/json.h"
#include "runtime/observe/run_directory.h"

namespace paceline::actors {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuns = "runs";
constexpr Duration kFinishPatience = std::chrono::seconds(1);

/// As `paceline run` says; empty: this driver was started otherwise.
std::string given_run_directory() {
  const auto path = environment("PACELINE_RUN");
  if (path.empty()) return {};
  std::ifstream file(path);
  const auto run = parse_json(std::string(std::istreambuf_iterator<char>(file), {}));
  return run.is_object() ? run.value("run_directory", "") : std::string();
}

}  // namespace

bool shows_output() { return environment("PACELINE_OUTPUT") != "off"; }

void set_logs(Executable& executable) {
  std::error_code gone;
  const auto given = given_run_directory();
  const auto here = fs::current_path(gone);
  if (gone) return;
  const auto runs = here / kRuns;
  fs::path directory = given;
  if (given.empty()) {
    const auto made_in = fs::exists(runs, gone) ? runs : here;
    if (::access(made_in.c_str(), W_OK | X_OK) != 0) return;
    const std::string name = fs::path(executable.path).stem().string() + "-" + std::to_string(::getpid());
    directory = observe::RunDirectory::path_for(runs.string(), name, std::chrono::system_clock::now());
  }
  executable.logs = observe::RunDirectory::at(fs::absolute(directory, gone).string()).logs();
  executable.logs_if_printed = true;
}

struct DriverOutput::Way {
  std::mutex mutex;
  std::shared_ptr<Outbox> outbox;
};

DriverOutput::DriverOutput(Client& client) : client_(&client), way_(std::make_shared<Way>()) {
  if (client.executable().driver.empty()) return;
  printer_ = std::make_shared<OutputPrinter>(STDERR_FILENO, [way = way_](NodeId node, std::uint32_t n) {
    OutputWanted shown;
    shown.node = node;
    shown.bytes = n;
    std::lock_guard lock(way->mutex);
    way->outbox->push_anyway(encode(shown));
  });
  change(client);
}

void DriverOutput::change(Client& client) {
  client_ = &client;
  if (!printer_) return;
  {
    std::lock_guard lock(way_->mutex);
    way_->outbox = client.outbox();
  }
  client.on_other([printer = printer_](const wire::Received& received, std::vector<transport::Frame>&) {
    (void)received.visit([&](wire::Envelope::Reader root) {
      if (root.isOutput()) printer->show(decode(root.getOutput()));
    });
  });
}

void DriverOutput::finish() {
  if (ask_for_all()) (void)printer_->wait_for_all(kFinishPatience);
}

void DriverOutput::divert(bool diverted) {
  if (printer_) printer_->divert(diverted);
}

std::optional<Output> DriverOutput::take(Duration timeout) { return printer_ ? printer_->take(timeout) : std::nullopt; }

void DriverOutput::on_taken_shown(const Output& output) { printer_->on_taken_shown(output); }

bool DriverOutput::ask_for_all() {
  if (!printer_) return false;
  printer_->expect_all();
  OutputWanted all;
  all.all = true;
  return client_->post(encode(all)).has_value();
}

}  // namespace paceline::actors
