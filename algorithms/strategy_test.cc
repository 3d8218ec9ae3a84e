#include "algorithms/strategy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "algorithms/presets.h"

namespace paceline::algorithms {
namespace {

using namespace std::chrono_literals;

Strategy parsed(std::string_view text, std::int32_t workers = 4) {
  auto strategy = parse_strategy(text, workers);
  EXPECT_TRUE(strategy) << (strategy ? "" : strategy.error().text);
  return strategy.value_or(Strategy{});
}

std::string error(std::string_view text, std::int32_t workers = 4) {
  const auto strategy = parse_strategy(text, workers);
  if (strategy) return "no error";
  EXPECT_EQ(strategy.error().kind, ErrorKind::invalid);
  EXPECT_EQ(strategy.error().text.find('\n'), std::string::npos);
  return strategy.error().text;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(OptimizerStateOptionTest, IsForStrategiesThatAverageModels) {
  for (const char* state : {"", "keep", "reset", "average"}) {
    for (const char* name : {"local-sgd", "wagma", "bmuf", "post-local", "hier-avg"})
      EXPECT_TRUE(check_optimizer_state(parsed(name), state)) << name << " " << state;
  }
  for (const char* name : {"allreduce", "nonblocking", "server(sync)"}) {
    EXPECT_TRUE(check_optimizer_state(parsed(name), "keep"));
    const auto refused = check_optimizer_state(parsed(name), "average");
    ASSERT_FALSE(refused) << name;
    EXPECT_TRUE(has(refused.error().text, "no meaning under " + std::string(name)));
  }
  EXPECT_FALSE(check_optimizer_state(parsed("sgp"), "average"));
  EXPECT_TRUE(check_optimizer_state(parsed("sgp"), "reset"));
  for (const char* state : {"keep", "average"}) EXPECT_TRUE(check_optimizer_state(parsed("streaming-diloco"), state));
  EXPECT_TRUE(has(check_optimizer_state(parsed("streaming-diloco"), "reset").error().text, "a part of the model"));
  EXPECT_TRUE(check_optimizer_state(parsed("streaming-diloco(fragments=1)"), "reset"));
  EXPECT_TRUE(check_optimizer_state(parsed("noloco"), "reset"));
  EXPECT_TRUE(has(check_optimizer_state(parsed("wagma"), "mean").error().text, "keep, reset or average"));
}

TEST(Strategy, LearningRatesFollowWhoIsThereWhereThereAreAveragesOfAll) {
  for (const char* name : {"allreduce", "local-sgd", "wagma", "nonblocking(batches=2)", "slowmo"})
    EXPECT_TRUE(check_lr_scaling(parsed(name), 4, "linear")) << name;
  for (const char* name : {"d-psgd(ring)", "sgp", "ad-psgd(bipartite)", "server(async)", "noloco", "hier-avg"}) {
    EXPECT_TRUE(check_lr_scaling(parsed(name), 4, "none")) << name;
    const auto refused = check_lr_scaling(parsed(name), 4, "sqrt");
    ASSERT_FALSE(refused) << name;
    EXPECT_TRUE(has(refused.error().text, "lr-scaling sqrt has no meaning under")) << refused.error().text;
  }
}

TEST(Strategy, AParameterOfATextIsAnotherOrOneMore) {
  EXPECT_EQ(with_parameter("local-sgd( period = 4 )", "period", "8"), "local-sgd(period=8)");
  EXPECT_EQ(with_parameter("wagma", "grace", "2x"), "wagma(grace=2x)");
  EXPECT_EQ(with_parameter("nonblocking(d-psgd(ring),batches=2)", "patience", "3s"),
            "nonblocking(d-psgd(ring),batches=2,patience=3s)");
  for (const auto& [text, value] : {std::pair("local-sgd(period=4", "8"), {"local-sgd", "8)"}, {"local-sgd", ""}})
    EXPECT_FALSE(with_parameter(text, "period", value)) << text << value;
}

TEST(PresetTest, AllreduceIsOneTierOfGradients) {
  const auto sut = parsed("allreduce");
  ASSERT_EQ(sut.tiers.size(), 1u);
  EXPECT_EQ(sut.tiers[0].payload, Payload::gradients);
  EXPECT_EQ(sut.tiers[0].period.steps, 1);
  EXPECT_EQ(sut.tiers[0].trigger, Trigger::all_arrived);
  EXPECT_EQ(sut.tiers[0].late, Lateness::waits);
  EXPECT_EQ(sut.batches, 1);
  EXPECT_FALSE(sut.rotate_shards);
}

TEST(PresetTest, LocalSgdAveragesModelsEveryPeriod) {
  EXPECT_EQ(parsed("local-sgd").tiers.at(0).period.steps, 8);
  EXPECT_EQ(parsed("local-sgd").tiers.at(0).late, Lateness::waits);
  const auto sut = parsed("local-sgd(period=3,late=skip,grace=1.5x)").tiers.at(0);
  EXPECT_EQ(sut.payload, Payload::models);
  EXPECT_EQ(sut.period.steps, 3);
  EXPECT_EQ(sut.late, Lateness::skips);
  EXPECT_EQ(sut.grace->median_steps, 1.5);
  EXPECT_EQ(sut.grace->fixed, Duration::zero());
  EXPECT_EQ(parsed("local-sgd(period=run)").tiers.at(0).period.kind, Period::Kind::whole_run);
}

TEST(PresetTest, WagmaIsTwoTiersWithThePapersDefaults) {
  const auto sut = parsed("wagma", 64);
  ASSERT_EQ(sut.tiers.size(), 2u);
  EXPECT_EQ(sut.tiers[0].groups.kind, Groups::Kind::butterfly);
  EXPECT_EQ(sut.tiers[0].groups.size, 8);
  EXPECT_EQ(sut.tiers[0].trigger, Trigger::first_arrived);
  EXPECT_EQ(sut.tiers[0].late, Lateness::merges);
  EXPECT_EQ(sut.tiers[1].groups.kind, Groups::Kind::all);
  EXPECT_EQ(sut.tiers[1].period.steps, 10);
  EXPECT_EQ(sut.tiers[1].trigger, Trigger::all_arrived);
  EXPECT_EQ(sut.tiers[1].late, Lateness::waits);
  EXPECT_FALSE(sut.tiers[1].grace);
}

TEST(PresetTest, WagmaMaySkipAndLimitItsWaiting) {
  const auto sut = parsed("wagma(group=2,sync=20,late=skip,grace=2s)");
  EXPECT_EQ(sut.name, "wagma(group=2,sync=20,late=skip,grace=2s)");
  EXPECT_EQ(sut.tiers[0].groups.size, 2);
  EXPECT_EQ(sut.tiers[0].late, Lateness::skips);
  EXPECT_EQ(sut.tiers[1].late, Lateness::skips);
  EXPECT_EQ(sut.tiers[1].grace->fixed, Duration(2s));
  EXPECT_EQ(parsed("wagma(grace=500ms)").tiers[1].late, Lateness::merges);
}

TEST(PresetTest, DecoupledDilocoWaitsForAQuorumAndAGrace) {
  const auto sut = parsed("decoupled-diloco(period=20)", 5);
  const Tier& tier = sut.tiers.at(0);
  EXPECT_EQ(tier.period.steps, 20);
  EXPECT_EQ(tier.trigger, Trigger::quorum);
  EXPECT_EQ(tier.quorum, 3);
  EXPECT_EQ(tier.late, Lateness::skips);
  EXPECT_EQ(tier.grace->median_spreads, 1.5);
  EXPECT_EQ(tier.grace->median_steps, 0);
  EXPECT_TRUE(tier.weighs_by_samples);
  EXPECT_EQ(sut.outer.kind, Outer::Kind::diloco);
  EXPECT_FALSE(parsed("decoupled-diloco(grace=none)").tiers.at(0).grace);
  EXPECT_EQ(parsed("decoupled-diloco(grace=2s,quorum=1)").tiers.at(0).grace->fixed, Duration(2s));
  EXPECT_TRUE(has(error("decoupled-diloco(quorum=5)"), "quorum=5 is more than the 4 workers"));
  EXPECT_TRUE(has(error("decoupled-diloco(grace=0x)"), "multiple of the median time from the first arrival to the"));
}

TEST(PresetTest, StreamingDilocoAndNolocoExchange) {
  const auto streaming = parsed("streaming-diloco(period=12,fragments=3,delay=2,alpha=0.25)");
  EXPECT_EQ(coordination(streaming), Coordination::exchanges);
  EXPECT_EQ(streaming.tiers.at(0).fragments, 3);
  EXPECT_EQ(streaming.tiers[0].delay, 2);
  EXPECT_EQ(streaming.tiers[0].keeps, 0.25);
  EXPECT_TRUE(has(error("streaming-diloco(period=10)"), "fragments=4 does not divide period=10"));
  EXPECT_TRUE(has(error("streaming-diloco(period=8,delay=2)"), "delay=2 is not below period/fragments=2"));
  const auto noloco = parsed("noloco", 7);
  EXPECT_EQ(coordination(noloco), Coordination::exchanges);
  EXPECT_EQ(noloco.tiers.at(0).period.steps, 50);
  EXPECT_EQ(noloco.outer.pull, 0.7);
}

TEST(PresetTest, WagmasSyncMayAdapt) {
  const auto sut = parsed("wagma(sync=adacomm(period=30,interval=2s),grouping=strided)");
  EXPECT_EQ(sut.tiers.at(1).period.kind, Period::Kind::adacomm);
  EXPECT_EQ(sut.tiers[1].period.steps, 30);
  EXPECT_EQ(sut.tiers[1].period.interval_s, 2);
  EXPECT_EQ(sut.tiers[0].period.kind, Period::Kind::every);
  EXPECT_EQ(parsed("wagma(sync=qsr)").tiers.at(1).period.kind, Period::Kind::qsr);
  EXPECT_TRUE(has(error("wagma(sync=local-sgd(period=3))"), "sync=local-sgd(..) has no period that adapts"));
  EXPECT_TRUE(has(error("wagma(sync=adacomm(block_momentum=0.5))"), "gives its period only"));
  EXPECT_TRUE(has(error("wagma(sync=adacomm(gamma=2))"), "gamma is a number above 0 and below 1"));
}

TEST(PresetTest, AdacommTakesEveryParameter) {
  const auto sut = parsed(
      "adacomm(period=30,interval=500ms,gamma=0.25,slack=2,loss_window=7,block_momentum=0.3,reset_on_lr_change=yes)");
  const Period& period = sut.tiers.at(0).period;
  EXPECT_EQ(period.kind, Period::Kind::adacomm);
  EXPECT_EQ(period.steps, 30);
  EXPECT_EQ(period.interval_s, 0.5);
  EXPECT_EQ(period.gamma, 0.25);
  EXPECT_EQ(period.slack, 2);
  EXPECT_EQ(period.loss_window, 7);
  EXPECT_TRUE(period.reset_on_lr_change);
  EXPECT_EQ(sut.outer.kind, Outer::Kind::block_momentum);
  EXPECT_EQ(sut.outer.momentum, 0.3);
  const auto standard = parsed("adacomm");
  EXPECT_EQ(standard.tiers.at(0).period.steps, 20);
  EXPECT_EQ(standard.tiers.at(0).period.interval_s, 60);
  EXPECT_EQ(standard.outer.kind, Outer::Kind::none);
}

TEST(PresetTest, QsrIsLocalSgdWithAnotherPeriod) {
  const auto sut = parsed("qsr(base=2,alpha=0.0175)");
  const Period& period = sut.tiers.at(0).period;
  EXPECT_EQ(period.kind, Period::Kind::qsr);
  EXPECT_EQ(period.steps, 2);
  EXPECT_EQ(period.alpha, 0.0175);
  EXPECT_EQ(sut.tiers[0].late, Lateness::waits);
  EXPECT_TRUE(has(error("qsr(alpha=0)"), "alpha is a number above 0 and below 1000000 (default 0.2)"));
}

TEST(PresetTest, NonblockingTurnsItsBaseAround) {
  for (const auto* text :
       {"nonblocking", "nonblocking(allreduce)", "nonblocking(base=allreduce())", "nonblocking(batches=8)"}) {
    const auto sut = parsed(text);
    ASSERT_EQ(sut.tiers.size(), 1u);
    EXPECT_EQ(sut.tiers[0].payload, Payload::gradients);
    EXPECT_EQ(sut.tiers[0].trigger, Trigger::first_arrived);
    EXPECT_EQ(sut.tiers[0].late, Lateness::abandons);
    EXPECT_EQ(sut.batches, 8);
    EXPECT_EQ(sut.normalise, Strategy::Normalise::b);
    EXPECT_TRUE(sut.rotate_shards);
    EXPECT_EQ(sut.name, text);
  }
  EXPECT_EQ(parsed("nonblocking(allreduce,batches=4,normalise=d)").batches, 4);
  EXPECT_EQ(parsed("nonblocking(normalise=d)").normalise, Strategy::Normalise::d);
  EXPECT_EQ(parsed("nonblocking(normalise=a)").normalise, Strategy::Normalise::a);
}

TEST(StrategyErrorTest, UnknownStrategiesListTheKnownOnes) {
  const std::string known =
      "strategies are allreduce, local-sgd, k-avg, one-shot, post-local, wagma, adacomm, qsr, nonblocking, tiers, "
      "hier-avg, "
      "eager-sgd, d-psgd, ad-psgd, matcha, sgp, osgp, server, bmuf, slowmo, diloco, decoupled-diloco, "
      "streaming-diloco, noloco";
  EXPECT_EQ(error("wagme"), "unknown strategy 'wagme'; did you mean wagma?; " + known);
  EXPECT_EQ(error("foo"), "unknown strategy 'foo'; " + known);
  EXPECT_TRUE(has(error(""), "no strategy is given"));
  EXPECT_TRUE(has(error("  "), "no strategy is given"));
}

TEST(StrategyErrorTest, UnknownParametersListTheStrategysOwn) {
  EXPECT_EQ(
      error("wagma(grup=2)"),
      "strategy wagma(grup=2): unknown parameter 'grup'; did you mean group?; parameters are group, sync, late, grace, "
      "late_merge, grouping, parity, patience");
  EXPECT_EQ(error("allreduce(sync=2)"),
            "strategy allreduce(sync=2): unknown parameter 'sync'; allreduce takes no parameters but patience");
  EXPECT_EQ(error("wagma(2)"),
            "strategy wagma(2): '2' has no name; parameters are group, sync, late, grace, "
            "late_merge, grouping, parity, patience");
}

TEST(StrategyTest, PatienceIsEveryStrategys) {
  EXPECT_EQ(parsed("allreduce").patience, std::nullopt);
  EXPECT_EQ(parsed("allreduce(patience=none)").patience, std::nullopt);
  EXPECT_EQ(parsed("allreduce(patience=500ms)").patience, Duration(500ms));
  const auto sut = parsed("nonblocking(d-psgd(ring),patience=30s,batches=2)");
  EXPECT_EQ(sut.patience, Duration(30s));
  EXPECT_EQ(sut.batches, 2);
  EXPECT_EQ(sut.name, "nonblocking(d-psgd(ring),patience=30s,batches=2)");
  EXPECT_EQ(error("sgp(patience=0s)"),
            "strategy sgp(patience=0s): patience=0s is not allowed; patience is a time above 0 and below 100000000 "
            "seconds, such as 60s or 500ms or none (default none)");
  EXPECT_TRUE(has(error("sgp(patience=1s,patience=2s)"), "parameter patience is given twice"));
  EXPECT_TRUE(has(error("nonblocking(allreduce(patience=1s))"), "patience is the whole strategy's"));
}

TEST(StrategyErrorTest, ValuesOutOfRangeNameTheRangeAndTheDefault) {
  EXPECT_EQ(
      error("wagma(sync=0)"),
      "strategy wagma(sync=0): sync=0 is not allowed; sync is a whole number from 1 to 1000000000, or adacomm(..) "
      "or qsr(..) (default 10)");
  EXPECT_EQ(error("wagma(late=never)"),
            "strategy wagma(late=never): late=never is not allowed; late is merge or skip (default merge)");
  EXPECT_TRUE(has(error("wagma(group=two)"), "group is a whole number from 1 to 1048576 or auto (default auto)"));
  EXPECT_TRUE(
      has(error("wagma(grace=2)"), "grace is a time such as 2s or 500ms, a multiple of the median step such as 1.5x"));
  EXPECT_TRUE(has(error("wagma(grace=0s)"), "grace=0s is not allowed"));
  EXPECT_TRUE(has(error("wagma(grace=0x)"), "grace=0x is not allowed"));
  EXPECT_TRUE(has(error("adacomm(gamma=1)"), "gamma is a number above 0 and below 1 (default 0.5)"));
  EXPECT_TRUE(has(error("adacomm(interval=60)"),
                  "interval is a time above 0 and below 100000000 seconds, such as 60s or 500ms"));
  EXPECT_TRUE(has(error("adacomm(block_momentum=1)"), "from 0 to 0.999"));
  EXPECT_TRUE(has(error("nonblocking(batches=0)"), "batches is a whole number from 1 to 1000000 (default 8)"));
  EXPECT_TRUE(has(error("local-sgd(period=1.5)"), "period is a whole number from 1 to 1000000000 or run (default 8)"));
  EXPECT_TRUE(has(error("wagma(sync=f(2))"), "sync=f(..) is not allowed"));
}

TEST(StrategyErrorTest, SeveralErrorsComeInOneMessage) {
  const auto text = error("wagma(sync=0,sync=3,late=no)");
  EXPECT_TRUE(has(text, "sync=0 is not allowed"));
  EXPECT_TRUE(has(text, "parameter sync is given twice; give it once"));
  EXPECT_TRUE(has(text, "late=no is not allowed"));
}

TEST(StrategyErrorTest, ButterflyGroupsNeedFittingPowersOfTwo) {
  EXPECT_EQ(error("wagma", 6),
            "strategy wagma: wagma's butterfly groups need a power of two workers; 6 is none: use 4 or 8 workers, or "
            "grouping=strided or local-sgd, which take any number of workers");
  EXPECT_TRUE(has(error("wagma(group=2)", 3), "use 2 or 4 workers"));
  EXPECT_EQ(error("wagma(group=3)"),
            "strategy wagma(group=3): group=3 does not fit 4 workers; group is a power of two and at most the number "
            "of workers: 1, 2 or 4");
  EXPECT_TRUE(has(error("wagma(group=8)"), "group=8 does not fit 4 workers"));
  EXPECT_TRUE(has(error("wagma", 0), "needs at least 1 worker, not 0"));
  EXPECT_EQ(error("wagma(group=1)", 6), "no error");
  EXPECT_EQ(error("wagma", 1), "no error");
}

TEST(StrategyErrorTest, BasesThatCannotBeAbandonedAreRefused) {
  EXPECT_TRUE(has(error("nonblocking(wagma)"),
                  "its base 'wagma' is none that averages at every iteration; use allreduce, d-psgd, matcha, "
                  "hier-avg or server(sync)"));
  for (const auto* base : {"nonblocking", "sgp", "ad-psgd", "server(async)", "local-sgd", "nonblocking(d-psgd)"})
    EXPECT_TRUE(has(error(std::string("nonblocking(") + base + ")"), "averages at every iteration")) << base;
  EXPECT_TRUE(has(error("nonblocking(allreduce,allreduce)"), "parameter base is given twice"));
}

TEST(PresetTest, TiersOfSeveralStrategiesMakeOneList) {
  const auto sut = parsed("tiers( wagma(group=2, late=skip), local-sgd(period=3,grace=2s), k-avg(period=50) )");
  ASSERT_EQ(sut.tiers.size(), 4U);
  EXPECT_EQ(sut.tiers[0].groups.kind, Groups::Kind::butterfly);
  EXPECT_EQ(sut.tiers[0].late, Lateness::skips);
  EXPECT_EQ(sut.tiers[1].period.steps, 10);
  EXPECT_EQ(sut.tiers[2].period.steps, 3);
  EXPECT_EQ(sut.tiers[2].late, Lateness::merges);
  EXPECT_EQ(sut.tiers[3].period.steps, 50);
  EXPECT_EQ(sut.tiers[3].late, Lateness::waits);
  EXPECT_EQ(coordination(sut), Coordination::rounds);
  EXPECT_EQ(parsed("tiers(tiers(wagma,k-avg(period=6)),local-sgd(period=4))").tiers.size(), 4U);
  EXPECT_EQ(error("tiers(local-sgd(period=6),local-sgd(period=4))"), "no error");
  ASSERT_EQ(parsed("tiers").tiers.size(), 2U);
  EXPECT_EQ(parsed("tiers").tiers[1].period.steps, 100);
  EXPECT_EQ(error("tiers(wagma(sync=8),local-sgd(period=4))"), "no error");  // Of wagma its groups are left.
  EXPECT_EQ(error("tiers(wagma(sync=8),local-sgd(period=4))", 1), "no error");
}

TEST(StrategyErrorTest, PartsThatCannotBeCombinedAreNamed) {
  const auto refused = [](const std::string& part) { return error("tiers(local-sgd(period=7)," + part + ")"); };
  EXPECT_EQ(error("tiers(wagma,slowmo(period=40))"),
            "strategy tiers(wagma,slowmo(period=40)): 'slowmo(period=40)' cannot be combined: its momentum on the "
            "average would follow the averages of the other parts, too; use wagma, local-sgd, k-avg or one-shot");
  for (const auto* part : {"hier-avg", "d-psgd", "ad-psgd", "server(async)", "noloco", "streaming-diloco"})
    EXPECT_TRUE(has(refused(part), "' cannot be combined: not all execute its averages in one order")) << part;
  for (const auto* part : {"allreduce", "server", "eager-sgd"})
    EXPECT_TRUE(has(refused(part), "it averages gradients, the others models")) << part;
  for (const auto* part : {"bmuf", "diloco", "decoupled-diloco", "adacomm(block_momentum=0.5)"})
    EXPECT_TRUE(has(refused(part), "its momentum on the average would follow")) << part;
  for (const auto* part : {"adacomm", "qsr(base=2)", "wagma(sync=qsr)"})
    EXPECT_TRUE(has(refused(part), "its period adapts")) << part;
  EXPECT_TRUE(has(refused("nonblocking"), "'nonblocking' cannot be combined: its updates are of batches"));
  EXPECT_TRUE(has(refused("post-local(period=2)"), "'post-local(period=2)' cannot be combined: its warm-up"));
  EXPECT_TRUE(has(refused("wagma(parity=code)"), "parity=code would change"));
  EXPECT_TRUE(has(error("tiers(wagma(late_merge=version),local-sgd(period=3,late=skip))"),
                  "late_merge=version in one part goes with late=merge and grace=none in all"));
  EXPECT_EQ(error("tiers(wagma(late_merge=version),local-sgd(period=3))"), "no error");
}

TEST(StrategyErrorTest, PartsThatWouldNeverAverageAreNamed) {
  EXPECT_EQ(error("tiers(local-sgd(period=6),wagma)"),
            "strategy tiers(local-sgd(period=6),wagma): 'local-sgd(period=6)' would never average: whenever it is due "
            "'wagma' is, too, and the later one holds; put it after, or leave it out");
  EXPECT_TRUE(has(error("tiers(local-sgd(period=6),k-avg(period=3))"), "'local-sgd(period=6)' would never average"));
  EXPECT_TRUE(has(error("tiers(one-shot,k-avg(period=3))"), "'one-shot' would never average"));
  EXPECT_TRUE(has(error("tiers(wagma(sync=4),local-sgd(period=3),k-avg(period=1))"), "'wagma(sync=4)' would never"));
  EXPECT_TRUE(has(error("tiers(wagma)"), "one part is no combination; give two or more, or 'wagma' alone"));
}

TEST(StrategyErrorTest, AnErrorOfAPartNamesThePart) {
  EXPECT_EQ(
      error("tiers(wagma, local-sgd(period=0, late=skip))"),
      "strategy tiers(wagma, local-sgd(period=0, late=skip)): strategy local-sgd(period=0,late=skip): period=0 is "
      "not allowed; period is a whole number from 1 to 1000000000 or run (default 8)");
  EXPECT_TRUE(has(error("tiers(wagma,local-sgd)", 6), "strategy wagma: wagma's butterfly groups need a power of two"));
  EXPECT_TRUE(has(error("tiers(wagma,3)"), "unknown strategy '3'"));
}

TEST(StrategyErrorTest, WhatAnAlgorithmNeedsIsSaid) {
  EXPECT_TRUE(has(error("hier-avg(k1=9,k2=8)"), "k1=9 is larger than k2=8"));
  EXPECT_TRUE(has(error("hier-avg(group=3)", 8), "group divides the number of workers: 1, 2, 4 or 8"));
  EXPECT_TRUE(has(error("wagma(grouping=strided,group=4)", 6), "group divides the number of workers: 1, 2, 3 or 6"));
  EXPECT_TRUE(has(error("eager-sgd(quorum=5)"), "quorum=5 is more than the 4 workers"));
  EXPECT_TRUE(has(error("d-psgd(bipartite)", 5), "even"));
  EXPECT_TRUE(has(error("ad-psgd(bipartite)", 5), "even number of workers, not 5"));
  EXPECT_TRUE(has(error("matcha(8-node)", 4), "8 workers"));
  EXPECT_TRUE(has(error("matcha(budget=0)"), "budget is a number from 0.001 to 1"));
  EXPECT_TRUE(has(error("matcha(star)"), "graph is a file that names edges, ring or 8-node"));
  EXPECT_TRUE(has(error("sgp(graph=./no-such-file)"), "no-such-file"));
  EXPECT_TRUE(has(error("server(sync,scale=p)"), "scale is for server(async)"));
  EXPECT_TRUE(has(error("server(sync,bounded=2)"), "give one of them"));
  EXPECT_TRUE(has(error("eager-sgd(majority,quorum=3)"), "give one of them"));
  EXPECT_TRUE(has(error("sgp(graph=./g,peers=2)"), "peers and hops are for"));
  EXPECT_TRUE(has(error("wagma(late=skip,late_merge=version)"), "goes with late=merge"));
  EXPECT_TRUE(has(error("wagma(parity=code,grace=1s)"), "parity=code goes with"));
}

TEST(PresetTest, SpellingsOfTheContractAreUnderstood) {
  for (const auto* text :
       {"one-shot",
        "k-avg(period=8)",
        "post-local(period=8,warmup=100)",
        "hier-avg(k1=4,k2=8,group=4)",
        "eager-sgd(solo)",
        "eager-sgd(majority,late=drop,sync=32)",
        "eager-sgd(quorum=4)",
        "d-psgd(ring)",
        "d-psgd(bipartite,order=atc)",
        "d-psgd(complete,order=cta)",
        "ad-psgd(random)",
        "ad-psgd(bipartite)",
        "matcha(graph=ring,budget=0.5)",
        "matcha(8-node)",
        "sgp(peers=2,hops=base)",
        "osgp(peers=1,bound=2)",
        "server(sync)",
        "server(async,scale=p)",
        "server(bounded=4,scale=staleness)",
        "bmuf(period=8,nesterov)",
        "bmuf(classic)",
        "slowmo(period=8,beta=0.5,alpha=1)",
        "diloco(period=500,lr=0.7,momentum=0.9)",
        "wagma(group=auto,sync=10,late=merge,grace=1.5x,late_merge=latest,grouping=strided,parity=paper)",
        "nonblocking(matcha(8-node,budget=0.5),inflight=wait)",
        "nonblocking(d-psgd(ring),normalise=a)",
        "nonblocking(hier-avg(k1=2,k2=4,group=4),batches=2)",
        "nonblocking(server,batches=4)"}) {
    EXPECT_EQ(error(text, 8), "no error") << text;
  }
  EXPECT_EQ(parsed("wagma(grouping=strided)", 6).tiers[0].groups.size, 3);
  EXPECT_EQ(parsed("bmuf").outer.momentum, 0.75);
  EXPECT_TRUE(parsed("bmuf(nesterov)").outer.nesterov);
}

TEST(PresetTest, OneCoreDecidesForEachStrategy) {
  const auto core = [](const char* text) { return coordination(parsed(text, 8)); };
  for (const auto* text : {"allreduce", "server", "wagma", "eager-sgd", "post-local", "diloco", "nonblocking(d-psgd)"})
    EXPECT_EQ(core(text), Coordination::rounds) << text;
  for (const auto* text : {"hier-avg", "d-psgd", "matcha(8-node)", "sgp", "osgp"})
    EXPECT_EQ(core(text), Coordination::mixing) << text;
  EXPECT_EQ(core("server(async)"), Coordination::server);
  EXPECT_EQ(core("ad-psgd"), Coordination::pairs);
}

TEST(StrategyTest, FilesOfGraphsGetAbsoluteNames) {
  const std::string name = "strategy_test_graph.0";
  std::ofstream(name) << "0 1\n";
  const auto full = std::filesystem::absolute(name).string();
  EXPECT_EQ(with_absolute_paths("nonblocking(matcha(" + name + ", budget=0.5), batches=4)"),
            "nonblocking(matcha(" + full + ", budget=0.5), batches=4)");
  EXPECT_EQ(with_absolute_paths("sgp(graph=none.txt)"), "sgp(graph=none.txt)");
  EXPECT_EQ(with_absolute_paths(" wagma ( grace = 1.5x )"), " wagma ( grace = 1.5x )");
  std::filesystem::remove(name);
}

TEST(StrategyHelpTest, EverySpellingIsAStrategy) {
  const auto lines = strategy_help();
  EXPECT_EQ(lines.size(), presets().size());
  for (const auto& line : lines) {
    EXPECT_EQ(error(line.spelling), "no error") << line.spelling;
    EXPECT_FALSE(line.sentence.empty());
  }
  EXPECT_EQ(lines.at(0).spelling, "allreduce");
  EXPECT_EQ(lines.at(7).spelling, "qsr(base=4,alpha=0.2)");
  EXPECT_EQ(lines.at(8).spelling, "nonblocking(allreduce,batches=8,normalise=b,inflight=drop)");
  EXPECT_EQ(lines.at(9).spelling, "tiers(local-sgd(period=10,late=skip,grace=2x),local-sgd(period=100,late=skip))");
}

}  // namespace
}  // namespace paceline::algorithms
