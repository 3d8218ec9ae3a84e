#include <unistd.h>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "cli/commands.h"
#include "cli/reproduce/lab.h"
#include "cli/reproduce/study.h"
#include "runtime/base/steady_now.h"
#include "runtime/observe/atomic_file.h"

namespace paceline::cli {

namespace {

namespace fs = std::filesystem;

struct ReproduceFlags {
  std::string paper;
  std::string output = "results";
  bool quick = false;
  bool json = false;
};

struct Paper {
  const char* name;
  reproduce::Study (*study)(const reproduce::Lab&);
};
constexpr Paper kPapers[] = {{"wagma", reproduce::study_wagma},
                             {"adacomm", reproduce::study_adacomm},
                             {"nonblocking", reproduce::study_nonblocking},
                             {"hier-avg", reproduce::study_hier_avg},
                             {"sgp", reproduce::study_sgp}};

/// A line on stderr every two seconds, none for what takes less.
class ClaimsProgress {
 public:
  explicit ClaimsProgress(std::string paper) : paper_(std::move(paper)) {}
  void on_run() {
    ++runs_;
    const Instant now = steady_now();
    if (now - told_ < std::chrono::seconds(2)) return;
    told_ = now;
    std::fprintf(stderr, "%s: %d simulations, %.0f s\n", paper_.c_str(), runs_, seconds(now - started_));
  }

 private:
  std::string paper_;
  int runs_ = 0;
  Instant started_ = steady_now(), told_ = started_;
};

Result<void> write_file(const fs::path& path, const std::string& text) {
  auto file = observe::AtomicFile::create(path);
  if (!file) return fail(ErrorKind::invalid, "-o: " + file.error().text);
  PACELINE_TRY(file->write(text));
  return file->commit();
}

Result<void> reproduce_one(const Paper& paper, const ReproduceFlags& flags) {
  ClaimsProgress progress(paper.name);
  const reproduce::Lab lab(flags.quick, [&progress] { progress.on_run(); });
  const reproduce::Study study = paper.study(lab);
  const fs::path page = fs::path(flags.output) / (study.name + ".md");
  const std::string command = "paceline reproduce " + study.name + (flags.quick ? " --quick" : "");
  PACELINE_TRY(write_file(fs::path(flags.output) / (study.name + ".svg"), reproduce::plot_of(study).svg()));
  PACELINE_TRY(write_file(page, reproduce::page_of(study, command)));
  if (flags.json) {
    std::fputs(reproduce::json_of(study).c_str(), stdout);
    return {};
  }
  for (const reproduce::Claim& claim : study.claims)
    std::printf("%-21s  %s\n", reproduce::in_words(claim.verdict()), claim.text.c_str());
  std::printf("%s\n", page.c_str());
  return {};
}

Result<void> reproduce_papers(const ReproduceFlags& flags) {
  std::error_code failed;
  fs::create_directories(flags.output, failed);
  if (failed) return fail(ErrorKind::invalid, "-o " + flags.output + ": cannot be made: " + failed.message());
  std::string known;
  bool any = false;
  for (const Paper& paper : kPapers) {
    known += std::string(paper.name) + ", ";
    if (flags.paper != "all" && flags.paper != paper.name) continue;
    any = true;
    PACELINE_TRY(reproduce_one(paper, flags));
  }
  if (any) return {};
  return fail(ErrorKind::invalid, "reproduce " + flags.paper + ": there is no such paper; give " + known + "or all");
}

constexpr const char* kClaimsFooter =
    "Closed forms, Monte Carlo and simulations of what the papers claim about time, throughput and agreement of "
    "models,\n"
    "with what does not hold here. The same numbers every time; seeds are 1, 2 and 3. --quick is for tests: a tenth "
    "of\n"
    "the steps, with which claims about learning mean little.\n"
    "\n"
    "Examples:\n"
    "  paceline reproduce adacomm\n"
    "  paceline reproduce all -o docs/results\n";

}  // namespace

Action add_reproduce(Flags app) {
  auto flags = std::make_shared<ReproduceFlags>();
  Flags command = app.command("reproduce", "Check a paper's claims: PAPER.md with a table, and a plot");
  command.add("paper", &flags->paper, "wagma, adacomm, nonblocking, hier-avg, sgp or all")
      .value_name("PAPER")
      .required();
  command.add("-o,--output", &flags->output, "folder for PAPER.md and PAPER.svg").value_name("DIR").shows_default();
  command.add("--quick", &flags->quick, "seconds instead of minutes, with few steps");
  command.add("--json", &flags->json, "print one JSON line a claim");
  command.footer(kClaimsFooter);
  return [flags] {
    const auto done = reproduce_papers(*flags);
    return done ? kDone : report(done.error());
  };
}

}  // namespace paceline::cli
