"""decoupled-diloco on real processes, on one node and on two, against the simulator: each worker's model after each of
its steps, and the last one, are equal to 1e-12.

The problem is that of quadratic_worker.cc: a = (1,2,1,2), c = (0,4,8,12), repeated; learning rate 1/4, start 0.
"""
from harness import IntegrationTest, in_release, main


class DecoupledRuns(IntegrationTest):
    def check(self, strategy, steps, workers=4, nodes=1, sleep_ms=None, **options):
        """`sleep_ms`: of each worker at each step; who is late must be certain, however loaded the machine is."""
        compute_s = [[of[step] / 1e3 for of in sleep_ms] for step in range(steps)] if sleep_ms else None
        rows, model = self.simulate_quadratic(strategy, workers, steps, compute_s=compute_s)
        run = self.quadratic("--strategy", strategy, workers=workers, nodes=nodes, updates=steps,
                             sleep_ms=sleep_ms or [], **options)
        for rank in range(workers):
            found = {step["update"]: step["x"] for step in run.steps(rank)}
            self.assertEqual(sorted(found), sorted(step for of, step in rows if of == rank), f"worker {rank}")
            for step, x in found.items():
                self.assertAlmostEqual(x, rows[rank, step]["model"][0], delta=1e-12, msg=f"{rank} after {step}")
            self.assertTrue(all(step["uniform"] for step in run.steps(rank)))
            self.assertAlmostEqual(run.final(rank), model, delta=1e-12)
        self.assertEqual(run.result()["samples"], sum(len(run.steps(rank)) for rank in range(workers)))
        return run, rows

    def test_all_in_time(self):
        for workers, nodes, elements in ((4, 1, 1), (4, 2, 1), (5, 3, 100_003), (1, 1, 1)):
            with self.subTest(workers=workers, nodes=nodes):
                self.check("decoupled-diloco(period=3,grace=20s)", 9, workers=workers, nodes=nodes, elements=elements)

    def test_a_quorum_of_all_is_diloco(self):
        for nodes in (1, 2):
            models = []
            for strategy in ("decoupled-diloco(period=3,quorum=4)", "diloco(period=3)"):
                run = self.quadratic("--strategy", strategy, nodes=nodes, updates=9, sleep_ms=[2, 5, 3, 8])
                models.append([[step["x"] for step in run.steps(rank)] for rank in range(4)])
            for one, other in zip(*models, strict=True):
                for a, b in zip(one, other, strict=True):
                    self.assertAlmostEqual(a, b, delta=1e-12)

    @in_release  # Sanitized builds are slow, and patience is not.
    def test_who_is_late_weighs_what_it_has_done_and_takes_the_outer_model(self):
        # Worker 3 has done one step when the first round ends, none more when the second does, and is back in the
        # third: the others' fifth step is longer than its second.
        fast = [10, 400, 10, 10, 2900, 10, 10, 10]
        slow = [10, 2200] + [10] * 6
        for nodes in (1, 2):
            with self.subTest(nodes=nodes):
                run, rows = self.check("decoupled-diloco(period=2,grace=500ms)", 8, nodes=nodes,
                                       sleep_ms=[fast, fast, fast, slow])
                self.assertEqual([step["update"] for step in run.steps(3)], [0, 1, 4, 5, 6, 7])
                self.assertFalse(rows[3, 1]["fresh"])
                self.assertEqual(rows[0, 1]["group"], [0, 1, 2, 3])
                self.assertEqual(rows[0, 3]["group"], [0, 1, 2])
                self.assertEqual(run.result()["skipped_steps"], 2)

    def test_what_was_evaluated_is_what_workers_are_given_there_or_late_something_newer(self):
        # Worker 3 begins the tenth update with the others, and comes when they are far beyond its evaluation.
        run = self.quadratic("--strategy", "decoupled-diloco(period=2,quorum=2,grace=none)", nodes=2, updates=60,
                             evaluate_every=10, sleep_ms=[2, 2, 2, [2] * 9 + [400] + [25] * 50])
        self.assertGreater(run.result()["skipped_steps"], 0)
        self.assertEqual(len({run.final(rank) for rank in range(4)}), 1)
        moved = [step for rank in range(4) for step in run.steps(rank) if step["outcome"] == "moved"]
        values = {event["update"]: event["value"] for event in run.metrics() if event["event"] == "evaluated"}
        self.assertGreaterEqual(len(values), 4)
        for update, value in values.items():
            given = {step["x"] for step in moved if step["update"] == update - 1}
            newer = {step["x"] for step in moved if step["update"] >= update}
            self.assertIn(value, given, f"after {update}")
            self.assertLessEqual(given, newer | {value}, f"after {update}")


if __name__ == "__main__":
    main(at_once=3)
