"""Strategies on real processes, on one node and on two, against numbers that were worked out by hand.

The problem (quadratic_worker.cc): four workers, f_i(x) = a_i/2 (x - c_i)^2, a = (1,2,1,2), c = (0,4,8,12), learning
rate 1/4, all start at 0. Everything is a dyadic rational: what is compared must be equal, not close.
"""
import itertools
import unittest

from harness import IntegrationTest, main

CURVATURE = (1, 2, 1, 2)
CENTRE = (0, 4, 8, 12)
RATE = 0.25
ALLREDUCE = [2.5, 4.0625, 5.0390625]


def gradient(rank, x):
    return CURVATURE[rank % 4] * (x - CENTRE[rank % 4])


def allreduce(workers, updates, x=0.0):
    models = []
    for _ in range(updates):
        x -= RATE * sum(gradient(rank, x) for rank in range(workers)) / workers
        models.append(x)
    return models


class GoldenRuns:
    """Mixed into one class for one node and one for two."""
    nodes = 1

    def run_job(self, strategy, *flags, **options):
        return self.quadratic("--strategy", strategy, *flags, nodes=self.nodes, **options)

    def models(self, run, rank):
        """The model after each update, of one worker."""
        return [step["x"] for step in run.steps(rank) if step["outcome"] in ("apply", "moved")]

    def assert_models(self, run, expected, workers=4):
        for rank in range(workers):
            self.assertEqual(self.models(run, rank), expected, f"worker {rank}")
            self.assertTrue(all(step["uniform"] for step in run.steps(rank)), "elements of the model differ")

    def assert_same_final(self, run, workers=4):
        finals = [run.final(rank) for rank in range(workers)]
        self.assertNotIn(None, finals)
        self.assertEqual(len(set(finals)), 1, finals)
        return finals[0]

    def test_allreduce_makes_the_hand_worked_models(self):
        run = self.run_job("allreduce", updates=3)
        self.assert_models(run, ALLREDUCE)
        result = run.result()
        self.assertEqual((result["updates"], result["samples"], result["global_averages"]), (3, 12, 3))
        self.assertEqual((result["skipped_steps"], result["abandoned_batches"]), (0, 0))

    def test_every_element_of_a_long_vector_is_averaged(self):
        self.assert_models(self.run_job("allreduce", updates=3, elements=100_003), ALLREDUCE)

    def test_mini_batches_of_one_update_are_averaged(self):
        run = self.run_job("allreduce", "--accumulate", 4, updates=3)
        self.assert_models(run, ALLREDUCE)
        self.assertEqual(run.result()["samples"], 48)

    def test_a_number_of_workers_that_is_no_power_of_two_and_uneven_over_nodes(self):
        expected = allreduce(5, 3)
        run = self.run_job("allreduce", workers=5, updates=3)
        for rank in range(5):
            for found, wanted in zip(self.models(run, rank), expected, strict=True):
                self.assertAlmostEqual(found, wanted, delta=1e-12)
        self.assert_same_final(run, 5)

    def test_local_sgd_averages_models_after_two_steps_of_their_own(self):
        run = self.run_job("local-sgd(period=2)", updates=4)
        self.assert_models(run, [3.875, 5.44921875])
        self.assertEqual([step["x"] for step in run.steps(3) if step["outcome"] == "go_on"], [6.0, 7.9375])

    def test_wagma_with_a_sync_at_every_step_is_model_averaging(self):
        for strategy in ("wagma(group=2,sync=1)", "wagma(group=4,sync=1)"):
            self.assert_models(self.run_job(strategy, updates=3), ALLREDUCE)

    def test_wagma_agrees_at_every_sync_on_the_mean_of_what_was_published(self):
        run = self.run_job("wagma(group=2,sync=3)", updates=9, sleep_ms=[4, 6, 3, 8])
        for sync in (2, 5, 8):
            steps = [next(s for s in run.steps(rank) if s["update"] == sync) for rank in range(4)]
            mean = sum(step["before"] - RATE * step["gradient"] for step in steps) / 4
            for step in steps:
                self.assertAlmostEqual(step["x"], mean, delta=1e-12)
        self.assert_same_final(run)

    def test_nonblocking_counts_the_mini_batches_that_were_done(self):
        # Times of a mini-batch (1, 2.5, 1.5, 6.2): the first is done with four when the others have done 1, 2 and 0.
        unit = 60
        run = self.run_job("nonblocking(batches=4)", updates=2, sleep_ms=[unit, 2.5 * unit, 1.5 * unit, 6.2 * unit])
        self.assertEqual(self.models(run, 0), [0.375, 0.703125])
        self.assert_same_final(run)

    def test_nonblocking_keeps_replicas_equal_and_weighs_by_what_was_done(self):
        run = self.run_job("nonblocking(batches=4)", updates=12, sleep_ms=[5, 12, 8, 11])
        of_update = [{} for _ in range(12)]
        for rank in range(4):
            for step in run.steps(rank):
                of_update[step["update"]].setdefault(rank, []).append(step)
        for update, workers in enumerate(of_update):
            ends = [steps[-1] for steps in workers.values() if steps[-1]["outcome"] == "apply"]
            self.assertTrue(ends, f"nobody applied update {update}")
            self.assertEqual(len({step["x"] for step in ends}), 1, f"update {update}")
            # The last mini-batch that a worker noted may have been under way when the update ended.
            counts = [range(max(0, len(workers.get(rank, [])) - 2), len(workers.get(rank, [])) + 1) for rank in range(4)]
            x = ends[0]["before"]
            possible = {sum(min(n, 4) / 4 * gradient(rank, x) for rank, n in enumerate(done)) / 4
                        for done in itertools.product(*counts) if max(done) == 4}
            distance = min(abs(ends[0]["result"] - value) for value in possible)
            self.assertLess(distance, 1e-9, f"update {update}: no set of mini-batches gives {ends[0]['result']}")
        self.assert_same_final(run)

    def test_skipping_workers_are_counted_and_end_with_the_same_model(self):
        run = self.run_job("wagma(late=skip)", updates=60, sleep_ms=[2, 2, 2, 30])
        self.assert_same_final(run)
        self.assertGreater(run.result()["skipped_steps"], 0)

    def test_the_averaged_model_is_evaluated_where_it_was_asked_for(self):
        run = self.run_job("allreduce", updates=3, evaluate_every=1)
        values = [(event["update"], event["value"]) for event in run.metrics() if event["event"] == "evaluated"]
        self.assertEqual(values, list(zip([1, 2, 3], ALLREDUCE)))
        self.assertEqual(run.result()["test_accuracy"], ALLREDUCE[-1])

    def test_the_job_ends_once_the_target_is_reached(self):
        run = self.run_job("allreduce", updates=1000, evaluate_every=1, target=5, sleep_ms=[1])
        self.assert_models(run, ALLREDUCE)
        self.assertIsNotNone(run.result()["time_to_target_s"])


class OnOneNode(GoldenRuns, IntegrationTest):
    nodes = 1

    def test_one_worker_is_serial_sgd(self):
        for strategy in ("allreduce", "local-sgd(period=2)", "adacomm(period=2)", "nonblocking(batches=4)"):
            run = self.run_job(strategy, workers=1, updates=3, x0=8)
            self.assertEqual(run.final(0), 8 * 0.75 ** 3, strategy)


class OnTwoNodes(GoldenRuns, IntegrationTest):
    nodes = 2


if __name__ == "__main__":
    main()
