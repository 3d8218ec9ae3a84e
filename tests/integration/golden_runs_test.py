"""Strategies on real processes, on one node and on two, against numbers that were worked out by hand.

The problem (quadratic_worker.cc): four workers, f_i(x) = a_i/2 (x - c_i)^2, a = (1,2,1,2), c = (0,4,8,12), learning
rate 1/4, all start at 0. Everything is a dyadic rational: what is compared must be equal, not close.
"""
import itertools

from harness import IntegrationTest, in_release, main

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


def outer_blocks(blocks, workers=4, period=2, **rule):
    """Where each block of an outer step ends (w), and where the next one starts: from 0 on."""
    w = start = buffer = 0.0
    ends, starts = [], []
    for _ in range(blocks):
        models = []
        for rank in range(workers):
            x = start
            for _ in range(period):
                x -= RATE * gradient(rank, x)
            models.append(x)
        mean = sum(models) / workers
        if "eta" in rule:  # BMUF
            buffer = rule["eta"] * buffer + mean - start
            w += buffer
            start = w + rule["eta"] * buffer if rule.get("nesterov") else w
        elif "beta" in rule:  # SlowMo; AdaComm's block momentum with alpha = 1
            buffer = rule["beta"] * buffer + (start - mean) / RATE
            w = start = start - rule["alpha"] * RATE * buffer
        else:  # DiLoCo
            buffer = rule["mu"] * buffer + start - mean
            w = start = start - rule["lr"] * (start - mean + rule["mu"] * buffer)
        ends.append(w)
        starts.append(start)
    return ends, starts


def eager(updates, sync, workers, late, accumulates=True):
    """eager-sgd whose late workers miss all versions between two syncs: each worker's model after each update."""
    x = [0.0] * workers
    owed = [0.0] * workers
    models = [[] for _ in range(workers)]
    for first in range(0, updates, sync):
        means = []
        for version in range(first, first + sync - 1):
            means.append(sum(gradient(rank, x[rank]) for rank in range(workers) if rank not in late) / workers)
            for rank in range(workers):
                if rank not in late:
                    x[rank] -= RATE * means[-1]
                    models[rank].append(x[rank])
        for rank in late:
            for version in range(first, first + sync - 1):
                owed[rank] += gradient(rank, x[rank]) if accumulates else 0
                x[rank] -= RATE * means[-1]
                models[rank].append(x[rank])
        x = [x[rank] - RATE * (gradient(rank, x[rank]) + owed[rank]) for rank in range(workers)]
        owed = [0.0] * workers
        x = [sum(x) / workers] * workers
        for rank in range(workers):
            models[rank].append(x[rank])
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

    def assert_close(self, run, expected, workers=4):
        for rank in range(workers):
            for found, wanted in zip(self.models(run, rank), expected, strict=True):
                self.assertAlmostEqual(found, wanted, delta=1e-12, msg=f"worker {rank}")

    def test_other_names_of_local_sgd(self):
        self.assert_models(self.run_job("k-avg(period=2)", updates=4), [3.875, 5.44921875])
        self.assert_models(self.run_job("one-shot", updates=4), [5.1171875])

    def test_post_local_averages_gradients_first_and_models_then(self):
        warm = ALLREDUCE[1]
        first, second = [], []
        for start, out in ((warm, first), (None, second)):
            start = first[0] if start is None else start
            ends = [start] * 4
            for _ in range(2):
                ends = [x - RATE * gradient(rank, x) for rank, x in enumerate(ends)]
            out.append(sum(ends) / 4)
        run = self.run_job("post-local(period=2,warmup=2)", updates=6)
        self.assert_models(run, ALLREDUCE[:2] + first + second)
        self.assert_same_final(run)
        # A job that ends in the warm-up; and one whose second phase waits for nobody.
        self.assert_models(self.run_job("post-local(period=2,warmup=10)", updates=3), ALLREDUCE)
        run = self.run_job("post-local(period=2,warmup=2,late=skip,grace=30ms)", updates=30, sleep_ms=[2, 2, 2, 60])
        self.assertEqual(self.models(run, 0)[:2], ALLREDUCE[:2])
        self.assert_same_final(run)
        self.assertGreater(run.result()["skipped_steps"], 0)

    def test_eager_sgd_applies_what_is_there_and_the_late_apply_the_newest(self):
        for strategy, late, accumulates in (("eager-sgd(solo,sync=3)", [1], True),
                                            ("eager-sgd(solo,sync=3,late=drop)", [1], False),
                                            ("eager-sgd(quorum=3,sync=3)", [3], True),
                                            ("eager-sgd(quorum=4,sync=2)", [], True)):
            with self.subTest(strategy):
                workers, sync = (2, 3) if "solo" in strategy else (4, 2 if not late else 3)
                # The late sleep while the others do all versions up to the sync; first of all everybody comes in.
                rest = [0] * (sync - 1)
                patient, slow = [200, *rest, 0, *rest], [700, *rest, 300, *rest]
                sleeps = [slow if rank in late else patient for rank in range(workers)] if late else []
                run = self.run_job(strategy, workers=workers, updates=2 * sync, sleep_ms=sleeps)
                for rank, expected in enumerate(eager(2 * sync, sync, workers, late, accumulates)):
                    self.assertEqual(self.models(run, rank), expected, f"worker {rank}")
                self.assert_same_final(run, workers)

    def test_eager_sgd_counts_every_late_gradient_once(self):
        run = self.run_job("eager-sgd(majority,sync=10,late=drop)", updates=30, sleep_ms=[4, 6, 3, 8])
        for sync in (9, 19, 29):
            steps = [next(s for s in run.steps(rank) if s["update"] == sync) for rank in range(4)]
            mean = sum(step["before"] - RATE * step["gradient"] for step in steps) / 4
            for step in steps:
                self.assertAlmostEqual(step["x"], mean, delta=1e-12)
        self.assert_same_final(run)

    def test_the_quadratic_rule_sets_the_period_from_the_learning_rate(self):
        x, models = [0.0] * 4, []
        for step in range(10):
            x = [v - RATE * gradient(rank, v) for rank, v in enumerate(x)]
            if step in (0, 4, 8, 9):  # base, then (alpha / rate)^2 = 4 steps each, and the end
                x = [sum(x) / 4] * 4
                models.append(x[0])
        self.assert_close(self.run_job("qsr(base=1,alpha=0.5)", updates=10), models)

    def test_a_server_in_rounds_is_allreduce(self):
        self.assert_models(self.run_job("server(sync)", updates=3), ALLREDUCE)
        run = self.run_job("nonblocking(server,batches=4)", updates=12, sleep_ms=[12, 30, 20, 25])
        self.assert_same_final(run)
        self.assertGreater(run.result()["abandoned_batches"], 0)

    def test_outer_steps_follow_the_average_of_a_block(self):
        golden = [3.875, 7.38671875, 8.6317138671875]
        for strategy, rule in (("slowmo(period=2,beta=0.5)", {"beta": 0.5, "alpha": 1}),
                               ("slowmo(period=2,beta=0.25,alpha=0.5)", {"beta": 0.25, "alpha": 0.5}),
                               ("adacomm(period=2,block_momentum=0.5)", {"beta": 0.5, "alpha": 1}),
                               ("diloco(period=2,lr=0.7,momentum=0.9)", {"lr": 0.7, "mu": 0.9}),
                               ("bmuf(period=2,classic)", {"eta": 0.75})):
            with self.subTest(strategy):
                ends, _ = outer_blocks(3, **rule)
                if rule == {"beta": 0.5, "alpha": 1}:
                    self.assertEqual(ends, golden)
                run = self.run_job(strategy, updates=6)
                self.assert_close(run, ends)
                self.assert_same_final(run)

    def test_the_last_block_of_nesterov_bmuf_ends_with_its_model_not_with_the_next_start(self):
        ends, starts = outer_blocks(3, eta=0.75, nesterov=True)
        run = self.run_job("bmuf(period=2,nesterov)", updates=6)
        self.assert_close(run, [starts[0], starts[1], ends[2]])
        self.assertAlmostEqual(self.assert_same_final(run), ends[2], delta=1e-12)

    def test_strided_groups_take_any_number_of_workers(self):
        run = self.run_job("wagma(group=3,sync=3,grouping=strided)", workers=6, updates=6, sleep_ms=[4, 6, 3, 8, 5, 2])
        for sync in (2, 5):
            steps = [next(s for s in run.steps(rank) if s["update"] == sync) for rank in range(6)]
            mean = sum(step["before"] - RATE * step["gradient"] for step in steps) / 6
            for step in steps:
                self.assertAlmostEqual(step["x"], mean, delta=1e-12)
        self.assert_same_final(run, 6)

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

    def late_wagma(self, strategy):
        """Two workers: one does the three versions up to a sync while the start of the other stands in for it."""
        run = self.run_job(strategy, workers=2, updates=4, x0=8, sleep_ms=[[200, 0, 0, 0], [700, 0, 0, 0]])
        return [[step["x"] for step in run.steps(rank)] for rank in range(2)]

    def assert_both_close(self, found, expected, strategy):
        for rank in range(2):
            for a, b in zip(found[rank], expected[rank], strict=True):
                self.assertAlmostEqual(a, b, delta=1e-12, msg=f"{strategy}, worker {rank}: {found} {expected}")

    def test_the_late_merge_with_the_version_that_they_missed_or_with_the_newest(self):
        first, late, sums = [8.0], [8.0], []
        for _ in range(3):
            sums.append(first[-1] - RATE * gradient(0, first[-1]) + 8)
            first.append(sums[-1] / 2)
        for strategy, merged in (("wagma(group=2,sync=4,late_merge=version)", sums),
                                 ("wagma(group=2,sync=4)", [sums[-1]] * 3)):
            late = [8.0]
            for total in merged:
                late.append((total + late[-1] - RATE * gradient(1, late[-1])) / 3)
            mean = sum(xs[-1] - RATE * gradient(rank, xs[-1]) for rank, xs in enumerate((first, late))) / 2
            self.assert_both_close(self.late_wagma(strategy), [xs[1:] + [mean] for xs in (first, late)], strategy)

    def test_wagma_as_its_authors_program_averages_the_starts_and_counts_ones_own_again(self):
        first, late = [8.0], [8.0]
        for _ in range(3):
            newest = first[-1] + 8
            first.append((newest + first[-1]) / 3 - RATE * gradient(0, first[-1]))
        for _ in range(3):
            late.append((newest + late[-1]) / 3 - RATE * gradient(1, late[-1]))
        mean = (first[-1] + late[-1]) / 2
        expected = [xs[1:] + [mean - RATE * gradient(rank, xs[-1])] for rank, xs in enumerate((first, late))]
        strategy = "wagma(group=2,sync=4,parity=code)"
        self.assert_both_close(self.late_wagma(strategy), expected, strategy)

    def test_wagmas_syncs_may_move(self):
        run = self.run_job("wagma(group=2,sync=qsr(base=2,alpha=0.5))", updates=10, sleep_ms=[4, 6, 3, 8])
        for sync in (1, 5, 9):  # base, then (alpha / rate)^2 = 4 steps each
            steps = [next(s for s in run.steps(rank) if s["update"] == sync) for rank in range(4)]
            mean = sum(step["before"] - RATE * step["gradient"] for step in steps) / 4
            for step in steps:
                self.assertAlmostEqual(step["x"], mean, delta=1e-12)
        self.assertEqual(run.result()["global_averages"], 3)
        self.assert_same_final(run)

    def test_averages_of_two_strategies_in_one_list(self):
        x, models = [0.0] * 4, []
        for step in range(8):
            x = [v - RATE * gradient(rank, v) for rank, v in enumerate(x)]
            if step in (1, 2, 3, 5, 7):
                x = [sum(x) / 4] * 4
                models.append(x[0])
        self.assert_close(self.run_job("tiers(local-sgd(period=2),k-avg(period=3))", updates=8), models)

    def test_groups_and_syncs_that_wait_for_all_or_take_the_late_in_at_once(self):
        # Syncs of all at 2, 5, 8; those at 3, 7 and 11 are joined at once by whoever is behind.
        run = self.run_job("tiers(wagma(group=2,sync=3),local-sgd(period=4,late=skip))", updates=12,
                           sleep_ms=[4, 6, 3, 60])
        for sync in (2, 5, 8):
            steps = [next(s for s in run.steps(rank) if s["update"] == sync) for rank in range(4)]
            mean = sum(step["before"] - RATE * step["gradient"] for step in steps) / 4
            for step in steps:
                self.assertAlmostEqual(step["x"], mean, delta=1e-12)
        result = run.result()
        self.assertEqual(result["global_averages"], 6)
        self.assertGreater(result["skipped_steps"], 0)
        self.assert_same_final(run)

    def test_nonblocking_counts_the_mini_batches_that_were_done(self):
        # The first is done with four when the others have done 1, 2 and 0, at once, and are in one that has no end.
        endless = 60_000
        run = self.run_job("nonblocking(batches=4)", updates=2,
                           sleep_ms=[200, [[0, endless]], [[0, 0, endless]], endless])
        self.assertEqual(self.models(run, 0), [0.375, 0.703125])
        self.assert_same_final(run)

    def test_nonblocking_waits_for_the_mini_batches_under_way_if_it_is_told_to(self):
        # When the first has done four, the others are in their second, third and first, for as long again.
        long = 1600
        run = self.run_job("nonblocking(batches=4,inflight=wait)", updates=2,
                           sleep_ms=[200, [[0, long]], [[0, 0, long]], long])
        self.assert_models(run, [1.0, 1.796875])
        self.assertEqual(run.result()["samples"], 20)

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
        self.assertEqual(run.result()["metric"]["value"], ALLREDUCE[-1])

    def test_the_job_ends_once_the_target_is_reached(self):
        run = self.run_job("allreduce", updates=1000, evaluate_every=1, target=5, sleep_ms=[1])
        self.assert_models(run, ALLREDUCE)
        self.assertIsNotNone(run.result()["time_to_target_s"])


@in_release  # Two nodes do all that one does.
class OnOneNode(GoldenRuns, IntegrationTest):
    nodes = 1

    def test_one_worker_is_serial_sgd(self):
        for strategy in ("allreduce", "local-sgd(period=2)", "adacomm(period=2)", "nonblocking(batches=4)",
                         "post-local(period=2,warmup=1)", "eager-sgd(solo,sync=2)"):
            run = self.run_job(strategy, workers=1, updates=3, x0=8)
            self.assertEqual(run.final(0), 8 * 0.75 ** 3, strategy)

    def test_one_worker_has_outer_steps(self):
        ends, _ = outer_blocks(3, workers=1, beta=0.5, alpha=1)
        run = self.run_job("slowmo(period=2,beta=0.5)", workers=1, updates=6)
        self.assert_close(run, ends, workers=1)
        self.assertAlmostEqual(run.final(0), ends[-1], delta=1e-12)


class OnTwoNodes(GoldenRuns, IntegrationTest):
    nodes = 2


if __name__ == "__main__":
    main(at_once=3)
