"""Every strategy with libtorch on real processes (training_cases.cpp): it learns, the workers end with one model, and
where delays cannot change what is computed, the models after each step are the simulator's."""
import json
import os
import re

from harness import main
from training import TrainingTest

CASES = os.environ.get("PACELINE_TRAINING_CASES", "build/release/tests/integration/training_cases")
WORKERS = 4
UPDATES_AN_EPOCH = 4  # 256 samples, batches of 16, 4 workers.

# As short as its parameters let each strategy be. A server's steps add up, so that they are divided.
LEARNING = ["allreduce", "local-sgd(period=4)", "k-avg(period=4)", "one-shot", "post-local(period=4,warmup=20)", "wagma",
            "adacomm(period=8,interval=20ms)", "qsr(base=2,alpha=0.2)", "nonblocking(batches=2,inflight=wait)",
            "tiers(local-sgd(period=3,late=skip),local-sgd(period=10))", "hier-avg(k1=2,k2=6,group=2)",
            "eager-sgd(solo,sync=8)", "d-psgd(ring)", "ad-psgd", "matcha(ring)", "sgp", "osgp", "server(sync)",
            "server(async,scale=p)", "bmuf(period=4)", "slowmo(period=4)", "diloco(period=10)",
            "decoupled-diloco(period=10)", "streaming-diloco(period=8,fragments=2)", "noloco(period=5)"]

SIMULATED = ["allreduce", "local-sgd(period=3)", "k-avg(period=3)", "one-shot", "post-local(period=3,warmup=4)",
             "wagma(group=2,sync=1)", "adacomm(period=3,interval=1h,block_momentum=0.5)", "qsr(base=1,alpha=0.25)",
             "tiers(local-sgd(period=2),k-avg(period=5))", "hier-avg(k1=2,k2=6,group=2)", "eager-sgd(quorum=4,sync=4)",
             "d-psgd(ring)", "d-psgd(ring,order=atc)", "matcha(ring)", "sgp", "osgp", "server(sync)", "bmuf(period=3)",
             "bmuf(period=3,nesterov)", "slowmo(period=3)", "diloco(period=3)", "decoupled-diloco(period=3,quorum=4)",
             "streaming-diloco(period=6,fragments=3)", "noloco(period=3)"]
ON_TWO_NODES = ["allreduce", "local-sgd(period=3)", "eager-sgd(quorum=4,sync=4)", "d-psgd(ring)", "sgp", "server(sync)",
                "slowmo(period=3)", "streaming-diloco(period=6,fragments=3)", "noloco(period=3)"]


class StrategyTraining(TrainingTest):
    def case(self, name, strategy, *flags, nodes=1, workers=WORKERS):
        self.cluster_of(nodes)
        return self.train(CASES, "--strategy", strategy, "--workers", workers, *flags, arguments=[name], timeout=60)

    def test_every_strategy_is_here(self):
        listed = re.findall(r"^  ([a-z][a-z-]+)(?:\(|$)", self.paceline("run", "--help").out, re.MULTILINE)
        self.assertGreater(len(listed), 20)
        self.assertEqual({strategy.split("(")[0] for strategy in LEARNING}, set(listed))

    def test_every_strategy_learns_goes_on_from_where_a_run_ended_and_ends_with_one_model(self):
        for strategy in LEARNING:
            with self.subTest(strategy):
                ended = self.case("rings", strategy, "--epochs", 2.75)  # 11 updates: between two averages of most.
                rest = self.case("rings", strategy, "--epochs", 50, "--resume", ended.run_directory)
                updates = (6, 100) if "batches=2" in strategy else (11, 200)
                started, = (event for event in rest.metrics() if event["event"] == "started")
                self.assertEqual((started["first"], started["updates"]), updates)
                self.assertEqual(rest.result()["updates"], updates[1])
                for (before,), (after,) in zip(self.logged(ended, "untrained").values(),
                                               self.logged(rest, "trained").values(), strict=True):
                    self.assertGreater(before, 0.6, "guessing is 0.69")
                    self.assertLess(after, 0.2)
                for run in (ended, rest):
                    self.assert_one_model(run, WORKERS)

    def test_allreduce_is_one_process_with_all_mini_batches_in_one(self):
        losses = []
        for workers, nodes in ((1, 1), (4, 1), (4, 2)):
            run = self.case("rings", "allreduce", "--batch", 256 // workers, "--epochs", 60, workers=workers, nodes=nodes)
            self.assert_one_model(run, workers)
            losses.append(self.logged(run, "trained")[0][0])
        self.assertLess(losses[0], 0.2)
        for loss in losses[1:]:
            self.assertAlmostEqual(loss, losses[0], delta=1e-5)

    def test_models_of_several_types_and_under_autocast_learn(self):
        # Of each way to average one: parameters and statistics of bfloat16 beside float32, integer buffers.
        for name, strategy, nodes in (
                ("narrow", "allreduce", 2), ("narrow", "local-sgd(period=4)", 1), ("narrow", "wagma", 2),
                ("narrow", "eager-sgd(solo,sync=8)", 1), ("narrow", "nonblocking(batches=2,inflight=wait)", 1),
                ("narrow", "nonblocking(d-psgd(ring),batches=2)", 1), ("narrow", "ad-psgd", 1), ("narrow", "osgp", 1),
                ("narrow", "server(async,scale=p)", 1), ("narrow", "slowmo(period=4)", 1),
                ("narrow", "streaming-diloco(period=8,fragments=2)", 1), ("narrow", "post-local(period=4,warmup=20)", 1),
                ("autocast", "allreduce", 1), ("autocast", "wagma", 1), ("autocast", "local-sgd(period=4)", 1)):
            with self.subTest(name, strategy=strategy, nodes=nodes):
                run = self.case(name, strategy, "--epochs", 50, nodes=nodes)
                for (loss,), (steps,) in zip(self.logged(run, "trained").values(), self.logged(run, "steps").values(),
                                             strict=True):
                    self.assertLess(loss, 0.45, "guessing is 0.69")
                    self.assertGreater(steps, 50, "each worker counts its own")
                self.assert_one_model(run, WORKERS)

    def check_simulated(self, strategy, nodes=1, steps=12, problem="squares", delta=2e-5):
        with self.subTest(strategy, nodes=nodes):
            job = {"problem": {"kind": "least_squares", "workers": [
                       {"a": [1 + (rank + k) % 2 for k in range(3)] + [0, 0], "c": [4 * rank + k for k in range(5)]}
                       for rank in range(WORKERS)]},  # Two numbers that rest, as libtorch's vector has one a tensor.
                   "start": [0] * 5, "strategy": strategy, "lr": 0.125, "momentum": 0.5, "steps": steps, "seed": 3,
                   "compute_s": [[1] * WORKERS]}
            simulated = self.paceline("simulate", self.write("job.json", json.dumps(job)), "--json")
            self.assertEqual(simulated.code, 0, simulated.said())
            *rows, summary = map(json.loads, simulated.out.splitlines())
            models = {(row["worker"], row["step"]): row["model"] for row in rows}
            run = self.case(problem, strategy, "--seed", 3, "--epochs", steps // UPDATES_AN_EPOCH, nodes=nodes)
            for k in range(3):
                found = self.logged(run, f"step{k}")
                final = self.logged(run, f"final{k}")
                for rank in range(WORKERS):
                    self.assertEqual(len(found[rank]), steps)
                    for step in range(steps - 1):  # After the last everybody has the mean.
                        self.assertAlmostEqual(found[rank][step], models[rank, step][k], delta=delta,
                                               msg=f"number {k} of worker {rank} after step {step}")
                    self.assertAlmostEqual(final[rank][0], summary["model"][k], delta=delta)
            self.assert_one_model(run, WORKERS)

    def test_models_of_float64_are_the_simulators_to_their_last_digits(self):
        for strategy in SIMULATED:
            self.check_simulated(strategy, problem="squares64", delta=1e-12)

    def test_models_of_float32_are_the_simulators_on_two_nodes(self):
        for strategy in ON_TWO_NODES:
            self.check_simulated(strategy, nodes=2)


if __name__ == "__main__":
    main()
