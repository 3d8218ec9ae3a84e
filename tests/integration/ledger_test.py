"""What became of each sample of training jobs, against a model that is the histogram of what was used (histogram.cpp)."""
import os
import random
import signal
import time

from harness import main, wait_until
from training import TrainingTest, read_checkpoint

HISTOGRAM = os.environ.get("PACELINE_HISTOGRAM", "")
FATES = ("committed", "abandoned", "skipped", "late", "lost", "tail")
STRATEGIES = ["allreduce", "local-sgd(period=4)", "wagma(group=2,late=skip)", "nonblocking(batches=2)", "eager-sgd", "slowmo(period=3)", "hier-avg",
              "d-psgd", "sgp", "ad-psgd(bipartite)", "server(sync)", "server(async)", "adacomm(period=4)"]


class Ledger(TrainingTest):
    def begin(self, strategy, *flags, samples=403, epochs=3, milliseconds=3, workers=4, batch=5, **more):
        self.samples, self.epochs = samples, epochs
        output = os.path.join(self.folder, f"output-{self.runs}")
        os.mkdir(output)
        run = self.start_training(HISTOGRAM, "--strategy", strategy, "--workers", workers, "--batch", batch, *flags,
                                  arguments=[samples, epochs, output, milliseconds], **more)
        run.output = output
        return run

    def counts(self, run):
        """Of each sample in each epoch, as the workers that came to the end have it; who left before had less."""
        models = []
        for rank in os.listdir(run.output):
            with open(os.path.join(run.output, rank), encoding="utf-8") as file:
                models.append([float(line) for line in file])
        self.assertTrue(models, run.said())
        model = max(models, key=lambda counts: sum(count != 0 for count in counts))
        return [model[begin:begin + self.samples] for begin in range(0, len(model), self.samples)]

    def check(self, run):
        """Rows against counts; of the epochs that are over they add up."""
        self.assertEqual(run.wait(self.seconds), 0, run.said())
        counts, rows = self.counts(run), run.result()["ledger"]
        self.assertEqual([row["epoch"] for row in rows], list(range(self.epochs)), rows)
        for row in rows:
            used = sum(count != 0 for count in counts[row["epoch"]])
            self.assertEqual((row["committed"], row["twice"]), (used, 0), (row, run.said()))
            self.assertEqual(sum(row[fate] for fate in FATES), row["samples"], (row, run.said()))
        return counts, rows

    def test_without_faults(self):
        for i, strategy in enumerate(STRATEGIES):
            with self.subTest(strategy=strategy):
                counts, rows = self.check(self.begin(strategy, "--nodes", 2 - i % 2, milliseconds=1))
                if strategy == "allreduce":
                    self.assertEqual({count for epoch in counts for count in epoch}, {0.0, 0.25})
                    self.assertEqual([(row["committed"], row["tail"]) for row in rows], [(400, 3)] * 3)

    def test_one_worker(self):
        _, rows = self.check(self.begin("local-sgd", workers=1, milliseconds=0))
        self.assertEqual([(row["committed"], row["tail"]) for row in rows], [(400, 3)] * 3)

    def test_an_epoch_ends_within_an_update(self):
        run = self.begin("allreduce", "--accumulate", 2, samples=423, milliseconds=1)  # 21 mini-batches of a worker.
        self.assertEqual(run.wait(self.seconds), 0, run.said())
        used = [sum(count != 0 for count in epoch) for epoch in self.counts(run)]
        self.assertEqual(used, [420, 420, 360, 0])
        self.assertEqual([row["committed"] for row in run.result()["ledger"]], used[:3])

    def test_workers_are_killed_and_come_back(self):
        chance = random.Random(7)
        for strategy in STRATEGIES[::2]:
            with self.subTest(strategy=strategy):
                run = self.begin(strategy, "--restarts", 9, milliseconds=8)
                for _ in range(3):
                    time.sleep(chance.uniform(0.1, 0.4))
                    self.kill(run, chance.randrange(4))
                self.check(run)

    def kill(self, run, rank):
        pid = self.worker_pid(run, rank)
        if pid and run.process.poll() is None:
            os.kill(pid, signal.SIGKILL)

    def test_workers_come_and_go(self):
        for strategy in ["allreduce", "wagma(group=2,late=skip)", "d-psgd"]:
            with self.subTest(strategy=strategy):
                run = self.begin(strategy, "--begin-with", 2, samples=2003, workers="2..4", milliseconds=8)
                self.wait_for_update(run, 10)
                self.assertEqual(self.paceline("scale", 1, 4).code, 0)
                self.wait_for_update(run, 50)
                self.assertEqual(self.paceline("scale", 1, 3).code, 0)
                _, rows = self.check(run)
                self.assertGreater(rows[0]["skipped"], 0, "nobody had those places")
                self.assertEqual(sum(row["lost"] for row in rows), 0, rows)

    def test_the_strategy_is_changed_within_an_epoch(self):
        for first, *others in (["allreduce", "local-sgd(period=4)", "wagma(group=2,late=skip)"], ["d-psgd", "nonblocking(batches=2)", "allreduce"],
                               ["nonblocking(batches=2)", "server(async)", "slowmo(period=3)"]):
            with self.subTest(first=first):
                run = self.begin(first, "--restarts", 9, samples=6003, milliseconds=8)
                for i, strategy in enumerate(others):
                    self.wait_for_update(run, run.update() + 15)
                    done = self.paceline("set", 1, "--strategy", strategy)
                    self.assertEqual(done.code, 0, done.said())
                    changed = i + 1
                    wait_until(lambda: sum(event["event"] == "changed" for event in run.metrics()) == changed, 30, strategy, run)
                    if i == 0:
                        self.kill(run, 2)
                _, rows = self.check(run)
                self.assertEqual([row["samples"] for row in rows], [6003] * 3)
                self.assertEqual([change["strategy"] for change in run.result()["changes"]], others)

    def test_other_workers_go_on_with_what_was_left_of_an_epoch(self):
        first = self.begin("allreduce", "--epochs", 0.5, samples=403, epochs=3)
        self.assertEqual(first.wait(self.seconds), 0, first.said())
        self.assertEqual(first.result()["ledger"], [{"epoch": 0, "samples": 403, "tail": 3, "committed": 200, "abandoned": 0, "skipped": 0, "late": 0,
                                                     "lost": 0, "twice": 0}])
        header, _ = read_checkpoint(self.checkpoint(first))
        self.assertEqual(header["__metadata__"]["place"], "0: 4x5x10")
        second = self.begin("allreduce", "--resume", first.run_directory, "--epochs", 1.5, workers=3, batch=4, samples=403, epochs=3)
        self.assertEqual(second.wait(self.seconds), 0, second.said())
        self.assertIn("with 3, which go on with what was left of the epoch", second.said())
        counts, rows = self.counts(second), second.result()["ledger"]
        # Of 203 samples 67 a worker, of which 16 batches of 4 are done.
        self.assertEqual((rows[0]["samples"], rows[0]["committed"], rows[0]["tail"]), (203, 192, 11))
        uses = [round(count, 6) for count in counts[0]]
        self.assertEqual([uses.count(round(of, 6)) for of in (1 / 4, 1 / 3)], [200, 192], sorted(set(uses)))
        self.assertEqual(sum(count != 0 for count in counts[0]), 392, "a sample was used twice")
        self.assertEqual(rows[1]["committed"], sum(count != 0 for count in counts[1]))
        third = self.begin("allreduce", "--resume", second.run_directory, "--epochs", 2, workers=2, batch=5, samples=403, epochs=3)
        self.assertEqual(third.wait(self.seconds), 0, third.said())
        counts = self.counts(third)
        self.assertEqual(third.result()["ledger"][0]["epoch"], 1)
        both = rows[1]["committed"] + third.result()["ledger"][0]["committed"]
        self.assertEqual(sum(count != 0 for count in counts[1]), both)
        self.assertGreater(both, 403 - 2 * 5 - 2)

    def test_the_same_workers_go_on_as_they_would_have(self):
        whole = self.begin("allreduce", epochs=2, milliseconds=1)
        self.check(whole)
        half = self.begin("allreduce", "--epochs", 0.5, epochs=2, milliseconds=1)
        self.assertEqual(half.wait(self.seconds), 0, half.said())
        rest = self.begin("allreduce", "--resume", half.run_directory, "--epochs", 2, epochs=2, milliseconds=1)
        self.assertEqual(rest.wait(self.seconds), 0, rest.said())
        self.assertEqual(self.counts(rest), self.counts(whole))

    def test_other_data_are_refused(self):
        first = self.begin("allreduce", "--epochs", 0.5, milliseconds=0)
        self.assertEqual(first.wait(self.seconds), 0, first.said())
        other = self.begin("allreduce", "--resume", first.run_directory, samples=803, epochs=1, milliseconds=0)
        self.assertNotEqual(other.wait(self.seconds), 0)
        self.assertIn(f"cannot resume from {first.run_directory}: it is of a data set of 403 samples, this one has 803", other.err)


if __name__ == "__main__":
    main(at_once=3)
