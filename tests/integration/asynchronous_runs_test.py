"""Asynchronous strategies on real processes, on one node and on two. In which order workers meet differs from run to run;
what must hold is that there was an order: one that explains every model that a worker was given, and the last one.

The problem is that of quadratic_worker.cc: a = (1,2,1,2), c = (0,4,8,12), repeated; learning rate 1/4, start 0.
"""
import signal
import time

from harness import ENDLESS, IntegrationTest, NODES, in_release, main, wait_until

RATE = 0.25
SLEEPS = [4, 7, 2, 5, 3]


def change(step):
    return -RATE * step["gradient"]


def close(a, b):
    return abs(a - b) <= 1e-12 * max(1, abs(a), abs(b))


def explained(workers, state, happen, final):
    """Is there an order of all the workers' steps that leads to what each was given, and to the model at the end?

    `workers`: steps of each; `happen(state, rank, step)`: the state after it and the model that the worker is given;
    `final(state)`: is it the one that the job ended with? After its last step a worker is given the mean of all: those
    steps may come anywhere.
    """
    stack = [(state, (0,) * len(workers))]
    while stack:
        state, done = stack.pop()
        if all(n == len(steps) for n, steps in zip(done, workers)):
            if final(state):
                return True
            continue
        possible = []
        for rank, steps in enumerate(workers):
            if done[rank] == len(steps):
                continue
            after, given = happen(state, rank, steps[done[rank]])
            last = done[rank] + 1 == len(steps)
            if last or close(given, steps[done[rank]]["x"]):
                possible.append((not last, after, done[:rank] + (done[rank] + 1,) + done[rank + 1:]))
        stack += [(after, done) for _, after, done in sorted(possible, key=lambda way: way[0])]
    return False


class AsynchronousRuns(IntegrationTest):
    def steps_of(self, run, workers, updates):
        steps = [run.steps(rank) for rank in range(workers)]
        for rank in range(workers):
            self.assertEqual([step["update"] for step in steps[rank]], list(range(updates)))
            self.assertTrue(all(step["uniform"] for step in steps[rank]), "elements of the model differ")
            for one, next_one in zip(steps[rank], steps[rank][1:]):
                self.assertEqual(one["x"], next_one["before"])
        return steps

    def final_of(self, run, workers):
        finals = {run.final(rank) for rank in range(workers)}
        self.assertEqual(len(finals), 1, finals)
        return finals.pop()

    def check_ends_apart(self, run, strategy, workers=4):
        """How many iterations each worker has done."""
        steps = [run.steps(rank) for rank in range(workers)]
        for rank in range(workers):
            self.assertEqual([step["update"] for step in steps[rank]], list(range(len(steps[rank]))))
        done = [len(each) for each in steps]
        self.assertEqual(max(done), run.result()["updates"])
        total = sum(change(step) for each in steps for step in each)
        expected = total if strategy.startswith("server") else total / workers
        self.assertAlmostEqual(self.final_of(run, workers), expected, delta=1e-9)
        return done

    # The server -------------------------------------------------------------------------------------------------------

    def test_the_server_takes_every_step_one_by_one(self):
        for strategy, scale, workers, nodes, options in (
                ("server(async)", 1, 4, 1, {}), ("server(async)", 1, 4, 2, {}), ("server(async,scale=p)", 1 / 5, 5, 2, {}),
                ("server(async)", 1, 4, 2, {"elements": 100_003})):
            with self.subTest(strategy, workers=workers, nodes=nodes):
                run = self.quadratic("--strategy", strategy, workers=workers, nodes=nodes, updates=12, sleep_ms=SLEEPS,
                                     **options)
                steps = self.steps_of(run, workers, 12)

                def push(server, _rank, step):
                    return server + scale * change(step), server + scale * change(step)

                final = self.final_of(run, workers)
                self.assertTrue(explained(steps, 0.0, push, lambda server: close(final, server)),
                                "no order of the pushes explains the models that were given")
                self.assertEqual(run.result()["group_averages"], 12 * workers)

    def test_staleness_divides_a_push_by_how_many_came_in_between(self):
        run = self.quadratic("--strategy", "server(async,scale=staleness)", nodes=2, updates=12, sleep_ms=SLEEPS)
        steps = self.steps_of(run, 4, 12)

        def push(state, rank, step):
            server, pushes, pulled = state
            server += change(step) / max(1, pushes - pulled[rank])
            return (server, pushes + 1, pulled[:rank] + (pushes + 1,) + pulled[rank + 1:]), server

        final = self.final_of(run, 4)
        self.assertTrue(explained(steps, (0.0, 0, (0,) * 4), push, lambda state: close(final, state[0])))

    def test_a_bound_of_0_is_rounds_as_in_the_simulator(self):
        _, model = self.simulate_quadratic("server(bounded=0)", 4, 9)
        for nodes in NODES:
            run = self.quadratic("--strategy", "server(bounded=0)", nodes=nodes, updates=9, sleep_ms=SLEEPS,
                                 evaluate_every=3)
            x, befores = 0.0, []
            for _ in range(9):
                befores.append(x)
                x -= RATE * sum((1, 2, 1, 2)[i] * (x - (0, 4, 8, 12)[i]) for i in range(4))
            self.assertTrue(close(x, model))
            for steps in self.steps_of(run, 4, 9):
                for step, before in zip(steps, befores):
                    self.assertTrue(close(step["before"], before), step)
            self.assertTrue(close(self.final_of(run, 4), model))
            values = {event["update"]: event["value"] for event in run.metrics() if event["event"] == "evaluated"}
            self.assertIn(9, values)
            self.assertGreater(len(values), 1)
            for update, value in values.items():  # The server's model when so many iterations were done on average.
                self.assertTrue(close(value, (befores + [x])[update]), f"after {update}: {value}")

    # Pairs ------------------------------------------------------------------------------------------------------------

    def test_two_models_meet_at_once_and_no_step_is_lost(self):
        for strategy, workers, nodes, options in (
                ("ad-psgd", 2, 1, {}), ("ad-psgd", 4, 1, {}), ("ad-psgd", 4, 2, {}), ("ad-psgd(bipartite)", 4, 2, {}),
                ("ad-psgd", 5, 3, {}), ("ad-psgd", 4, 2, {"elements": 100_003})):
            with self.subTest(strategy, workers=workers, nodes=nodes, **options):
                updates = 12
                rows, _ = self.simulate_quadratic(strategy, workers, updates, seed=3)
                run = self.quadratic("--strategy", strategy, "--seed", 3, workers=workers, nodes=nodes, updates=updates,
                                     sleep_ms=SLEEPS, **options)
                steps = self.steps_of(run, workers, updates)

                def meet(models, rank, step):
                    models = list(models)
                    partner = [other for other in rows[rank, step["update"]]["group"] if other != rank]
                    if partner:
                        models[rank] = models[partner[0]] = (models[rank] + models[partner[0]]) / 2
                    models[rank] += change(step)
                    return tuple(models), models[rank]

                final = self.final_of(run, workers)
                self.assertTrue(explained(steps, (0.0,) * workers, meet, lambda models: close(final, sum(models) / workers)),
                                "no order of the meetings explains the models that were given")
                total = sum(change(step) for of in steps for step in of)
                self.assertTrue(close(final, total / workers))

    # Slow, dead and frozen workers --------------------------------------------------------------------------------------

    def wait_for_steps(self, run, ranks, steps):
        def reached():
            self.assertIsNone(run.process.poll(), run.said())
            return all(len(run.steps(rank)) >= steps for rank in ranks)
        wait_until(reached, 30, f"{steps} steps of {ranks}", run)

    @in_release
    def test_nobody_waits_for_a_slow_worker_nor_for_a_dead_one(self):
        for strategy, nodes in (("server(async)", 1), ("server(async)", 2), ("ad-psgd", 1), ("ad-psgd", 2)):
            with self.subTest(strategy, nodes=nodes):
                run = self.start_quadratic("--strategy", strategy, "--restarts", 0, nodes=nodes, updates=40, sleep_ms=[4, 4, 4, 60_000])
                self.wait_for_steps(run, (0, 1, 2), 39)  # All but the one that ends with the mean.
                self.assertEqual(run.steps(3), [])
                self.signal_worker(run, 3, signal.SIGKILL)
                self.assertEqual(run.wait(), 0, run.said())
                self.assertEqual(list(run.left()), [3])
                self.steps_of(run, 3, 40)
                self.final_of(run, 3)

    def test_a_bound_makes_the_fast_wait_for_the_slowest_until_it_is_gone(self):
        for nodes in NODES:
            run = self.start_quadratic("--strategy", "server(bounded=2)", "--restarts", 0, nodes=nodes, updates=40,
                                       sleep_ms=[4, 4, 4, 60_000])
            self.wait_for_steps(run, (0, 1, 2), 2)
            time.sleep(0.5)
            self.assertEqual([len(run.steps(rank)) for rank in range(4)], [2, 2, 2, 0])
            self.signal_worker(run, 3, signal.SIGKILL)
            self.assertEqual(run.wait(), 0, run.said())
            self.steps_of(run, 3, 40)
            self.final_of(run, 3)

    def test_a_worker_that_dies_in_the_middle_of_it_all(self):
        for strategy in ("server(async)", "ad-psgd"):
            run = self.start_quadratic("--strategy", strategy, "--restarts", 0, nodes=2, updates=ENDLESS, sleep_ms=[1, 2, 1, 1])
            self.wait_for_steps(run, range(4), 30)
            self.signal_worker(run, 2, signal.SIGKILL)
            wait_until(run.left, 10, "worker 2 leaves")
            self.wait_for_steps(run, (0, 1, 3), len(run.steps(1)) + 100)
            self.enough(run)
            self.assertEqual(list(run.left()), [2])
            self.assertEqual(max(len(run.steps(rank)) for rank in (0, 1, 3)), run.result()["updates"])

    @in_release
    def test_a_frozen_worker_leaves_when_others_have_waited_for_it(self):
        # For the end; for the bound.
        for strategy, rank in (("ad-psgd", 1), ("server(bounded=2)", 3)):
            with self.subTest(strategy):
                run = self.start_quadratic("--strategy", strategy, nodes=2, updates=ENDLESS, sleep_ms=[3])
                others = [other for other in range(4) if other != rank]
                self.wait_for_steps(run, range(4), 5)
                self.signal_worker(run, rank, signal.SIGSTOP)
                self.wait_for_steps(run, others, len(run.steps(rank)) + 50)
                self.enough(run)
                self.assertIn("silent", run.left()[rank])
                self.assertEqual(max(len(run.steps(other)) for other in others), run.result()["updates"])

    # Ends -------------------------------------------------------------------------------------------------------------

    def test_a_stop_ends_each_worker_where_it_is(self):
        # Worker 3 would need seconds to come to where the others are. No step is lost, and none is taken twice: whatever
        # the order was, the server's model, or the mean of all workers', is the sum of all steps.
        for strategy, nodes in (("server(async)", 1), ("server(async)", 2), ("ad-psgd", 1), ("ad-psgd", 2)):
            with self.subTest(strategy, nodes=nodes):
                run = self.quadratic("--strategy", strategy, nodes=nodes, updates=100_000, sleep_ms=[4, 6, 5, 400],
                                     stop_rank=2, stop_update=100)
                done = self.check_ends_apart(run, strategy)
                self.assertLess(done[3], done[2] / 4)

    def test_also_where_a_bound_holds_workers_back(self):
        # All but worker 3 wait for it when the stop comes.
        for nodes in NODES:
            with self.subTest(nodes=nodes):
                run = self.quadratic("--strategy", "server(bounded=2)", nodes=nodes, updates=100_000,
                                     sleep_ms=[4, 6, 5, 100], stop_rank=3, stop_update=4)
                self.check_ends_apart(run, "server(bounded=2)")

    @in_release
    def test_the_job_ends_soon_after_the_target_is_reached(self):
        for strategy, nodes in (("server(async)", 1), ("ad-psgd", 2)):
            run = self.quadratic("--strategy", strategy, nodes=nodes, updates=100_000, evaluate_every=5, target=4.5,
                                 sleep_ms=[2])
            self.assertIsNotNone(run.result()["time_to_target_s"])
            self.assertLess(run.steps(0)[-1]["update"], 2000)

    @in_release
    def test_one_worker_is_serial_sgd(self):
        for strategy in ("server(async)", "server(bounded=1)", "ad-psgd"):
            run = self.quadratic("--strategy", strategy, workers=1, updates=3, x0=8)
            self.assertEqual(run.final(0), 8 * 0.75 ** 3, strategy)


if __name__ == "__main__":
    main(at_once=3)
