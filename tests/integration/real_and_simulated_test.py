"""Strategies of neighbourhoods on real processes, on one node and on two, against the simulator: the models after each
step and the last one are equal to 1e-12, whatever the delays were.

The problem is that of quadratic_worker.cc: a = (1,2,1,2), c = (0,4,8,12), repeated; learning rate 1/4, start 0.
"""
import json
import os
import signal

from harness import ENDLESS, IntegrationTest, in_release, main, wait_until

SLEEPS = [4, 7, 2, 5, 3]
BOTH = ["d-psgd(ring)", "d-psgd(ring,order=atc)", "d-psgd(complete)", "d-psgd(bipartite)", "matcha(ring)",
        "matcha(ring,budget=1)", "sgp", "sgp(peers=2)", "osgp", "hier-avg(k1=1,k2=4,group=2)", "hier-avg(k1=2,k2=4,group=2)"]


def go_on_without_a_killed_worker(test, strategy, nodes):
    run = test.start_quadratic("--strategy", strategy, "--restarts", "0", nodes=nodes, updates=ENDLESS, sleep_ms=[4])
    test.wait_for_update(run, 30)
    test.signal_worker(run, 3, signal.SIGKILL)
    test.end_after(run, 200)
    test.assertEqual(list(run.left()), [3])
    test.assertEqual({len(run.steps(rank)) for rank in range(3)}, {run.result()["updates"]})
    test.assertEqual(len({run.final(rank) for rank in range(3)}), 1)


class RealAndSimulated(IntegrationTest):
    def simulated(self, strategy, workers, steps, seed):
        rows, model = self.simulate_quadratic(strategy, workers, steps, seed)
        return {key: row["model"][0] for key, row in rows.items()}, model

    def check(self, strategy, workers=4, nodes=1, steps=9, seed=3, **options):
        with self.subTest(strategy=strategy, workers=workers, nodes=nodes):
            rows, model = self.simulated(strategy, workers, steps, seed)
            run = self.quadratic("--strategy", strategy, "--seed", seed, workers=workers, nodes=nodes, updates=steps,
                                 sleep_ms=SLEEPS, **options)
            for rank in range(workers):
                found = {step["update"]: step["x"] for step in run.steps(rank) if step["outcome"] == "moved"}
                self.assertEqual(sorted(found), list(range(steps)))
                for step in range(steps - 1):  # After the last everybody has the mean.
                    self.assertAlmostEqual(found[step], rows[rank, step], delta=1e-12, msg=f"{rank} after {step}")
                self.assertAlmostEqual(run.final(rank), model, delta=1e-12)
            return run

    def test_on_one_node(self):
        for strategy in BOTH:
            self.check(strategy)

    def test_on_two_nodes(self):
        for strategy in BOTH:
            self.check(strategy, nodes=2)

    def test_other_numbers_of_workers(self):
        self.check("d-psgd(ring)", workers=2)
        self.check("sgp", workers=3, nodes=2)
        self.check("matcha(ring)", workers=5, nodes=3)
        self.check("hier-avg(k1=2,k2=6,group=3)", workers=6, nodes=2)

    def test_long_vectors(self):
        for strategy in ("sgp", "d-psgd(ring)"):
            run = self.check(strategy, nodes=2, elements=100_003, steps=4)
            self.assertTrue(all(step["uniform"] for rank in range(4) for step in run.steps(rank)))

    def test_a_push_sum_that_overlaps_conserves_what_all_did(self):
        # When a share is taken depends on the delays; the mean of all is the start and all changes, whenever it is.
        for strategy, workers, nodes in (("osgp", 4, 1), ("osgp(bound=3)", 4, 2), ("osgp(peers=2,bound=2)", 5, 2)):
            with self.subTest(strategy):
                run = self.quadratic("--strategy", strategy, workers=workers, nodes=nodes, updates=20, sleep_ms=SLEEPS)
                changes = sum(-0.25 * step["gradient"] for rank in range(workers) for step in run.steps(rank))
                for rank in range(workers):
                    self.assertEqual(len(run.steps(rank)), 20)
                    self.assertAlmostEqual(run.final(rank), changes / workers, delta=1e-12)

    def test_evaluations_are_of_the_mean_and_change_nothing(self):
        for strategy, nodes in (("d-psgd(ring)", 1), ("sgp", 2), ("hier-avg(k1=1,k2=4,group=2)", 2)):
            run = self.check(strategy, nodes=nodes, evaluate_every=3, steps=12)
            rows, model = self.simulated(strategy, 4, 12, 3)
            values = {event["update"]: event["value"] for event in run.metrics() if event["event"] == "evaluated"}
            self.assertIn(12, values)
            self.assertGreater(len(values), 1)
            for update, value in values.items():  # Of sgp: all weights are 1 again after two exchanges, or the sum is.
                mean = sum(rows[rank, update - 1] for rank in range(4)) / 4 if update < 12 else model
                self.assertAlmostEqual(value, mean, delta=1e-12, msg=f"{strategy} after {update}")

    def test_a_stop_is_at_one_version(self):
        for nodes in (1, 2):
            run = self.quadratic("--strategy", "d-psgd(ring)", nodes=nodes, updates=100_000, sleep_ms=SLEEPS,
                                 stop_rank=2, stop_update=20)
            ends = {run.steps(rank)[-1]["update"] for rank in range(4)}
            self.assertEqual(len(ends), 1, ends)
            self.assertTrue(20 <= min(ends) < 40, ends)
            self.assertEqual(len({run.final(rank) for rank in range(4)}), 1)

    def test_a_stop_at_a_version_that_is_evaluated_ends_for_all(self):
        """Nothing that was given for the evaluation is a part of the end."""
        for stop in range(10, 18):
            run = self.quadratic("--strategy", "d-psgd(ring)", nodes=2, updates=100_000, sleep_ms=[1], evaluate_every=1, stop_rank=3, stop_update=stop)
            self.assertEqual(len({run.final(rank) for rank in range(4)}), 1)

    def test_the_job_ends_soon_after_the_target_is_reached(self):
        run = self.quadratic("--strategy", "sgp", updates=100_000, evaluate_every=5, target=4.5, sleep_ms=[1])
        self.assertIsNotNone(run.result()["time_to_target_s"])
        self.assertLess(run.steps(0)[-1]["update"], 1000)

    def test_the_others_go_on_without_a_dead_neighbour(self):
        for strategy, nodes in (("d-psgd(ring)", 1), ("sgp", 2), ("osgp(bound=2)", 2), ("hier-avg(k1=1,k2=4,group=2)", 1)):
            with self.subTest(strategy):
                go_on_without_a_killed_worker(self, strategy, nodes)

    def test_a_frozen_neighbour_leaves_when_it_was_awaited_too_long(self):
        run = self.start_quadratic("--strategy", "d-psgd(ring)", nodes=2, updates=ENDLESS, sleep_ms=[10])
        self.wait_for_update(run, 30)
        self.signal_worker(run, 1, signal.SIGSTOP)
        wait_until(run.left, 20, "the frozen worker leaves")
        self.end_after(run, 50)
        self.assertIn("silent", run.left()[1])
        self.assertEqual({len(run.steps(rank)) for rank in (0, 2, 3)}, {run.result()["updates"]})


class Views(IntegrationTest):
    """Workers join, are killed, come back and leave at any time, on processes: which updates each had a part in is in the
    run's record, and the simulator, told of that, has the same models."""

    def averaged(self, run, strategy):
        """Version of an average of all -> whose contributions were in it."""
        shown = self.paceline("replay", run.run_directory, "--decisions", "--json")
        self.assertEqual(shown.code, 0, shown.said())
        executed, members = set(), {}
        for line in map(json.loads, shown.out.splitlines()):
            if line["kind"] == "sealed":
                there = {one["worker"] for one in line["contributions"] if one.get("iteration") == line["version"]}
                members.setdefault(line["version"], set()).update(there)
            elif line["kind"] == "executed":
                executed.add(line["version"])
        return {version: there for version, there in sorted(members.items()) if version in executed}

    def check(self, strategy, nodes):
        with self.subTest(strategy=strategy, nodes=nodes):
            run = self.start_quadratic("--strategy", strategy, "--begin-with", 4, nodes=nodes, workers=6, updates=ENDLESS, sleep_ms=[2, 3, 2, 6, 3, 2],
                                       goes_on_writing=True)
            back = lambda: sum(event.get("event") == "returned" for event in run.metrics())
            gone = lambda: sum(event.get("event") == "left" and event.get("drained", False) for event in run.metrics())
            self.wait_for_update(run, 20)
            self.assertEqual(self.paceline("scale", 1, 6).code, 0)
            wait_until(lambda: back() == 2, 20, "two join", run)
            self.wait_for_update(run, run.update() + 10)
            self.signal_worker(run, 3, signal.SIGKILL)
            wait_until(lambda: back() == 3, 20, "it is back", run)
            self.assertEqual(self.paceline("scale", 1, 3).code, 0)
            wait_until(lambda: gone() == 3, 20, "three leave", run)
            self.wait_for_update(run, run.update() + 10)
            self.assertEqual(self.paceline("scale", 1, 5).code, 0)
            wait_until(lambda: back() == 5, 20, "two join", run)
            self.end_after(run, 20)
            members = self.averaged(run, strategy)
            before, after, views = set(range(6)), -1, []
            for version, there in members.items():
                if there != before:
                    views.append({"after": after, "leave": sorted(before - there), "join": sorted(there - before)})
                before, after = there, version
            views = [{key: value for key, value in view.items() if value != []} for view in views]
            self.assertGreaterEqual(len(views), 5)
            rows, model = self.simulate_quadratic(strategy, 6, after + 1, views=views)
            compared = 0
            for rank in range(6):
                for step in run.steps(rank):
                    row = rows.get((rank, step["update"]))
                    if row is None or step["x"] is None or rank not in members.get(step["update"], ()):
                        continue
                    self.assertAlmostEqual(step["x"], row["model"][0], delta=1e-12, msg=f"{rank} after {step['update']}, {views}")
                    compared += 1
            self.assertGreaterEqual(compared, sum(map(len, members.values())) - 6, "but of those that were killed")
            for rank in before:
                final = [line["final"] for line in run.output(rank) if "final" in line][-1]  # Of its last process.
                self.assertAlmostEqual(final, model, delta=1e-12)
            self.assert_nobody_left()

    def test_allreduce(self):
        self.check("allreduce", 2)

    @in_release
    def test_on_one_node(self):
        for strategy in ("allreduce", "local-sgd(period=3)", "post-local(period=2,warmup=30)", "slowmo(period=3)", "bmuf(period=2)", "diloco(period=4)",
                         "qsr(base=2,alpha=0.7)", "server(sync)"):
            self.check(strategy, 1)

    @in_release
    def test_on_two_nodes(self):
        for strategy in ("local-sgd(period=3)", "diloco(period=2)", "bmuf(period=3,nesterov)"):
            self.check(strategy, 2)


class Exchanges(IntegrationTest):
    """Workers exchange at some iterations only, and make an outer step with what they get."""

    def check(self, strategy, workers=4, nodes=1, steps=14, elements=1, watch=(0,), seed=3, plain=None, **options):
        """`watch`: a place in the vector of the run for each of the simulator's; `plain`: what the last of them, which
        get no outer step, do."""
        with self.subTest(strategy=strategy, workers=workers, nodes=nodes):
            rows, _ = self.simulate_quadratic(strategy, workers, steps, seed, elements=len(watch))
            rest, _ = self.simulate_quadratic(plain or strategy, workers, steps, seed, elements=len(watch))
            tail = len(watch) - 1 if plain else len(watch)
            expected = {key: row["model"][:tail] + rest[key]["model"][tail:] for key, row in rows.items()}
            run = self.quadratic("--strategy", strategy, "--seed", seed, workers=workers, nodes=nodes, updates=steps,
                                 sleep_ms=SLEEPS, elements=elements, watch=list(watch), **options)
            for rank in range(workers):
                found = {step["update"]: step["watched"] for step in run.steps(rank)}
                self.assertEqual(sorted(found), list(range(steps)))
                for step in range(steps):
                    want = expected[rank, step]
                    if step == steps - 1:  # Everybody has the mean.
                        want = [sum(expected[i, step][k] for i in range(workers)) / workers for k in range(len(watch))]
                    for place, x, y in zip(watch, found[step], want):
                        self.assertAlmostEqual(x, y, delta=1e-12, msg=f"{place} of {rank} after {step}")
            return run

    def test_pairs(self):
        self.check("noloco(period=3)")
        self.check("noloco(period=1,lr=0.5,momentum=0.3,gamma=0.6)", nodes=2)
        self.check("noloco(period=2)", workers=5, nodes=3)  # One is left alone each time.
        self.check("noloco(period=4)", workers=1, nodes=1)

    def test_parts(self):
        # Seven numbers in three parts: 0 1, 2 3, 4 5 6.
        for nodes in (1, 2):
            self.check("streaming-diloco(period=6,fragments=3,delay=1)", nodes=nodes, elements=7, watch=range(7))
        self.check("streaming-diloco(period=3,fragments=1,delay=2,alpha=0.25)", workers=3, nodes=2)
        self.check("streaming-diloco(period=4,fragments=2,delay=0,alpha=0)", workers=1, elements=2, watch=(0, 1))
        self.check("streaming-diloco(period=4,fragments=4,delay=0)", elements=2, watch=(0, 1))  # Parts with nothing.

    def test_long_vectors(self):
        self.check("noloco(period=2)", nodes=2, elements=100_003, watch=(0, 50_000, 100_002), steps=6)
        # The first and last numbers of three parts; in the simulator as many parts of two.
        self.check("streaming-diloco(period=3,fragments=3,delay=0)", nodes=2, elements=100_003, steps=8,
                   watch=(0, 33_333, 33_334, 66_667, 66_668, 100_002))

    def test_numbers_without_an_outer_step_are_averaged(self):
        self.check("noloco(period=2)", nodes=2, elements=5, outer_elements=4, watch=(0, 3, 4),
                   plain="noloco(period=2,lr=1,momentum=0,gamma=1)")
        self.check("streaming-diloco(period=4,fragments=2,delay=1)", nodes=2, elements=8, outer_elements=6,
                   watch=(0, 3, 4, 6), plain="streaming-diloco(period=4,fragments=2,delay=1,lr=1,momentum=0)")

    def test_workers_are_silent_between_exchanges(self):
        run = self.check("noloco(period=7)", steps=21)
        self.assertEqual([step["update"] for step in run.steps(1) if step["outcome"] == "moved"], [6, 13, 20])
        with open(os.path.join(run.run_directory, "trace.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        told = [event["args"]["update"] for event in events if event.get("cat") == "publish" and event["tid"] == 2]
        self.assertEqual(told, [6, 13, 20])

    def test_a_worker_that_is_slow_but_computes_is_waited_for(self):
        # Longer than patience, which is 5 s.
        run = self.quadratic("--strategy", "noloco(period=60)", workers=2, updates=60, sleep_ms=[0, 110])
        self.assertFalse(run.left())
        self.assertEqual(len(run.steps(1)), 60)

    def test_evaluations_are_of_the_mean_and_change_nothing(self):
        for strategy, nodes in (("noloco(period=2)", 2), ("streaming-diloco(period=4,fragments=2,delay=1)", 1)):
            run = self.check(strategy, nodes=nodes, evaluate_every=3, elements=2, watch=(0, 1), steps=12)
            rows, _ = self.simulate_quadratic(strategy, 4, 12, 3, elements=2)
            values = {event["update"]: event["value"] for event in run.metrics() if event["event"] == "evaluated"}
            self.assertIn(12, values)
            self.assertGreater(len(values), 1)
            for update, value in values.items():
                mean = sum(rows[rank, update - 1]["model"][0] for rank in range(4)) / 4
                self.assertAlmostEqual(value, mean, delta=1e-12, msg=f"{strategy} after {update}")

    def test_a_stop_is_at_one_version(self):
        for strategy, nodes in (("noloco(period=4)", 2), ("streaming-diloco(period=8,fragments=2,delay=2)", 1)):
            run = self.quadratic("--strategy", strategy, nodes=nodes, updates=100_000, sleep_ms=SLEEPS, stop_rank=2,
                                 stop_update=20)
            ends = {run.steps(rank)[-1]["update"] for rank in range(4)}
            self.assertEqual(len(ends), 1, ends)
            self.assertTrue(20 <= min(ends) < 60, ends)
            self.assertEqual(len({run.final(rank) for rank in range(4)}), 1)

    def test_the_others_go_on_without_a_dead_partner(self):
        for strategy, nodes in (("noloco(period=3)", 2), ("streaming-diloco(period=6,fragments=2,delay=1)", 1)):
            with self.subTest(strategy):
                go_on_without_a_killed_worker(self, strategy, nodes)


if __name__ == "__main__":
    main(at_once=3)
