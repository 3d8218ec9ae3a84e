"""`paceline report`: pages of real runs, of runs that ended badly, and what a browser makes of them."""
import json
import os
import re
import shutil
import signal
import subprocess
import unittest

from harness import ENDLESS, IntegrationTest, PACELINE, SLOWDOWN, main, wait_until

CHROMIUM = shutil.which("chromium")
HOSTILE = """</script><img src=x onerror="document.title='owned'"><b>{{page.css}}"""


class Reports(IntegrationTest):
    def report(self, *arguments, code=0):
        run = self.paceline("report", *arguments)
        self.assertEqual(run.code, code, run.said())
        return run

    def page_of(self, *directories):
        """The path of the page, which the command prints."""
        path = self.report(*directories, "-o", os.path.join(self.folder, "page.html")).out.strip()
        self.assertLess(os.path.getsize(path), 2_000_000)
        return path

    def data_of(self, *directories):
        return json.loads(self.report(*directories, "--json").out)["runs"]

    def browse(self, page, *flags):
        """Opens the page; stdout, after no error was logged."""
        done = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
             f"--user-data-dir={self.folder}/browser", "--virtual-time-budget=5000", *flags, "file://" + page],
            check=False, capture_output=True, text=True, timeout=60 * SLOWDOWN, env=dict(self.environment, HOME=self.folder))
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertNotIn("CONSOLE", done.stderr)
        return done.stdout

    def assert_draws(self, page, drawings):
        """Every canvas of the page has something on it, and there are at least so many; the page as it is shown."""
        shown = self.browse(page, "--dump-dom")
        status = re.search(r'id="status">(\d+) of (\d+) drawings made', shown)
        self.assertTrue(status, shown[-500:])
        self.assertEqual(status[1], status[2])
        self.assertGreaterEqual(int(status[1]), drawings)
        self.assertRegex(shown, r'id="alarm"[^>]* hidden')
        return shown

    def make_run(self, name, lines, **options):
        """A run directory that no run has made."""
        directory = os.path.join(self.folder, name)
        os.mkdir(directory)
        with open(os.path.join(directory, "configuration.json"), "w", encoding="utf-8") as file:
            json.dump({"options": {"strategy": "allreduce", "workers": 1, **options}}, file)
        with open(os.path.join(directory, "metrics.jsonl"), "w", encoding="utf-8") as file:
            file.write(lines)
        return directory

    def progress(self, update, **more):
        return json.dumps({"event": "progress", "node": 0, "update": update, "clock_s": update / 100, "loss": 1 / update,
                           "workers": [{"rank": 0, "samples": 8 * update}], **more}) + "\n"

    @unittest.skipUnless(CHROMIUM, "needs chromium")
    def test_two_real_runs_are_drawn_side_by_side(self):
        runs = [self.quadratic("--strategy", strategy, updates=100, sleep_ms=[2, 2, 2, 8], evaluate_every=25)
                for strategy in ("wagma(late=skip)", "nonblocking")]
        page = self.page_of(*[run.run_directory for run in runs])
        # A mark a run in the legend, the table and at the timeline; 4 curves and the staleness; 2 timelines a run; the key.
        shown = self.assert_draws(page, 2 * 3 + 5 + 2 * 2 + 4)
        for words in ("wagma(late=skip)", "nonblocking", "Loss over samples", "How late contributions were", "worker 3"):
            self.assertIn(words, shown)
        picture = os.path.join(self.folder, "page.png")
        self.browse(page, f"--screenshot={picture}", "--window-size=1200,2400")
        self.assertGreater(os.path.getsize(picture), 50_000, "an empty page is smaller")

    @unittest.skipUnless(CHROMIUM, "needs chromium")
    def test_what_the_job_logs_is_drawn(self):
        lines = "".join(self.progress(k) + "".join(
            json.dumps({"event": "metric", "name": name, "worker": 0, "update": k, "clock_s": k / 100, "value": k * k}) + "\n"
            for name in ("learning rate", HOSTILE)) for k in range(1, 9))
        directory = self.make_run("logs", lines)
        run, = self.data_of(directory)
        self.assertEqual(run["logged"]["learning rate"]["value"], [k * k for k in range(1, 9)])
        # A mark in the legend and in the table, two curves of the loss, two of what was logged.
        shown = self.assert_draws(self.page_of(directory), 2 + 2 + 2)
        self.assertIn("learning rate, on average over the workers", shown)
        self.assertNotIn("<title>owned", shown)

    def test_the_data_agree_with_the_result_and_tell_what_the_workers_did(self):
        run = self.quadratic("--strategy", "nonblocking", updates=60, sleep_ms=[2, 2, 2, 8], evaluate_every=20)
        data, = self.data_of(run.run_directory)
        self.assertEqual(data["result"], run.result())
        samples = run.result()["samples"]
        self.assertAlmostEqual(data["evaluations"]["samples"][-1], samples, delta=0.1 * samples)
        self.assertEqual(data["loss"]["clock_s"], sorted(data["loss"]["clock_s"]))
        self.assertEqual(data["outcome"], "ran to its end, update 60 of 60")
        self.assertGreater(data["staleness"][0], 0)
        totals = dict(zip(data["timeline"]["tracks"], data["timeline"]["totals"]))
        self.assertGreater(totals["worker 3"]["abandoned"], 0, "it is four times as slow")
        self.assertTrue(any("evaluate" in total for total in totals.values()), totals)
        self.assertIn("average", totals["node 0"])

    def test_who_was_lost_is_said(self):
        run = self.start_quadratic("--strategy", "allreduce", "--restarts", "0", updates=ENDLESS, sleep_ms=[2])
        self.wait_for_update(run, 20)
        self.signal_worker(run, 2, signal.SIGKILL)
        self.end_after(run, 50)
        data, = self.data_of(run.run_directory)
        self.assertTrue(data["outcome"].endswith("; lost worker 2"), data["outcome"])
        gone, = data["views"]
        self.assertEqual((gone["event"], gone["took_s"]), ("left", None))
        self.assertGreaterEqual(gone["update"], 20)

    @unittest.skipUnless(CHROMIUM, "needs chromium")
    def test_who_came_and_went_is_told_and_is_a_track_of_the_trace(self):
        run = self.start_quadratic("--strategy", "allreduce", updates=ENDLESS, sleep_ms=[2])
        self.wait_for_update(run, 20)
        self.signal_worker(run, 2, signal.SIGKILL)
        wait_until(lambda: any(event.get("event") == "returned" for event in run.metrics()), 20, "its return", run)
        status = self.paceline("status", "--json")
        job, = json.loads(status.out)["jobs"]
        self.assertEqual([(change["event"], change["worker"]) for change in job["changes"]], [("left", 2), ("returned", 2)])
        self.assertRegex(self.paceline("status").out, r"\n\d+\.\d s ago: worker 2 is back, ")
        self.end_after(run, 50)
        data, = self.data_of(run.run_directory)
        self.assertEqual([view["event"] for view in data["views"]], ["left", "returned"])
        self.assertGreater(data["views"][1]["took_s"], 0)
        with open(os.path.join(run.run_directory, "trace.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        track, = {event["pid"] for event in events if event["name"] == "thread_name" and event["args"]["name"] == "changes"}
        spans = [event for event in events if event["pid"] == track and event["ph"] == "X"]
        self.assertEqual([span["name"] for span in spans], ["left", "returned"])
        self.assertGreater(spans[1]["dur"], 0)
        shown = self.browse(self.page_of(run.run_directory), "--dump-dom")
        self.assertIn("worker 2 is back", shown)

    def test_a_late_worker_shows_in_the_staleness(self):
        run = self.quadratic("--strategy", "wagma(late=skip)", updates=100, sleep_ms=[2, 2, 2, 8])
        data, = self.data_of(run.run_directory)
        self.assertGreater(sum(data["staleness"][1:]), 0, data["staleness"])

    @unittest.skipUnless(CHROMIUM, "needs chromium")
    def test_a_run_that_was_killed_is_drawn_as_far_as_it_came(self):
        run = self.start_quadratic("--strategy", "wagma", updates=ENDLESS, sleep_ms=[5])
        self.wait_for_update(run, 50)
        os.killpg(run.process.pid, signal.SIGKILL)
        run.wait(10)
        with open(os.path.join(run.run_directory, "metrics.jsonl"), "a", encoding="utf-8") as file:
            file.write('{"event":"progress","clo')
        data, = self.data_of(run.run_directory)
        self.assertIn("no result", data["outcome"])
        self.assertTrue(data["loss"]["value"])
        self.assertTrue(data["timeline"], "from the parts of the trace")
        self.assert_draws(self.page_of(run.run_directory), 5)

    @unittest.skipUnless(CHROMIUM, "needs chromium")
    def test_a_very_long_run_without_a_trace_is_thinned_and_says_so(self):
        directory = self.make_run("long", "".join(self.progress(update) for update in range(1, 100_001)))
        shown = self.assert_draws(self.page_of(directory), 4)
        self.assertRegex(shown, r"thinned for drawing: \d+ of 100000 points")
        self.assertIn("there is no trace", shown)

    @unittest.skipUnless(CHROMIUM, "needs chromium")
    def test_texts_of_a_run_are_shown_as_texts(self):
        directory = self.make_run("hostile", self.progress(1) + self.progress(2), strategy=HOSTILE, script=HOSTILE)
        shown = self.assert_draws(self.page_of(directory), 4)
        self.assertNotIn("<img", shown)
        self.assertIn('&lt;img src=x onerror="document.title=', shown)
        self.assertNotIn("<title>owned", shown)

    def test_the_page_lies_in_the_first_run_unless_told_otherwise(self):
        one, two = (self.make_run(name, self.progress(1)) for name in ("one", "two"))
        self.assertEqual(self.report(one, two).out, f"{one}/report.html\n")
        self.assertTrue(os.path.exists(f"{one}/report.html"))

    def test_what_cannot_be_reported_is_told_in_one_line_and_leaves_nothing(self):
        good = self.make_run("good", self.progress(1))
        empty = self.make_run("empty", "")
        os.mkdir(os.path.join(self.folder, "folder"))
        for arguments, code, words in (
                (["nowhere"], 2, "no run directory nowhere"),
                (["folder"], 2, "neither configuration.json nor metrics.jsonl"),
                (["good/metrics.jsonl"], 2, "is no directory of a run"),
                (["empty"], 2, f"{empty} has no figures"),
                (["good", "nowhere"], 2, "no run directory nowhere"),
                (["good", "-o", "folder"], 2, "folder is a directory"),
                (["good", "-o", "nowhere/page.html"], 1, "nowhere/page.html"),
                (["good"] * 65, 2, "65 runs are too many")):
            with self.subTest(arguments):
                run = self.report(*arguments, code=code)
                self.assertEqual((run.out, len(run.err.splitlines())), ("", 1), run.said())
                self.assertIn(words, run.err)
        self.assertEqual(self.report(code=2).out, "")
        self.assertEqual(sorted(os.listdir(good)), ["configuration.json", "metrics.jsonl"])

    def test_a_page_that_does_not_fit_on_the_disk_leaves_the_old_one(self):
        good = self.make_run("good", self.progress(1))
        with open(f"{good}/report.html", "w", encoding="utf-8") as file:
            file.write("the old one")
        limited = self.start("-c", 'ulimit -f 10; trap "" XFSZ; exec "$0" report "$1"', PACELINE, good, program="sh")
        self.assertEqual(limited.wait(10), 1, limited.said())
        self.assertIn("report.html", limited.err)
        with open(f"{good}/report.html", encoding="utf-8") as file:
            self.assertEqual(file.read(), "the old one")
        self.assertEqual(sorted(os.listdir(good)), ["configuration.json", "metrics.jsonl", "report.html"])


if __name__ == "__main__":
    main()
