"""Runs with libtorch: the main example, checkpoints and going on from them, and what goes wrong in training."""
import json
import os
import signal
import struct
import subprocess

from harness import PACELINE, main, wait_until
from training import MNIST, SMALL, TrainingTest, read_checkpoint


class TrainingRuns(TrainingTest):
    seconds = 90

    def test_the_main_example_trains_on_real_data(self):
        run = self.train(MNIST, "--workers", 2, "--epochs", 0.2, "--strategy", "allreduce", "--json")
        events = [json.loads(line) for line in run.out.splitlines()]
        self.assertEqual(events[-1]["event"], "result")
        self.assertGreater(events[-1]["test_accuracy"], 0.5, "a fifth of an epoch teaches that much")
        header, _ = read_checkpoint(self.checkpoint(run))
        self.assertTrue(any("conv1.weight" in name for name in header), list(header))

    def test_a_resumed_run_goes_on_at_the_same_update_and_ends_like_an_unbroken_one(self):
        outer = ["slowmo(period=4)", "bmuf(period=4)", "diloco(period=8)", "adacomm(period=4,interval=1h,block_momentum=0.5)"]
        self.cluster_of(1)
        for strategy in ["allreduce", "wagma(group=2,sync=4)"] + outer:
            flags = ["--workers", 2, "--strategy", strategy]
            if strategy in outer:
                flags += ["--optimizer-state", "reset"]  # Else each worker has its own, and the checkpoint that of one.
            whole = self.train(SMALL, *flags, "--epochs", 4)
            half = self.train(SMALL, *flags, "--epochs", 2)
            rest = self.train(SMALL, *flags, "--epochs", 4, "--resume", half.run_directory)
            started = next(event for event in rest.metrics() if event["event"] == "started")
            self.assertEqual((started["first"], started["updates"]), (64, 128), strategy)
            self.assertEqual(rest.result()["updates"], whole.result()["updates"], strategy)
            self.assertEqual(rest.result()["updates"], 128, strategy)
            if strategy != "wagma(group=2,sync=4)":  # Deterministic: the same numbers, bit by bit.
                with open(self.checkpoint(whole), "rb") as one, open(self.checkpoint(rest), "rb") as other:
                    self.assertEqual(self.tensors(one.read()), self.tensors(other.read()))

    def test_after_a_crash_a_run_goes_on_from_what_was_saved_between_evaluations(self):
        for strategy, period in (("allreduce", 1), ("local-sgd(period=8)", 8), ("slowmo(period=8)", 8),
                                 ("nonblocking(batches=2)", 1), ("ad-psgd", 1)):
            with self.subTest(strategy):
                run = self.start_training(SMALL, "--workers", 2, "--strategy", strategy, "--epochs", 100000,
                                          "--evaluate-every-epochs", 0, "--checkpoint-every", "0.3s", "--keep-checkpoints", 2)
                saved = self.saved_after(run, 3)
                os.killpg(run.process.pid, signal.SIGKILL)
                self.assert_nobody_left(timeout=10)
                self.assertEqual(saved, sorted(set(saved)))
                self.assertEqual([update % period for update in saved], [0] * len(saved), "after an averaging of all")
                header, _ = read_checkpoint(self.checkpoint(run))
                update = int(header["__metadata__"]["update"])
                self.assertGreaterEqual(update, saved[-1])
                kept = os.listdir(os.path.join(run.run_directory, "checkpoints"))
                self.assertEqual(len(kept), 2)
                self.assertIn(f"update-{update}.safetensors", kept)
                self.assertFalse([event for event in run.metrics() if event["event"] in ("evaluated", "left", "warning")])
                rest = self.train(SMALL, "--workers", 2, "--strategy", strategy, "--epochs", 100000, "--time-limit", "0.1s",
                                  "--resume", run.run_directory)
                started = next(event for event in rest.metrics() if event["event"] == "started")
                self.assertEqual(started["first"], update)

    def test_a_frozen_worker_keeps_nobody_from_saving(self):
        run = self.start_training(SMALL, "--workers", 2, "--strategy", "nonblocking(batches=2)", "--epochs", 100000,
                                  "--evaluate-every-epochs", 0, "--checkpoint-every", "0.3s")
        self.saved_after(run, 1)
        self.signal_worker(run, 0, signal.SIGSTOP)
        self.saved_after(run, len(self.saved(run)) + 3)
        self.assertEqual(run.left(), {})
        self.signal_worker(run, 0, signal.SIGCONT)
        self.interrupt(run)

    def saved(self, run):
        return [event["update"] for event in run.metrics() if event["event"] == "saved"]

    def saved_after(self, run, count):
        wait_until(lambda: len(self.saved(run)) >= count, 60, f"{count} checkpoints", run)
        return self.saved(run)

    def tensors(self, data):
        size, = struct.unpack("<Q", data[:8])
        return data[8 + size:]

    def test_resuming_from_nothing_is_refused_in_one_line(self):
        run = self.train(SMALL, "--resume", os.path.join(self.folder, "nowhere"), code=2)
        self.assertEqual(run.out, "", "it is said before anything starts")
        self.assertIn("nowhere: no such run or file", run.err)
        os.makedirs(os.path.join(self.folder, "empty"))
        run = self.train(SMALL, "--resume", os.path.join(self.folder, "empty"), code=2)
        self.assertIn("empty: that run has no checkpoint", run.err)
        run = self.train(SMALL, "--resume", self.write("garbage", "not a checkpoint"), code=2)
        self.assertEqual(run.out, "", "it is said before anything starts")
        self.assertIn("garbage: not a checkpoint", run.err)

    def test_ctrl_c_says_where_the_checkpoint_is(self):
        run = self.start_training(SMALL, "--epochs", 100000)
        wait_until(lambda: os.path.exists(self.checkpoint(run)), 60, "the first checkpoint", run)
        self.interrupt(run)
        self.assertIn(self.checkpoint(run), run.err)
        self.assertIn("--resume", run.err)
        read_checkpoint(self.checkpoint(run))
        self.assert_nobody_left()

    def assert_failed(self, run, *words):
        ours = [line for line in run.err.splitlines() if line.startswith("paceline: ")]
        self.assertEqual(len(ours), 1, run.said())
        for word in words:
            self.assertIn(word, ours[0])
        self.assert_nobody_left()

    def test_a_loss_that_is_no_number_stops_the_run_and_names_the_worker_the_step_and_the_checkpoint(self):
        run = self.train(SMALL, arguments=["nan"], code=1)
        self.assert_failed(run, "nan", "worker 1", "update 40", self.checkpoint(run))

    def test_an_exception_in_the_training_function_is_named(self):
        self.assert_failed(self.train(SMALL, arguments=["exception"], code=1), "worker 1", "batch 40 is not to my taste")

    def test_a_crash_in_the_training_function_is_named_with_the_logs_last_lines(self):
        run = self.train(SMALL, "--restarts", 0, arguments=["segfault"], code=1)
        self.assert_failed(run, "worker 1", "SIGSEGV", "the last line before the mishap")

    def test_running_statistics_of_batch_norm_are_averaged_like_the_model(self):
        self.cluster_of(1)
        for strategy in ("allreduce", "nonblocking(batches=2)", "local-sgd(period=4)"):
            with self.subTest(strategy):
                run = self.train(SMALL, "--strategy", strategy, arguments=["norm"])
                sums = [event["value"] for event in run.metrics() if event.get("name") == "buffers"]
                self.assertEqual(len(sums), 2, run.said())
                self.assertEqual(sums[0], sums[1])
                self.assertNotEqual(sums[0], 2, "as at the start: a mean of 0 and a variance of 1 for each of two")

    def test_a_missing_data_set_names_the_package(self):
        empty = os.path.join(self.folder, "empty")
        os.mkdir(empty)
        run = self.train(MNIST, "--workers", 2, code=1, environment={"PACELINE_DATA": empty})
        self.assert_failed(run, "dataset-fashion-mnist", empty)

    def test_a_full_disk_leaves_the_old_checkpoint_whole(self):
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        saved = os.path.join(self.folder, "saved")
        self.train(SMALL)  # Compiles it.
        script = f"""
            mount -t tmpfs -o size=2m tmpfs {disk} || exit 77
            {PACELINE} run {SMALL} --epochs 1000000 --run-dir {disk}/run &
            for i in $(seq 600); do [ -s {disk}/run/checkpoint.safetensors ] && break; sleep 0.1; done
            cat /dev/zero > {disk}/fill 2>/dev/null
            wait $!; code=$?
            cp {disk}/run/checkpoint.safetensors {saved}; ls {disk}/run > {saved}.list
            exit $code"""
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script], check=False, capture_output=True, text=True,
                              env=self.environment, timeout=90)
        if "unshare: " in done.stderr or "mount: " in done.stderr:
            self.skipTest(f"no small disk can be mounted here: {done.stderr.strip()}")
        self.assertEqual(done.returncode, 1, done.stdout[-2000:] + done.stderr[-2000:])
        self.assertIn("No space left", done.stderr)
        self.assertIn("checkpoint", done.stderr)
        read_checkpoint(saved)
        with open(saved + ".list", encoding="utf-8") as file:
            names = file.read().split()
        self.assertEqual([name for name in names if name.startswith("checkpoint.safetensors")],
                         ["checkpoint.safetensors"], "nothing half-written stays")

    def test_resuming_with_another_number_of_workers_says_so(self):
        two = self.train(SMALL, "--workers", 2, "--epochs", 1)
        run = self.train(SMALL, "--workers", 1, "--epochs", 2, "--resume", two.run_directory)
        self.assertIn("averaged model of 2 workers", run.out + run.err)


if __name__ == "__main__":
    main()
