"""A run, and the same decisions again on other processes with other delays: the same weights, to the last bit."""
import os
import shutil
import signal

from harness import (ENDLESS, IntegrationTest, NODES, QUADRATIC, SANITIZED, SOURCE, WITH_TRAIN, in_release, left_out,
                     main)

SMALL = os.path.join(SOURCE, "tests", "integration", "small_training.cpp")
MNIST = os.path.join(SOURCE, "examples", "fashion_mnist.cpp")
UPDATES = 40


class ReplayTest(IntegrationTest):
    def replay(self, run, *flags, code=0, timeout=60, environment=None):
        directory = os.path.join(self.folder, f"replay-{self.runs}")
        again = self.start("replay", run.run_directory, "--run-dir", directory, *flags, environment=environment)
        again.run_directory = directory
        self.assertEqual(again.wait(timeout), code, again.said())
        return again

    def refused(self, run, *words):
        again = self.paceline("replay", run.run_directory)
        self.assertNotEqual(again.code, 0, again.said())
        self.assertEqual(len(again.err.strip().splitlines()), 1, again.said())
        for word in words:
            self.assertIn(word, again.err)
        self.assert_nobody_left()

    def assert_same(self, run, again):
        self.assertIn("weights are bit-identical", again.out)
        self.assertTrue(run.result()["models"])
        self.assertEqual({rank: again.result()["models"].get(rank) for rank in run.result()["models"]},
                         run.result()["models"])

    def mean_staleness(self, run):
        closed = [event["counters"]["staleness"] for event in run.metrics() if event["event"] == "closed"]
        return [sum(node[late] for node in closed) for late in range(len(closed[0]))]


class QuadraticReplays(ReplayTest):
    """The delays are random, and others in every run and every replay."""

    def check(self, strategy, nodes, workers=4, random_ms=12, updates=UPDATES, elements=3, **options):
        with self.subTest(strategy=strategy, nodes=nodes):
            run = self.quadratic(nodes=nodes, workers=workers, strategy=strategy, updates=updates,
                                 random_ms=random_ms, elements=elements, **options)
            finals = [run.final(rank) for rank in range(workers)]
            steps = [[(line["update"], line["x"]) for line in run.steps(rank)] for rank in range(workers)]
            again = self.replay(run)
            self.assert_same(run, again)
            self.assertEqual(self.mean_staleness(again), self.mean_staleness(run), "late as often as then")
            again.run_directory = run.run_directory  # The job's own output goes where it went then.
            self.assertEqual([again.final(rank) for rank in range(workers)], finals)
            if "nonblocking" not in strategy:  # There a worker need not begin what it did not finish.
                self.assertEqual([[(line["update"], line["x"]) for line in again.steps(rank)]
                                  for rank in range(workers)], steps)
            return run

    def test_group_averaging(self):
        for nodes in NODES:
            run = self.check("wagma(group=2,sync=10)", nodes)
            self.assertGreater(sum(self.mean_staleness(run)[1:]), 0, "nobody was late: this shows nothing")
            self.check("wagma(group=2,sync=10,late=skip)", nodes)
        self.check("wagma(group=3,sync=10,grouping=strided)", 2, workers=6)

    def test_abandoned_updates(self):
        for nodes in NODES:
            self.check("nonblocking(batches=4)", nodes, random_ms=6)
        self.check("nonblocking(batches=2,normalise=a)", 1, workers=3, busy_ms=[0, 0, 25])  # Misses whole updates.

    @in_release
    def test_gradients_that_are_late(self):
        self.check("eager-sgd(solo,sync=8)", 2)
        self.check("eager-sgd(quorum=2,late=drop,sync=8)", 1)
        self.check("nonblocking(batches=4,inflight=wait)", 2, random_ms=6)
        self.check("post-local(period=4,warmup=10)", 1)

    def test_models_that_weigh_what_their_workers_have_done(self):
        for nodes in NODES:
            run = self.check("decoupled-diloco(period=4,quorum=2,grace=3ms)", nodes)
            self.assertGreater(sum(self.mean_staleness(run)[1:]), 0, "nobody was late: this shows nothing")

    @in_release
    def test_batches_of_neighbours(self):
        for nodes, base in ((1, "d-psgd(ring,order=atc),normalise=d"), (2, "d-psgd(ring)"),
                            (2, "matcha(ring),inflight=wait")):
            self.check(f"nonblocking({base},batches=4)", nodes, random_ms=6, updates=25)
        self.check("nonblocking(d-psgd(ring),batches=2)", 1, workers=3, busy_ms=[0, 0, 120])  # Misses whole updates.

    @in_release
    def test_adaptive_periods(self):
        for nodes in NODES:
            self.check("adacomm(period=8,interval=0.1s)", nodes, random_ms=6)

    def test_pairs(self):
        for nodes in NODES:
            run = self.check("ad-psgd", nodes, updates=25)
            self.assertGreater(sum(self.mean_staleness(run)[1:]), 0, "nobody was met: this shows nothing")
        self.check("ad-psgd", 2, updates=15, elements=100_003)

    def test_parameter_server(self):
        for nodes in NODES:
            run = self.check("server(async)", nodes, updates=25)
            self.assertGreater(sum(self.mean_staleness(run)[1:]), 0, "nobody was late: this shows nothing")
        self.check("server(bounded=1)", 2, updates=25)

    @in_release
    def test_neighbours(self):
        for strategy in ("d-psgd(ring)", "sgp", "matcha(ring)", "hier-avg(k1=1,k2=4,group=2)"):
            self.check(strategy, 2, updates=12)

    @in_release
    def test_shares_that_come_later(self):
        for nodes in NODES:
            self.check("osgp", nodes)
            self.check("osgp(bound=3)", nodes)
        self.check("osgp(peers=2,bound=2)", 2, workers=5)
        self.check("osgp", 2, updates=15, elements=100_003)

    @in_release
    def test_exchanges(self):
        self.check("noloco(period=3)", 2, workers=5, updates=20)
        self.check("streaming-diloco(period=6,fragments=2,delay=1)", 2, updates=20, elements=100_003, evaluate_every=4)

    @in_release
    def test_an_end_that_workers_of_their_own_pace_agreed_on(self):
        for strategy in ("ad-psgd", "server(async)", "server(bounded=1)", "d-psgd(ring)", "osgp", "noloco(period=4)",
                         "nonblocking(d-psgd(ring),batches=2)"):
            run = self.check(strategy, 2, stop_rank=3, stop_update=7)
            self.assertLess(run.result()["updates"], UPDATES)

    @in_release
    def test_grace_periods(self):
        for nodes in NODES:
            self.check("local-sgd(period=4,grace=5ms)", nodes)
        self.check("local-sgd(period=4,grace=5ms,late=skip)", 1)

    def test_a_worker_that_was_killed_leaves_where_it_left(self):
        strategies = (("wagma(group=2,sync=10)", 1), ("d-psgd(ring)", 2), ("osgp", 2), ("ad-psgd", 2),
                      ("server(bounded=4)", 2), ("decoupled-diloco(period=4,grace=3ms)", 2), ("noloco(period=3)", 2),
                      ("nonblocking(d-psgd(ring),batches=2,normalise=d)", 2))
        for strategy, nodes in strategies[:2 if SANITIZED else None]:
            with self.subTest(strategy):
                run = self.start_quadratic("--restarts", "0", nodes=nodes, workers=4, strategy=strategy, updates=ENDLESS, random_ms=12)
                self.wait_for_update(run, 20)
                self.signal_worker(run, 2, signal.SIGKILL)
                self.end_after(run, 100)
                self.assertEqual(list(run.left()), [2], run.said())
                again = self.replay(run)
                self.assert_same(run, again)
                self.assertIn("left here in the run that is replayed", again.left()[2])

    def lose_node(self, strategy, lost, nodes=3):
        """A run whose node was killed: the others go on, and its replay goes the same way. The driver is at none that is lost."""
        with self.subTest(strategy=strategy, lost=lost):
            run = self.start_quadratic("--restarts", "0", nodes=nodes, workers=4, strategy=strategy, updates=ENDLESS, random_ms=12,
                                       environment={"PACELINE_NODE": str(nodes - 1 if lost == 0 else 0)})
            self.wait_for_update(run, 20)
            os.kill(self.agents(lost)[0], signal.SIGKILL)
            self.end_after(run, 100)
            self.assertTrue(run.left(), run.said())
            again = self.replay(run)
            self.assert_same(run, again)
            self.assertEqual(again.result()["lost"], run.result()["lost"])

    def test_a_node_that_was_lost_is_lost_there_again(self):
        for strategy in ("allreduce", "wagma(group=2,sync=10)", "nonblocking(batches=3)", "d-psgd(ring)", "sgp",
                         "ad-psgd", "server(bounded=4)", "noloco(period=3)")[:2 if SANITIZED else None]:
            self.lose_node(strategy, 1)

    def test_the_first_node_that_was_lost_is_lost_there_again(self):
        for strategy in ("wagma(group=2,sync=10)", "eager-sgd(sync=5)", "osgp", "ad-psgd", "server(bounded=4)",
                         "streaming-diloco(period=4,fragments=2)")[:2 if SANITIZED else None]:
            self.lose_node(strategy, 0)

    def test_a_job_that_a_worker_ended(self):
        run = self.check("local-sgd(period=4,grace=5ms)", 2, stop_rank=3, stop_update=17)
        self.assertLess(run.result()["updates"], UPDATES)

    def test_a_replay_can_be_replayed(self):
        run = self.quadratic(nodes=1, strategy="wagma(group=2,sync=10)", updates=UPDATES, random_ms=12)
        again = self.replay(run)
        with open(os.path.join(run.run_directory, "decisions-0.bin"), "rb") as one:
            with open(os.path.join(again.run_directory, "decisions-0.bin"), "rb") as other:
                self.assertEqual(one.read(), other.read())
        self.assert_same(run, self.replay(again))


class Refusals(ReplayTest):
    def small_run(self, **options):
        return self.quadratic(nodes=1, workers=2, strategy="allreduce", updates=5, **options)

    def test_a_run_that_was_cut_off(self):
        run = self.start_quadratic(nodes=1, strategy="wagma(group=2,sync=10)", updates=ENDLESS, sleep_ms=[3])
        self.wait_for_update(run, 5)
        os.killpg(run.process.pid, signal.SIGKILL)
        run.process.wait()
        self.refused(run, "half written")

    @in_release
    def test_a_run_that_was_interrupted(self):
        run = self.start_quadratic(nodes=1, strategy="allreduce", updates=ENDLESS, sleep_ms=[3])
        self.wait_for_update(run, 5)
        os.killpg(run.process.pid, signal.SIGINT)
        run.wait(20)
        self.refused(run, "it was interrupted")

    def test_a_record_that_was_damaged(self):
        run = self.small_run()
        path = os.path.join(run.run_directory, "decisions-0.bin")
        with open(path, "rb") as file:
            whole = bytearray(file.read())
        with open(path, "wb") as file:
            file.write(whole[:-3])
        self.refused(run, path, "half written")
        whole[len(whole) // 2] ^= 4
        with open(path, "wb") as file:
            file.write(whole)
        self.refused(run, path, "damaged")
        os.remove(path)
        self.refused(run, "no record of its decisions")
        os.remove(os.path.join(run.run_directory, "configuration.json"))
        self.refused(run, "no directory of a training run")
        shutil.rmtree(run.run_directory)
        self.refused(run, "there is no run directory")

    @in_release
    def test_another_program(self):
        program = os.path.join(self.folder, "program")
        shutil.copy(QUADRATIC, program)
        run = self.paceline("run", program, "--workers", 2, "--run-dir", os.path.join(self.folder, "run"), "--",
                            "updates=5")
        self.assertEqual(run.code, 0, run.said())
        run.run_directory = os.path.join(self.folder, "run")
        with open(program, "ab") as file:
            file.write(b"x")
        self.refused(run, program, "changed")
        os.remove(program)
        self.refused(run, program, "is gone")

    @in_release
    def test_a_cluster_with_too_few_nodes(self):
        run = self.quadratic(nodes=2, workers=2, strategy="allreduce", updates=5)
        self.assertEqual(self.paceline("up").code, 0)
        again = self.paceline("replay", run.run_directory)
        self.assertNotEqual(again.code, 0)
        self.assertIn("node 1", again.err)
        self.assertEqual(self.paceline("down").code, 0)


@left_out(not WITH_TRAIN)
class TrainingReplays(ReplayTest):
    def train(self, script, *flags, arguments=(), environment=None):
        directory = os.path.join(self.folder, f"run-{self.runs}")
        run = self.start("run", script, "--run-dir", directory, *flags, "--", *arguments, environment=environment)
        run.run_directory = directory
        self.assertEqual(run.wait(120), 0, run.said())
        return run

    def test_the_main_example_with_random_delays(self):
        self.assertEqual(self.paceline("up").code, 0)
        delays = ["--straggle", "1:12ms", "--slow", "3:2x"]
        for strategy, epochs, more in (("wagma(group=2,sync=10)", 0.15, ["--accumulate", 1]),
                                       ("nonblocking(batches=4)", 0.3, []),
                                       ("adacomm(period=8,interval=0.3s)", 0.15, ["--accumulate", 1]),
                                       ("ad-psgd", 0.1, ["--accumulate", 1])):
            with self.subTest(strategy):
                run = self.train(MNIST, "--workers", 4, "--strategy", strategy, "--epochs", epochs, "--target", "none",
                                 *more, *delays)
                again = self.replay(run, timeout=120, environment={"PACELINE_STRAGGLE": "1:7ms"})
                self.assert_same(run, again)
                with open(os.path.join(run.run_directory, "checkpoint.safetensors"), "rb") as one:
                    with open(os.path.join(again.run_directory, "checkpoint.safetensors"), "rb") as other:
                        self.assertEqual(len(one.read()), len(other.read()))
                self.assertEqual(again.result()["test_accuracy"], run.result()["test_accuracy"])

    def test_running_statistics_of_batch_norm(self):
        self.assertEqual(self.paceline("up").code, 0)
        for strategy in ("nonblocking(batches=2)", "wagma(group=2,sync=4)", "nonblocking(d-psgd(ring),batches=2)"):
            with self.subTest(strategy):
                run = self.train(SMALL, "--strategy", strategy, "--straggle", "1:4ms", arguments=["norm"])
                self.assert_same(run, self.replay(run, environment={"PACELINE_STRAGGLE": "1:2ms"}))

    def test_a_script_or_data_that_changed(self):
        with open(SMALL, encoding="utf-8") as file:
            script = self.write("script.cpp", file.read())
        run = self.train(script, "--epochs", 1)
        with open(script, "a", encoding="utf-8") as file:
            file.write("// Another line.\n")
        self.refused(run, script, "changed")
        run = self.train(SMALL, "--epochs", 1)
        rest = self.train(SMALL, "--epochs", 2, "--resume", run.run_directory)
        self.assert_same(rest, self.replay(rest))
        with open(os.path.join(run.run_directory, "checkpoint.safetensors"), "ab") as file:
            file.write(b"x")
        self.refused(rest, "checkpoint.safetensors", "changed")


if __name__ == "__main__":
    main(at_once=3)
