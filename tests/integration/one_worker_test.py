"""A job of one worker: no averaging changes its model, and all else is as with several."""
import math
import os

from harness import IntegrationTest, in_release, main

OF_ROUNDS = ("allreduce", "local-sgd(period=4)", "k-avg(period=4)", "post-local(period=4,warmup=2)", "adacomm(period=4)",
             "wagma(sync=4)", "eager-sgd(solo,sync=4)", "eager-sgd(majority,sync=4)", "nonblocking(batches=1)",
             "nonblocking(batches=3)", "slowmo(period=4,beta=0)", "bmuf(period=4)", "decoupled-diloco(period=4)")
OF_THEIR_OWN_PACE = ("d-psgd(ring)", "sgp", "ad-psgd", "server(async)", "noloco(period=4)")


class OneWorker(IntegrationTest):
    def alone(self, strategy, *flags, **options):
        return self.quadratic("--strategy", strategy, *flags, workers=1, **{"x0": 8, **options})

    def evaluated(self, run):
        return [(event["update"], event["value"]) for event in run.metrics() if event["event"] == "evaluated"]

    def check_evaluations(self, strategy, every, updates, **options):
        with self.subTest(strategy, every=every):
            run = self.alone(strategy, updates=updates, evaluate_every=every, **options)
            evaluated = self.evaluated(run)
            self.assertEqual(len(evaluated), math.ceil(updates / every), run.said())
            models = {step["update"] + 1: step["x"] for step in run.steps(0)}
            self.assertEqual(evaluated, [(update, models[update]) for update, _ in evaluated], "of the model then")
            self.assertEqual(evaluated[-1][0], updates)
            self.assertEqual(run.result()["late_merges"], 0)
            self.assertEqual(run.result()["samples"], sum(1 for step in run.steps(0) if step["outcome"] != "over"))
            return [update for update, _ in evaluated]

    def test_it_is_evaluated_where_it_was_asked_for(self):
        self.assertEqual(self.check_evaluations("allreduce", 3, 10), [3, 6, 9, 10])
        self.assertEqual(self.check_evaluations("nonblocking(batches=3)", 3, 10), [3, 6, 9, 10])

    def test_it_is_evaluated_with_the_next_average_of_all(self):
        self.assertEqual(self.check_evaluations("local-sgd(period=4)", 6, 24), [8, 12, 20, 24])

    @in_release
    def test_it_is_evaluated_under_every_strategy(self):
        for strategy in OF_ROUNDS:
            self.check_evaluations(strategy, 8, 40)
            self.check_evaluations(strategy, 8, 40, sleep_ms=[3])  # So that it tells its agent in between.

    def test_it_ends_where_the_target_is_reached(self):
        for strategy in OF_ROUNDS + OF_THEIR_OWN_PACE:
            with self.subTest(strategy):
                run = self.alone(strategy, updates=2000, evaluate_every=20, sleep_ms=[0.2], x0=-8, target=-0.1)
                self.assertLess(run.result()["updates"], 1000)
                self.assertIsNotNone(run.result()["time_to_target_s"])

    def test_it_ends_where_evaluations_get_no_better(self):
        run = self.alone("allreduce", "--early-stopping", 2, updates=2000, evaluate_every=20)
        self.assertLess(run.result()["updates"], 1000)

    def test_it_saves_between_evaluations(self):
        for strategy in ("allreduce", "nonblocking(batches=2)", "local-sgd(period=4)", "d-psgd(ring)"):
            with self.subTest(strategy):
                run = self.alone(strategy, "--checkpoint-every", "0.2s", updates=300, evaluate_every=0, sleep_ms=[5])
                self.assertTrue([line for line in run.output(0) if line.get("event") == "save"], run.said())

    def test_it_is_replayed(self):
        for strategy in ("allreduce", "nonblocking(batches=3)", "local-sgd(period=4)", "slowmo(period=4)"):
            with self.subTest(strategy):
                run = self.alone(strategy, updates=40, evaluate_every=8)
                final = run.final(0)
                again = self.start("replay", run.run_directory, "--run-dir", os.path.join(self.folder, f"replay-{self.runs}"))
                self.assertEqual(again.wait(30), 0, again.said())
                self.assertIn("weights are bit-identical", again.out)
                self.assertEqual(run.final(0), final)


if __name__ == "__main__":
    main(at_once=3)
