#include "algorithms/job/job_event_wire.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/base/json.h"
#include "runtime/wire/codec.h"

namespace paceline::job {
namespace {

using nlohmann::json;

TEST(JobEventWire, NamesAreThoseOfTheFileOfEvents) {
  wire::Message message;
  auto event = message.root().initJobEvent();
  event.setNumber(7);
  auto evaluated = event.initEvaluated();
  evaluated.setWorker(1);
  evaluated.setUpdate(20);
  evaluated.setValue(0.5);
  evaluated.setClockS(1.5);
  evaluated.setSamples(640);
  evaluated.setLoss(std::nan(""));
  evaluated.setBest(true);
  EXPECT_EQ(to_json(event.asReader()), (json{{"event", "evaluated"},
                                             {"worker", 1},
                                             {"update", 20},
                                             {"value", 0.5},
                                             {"clock_s", 1.5},
                                             {"samples", 640},
                                             {"loss", nullptr},
                                             {"best", true},
                                             {"reached", false}}));
}

TEST(JobEventWire, ProgressIsOneObjectAndHasWhatIsSet) {
  wire::Message message;
  auto progress = message.root().initJobEvent().initProgress();
  progress.setJob(3);
  progress.setStrategy("wagma");
  const auto as_json = [&] { return to_json(message.root().getJobEvent().asReader()); };
  EXPECT_EQ(as_json(), (json{{"event", "progress"}, {"job", 3}, {"node", 0}, {"strategy", "wagma"}}));
  auto training = progress.initTraining();
  training.setMedianStepS(0.25);
  training.initWorkers(1)[0].setState("wait");
  training.initCounters().initStaleness(2).set(1, 4);
  EXPECT_EQ(as_json().at("median_step_s"), 0.25);
  EXPECT_EQ(as_json().at("workers").at(0).at("state"), "wait");
  EXPECT_EQ(as_json().at("counters").at("staleness"), (json{0, 4}));
  EXPECT_FALSE(as_json().contains("training"));
  EXPECT_FALSE(as_json().contains("waiting"));
  EXPECT_EQ(to_json(progress.asReader()).at("update"), 0);
}

TEST(JobEventWire, DamageIsAnErrorOrAnotherEvent) {
  std::mt19937 random(1);
  int damaged = 0;
  for (int i = 0; i < 2000; ++i) {
    wire::Message message;
    auto training = message.root().initJobEvent().initProgress().initTraining();
    training.initWorkers(3)[1].setState("compute");
    training.initCounters().initStaleness(4);
    auto frame = message.to_frame();
    frame[24 + random() % (frame.size() - 24)] ^= static_cast<std::byte>(1 << random() % 8);
    const auto received = wire::Received::parse(std::move(frame));
    if (!received) continue;
    damaged += !received->visit([](const auto& root) { EXPECT_TRUE(to_json(root.getJobEvent()).is_object()); });
  }
  EXPECT_GT(damaged, 20);
}

TEST(JobEventWire, TextCanAlwaysBeWritten) {
  wire::Message message;
  auto left = message.root().initJobEvent().initLeft();
  left.setText("worker \xff is gone");
  EXPECT_NE(json_text(to_json(message.root().getJobEvent().asReader())).find("is gone"), std::string::npos);
}

}  // namespace
}  // namespace paceline::job
