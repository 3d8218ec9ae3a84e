"""paceline simulate --from: a model fitted to a real run takes as long as that run, and what is refused."""
import json
import os
import shutil
import tarfile

from harness import SOURCE, IntegrationTest, main

USAGE = 2
RECORDED = os.path.join(SOURCE, "tests", "integration", "recorded_runs.tar.xz")
SLEEPS = [40, 50, 44, 120]
UPDATES = 60
CLOSE = 0.04  # Of the recorded time. The bound of figure 15 of docs/benchmarks.md is 15 %.


class SimulateFromTest(IntegrationTest):
    def simulated(self, directory, *flags):
        """The fit, and the answers."""
        done = self.paceline("simulate", "--from", directory, "--json", *flags)
        self.assertEqual(done.code, 0, done.said())
        lines = [json.loads(line) for line in done.out.splitlines()]
        self.assertTrue(lines[0]["fit"])
        return lines[0], lines[1:]

    def assert_refused(self, *arguments, words):
        done = self.paceline("simulate", *arguments)
        self.assertEqual((done.code, done.out), (USAGE, ""), done.said())
        self.assertEqual(len(done.err.splitlines()), 1, done.said())
        for word in words:
            self.assertIn(word, done.err)


class Calibration(SimulateFromTest):
    def assert_close(self, strategy, directory, updates=UPDATES):
        """The fit is close to the real run that it was made of."""
        fit, _ = self.simulated(directory)
        print(f"\n{strategy}: recorded {fit['recorded_s']:.3f} s, simulated {fit['simulated_s']:.3f} s, "
              f"{100 * fit['error_share']:+.1f} %", flush=True)
        self.assertEqual((fit["workers"], fit["updates"]), (4, updates))
        self.assertLessEqual(abs(fit["error_share"]), CLOSE, fit)

    def fitted(self, strategy, updates=UPDATES):
        """A run of now, and that its fit is close: all wait for a worker that sleeps, whatever else the cores do."""
        run = self.quadratic("--strategy", strategy, nodes=None, sleep_ms=SLEEPS, updates=updates, timeout=60)
        self.assert_close(strategy, run.run_directory, updates)
        return run.run_directory

    def recorded(self, name):
        """A run of tests/support/record_runs.py. Where late workers skip, what the others do with the cores decides who is
        late, and the model knows nothing of that: beside two busy loops and two other suites it was off by up to 11 %."""
        with tarfile.open(RECORDED) as archive:
            archive.extractall(self.folder, [one for one in archive if one.name.startswith(name + "/")])
        return os.path.join(self.folder, name)

    def test_allreduce_and_what_if(self):
        self.fitted("allreduce")
        run = self.recorded("allreduce")
        self.assert_close("allreduce", run)
        _, (mended,) = self.simulated(run, "--without-slow", 3)
        self.assertAlmostEqual(mended["speed_up"], 120 / 50, delta=0.3)
        eight = self.simulated(run, "--workers", 8, "--compare", "allreduce,local-sgd")[1]
        self.assertEqual([(row["strategy"], row["workers"]) for row in eight], [("allreduce", 8), ("local-sgd", 8)])
        text = self.paceline("simulate", "--from", run, "--strategy", "nonblocking").out
        self.assertTrue(text.startswith(f"Fit to {run}: 4 workers made {UPDATES} updates under allreduce in "),
                        text)

    def test_one_run_tells_of_others(self):
        """Fitted to allreduce: how long do other strategies take, which really ran? All at once, so that they had the same
        machine."""
        told = self.recorded("allreduce")
        for name in ("beside-skipping", "beside-nonblocking"):
            with open(os.path.join(self.recorded(name), "result.json"), encoding="utf-8") as file:
                result = json.load(file)
            _, (answer,) = self.simulated(told, "--strategy", result["strategy"])
            error = answer["time_s"] / result["train_s"] - 1
            print(f"\n{result['strategy']} from allreduce: recorded {result['train_s']:.3f} s, told {answer['time_s']:.3f} s, "
                  f"{100 * error:+.1f} %", flush=True)
            self.assertLessEqual(abs(error), CLOSE, result["strategy"])

    def test_local_sgd(self):
        self.fitted("local-sgd")

    def test_wagma_that_skips(self):
        self.assert_close("wagma(late=skip)", self.recorded("skipping"))
        run = self.quadratic("--strategy", "wagma(late=skip)", nodes=None, sleep_ms=SLEEPS, updates=UPDATES, timeout=60)
        fit, _ = self.simulated(run.run_directory)
        self.assertEqual((fit["workers"], fit["updates"]), (4, UPDATES))
        self.assertAlmostEqual(fit["recorded_s"], run.result()["train_s"], places=2)

    def test_nonblocking(self):
        run = self.fitted("nonblocking(batches=4)", updates=30)
        _, (allreduce,) = self.simulated(run, "--strategy", "allreduce")
        self.assertAlmostEqual(allreduce["step_s"], 4 * 0.120, delta=0.12, msg="worker 3 is known by its mini-batches")


class Refusals(SimulateFromTest):
    def test_one_line_says_why_a_run_cannot_be_fitted(self):
        run = self.quadratic("--strategy", "allreduce", nodes=None, sleep_ms=[1], updates=5)
        directory = run.run_directory

        def without(*names):
            copy = os.path.join(self.folder, "copy")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(directory, copy)
            for name in names:
                os.remove(os.path.join(copy, name))
            return copy

        self.assert_refused("--from", without("result.json"), words=["still runs, or was killed"])
        self.assert_refused("--from", without("trace.json"), words=["no trace"])
        self.assert_refused("--from", os.path.join(self.folder, "nowhere"), words=["no run directory"])
        self.assert_refused("--from", "last", words=["no run in runs/"])
        self.assert_refused("--from", directory, "--strategy", "adacomm", words=["adacomm", "loss"])
        self.assert_refused("--from", directory, "--slow", "3:4x", words=["--slow", "--from"])
        self.assert_refused("--from", directory, "--without-slow", 4, words=["--without-slow 4", "0 to 3"])
        self.assert_refused("--from", directory, "--strategy", "nonblocking(batches=3)", words=["batches"])

    def test_a_comparison_names_its_runs_and_last_is_the_newest(self):
        run = self.quadratic("--strategy", "allreduce", nodes=None, sleep_ms=[5], updates=10)
        comparison = os.path.join(self.folder, "runs", "2026-01-01_00-00-00-both")
        shutil.copytree(run.run_directory, os.path.join(comparison, "1-allreduce"))
        self.assert_refused("--from", comparison, words=["comparison of 1 runs", "1-allreduce"])
        for newest in ("2026-01-01_00-00-00-both/1-allreduce", "2026-01-02_00-00-00-one"):
            with self.subTest(newest):
                directory = os.path.join("runs", newest)
                if not os.path.exists(os.path.join(self.folder, directory)):
                    shutil.copytree(run.run_directory, os.path.join(self.folder, directory))
                done = self.paceline("simulate", "--from", "last")
                self.assertEqual(done.code, 0, done.said())
                self.assertIn(f"{directory}: 4 workers made 10 updates", done.out.splitlines()[0])


if __name__ == "__main__":
    main()
