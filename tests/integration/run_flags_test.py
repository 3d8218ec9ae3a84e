"""What the flags of `paceline run` do that no other suite looks at, on two real workers with libtorch: when the model is
evaluated, when the run ends, how large a mini-batch is, who is made slow."""
import json
import os
import re

from harness import main
from training import SMALL, TrainingTest

AN_EPOCH = 32  # Updates: 2048 samples, two workers, mini-batches of 32.


class RunFlags(TrainingTest):
    def run_with(self, *flags):
        self.cluster_of(1)
        return self.train(SMALL, *flags)

    def evaluated(self, run):
        return [event for event in run.metrics() if event["event"] == "evaluated"]

    def computing(self, run):
        """Seconds that each of the two workers computed, by update."""
        with open(os.path.join(run.run_directory, "trace.json"), encoding="utf-8") as file:
            spans = [event for event in json.load(file)["traceEvents"] if event.get("cat") == "compute"]
        return [{span["args"]["update"]: span["dur"] / 1e6 for span in spans if span["tid"] == rank + 1}
                for rank in range(2)]

    # When it is evaluated -----------------------------------------------------------------------------------------------

    def test_the_model_is_evaluated_and_saved_every_so_many_epochs(self):
        for strategy in ("allreduce", "nonblocking(batches=1)"):
            for every, updates in (("0.5", [16, 32, 48, 64]), ("1.5", [48, 64]), ("0", [64])):
                with self.subTest(strategy, every=every):
                    run = self.run_with("--strategy", strategy, "--epochs", 2, "--evaluate-every-epochs", every)
                    self.assertEqual([event["update"] for event in self.evaluated(run)], updates)
                    self.assertTrue(os.path.exists(os.path.join(run.run_directory, "checkpoint.safetensors")))

    # When it ends -------------------------------------------------------------------------------------------------------

    def test_a_target_ends_it_at_the_evaluation_that_reaches_it(self):
        for target in ("80%", "0.8"):
            run = self.run_with("--epochs", 1000, "--target", target)
            values = [event["value"] for event in self.evaluated(run)]
            self.assertGreaterEqual(values[-1], 0.8)
            self.assertTrue(all(value < 0.8 for value in values[:-1]), values)
            self.assertEqual(run.result()["updates"], AN_EPOCH * len(values))
            self.assertIsNotNone(run.result()["time_to_target_s"])

    def test_none_takes_back_the_target_of_the_job(self):
        run = self.quadratic("--target", "none", updates=40, evaluate_every=10, target=5)
        self.assertEqual(run.result()["updates"], 40)
        self.assertIsNone(run.result()["time_to_target_s"])

    def test_a_time_limit_ends_it_with_a_model_that_is_evaluated_and_saved(self):
        for strategy, workers, *slow in (("allreduce", 2), ("allreduce", 1), ("wagma(group=2)", 2), ("nonblocking", 2),
                                         ("ad-psgd", 2), ("ad-psgd", 2, "--slow", "1:20x"),
                                         ("server(async)", 2, "--slow", "1:20x")):
            with self.subTest(strategy, workers=workers, slow=slow):
                flags = ["--workers", workers, "--strategy", strategy, "--epochs", 1000000, *slow]
                run = self.run_with(*flags, "--evaluate-every-epochs", 0, "--time-limit", "1.5s")
                result = run.result()
                self.assertTrue(1.4 < result["train_s"] < 2.5, result["train_s"])
                self.assertEqual([event["text"] for event in run.metrics() if event["event"] == "stopping"][0],
                                 "the time limit was reached")
                self.assertEqual(len(set(result["models"].values())), 1, "all end with the same model")
                self.assertEqual([event["update"] for event in self.evaluated(run)], [result["updates"]])
                self.assertGreater(result["test_accuracy"], 0.5)
                rest = self.run_with(*flags, "--resume", run.run_directory, "--time-limit", "0.1s")
                started = next(event for event in rest.metrics() if event["event"] == "started")
                self.assertEqual(started["first"], result["updates"])

    # What is computed ---------------------------------------------------------------------------------------------------

    def test_the_size_of_a_mini_batch_sets_the_number_of_updates(self):
        for batch in (16, 64):
            result = self.run_with("--batch", batch, "--epochs", 2).result()
            self.assertEqual((result["updates"], result["samples"]), (2 * 2048 // (2 * batch), 2 * 2048))

    def test_a_seed_makes_the_same_model_and_another_one_another(self):
        one, same, other = [self.run_with("--seed", seed, "--epochs", 1).result()["models"]["0"] for seed in (7, 7, 8)]
        self.assertEqual(one, same)
        self.assertNotEqual(one, other)

    def test_a_slow_worker_takes_so_many_times_as_long(self):
        """The shortest of each: what else runs on the machine makes either longer, and one more than the other."""
        for factor in (5, 20):
            run = self.run_with("--slow", f"1:{factor}x", "--batch", 512, "--epochs", 20)
            fast, slow = [min(of.values()) for of in self.computing(run)]
            self.assertGreater(slow, 0.6 * factor * fast)

    def test_each_update_one_worker_straggles_whom_the_seed_draws(self):
        late = []
        for seed in (3, 3, 4):
            fast, slow = self.computing(self.run_with("--seed", seed, "--epochs", 1, "--straggle", "1:40ms"))
            self.assertEqual(len(fast), AN_EPOCH)
            for update in range(AN_EPOCH):
                self.assertGreater(max(fast[update], slow[update]), 0.04, f"nobody was late at {update}")
            late.append([fast[update] > slow[update] for update in range(AN_EPOCH)])
        self.assertEqual(late[0], late[1])
        self.assertNotEqual(late[0], late[2])
        self.assertTrue(4 < sum(late[0]) < AN_EPOCH - 4, "now this one, now that one")

    # Where it writes ----------------------------------------------------------------------------------------------------

    def test_a_run_directory_has_the_date_and_the_name_unless_one_is_given(self):
        run = self.paceline("run", SMALL, "--epochs", 1, timeout=90)
        self.assertEqual(run.code, 0, run.said())
        name, = os.listdir(os.path.join(self.folder, "runs"))
        self.assertTrue(re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d-small_training", name), name)
        self.assertIn(name, run.out)


if __name__ == "__main__":
    main()
