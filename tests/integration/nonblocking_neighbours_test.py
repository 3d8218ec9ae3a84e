"""Nonblocking over neighbours on real processes, on one node and on two: how many mini-batches of each worker counted is
read from what the workers wrote; the simulator is then given times that lead to just these numbers, and its models are
equal to 1e-12.

The problem is that of quadratic_worker.cc: a = (1,2,1,2), c = (0,4,8,12), repeated; learning rate 1/4, start 1.
"""
import math
import signal
import time

from harness import ENDLESS, IntegrationTest, in_release, main, wait_until

N = 4
UNIT = math.lcm(*range(1, N + 1))  # ns; lengths of updates can be divided by every number of mini-batches.
LENGTH = UNIT * 10**8
SLOW = [4, 10, 6, 30, 7]


class NonblockingNeighbours(IntegrationTest):
    def counted(self, run, workers, updates, normalise):
        """Mini-batches that counted, by update and worker: the step divided by the gradient says it."""
        done = []
        for update in range(updates):
            steps = [[step for step in run.steps(rank) if step["update"] == update and step["result"] is not None]
                     for rank in range(workers)]
            weights = [step[0]["result"] / step[0]["gradient"] if step else 0 for step in steps]
            if normalise == "a":
                weights = [math.sqrt(weight) for weight in weights]
            # The fastest did N: under d weights are relative to it, else it weighs 1.
            exact = [N * weight / (max(weights) if normalise == "d" else 1) for weight in weights]
            done.append([round(n) for n in exact])
            self.assertEqual(max(done[-1]), N, f"nobody did a whole batch of {update}")
            for n, m in zip(done[-1], exact):
                self.assertAlmostEqual(n, m, delta=1e-9, msg=f"no number of mini-batches weighs that: {weights}")
        return done

    def times(self, done, waits):
        """Seconds of a mini-batch, by update and worker, with which the simulator counts as many."""
        begin, rows = 0, []
        busy = [0] * len(done[0])
        for row in done:
            end = begin + LENGTH
            times = []
            for rank, n in enumerate(row):
                length = end - max(begin, busy[rank])
                if waits or n == N:
                    times.append(length // n)
                else:  # The one under way ends a little after the update.
                    times.append(length // (n + 1) + UNIT)
                    busy[rank] = max(begin, busy[rank]) + (n + 1) * times[-1]
            rows.append([t / 1e9 for t in times])
            begin = end
        return rows

    def check(self, strategy, workers=4, nodes=1, updates=10, seed=3, unequal=True, **options):
        with self.subTest(strategy=strategy, workers=workers, nodes=nodes, **options):
            options.setdefault("sleep_ms", SLOW)
            run = self.quadratic("--strategy", strategy, "--seed", seed, workers=workers, nodes=nodes, updates=updates,
                                 x0=1, **options)
            normalise = next((w for w in "ad" if f"normalise={w}" in strategy), "b")
            waits = "inflight=wait" in strategy
            done = self.counted(run, workers, updates, normalise)
            if unequal:
                self.assertTrue(any(0 < n < N for row in done for n in row), "all were as fast: this shows nothing")
            rows, model = self.simulate_quadratic(strategy, workers, updates, seed, start=1,
                                                compute_s=self.times(done, waits))
            for (rank, step), row in rows.items():
                self.assertEqual(row["batches_done"], done[step][rank], f"the times of {rank} at {step}")
            for rank in range(workers):
                for step in run.steps(rank):
                    self.assertTrue(step["uniform"])
                    if step["update"] > 0:  # Updates of which it did nothing are gone through without it.
                        self.assertAlmostEqual(step["before"], rows[rank, step["update"] - 1]["model"][0], delta=1e-12,
                                               msg=f"{rank} at {step['update']}")
                self.assertAlmostEqual(run.final(rank), model, delta=1e-12)
            counted = sum(sum(row) for row in done)  # What a worker had that was stood in for is lost.
            self.assertIn(run.result()["samples"], range(counted, counted + workers * (N - 1) + 1))
            self.assertEqual(run.result()["abandoned_batches"], sum(N - n for row in done for n in row))
            run.done = done
            return run

    def test_models_are_those_of_the_simulator(self):
        for nodes in (1, 2):
            for strategy in ("d-psgd(ring)", "d-psgd(ring,order=atc)", "matcha(ring)", "hier-avg(k1=2,k2=4,group=2)"):
                self.check(f"nonblocking({strategy},batches=4)", nodes=nodes)

    def test_the_first_on_one_node_ends_the_updates_of_others(self):
        run = self.check("nonblocking(d-psgd(ring),batches=4)", nodes=2, updates=6, sleep_ms=[4, 4, 60, 60],
                         unequal=False)
        self.assertLess(max(n for row in run.done for n in row[2:]), N)

    def test_one_worker_is_serial(self):
        run = self.quadratic("--strategy", "nonblocking(d-psgd(ring),batches=4)", workers=1, updates=3, x0=8)
        self.assertEqual(run.final(0), 8 * 0.75**3)

    @in_release
    def test_every_reading_and_the_mini_batches_under_way(self):
        for strategy, nodes in (("nonblocking(d-psgd(ring),batches=4,normalise=a)", 2),
                                ("nonblocking(d-psgd(complete,order=atc),batches=4,normalise=d)", 2),
                                ("nonblocking(d-psgd(ring),batches=4,normalise=d)", 1),
                                ("nonblocking(d-psgd(ring),batches=4,inflight=wait)", 2),
                                ("nonblocking(matcha(ring,budget=1),batches=4,normalise=d,inflight=wait)", 1)):
            self.check(strategy, nodes=nodes)

    @in_release
    def test_other_numbers_of_workers_and_long_vectors(self):
        self.check("nonblocking(d-psgd(bipartite),batches=4)", workers=2, nodes=2)
        self.check("nonblocking(matcha(ring),batches=4)", workers=5, nodes=3)
        self.check("nonblocking(d-psgd(ring),batches=4)", nodes=2, elements=100_003, updates=5)

    @in_release
    def test_a_worker_that_is_never_in_time_only_mixes(self):
        # Nothing ends its mini-batches: after the grace its agent stands in for it.
        for order, nodes in (("cta", 1), ("atc", 2)):
            began = time.monotonic()
            run = self.check(f"nonblocking(d-psgd(ring,order={order}),batches=4)", nodes=nodes, updates=30,
                             sleep_ms=[4, 7, 5, 0], busy_ms=[0, 0, 0, 400])
            self.assertLess(len({step["update"] for step in run.steps(3)}), 15, "it was waited for")
            self.assertLess(time.monotonic() - began, 30 * 0.4)

    @in_release
    def test_evaluations_are_of_the_mean(self):
        run = self.check("nonblocking(d-psgd(ring),batches=4)", nodes=2, updates=12, evaluate_every=4)
        values = {event["update"]: event["value"] for event in run.metrics() if event["event"] == "evaluated"}
        self.assertEqual(values[12], run.final(0))

    @in_release
    def test_a_killed_worker_is_mixed_without(self):
        for strategy, nodes in (("d-psgd(ring)", 1), ("d-psgd(ring,order=atc),normalise=d", 2),
                                ("matcha(ring),inflight=wait", 2)):
            with self.subTest(strategy):
                run = self.start_quadratic("--strategy", f"nonblocking({strategy},batches=4)", nodes=nodes, updates=ENDLESS,
                                           sleep_ms=[2, 3, 2, 2])
                self.wait_for_update(run, 10)
                self.signal_worker(run, 3, signal.SIGKILL)
                self.end_after(run, 100)
                self.assertEqual(list(run.left()), [3])
                self.assertEqual(len({run.final(rank) for rank in range(3)}), 1)

    def test_a_frozen_worker_is_stood_in_for_and_comes_back(self):
        run = self.start_quadratic("--strategy", "nonblocking(d-psgd(ring),batches=4)", nodes=2, updates=ENDLESS,
                                   sleep_ms=[2, 2, 2, 2], fail="freeze", fail_rank=1, fail_update=40)
        self.wait_for_update(run, 40 + 100)
        steps = len(run.steps(1))
        self.signal_worker(run, 1, signal.SIGCONT)
        self.end_after(run, 100)
        self.assertEqual(run.left(), {})
        self.assertGreater(len(run.steps(1)), steps + 4, "it did not come back")
        self.assertEqual(len({run.final(rank) for rank in range(4)}), 1)

    def test_one_that_freezes_between_its_verdict_and_its_model_is_waited_for_and_leaves(self):
        run = self.start_quadratic("--strategy", "nonblocking(d-psgd(ring),batches=4)", nodes=2, updates=ENDLESS,
                                   sleep_ms=[2, 2, 2, 2], fail="freeze_in_step", fail_rank=1, fail_update=40)
        wait_until(run.left, 20, "it leaves")
        self.end_after(run, 50)
        self.assertEqual(list(run.left()), [1])
        self.assertIn("silent", run.left()[1])
        self.assertEqual(len({run.final(rank) for rank in (0, 2, 3)}), 1)

    def test_a_stop_is_at_one_version(self):
        run = self.quadratic("--strategy", "nonblocking(d-psgd(ring),batches=4)", nodes=2, updates=100_000,
                             sleep_ms=SLOW, stop_rank=2, stop_update=20)
        self.assertLess(run.result()["updates"], 100)
        self.assertEqual(len({run.final(rank) for rank in range(4)}), 1)


if __name__ == "__main__":
    main(at_once=3)
