#include "algorithms/simulate/job_json.h"

#include <gmock/gmock.h>

#include "runtime/base/json.h"

namespace paceline::simulate {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

json good() {
  return json::parse(R"({"problem": {"kind": "least_squares", "workers": [{"a": [1, 2], "c": [0, 4]},
                                                                          {"a": [1, 1], "c": [1, 1]}]},
                         "start": [0, 0.5], "strategy": "allreduce", "lr": 0.25, "steps": 3, "compute_s": [[1, 2]]})");
}

std::string error_of(const std::string& text) {
  const auto job = read_job(text);
  EXPECT_FALSE(job) << "accepted: " << text;
  if (job) return "";
  EXPECT_EQ(job.error().kind, ErrorKind::invalid);
  EXPECT_THAT(job.error().text, Not(HasSubstr("\n")));
  return job.error().text;
}
/// The good job with one member (a JSON pointer) replaced.
std::string error_with(const char* pointer, const char* value) {
  json job = good();
  job[json::json_pointer(pointer)] = json::parse(value);
  return error_of(json_text(job));
}

TEST(ReadJob, TakesWhatTheContractSays) {
  json given = good();
  given["momentum"] = 0.9;
  given["nesterov"] = true;
  given["network"] = {{"latency_s", 0.001}, {"bandwidth_Bps", 1e9}};
  given["seed"] = 18446744073709551615u;
  const auto job = read_job(json_text(given));
  ASSERT_TRUE(job) << job.error().text;
  EXPECT_EQ(job->problem->workers(), 2);
  EXPECT_EQ(job->problem->gradient(Rank{0}, Version{0}, {0, 0}).first, (Vector{0, -8}));
  EXPECT_EQ(job->start, (std::vector<Vector>{{0, 0.5}}));
  EXPECT_EQ(job->strategy, "allreduce");
  EXPECT_EQ(job->lr, 0.25);
  EXPECT_EQ(job->momentum, 0.9);
  EXPECT_TRUE(job->nesterov);
  EXPECT_EQ(job->steps, 3);
  EXPECT_EQ(job->compute_s, (std::vector<Vector>{{1, 2}}));
  EXPECT_EQ(job->latency_s, 0.001);
  EXPECT_EQ(job->bandwidth_Bps, 1e9);
  EXPECT_EQ(job->seed, 18446744073709551615u);
}

TEST(ReadJob, TakesWhoLeavesAndJoins) {
  json given = good();
  given["views"] = {{{"after", -1}, {"leave", {1}}}, {{"after", 1}, {"join", {1}}}};
  const auto job = read_job(json_text(given));
  ASSERT_TRUE(job) << job.error().text;
  ASSERT_EQ(job->views.size(), 2u);
  EXPECT_EQ(job->views[0].leave, std::vector<Rank>{Rank{1}});
  EXPECT_EQ(job->views[1].after, Version{1});
  EXPECT_EQ(job->views[1].join, std::vector<Rank>{Rank{1}});
  const auto outcome = simulate(*job);
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(outcome->rows.size(), 4u) << "two of worker 0 alone, then one of each";

  EXPECT_EQ(error_with("/views", "{}"),
            R"(views: an object; give a list of objects {"after": 3, "leave": [1], "join": [2]}, at least one)");
  EXPECT_EQ(error_with("/views", R"([{"leave": [1]}])"), "views[0].after: is missing");
  EXPECT_EQ(error_with("/views", R"([{"after": 1, "leave": [2]}])"),
            "views[0].leave[0]: 2; give a whole number from 0 to 1");
  EXPECT_THAT(error_with("/views", R"([{"after": 1, "leaves": [1]}])"), HasSubstr("did you mean 'leave'?"));
}

TEST(ReadJob, TakesAStartForEachWorker) {
  json given = good();
  given["start"] = {{0, 1}, {2, 3}};
  given["strategy"] = "local-sgd";
  const auto job = read_job(json_text(given));
  ASSERT_TRUE(job) << job.error().text;
  EXPECT_EQ(job->start, (std::vector<Vector>{{0, 1}, {2, 3}}));
}

TEST(ReadJob, TakesTheOtherProblems) {
  json given = good();
  given["problem"]["kind"] = "quadratic_noise";
  given["problem"]["noise"] = 0.5;
  const auto noisy = read_job(json_text(given));
  ASSERT_TRUE(noisy) << noisy.error().text;
  EXPECT_EQ(noisy->problem->dimensions(), 2u);
  given["problem"] = {{"kind", "softmax"}, {"workers", 2}, {"classes", 2}, {"features", 1}, {"samples", 4}};
  given["start"] = {0, 0, 0, 0};
  const auto softmax = read_job(json_text(given));
  ASSERT_TRUE(softmax) << softmax.error().text;
  EXPECT_EQ(softmax->problem->workers(), 2);
}

TEST(ReadJob, NamesTheFieldByItsPath) {
  EXPECT_EQ(error_with("/problem/workers/1/a/1", "\"x\""),
            "problem.workers[1].a[1]: \"x\"; give a number from -1e+100 to 1e+100");
  EXPECT_THAT(error_with("/problem/workers/1/c", "[1]"), StartsWith("problem.workers[1].c: has 1 numbers; give 2"));
  EXPECT_THAT(error_with("/problem/workers", "[]"), StartsWith("problem.workers: a list of 0"));
  EXPECT_THAT(error_with("/problem/kind", "\"cubic\""),
              AllOf(StartsWith("problem.kind: \"cubic\""), HasSubstr("softmax")));
  EXPECT_THAT(error_with("/start", "[1]"), StartsWith("start: has 1 numbers; give 2"));
  EXPECT_THAT(error_with("/start", "[[1, 2], [1, 2], [1, 2]]"), StartsWith("start: has 3 vectors"));
  EXPECT_THAT(error_with("/compute_s", "[[1, 1], [1]]"), StartsWith("compute_s[1]: has 1 numbers; give 2"));
  EXPECT_THAT(error_with("/compute_s", "[[1, -1]]"), StartsWith("compute_s[0][1]: -1; give a number from 1e-09"));
  EXPECT_THAT(error_with("/compute_s", "[[1, 0]]"), StartsWith("compute_s[0][1]: 0;"));
  EXPECT_THAT(error_with("/lr", "-0.1"), StartsWith("lr: -0.1;"));
  EXPECT_THAT(error_with("/lr", "null"), StartsWith("lr: null;"));
  EXPECT_THAT(error_with("/momentum", "1"), StartsWith("momentum: 1; give a number from 0 to below 1"));
  EXPECT_THAT(error_with("/nesterov", "1"), StartsWith("nesterov: 1; give true or false"));
  EXPECT_THAT(error_with("/steps", "0"), StartsWith("steps: 0; give a whole number from 1"));
  EXPECT_THAT(error_with("/steps", "2.5"), StartsWith("steps: 2.5;"));
  EXPECT_THAT(error_with("/steps", "18446744073709551615"), StartsWith("steps: 18446744073709551615;"));
  EXPECT_THAT(error_with("/seed", "-1"), StartsWith("seed: -1;"));
  EXPECT_THAT(error_with("/network", "{\"latency_s\": -1}"), StartsWith("network.latency_s: -1;"));
  EXPECT_THAT(error_with("/strategy", "\"allredcue\""), AllOf(StartsWith("strategy: "), HasSubstr("allreduce")));
  EXPECT_THAT(error_with("/problem/workers/0/a/0", "1e101"), HasSubstr("to 1e+100"));
}

TEST(ReadJob, NamesFieldsThatAreMissingOrUnknown) {
  for (const char* name : {"problem", "start", "strategy", "lr", "steps", "compute_s"}) {
    json job = good();
    job.erase(name);
    EXPECT_EQ(error_of(json_text(job)), std::string(name) + ": is missing");
  }
  EXPECT_EQ(error_with("/stepz", "1"), "stepz: unknown field; did you mean 'steps'?");
  EXPECT_THAT(error_with("/problem/noise", "1"), StartsWith("problem.noise: unknown field"));
  EXPECT_THAT(error_with("/problem/workers/1/b", "1"),
              StartsWith("problem.workers[1].b: unknown field; known are a, c"));
  EXPECT_THAT(error_of("[]"), StartsWith("the file: a list of 0; give an object"));
  EXPECT_THAT(error_with("/a\nb", "1"), StartsWith("a?b: unknown field"));
  EXPECT_THAT(error_with("/strategy", "\"all\\nreduce\""), StartsWith("strategy: "));
}

TEST(ReadJob, SaysWhereTheTextIsMalformed) {
  EXPECT_THAT(error_of("{\"lr\": 1,\n \"steps\": }"), StartsWith("malformed JSON at line 2, column 11: "));
  EXPECT_THAT(error_of(""), HasSubstr("line 1, column 1"));
  EXPECT_THAT(error_of("{\"lr\": NaN}"), HasSubstr("line 1, column 8"));
  EXPECT_THAT(error_of("// one\n{}"), HasSubstr("line 1, column 1"));
  EXPECT_THAT(error_of("{} {}"), HasSubstr("line 1, column 4"));
  EXPECT_THAT(error_of("{\"\xff\": 1}"), HasSubstr("line 1"));
  EXPECT_THAT(error_of(std::string(100'000, '[')), HasSubstr("nested deeper"));
}

TEST(ReadJob, NamesNumbersThatAreTooLargeAndMembersThatAreThereTwice) {
  EXPECT_THAT(error_of("{\"problem\": {\"workers\": [{\"a\": [1, 1e999]}]}}"),
              StartsWith("problem.workers[0].a[1]: 1e999 is too large"));
  EXPECT_THAT(error_of("{\"lr\": 1, \"lr\": 2}"), StartsWith("lr: is there twice"));
}

}  // namespace
}  // namespace paceline::simulate
