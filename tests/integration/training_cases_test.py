"""What training scripts use of the API beside the plain loop (training_cases.cpp), on two real workers."""
import json
import math
import os
import struct
import time
import zlib

from harness import IntegrationTest, main, wait_until

CASES = os.environ.get("PACELINE_TRAINING_CASES", "build/release/tests/integration/training_cases")


class TrainingCases(IntegrationTest):
    def case(self, name, *flags, code=0):
        directory = os.path.join(self.folder, f"run-{self.runs}")
        run = self.start("run", CASES, "--run-dir", directory, *flags, "--", name, directory=self.folder)
        run.run_directory = directory
        self.assertEqual(run.wait(60), code, run.said())
        return run

    def logged(self, run, name):
        """What each of the two workers logged under this name, in order."""
        values = {0: [], 1: []}
        for event in run.metrics():
            if event["event"] == "metric" and event["name"] == name:
                values[event["worker"]].append(event["value"])
        return values[0], values[1]

    def assert_one_model(self, run):
        ours, theirs = self.logged(run, "model")
        self.assertEqual(len(ours), 1, run.said())
        self.assertEqual(ours, theirs, "workers end with the same model")

    def assert_refused(self, run, *words):
        lines = [line for line in run.err.splitlines() if line.startswith("paceline: ")]
        self.assertEqual(len(lines), 1, run.said())
        for word in words:
            self.assertIn(word, lines[0])

    def test_a_loader_shows_every_sample_once_the_schedule_follows_and_clipping_holds(self):
        run = self.case("loader")
        self.assertEqual(sum(sum(self.logged(run, "numbers"), [])), 255 * 256 / 2)
        for rates in self.logged(run, "rate"):
            # As in an ordinary loop: libtorch's StepLR first acts one step later than Python's.
            self.assertEqual(rates, [0.1 * 0.5 ** (max(0, update - 1) // 2) for update in range(8)])
        for moved in self.logged(run, "moved"):
            self.assertEqual(len(moved), 8)
            self.assertLess(max(moved), 1.01e-3, "the norm that gradients were clipped to")
            self.assertGreater(min(moved), 1e-4)
        self.assert_one_model(run)

    def test_learning_rates_follow_who_is_there_and_each_worker_hears_of_it(self):
        directory = os.path.join(self.folder, f"run-{self.runs}")
        run = self.start("run", CASES, "--run-dir", directory, "--workers", "2..3", "--begin-with", 2, "--lr-scaling", "linear", "--lr-factor", 0.5,
                         "--batch", 4, "--epochs", 60, "--", "views", directory=self.folder)
        run.run_directory = directory
        metrics = os.path.join(directory, "metrics.jsonl")
        wait_until(lambda: os.path.exists(metrics) and run.update() > 20, 30, "it trains", run)
        self.assertEqual(self.paceline("scale", 1, 3).code, 0)
        wait_until(lambda: any(event["event"] == "returned" for event in run.metrics()), 30, "it joins", run)
        self.wait_for_update(run, run.update() + 60)
        self.assertEqual(self.paceline("set", 1, "--lr-factor", 0.25).code, 0)
        wait_until(lambda: any(event["event"] == "changed" for event in run.metrics()), 30, "another factor", run)
        self.assertEqual(self.paceline("drain", "worker-1").code, 0)
        self.assertEqual(run.wait(120), 0, run.said())
        rows, views = {}, {}
        for event in run.metrics():
            if event["event"] != "metric":
                continue
            if event["name"] == "view":
                views.setdefault(event["worker"], []).append(int(event["value"]))
            rows.setdefault((event["worker"], event["update"]), {})[event["name"]] = event["value"]
        changed = next(event for event in run.metrics() if event["event"] == "changed")
        self.assertEqual((changed["strategy"], changed["lr_factor"]), ("allreduce", 0.25))
        self.assertRegex(run.out, r"from update \d+ on with allreduce, learning rates times 0\.25: its workers were held")
        moves = set()
        for (worker, update), row in rows.items():  # What an update moved is logged with the next one.
            if "moved" in row and "present" in row:
                factor = 0.25 if update > changed["update"] else 0.5
                self.assertAlmostEqual(row["moved"], 0.1 * factor * row["present"] / 3, 12, (worker, update))
                moves.add((factor, row["present"]))
        self.assertLessEqual({(0.5, 2), (0.5, 3), (0.25, 3), (0.25, 2)}, moves)
        self.assertEqual(views[0], [2, 3, 2])
        joined, = (event for event in run.metrics() if event["event"] == "returned")
        self.assertGreater(joined["bytes"], 0)
        self.assertEqual(joined["samples"], 0)

    def test_data_sets_in_files_are_shown_once_an_epoch(self):
        rows = [(k, math.sin(k), math.cos(k), k % 2) for k in range(256)]
        self.write("table.csv", "number,sine,cosine,class\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
        points = struct.pack("<768f", *(value for row in rows for value in row[:3]))
        classes = struct.pack("<256q", *(row[3] for row in rows))
        header = json.dumps({"points": {"dtype": "F32", "shape": [256, 3], "data_offsets": [0, len(points)]},
                             "classes": {"dtype": "I64", "shape": [256], "data_offsets": [len(points), len(points) + len(classes)]}})
        header += " " * (-len(header) % 8)
        with open(os.path.join(self.folder, "arrays.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header.encode() + points + classes)
        models = []
        for name, path in (("table", "table.csv"), ("arrays", "arrays.safetensors")):
            run = self.case(name)
            self.assertEqual(sum(sum(self.logged(run, "numbers"), [])), 255 * 256 / 2)
            self.assert_one_model(run)
            models.append(self.logged(run, "model")[0])
            self.assertIn(os.path.join(self.folder, path), run.result()["files"], "a replay can say if it changed")
        self.assertEqual(*models, "the same numbers")

        self.write("table.csv", "number,sine,cosine,class\n1,2,3,0\n1,2,three,0\n" + "1,2,3,1\n" * 254)
        self.assert_refused(self.case("table", code=1), "table.csv, line 3", "'three'", "'cosine'")
        self.write("table.csv", "number,sine,cosine,class\n1,2,3,0\n")
        small = self.case("table", code=1)
        self.assert_refused(small, "too few for 2 workers", "fewer workers")
        self.assertEqual(len(small.err.splitlines()), 1, small.said())
        self.assertEqual(small.out.splitlines(), [f"run directory: {small.run_directory}"])
        self.assert_refused(self.case("empty", code=1), "the data set is empty")

    def write_picture(self, name, red):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        with open(os.path.join(self.folder, "pictures", name), "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) +
                       chunk(b"IDAT", zlib.compress(bytes([0, red, 0, 0]))) + chunk(b"IEND", b""))

    def test_a_replay_names_the_picture_that_changed(self):
        for kind in ("owls", "wrens"):
            os.makedirs(os.path.join(self.folder, "pictures", kind))
            for i in range(128):
                self.write_picture(f"{kind}/{i}.png", i)
        run = self.case("pictures")
        self.assertEqual(sorted(run.result()["files"]), [os.path.join(self.folder, "pictures", kind) for kind in ("owls", "wrens")])
        same = self.paceline("replay", run.run_directory)
        self.assertEqual(same.code, 0, same.said())
        self.write_picture("wrens/7.png", 200)
        later = time.time() + 2
        os.utime(os.path.join(self.folder, "pictures", "wrens", "7.png"), (later, later))
        other = self.paceline("replay", run.run_directory)
        self.assertEqual(other.code, 2, other.said())
        self.assertIn("wrens changed: 7.png was written since the run began", other.err)

    def test_a_decay_of_the_learning_rate_waits_until_adacomms_period_is_1(self):
        # Averages after updates 4, 6 and each one from there: the period is 4, 2 and 1.
        run = self.case("loader", "--strategy", "adacomm(period=4,interval=0.000001s)")
        for rates in self.logged(run, "rate"):
            self.assertEqual(rates, [0.1] * 6 + [0.1 * 0.5 ** 2, 0.1 * 0.5 ** 3])
        self.assert_one_model(run)

    def test_one_worker_stops_the_job_for_all_and_the_users_state_goes_on_in_the_next(self):
        first = self.case("stop", "--epochs", 100)
        done = first.result()["updates"]
        self.assertLess(done, 100, "of 800")
        self.assertGreater(done, 20)
        self.assertEqual(self.logged(first, "bodies"), ([done], [done]))
        self.assert_one_model(first)
        second = self.case("stop", "--epochs", 20, "--resume", first.run_directory)
        self.assertEqual(self.logged(second, "bodies"), ([160], [160]), "bodies of both runs")

    def test_an_optimizer_that_evaluates_several_times_learns_where_models_are_averaged(self):
        run = self.case("closure", "--strategy", "local-sgd(period=2)", "--epochs", 2)
        for losses in self.logged(run, "loss"):
            self.assertEqual(len(losses), 16)
            self.assertLess(losses[-1], 0.6 * losses[0])
        self.assert_one_model(run)
        self.assert_refused(self.case("closure", "--strategy", "allreduce", code=1), "closure", "allreduce", "local-sgd")

    def test_the_optimizers_state_is_kept_averaged_or_reset(self):
        momenta = {}
        for state in ("keep", "average", "reset"):
            run = self.case("averaging", "--strategy", "local-sgd(period=4)", "--optimizer-state", state)
            self.assert_one_model(run)
            (momenta[state],), (other,) = self.logged(run, "momentum")
            self.assertEqual(momenta[state] == other, state != "keep", f"{state}: {momenta[state]}, {other}")
            self.assertEqual(self.logged(run, "mark"), ([0.5], [0.5]))
        self.assertGreater(momenta["average"], 0)
        self.assertEqual(momenta["reset"], 0, "cleared at the last average")
        self.assert_refused(self.case("averaging", "--strategy", "allreduce", "--optimizer-state", "average", code=2),
                            "optimizer-state average", "allreduce")
        self.assert_refused(self.case("averaging", "--strategy", "streaming-diloco", "--optimizer-state", "reset", code=2),
                            "optimizer-state reset", "a part of the model")

    def test_outer_steps_leave_buffers_at_their_average_and_buffers_can_be_kept(self):
        for strategy, state in (("diloco(period=4)", "keep"), ("noloco(period=4)", "reset"),
                                ("streaming-diloco(period=4,fragments=2)", "average")):
            run = self.case("averaging", "--strategy", strategy, "--optimizer-state", state)
            self.assertEqual(self.logged(run, "mark"), ([0.5], [0.5]), strategy)
            self.assert_one_model(run)
        run = self.case("averaging", "--strategy", "local-sgd(period=4)", "--buffers", "keep")
        self.assertEqual(self.logged(run, "mark"), ([0], [1]))
        self.assert_one_model(run)

    def test_an_exception_before_the_first_body_is_named(self):
        self.assert_refused(self.case("early", code=1), "worker 1", "no column 'age'")

    def test_unequal_learning_rates_stop_the_job_and_both_are_named(self):
        self.assert_refused(self.case("rates", "--epochs", 20, code=1), "update 3", "worker 0 has 0.1",
                            "worker 1 has 0.05", "shared.schedule")

    def log(self, directory, rank=0):
        with open(os.path.join(directory, "logs", f"worker-{rank}.log"), encoding="utf-8") as file:
            return file.read().splitlines()

    def test_arguments_and_captures_reach_every_worker(self):
        run = self.case("arguments", "--strategy", "local-sgd(period=2)")
        for rank in range(2):
            self.assertEqual(self.log(run.run_directory, rank), ["got 3 0.5 4 0.25 6 b word 7 1000000"])
        run = self.case("trainer")
        for rank in range(2):
            self.assertEqual(self.log(run.run_directory, rank), ["hidden 24"])

    def test_logs_are_a_workers_own_whoever_else_runs(self):
        run = self.case("after-a-task")
        for rank in range(2):
            self.assertEqual(self.log(run.run_directory, rank), ["trains"])

    def test_what_cannot_reach_workers_is_said_in_one_line(self):
        self.assert_refused(self.case("reference", code=2), "captures by reference", "pass them as arguments")
        self.assert_refused(self.case("too-much", code=2), "take 76 MiB", "at most 60 MiB")

    def test_workers_have_the_drivers_arguments_environment_and_directory_also_on_a_standing_cluster(self):
        up = self.paceline("up", "--nodes", "2", environment={"OF_THE_DRIVER": "the cluster's"})
        self.assertEqual(up.code, 0, up.said())
        for name, word in (("one", "first"), ("two", "second"), ("one", "first")):
            work = os.path.join(self.folder, name)
            os.makedirs(work, exist_ok=True)
            directory = os.path.join(self.folder, f"run-{self.runs}")
            run = self.start("run", CASES, "--run-dir", directory, "--", "place", word, "--flag=x y",
                             directory=work, environment={"OF_THE_DRIVER": word})
            self.assertEqual(run.wait(60), 0, run.said())
            for rank in range(2):
                self.assertEqual(self.log(directory, rank), [f"in {work} with {word} and place {word} --flag=x y"])
        # The third run found the first one's libraries loaded.
        self.assertEqual(len(self.children_named(CASES)), 4, "fork servers: two on each node")
        self.assertEqual(self.paceline("down").code, 0)
        self.assert_nobody_left()

    def test_two_runs_of_a_script_have_a_directory_each(self):
        run = self.case("twice")
        again = run.run_directory + "-2"
        for number, directory in ((1, run.run_directory), (2, again)):
            for rank in range(2):
                self.assertEqual(self.log(directory, rank), [f"run {number}"])
            with open(os.path.join(directory, "result.json"), encoding="utf-8") as file:
                result = json.load(file)
            self.assertEqual((result["updates"], result["run_directory"]), (8, directory))
        checkpoint = os.path.join(run.run_directory, "checkpoint.safetensors")
        self.assertIn(f"first: {checkpoint} 8 256 8\n", run.out)
        trained = self.logged(run, "trained")[0]
        run.run_directory = again
        self.assertEqual(self.logged(run, "untrained"), (trained, trained), "the second run begins with the first's model")
        run.run_directory = run.run_directory.removesuffix("-2")
        replayed = self.paceline("replay", run.run_directory, timeout=60)
        self.assertEqual(replayed.code, 0, replayed.said())
        self.assertIn("bit-identical", replayed.out)
        self.assertIn("run 2 is left out", replayed.err)
        self.assert_refused(self.paceline("replay", again), "run 2 of its script")

    def update_of(self, checkpoint):
        with open(checkpoint, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        return int(header["__metadata__"]["update"])

    def test_tensors_travel_between_tasks_and_actors(self):
        run = self.case("tensors")
        self.assertIn("tensors: 111\nrefused: a sparse or quantised tensor cannot travel", run.out)

    def test_a_run_that_gets_no_better_ends_and_keeps_its_best(self):
        for strategy in ("allreduce", "wagma(sync=8)", "nonblocking(batches=1)"):
            with self.subTest(strategy):
                run = self.case("valley", "--strategy", strategy)
                values = [(event["update"], event["value"], event["best"]) for event in run.metrics() if event["event"] == "evaluated"]
                self.assertEqual(values, [(8, 38, True), (16, 30, True), (24, 38, False), (32, 46, False)])
                self.assertEqual(run.result()["updates"], 32)
                self.assertEqual(next(event["text"] for event in run.metrics() if event["event"] == "stopping"),
                                 "no better perplexity than 30 (update 16) in 2 evaluations")
                self.assertIn("ended after 32 updates: no better perplexity than 30 (update 16) in 2 evaluations\n", run.out)
                self.assertEqual(run.result()["metric"], {"name": "perplexity", "direction": "minimise", "unit": "",
                                                          "value": 46, "best": 30, "best_update": 16})
                self.assertNotIn("test_accuracy", run.result())
                self.assertIn("perplexity 46 ", run.out)
                best = os.path.join(run.run_directory, "best.safetensors")
                self.assertIn(f"best: 16 30 {best}\n", run.out)
                kept = os.path.join(run.run_directory, "checkpoints")
                self.assertEqual(sorted(os.listdir(kept)), ["update-24.safetensors", "update-32.safetensors"])
                files = (best, os.path.join(kept, "update-24.safetensors"), os.path.join(run.run_directory, "checkpoint.safetensors"))
                self.assertEqual([self.update_of(file) for file in files], [16, 24, 32])
                rest = self.case("valley", "--strategy", strategy, "--resume", best, "--time-limit", "0.2s")
                self.assertEqual(next(event for event in rest.metrics() if event["event"] == "started")["first"], 16)

    def test_where_nobody_stands_still_for_an_evaluation_the_best_is_kept_too(self):
        run = self.case("valley", "--strategy", "d-psgd(ring)")
        self.assertEqual(self.update_of(os.path.join(run.run_directory, "best.safetensors")), run.result()["metric"]["best_update"])
        self.assertEqual(len(os.listdir(os.path.join(run.run_directory, "checkpoints"))), 2)

    def test_a_target_is_reached_from_the_metrics_side(self):
        run = self.case("valley", "--target", "31", "--early-stopping", "50")
        self.assertEqual(run.result()["updates"], 16)
        self.assertIsNotNone(run.result()["time_to_target_s"])

    def test_a_target_that_no_accuracy_can_reach_is_refused(self):
        self.assert_refused(self.case("rings", "--target", "1.2", code=2), "target 1.2", "88%")

    def test_where_the_call_of_one_worker_is_cancelled_the_job_ends_well_for_all(self):
        directory = os.path.join(self.folder, "long")
        run = self.start("run", CASES, "--run-dir", directory, "--epochs", "100000", "--", "averaging")
        run.run_directory = directory
        self.wait_for_update(run, 10)
        workers = [json.loads(line) for line in self.paceline("list", "workers", "--json").out.splitlines()]
        call, = [one["task"] for worker in workers if worker["actor_name"] == "worker-1" for one in worker["running"]]
        self.assertEqual(self.paceline("cancel", call).code, 0)
        self.assertEqual(run.wait(30), 0, run.said())
        self.assertRegex(run.out, r"ended after \d+ updates: cancelled")
        self.assertEqual(run.left(), {})
        self.assertTrue(os.path.exists(os.path.join(directory, "checkpoint.safetensors")))
        self.assert_one_model(run)

    def test_an_interrupt_ends_a_script_of_two_runs(self):
        directory = os.path.join(self.folder, "long")
        run = self.start("run", CASES, "--run-dir", directory, "--epochs", "100000", "--", "twice")
        run.run_directory = directory
        self.wait_for_update(run, 10)
        self.interrupt(run)
        self.assertIn("interrupted: run 2 was not begun", run.err)
        self.assertFalse(os.path.exists(directory + "-2"))

    def test_a_run_within_a_task_or_beside_another_says_why_not(self):
        run = self.case("within", code=1)
        self.assertIn("within a worker or a task", run.err)
        self.assertEqual(len(run.err.splitlines()), 1, run.said())
        self.assert_refused(self.case("together", code=2), "another run of this process is under way")


if __name__ == "__main__":
    main()
