#include "cli/fitness.h"

#include <gtest/gtest.h>

#include <functional>

namespace paceline::cli {
namespace {

using Verdict = Finding::Verdict;

Machine good() {
  Machine machine;
  machine.cores = 4;
  machine.memory = 8ULL << 30;
  machine.disk = 9ULL << 30;
  machine.descriptors = 4096;
  machine.shared_huge_pages = "advise";
  machine.compiler = "/usr/bin/g++";
  machine.compiler_found = true;
  machine.libtorch = "1.13.0";
  return machine;
}

Finding of(const Machine& machine, const std::string& what) {
  for (auto& finding : findings_of(machine))
    if (finding.what == what) return finding;
  return {"there is no " + what, "", Verdict::good, ""};
}

TEST(FitnessTest, AGoodMachineIsGoodThroughout) {
  for (const auto& finding : findings_of(good())) EXPECT_EQ(finding.verdict, Verdict::good) << finding.what;
  EXPECT_EQ(of(good(), "memory").value, "8.0 GiB available");
  EXPECT_EQ(of(good(), "cores").mend, "workers up to 4 have a core each");
}

TEST(FitnessTest, WhatIsMissingIsNamedWithItsMend) {
  struct Case {
    const char* what;
    Verdict verdict;
    const char* text;
    std::function<void(Machine&)> change;
  };
  const std::vector<Case> cases = {
      {"cores", Verdict::slow, "other programs", [](Machine& m) { m.load = 3; }},
      {"memory", Verdict::bad, "compiling", [](Machine& m) { m.memory = 1ULL << 30; }},
      {"disk", Verdict::bad, "--run-dir", [](Machine& m) { m.disk = 1; }},
      {"descriptors", Verdict::bad, "ulimit", [](Machine& m) { m.descriptors = 128; }},
      {"descriptors", Verdict::slow, "ulimit", [](Machine& m) { m.descriptors = 256; }},
      {"compiler", Verdict::bad, "g++", [](Machine& m) { m.compiler_found = false; }},
      {"libtorch", Verdict::slow, "openblas", [](Machine& m) { m.system_libtorch_without_openblas = true; }},
      {"GPU", Verdict::good, "not used yet", [](Machine& m) { m.gpu = true; }},
  };
  for (const auto& [what, verdict, text, change] : cases) {
    Machine machine = good();
    change(machine);
    const Finding finding = of(machine, what);
    EXPECT_EQ(finding.verdict, verdict) << what;
    EXPECT_NE(finding.mend.find(text), std::string::npos) << what << ": " << finding.mend;
  }
  Machine machine = good();
  machine.runtime_folder = fail(ErrorKind::invalid, "not yours");
  EXPECT_EQ(of(machine, "runtime folder").verdict, Verdict::bad);
  EXPECT_EQ(of(machine, "runtime folder").value, "not yours");
}

TEST(FitnessTest, AContainersLimitCounts) {
  Machine machine = good();
  machine.core_limit = 1.5;
  machine.load = 1;
  EXPECT_EQ(of(machine, "cores").value, "4, of which the container may use 1.5, and 1.0 processes want one");
  EXPECT_EQ(of(machine, "cores").verdict, Verdict::slow);
}

}  // namespace
}  // namespace paceline::cli
