"""paceline simulate: jobs with known answers, scenarios, what is refused, and that one seed gives the same bytes."""
import copy
import json
import os
import re
import subprocess
import xml.etree.ElementTree

from harness import IntegrationTest, PACELINE, SLOWDOWN, main

USAGE = 2

# The canonical problem: the mean objective is lowest at 6 2/3.
T4 = {"problem": {"kind": "least_squares",
                  "workers": [{"a": [a], "c": [c]} for a, c in ((1, 0), (2, 4), (1, 8), (2, 12))]},
      "start": [0], "strategy": "allreduce", "lr": 0.25, "momentum": 0, "nesterov": False, "steps": 3,
      "compute_s": [[1, 1, 1, 1]], "network": {"latency_s": 0, "bandwidth_Bps": 0}, "seed": 1}
ROW = {"worker", "step", "time_s", "model", "fresh", "group", "weight", "period", "batches_done", "loss"}
SUMMARY = {"summary", "model", "virtual_s", "messages", "bytes", "wait_s"}


def job(**changes):
    return dict(copy.deepcopy(T4), **changes)


class SimulateTest(IntegrationTest):
    def run_text(self, text, *flags):
        """The command with this text as standard input."""
        return subprocess.run([PACELINE, "simulate", "-", *flags], input=text.encode(), capture_output=True,
                              timeout=60 * SLOWDOWN, env=self.environment, cwd=self.folder)

    def rows(self, made):
        """Rows and summary of a job, read as any reader of JSON lines would."""
        done = self.run_text(json.dumps(made), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.endswith(b"\n"))
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        for row in lines[:-1]:
            self.assertEqual(set(row), ROW)
        self.assertEqual(set(lines[-1]), SUMMARY)
        return lines[:-1], lines[-1]

    def assert_refused(self, text, *words, flags=()):
        done = self.run_text(text if isinstance(text, str) else json.dumps(text), *flags)
        error = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (USAGE, b""), error)
        self.assertEqual(len(error.splitlines()), 1, error)
        self.assertTrue(error.startswith("paceline: "), error)
        for word in words:
            self.assertIn(word, error)

    def assert_flags_refused(self, *arguments, words):
        run = self.paceline("simulate", *arguments)
        self.assertEqual((run.code, run.out), (USAGE, ""), run.said())
        self.assertEqual(len(run.err.splitlines()), 1, run.said())
        for word in words:
            self.assertIn(word, run.err)


class Clusters(SimulateTest):
    FLAGS = ("simulate", "--nodes", "3", "-w", "8", "--steps", "100", "--faults", "kill=3/s,kill-head=3/s", "--seed")

    def test_what_goes_wrong_is_told_and_the_job_goes_on(self):
        run = self.paceline(*self.FLAGS, "3", "-s", "wagma(late=skip)")
        self.assertEqual((run.code, run.err), (0, ""), run.said())
        *news, last = run.out.splitlines()
        self.assertTrue(any("the head is killed" in line for line in news), run.out)
        self.assertTrue(any("the others go on without it" in line for line in news), run.out)
        self.assertRegex(last, r"^wagma\(late=skip\) ended after 100 updates and .*: [1-7] of 8 workers came to its end, "
                               r"with one model, .* above the lowest loss; \d+ messages \(.*\) between 3 nodes$")

    def test_one_seed_gives_the_same_bytes(self):
        flags = (*self.FLAGS, "5", "--compare", "allreduce,sgp", "--json")
        run, again = self.paceline(*flags), self.paceline(*flags)
        self.assertEqual((run.code, run.out), (0, again.out), run.said())
        lines = [json.loads(line) for line in run.out.splitlines()]
        self.assertEqual([line["strategy"] for line in lines], ["allreduce", "sgp"])
        for line in lines:
            self.assertEqual((line["state"], line["one_model"], line["findings"]), ("ended", True, []), line)

    def test_what_does_not_fit_is_refused(self):
        for flags, words in ((("-s", "wagme"), ("unknown strategy 'wagme'",)),
                             (("-s", "allreduce", "--faults", "burn=1/s"), ("--faults", "'burn=1/s'", "kill=1/min")),
                             (("-s", "allreduce", "--slow", "1:2x"), ("--slow does not go with --nodes",)),
                             (("-s", "allreduce", "--workers", "0"), ("--workers",)),
                             (("-s", "allreduce", "--steps", "0"), ("--steps 0: give a number from 1",)),
                             (("-s", "allreduce", "--compute", "trace(x)"), ("--compute",)),
                             (("-s", "allreduce", "--lr", "-1"), ("--lr -1",)),
                             (("job.json",), ("a job file does not go with --nodes",)),
                             ((), ("give a job file, --strategy or --compare",))):
            self.assert_flags_refused("--nodes", "2", *flags, words=words)
        for nodes in ("0", "65", "-1"):
            self.assert_flags_refused("-s", "allreduce", "--nodes", nodes, words=("--nodes", "from 1 to 64"))
        self.assert_flags_refused("-s", "allreduce", "--faults", "kill=1/s", words=("--nodes",))


class Jobs(SimulateTest):
    def test_who_is_waited_for_longer_than_a_strategys_patience_leaves(self):
        slow = {"compute_s": [[1, 1, 1, 100]], "steps": 4}
        rows, summary = self.rows(job(strategy="allreduce(patience=5s)", **slow))
        self.assertEqual({row["worker"] for row in rows}, {0, 1, 2})
        self.assertAlmostEqual(summary["virtual_s"], 1 + 5 + 3)
        self.assertAlmostEqual(self.rows(job(strategy="allreduce(patience=2min)", **slow))[1]["virtual_s"], 400)
        self.assert_refused(job(strategy="d-psgd(ring,patience=5s)", **slow), "patience of d-psgd(ring,patience=5s) is not simulated")

    def models(self, made, step):
        rows, _ = self.rows(made)
        return [row["model"][0] for row in sorted(rows, key=lambda row: row["worker"]) if row["step"] == step]

    def test_allreduce(self):
        for step, expected in enumerate((2.5, 4.0625, 5.0390625)):
            self.assertEqual(self.models(job(), step), [expected] * 4)

    def test_local_sgd(self):
        made = job(strategy="local-sgd(period=2)", steps=4)
        self.assertEqual(self.models(made, 0), [0, 2, 2, 6])
        self.assertEqual(self.models(made, 1), [3.875] * 4)
        self.assertEqual(self.models(made, 3), [5.44921875] * 4)

    def test_wagma(self):
        made = job(strategy="wagma(group=2,sync=4)", steps=4)
        self.assertEqual(self.models(made, 0), [1, 1, 4, 4])
        self.assertEqual(self.models(made, 1), [2.875, 5.25, 2.875, 5.25])
        self.assertEqual(self.models(made, 3), [5.556640625] * 4)

    def test_nonblocking_counts_what_is_finished(self):
        made = job(strategy="nonblocking(allreduce,batches=4)", steps=2, compute_s=[[1, 2.1, 1.5, 6.2]])
        self.assertEqual(self.models(made, 0), [0.375] * 4)
        self.assertEqual([row["batches_done"] for row in self.rows(made)[0] if row["step"] == 0], [4, 1, 2, 0])

    def test_the_row_says_who_waited_for_whom(self):
        rows, summary = self.rows(job(compute_s=[[1, 1, 1, 1.5]]))
        self.assertEqual([row["time_s"] for row in rows], [1.5] * 4 + [3.0] * 4 + [4.5] * 4)
        self.assertEqual([row["worker"] for row in rows], [0, 1, 2, 3] * 3)
        self.assertEqual([row["loss"] for row in rows[:4]], [0, 16, 32, 144])
        self.assertTrue(all(row["fresh"] and row["group"] == [0, 1, 2, 3] for row in rows))
        self.assertEqual(summary["model"], [5.0390625])
        self.assertEqual((summary["virtual_s"], summary["wait_s"]), (4.5, [1.5, 1.5, 1.5, 0]))
        self.assertEqual((summary["messages"], summary["bytes"]), (3 * 4 * 6, 3 * 4 * 6 * 2))

    def test_a_worker_of_its_own_start(self):
        rows, _ = self.rows(job(strategy="local-sgd(period=2)", start=[[0], [3], [6], [9]], steps=1))
        self.assertEqual([row["model"][0] for row in rows], [0, 3.5, 6.5, 10.5])

    def test_the_same_seed_gives_the_same_bytes(self):
        noisy = job(steps=20)
        noisy["problem"].update(kind="quadratic_noise", noise=0.5)
        softmax = job(start=[0] * 12, steps=20)
        softmax["problem"] = {"kind": "softmax", "workers": 4, "classes": 3, "features": 3, "samples": 20, "batch": 4,
                              "spread": 0.5, "skew": 0.5}
        for made in (noisy, softmax):
            first = self.run_text(json.dumps(made), "--json")
            self.assertEqual(first.returncode, 0, first.stderr)
            self.assertEqual(self.run_text(json.dumps(made), "--json").stdout, first.stdout)
            self.assertNotEqual(self.run_text(json.dumps(dict(made, seed=2)), "--json").stdout, first.stdout)
        losses = [row["loss"] for row in self.rows(dict(softmax, steps=60))[0]]
        self.assertLess(sum(losses[-20:]), 0.7 * sum(losses[:20]))

    def test_numbers_survive_writing_and_reading(self):
        rows, _ = self.rows(job(lr=0.1, strategy="local-sgd(period=5)", steps=1))
        self.assertEqual([row["model"][0] for row in rows], [0.1 * a * c for a, c in ((1, 0), (2, 4), (1, 8), (2, 12))])

    def test_a_table_for_people(self):
        run = self.paceline("simulate", self.write("job.json", json.dumps(job(compute_s=[[1, 1, 1, 1.5]]))))
        self.assertEqual(run.code, 0, run.said())
        self.assertIn("last loss", run.out)
        self.assertRegex(run.out, r"model \(5\.0390625\) after 4\.5 s; 72 messages, 144 B")
        self.assertIn("4 workers did 12 of 12 steps in 4.5 s, stood waiting for 25.0 % of the time", run.out)

    def test_the_output_goes_to_a_file(self):
        path = os.path.join(self.folder, "rows.jsonl")
        run = self.paceline("simulate", self.write("job.json", json.dumps(job())), "--json", "-o", path)
        self.assertEqual((run.code, run.out), (0, ""), run.said())
        with open(path, encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 13)


class BadJobs(SimulateTest):
    def replaced(self, path, value):
        made = job()
        at = made
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        return made

    def test_every_error_names_the_field_the_value_and_what_is_allowed(self):
        workers = ("problem", "workers")
        for path, value, words in (
                (workers + (2, "a", 0), "x", ("problem.workers[2].a[0]", '"x"', "number")),
                (workers + (2, "a"), [1, 2], ("problem.workers[2].a", "2 numbers", "give 1")),
                (workers + (2, "c"), [], ("problem.workers[2].c", "at least one")),
                (workers + (2,), 3, ("problem.workers[2]", "3", "an object")),
                (workers + (2, "b"), 1, ("problem.workers[2].b", "unknown")),
                (workers, [], ("problem.workers", "at least one")),
                (("problem", "kind"), "cubic", ("problem.kind", "cubic", "least_squares")),
                (("problem",), [], ("problem", "an object")),
                (("start",), [0, 0], ("start", "2 numbers", "give 1")),
                (("start",), [[0], [0]], ("start", "2 vectors", "4 workers")),
                (("start",), [[0], [1], [0], [0]], ("start", "allreduce", "same point")),
                (("start",), None, ("start", "null")),
                (("strategy",), "allredcue", ("strategy", "allredcue", "allreduce")),
                (("strategy",), "wagma(group=3)", ("strategy", "wagma")),
                (("strategy",), 1, ("strategy", "1")),
                (("lr",), -1, ("lr", "-1", "from 0")),
                (("lr",), "0.1", ("lr", '"0.1"')),
                (("momentum",), 1, ("momentum", "1", "below 1")),
                (("momentum",), -0.1, ("momentum", "-0.1")),
                (("nesterov",), "yes", ("nesterov", "true or false")),
                (("steps",), 0, ("steps", "0", "from 1")),
                (("steps",), 1.5, ("steps", "1.5", "whole number")),
                (("steps",), 10**30, ("steps", "1e+30", "whole number")),
                (("compute_s",), [], ("compute_s", "at least one")),
                (("compute_s",), [[1, 1, 1]], ("compute_s[0]", "3 numbers", "give 4")),
                (("compute_s",), [[1, 1, 1, 1], [1, 1, -1, 1]], ("compute_s[1][2]", "-1", "1e-09")),
                (("compute_s",), [[1, 1, 1, 0]], ("compute_s[0][3]", "0")),
                (("network",), {"latency_s": -1}, ("network.latency_s", "-1", "from 0")),
                (("network",), {"latency": 1}, ("network.latency", "unknown", "latency_s")),
                (("seed",), -1, ("seed", "-1")),
                (("seed",), 2**64, ("seed", "2^64 - 1")),
                (("step",), 3, ("step", "unknown", "steps"))):
            with self.subTest(path=path, value=value):
                self.assert_refused(self.replaced(path, value), "standard input: " + words[0], *words[1:])

    def test_fields_that_are_missing(self):
        for name in ("problem", "start", "strategy", "lr", "steps", "compute_s"):
            made = job()
            del made[name]
            self.assert_refused(made, name + ": is missing")

    def test_numbers_that_are_none(self):
        text = json.dumps(job())
        for wrong in ("1e999", "-1e999"):
            self.assert_refused(text.replace('"lr": 0.25', f'"lr": {wrong}'), f"lr: {wrong} is too large")
        self.assert_refused(text.replace('"lr": 0.25', '"lr": 1e200'), "lr: 1e+200")
        for wrong in ("NaN", "Infinity", "nan", "0x1p3", "01", "+1"):
            self.assert_refused(text.replace('"lr": 0.25', f'"lr": {wrong}'), "line 1, column ")

    def test_malformed_json_says_where(self):
        text = json.dumps(job(), indent=1)
        for wrong in ("", "{", "[1,]", "nonsense", text + "x", text[:-1], "\x00", "\ufffe" * 3, "[" * 100000,
                      text.replace("{", "{ /* a comment */", 1), "// a comment\n" + text):
            self.assert_refused(wrong)
        self.assert_refused("{\n  \"lr\": ,\n}", "line 2, column 9")
        self.assert_refused(text.replace('"lr": 0.25', '"lr": 0.25, "lr": 0.5'), "lr: is there twice")

    def test_files_that_are_none(self):
        self.assert_flags_refused("nowhere.json", words=["nowhere.json", "no such file"])
        self.assert_flags_refused(self.folder, words=["folder"])
        big = os.path.join(self.folder, "big.json")
        with open(big, "wb") as file:
            file.truncate(65 << 20)
        self.assert_flags_refused(big, words=["big.json", "64 MiB"])
        self.assert_flags_refused("/dev/zero", words=["64 MiB"])

    def test_what_would_take_very_long_asks_first(self):
        self.assert_refused(job(steps=10**9), "would take about", "--yes")
        self.assert_refused(job(steps=10**12), "would take about", "--yes")
        self.assert_refused(job(steps=10**9, compute_s=[[1e6] * 4]), "9e9 s", flags=["--yes"])

    def test_a_file_that_cannot_be_written(self):
        path = self.write("job.json", json.dumps(job()))
        self.assert_flags_refused(path, "-o", "/nowhere/rows", words=["-o /nowhere/rows"])

    def test_flags_of_scenarios_are_not_for_jobs(self):
        path = self.write("job.json", json.dumps(job()))
        self.assert_flags_refused(path, "--workers", 4, words=["--workers", "job"])


class Scenarios(SimulateTest):
    def compared(self, *flags):
        run = self.paceline("simulate", "--json", *flags)
        self.assertEqual(run.code, 0, run.said())
        return {line["strategy"]: line for line in map(json.loads, run.out.splitlines())}

    def test_constant_times_cost_nothing(self):
        done = self.compared("--compare", "allreduce,local-sgd,wagma", "--steps", 20)
        for line in done.values():
            self.assertEqual((line["virtual_s"], line["samples_against_allreduce"], line["share_done"],
                              line["share_waited"], line["share_late"]), (20, 1, 1, 0, 0))
            self.assertEqual(line["curve"][0][0], 0)
            self.assertLess(line["curve"][-1][1], line["curve"][0][1])

    def test_a_worker_that_is_always_slow(self):
        done = self.compared("--compare", "allreduce,nonblocking(batches=4),wagma(late=skip)", "--slow", "3:4x",
                             "--steps", 40)
        self.assertEqual(done["allreduce"]["virtual_s"], 640)
        self.assertAlmostEqual(done["nonblocking(batches=4)"]["samples_against_allreduce"], 3.25)
        self.assertGreater(done["wagma(late=skip)"]["samples_against_allreduce"], 2)

    def test_allreduce_takes_the_longest_of_exponential_times(self):
        line = self.compared("--strategy", "allreduce", "--compute", "exponential(1s)", "--steps", 2000)["allreduce"]
        self.assertAlmostEqual(line["step_s"], 1 + 1 / 2 + 1 / 3 + 1 / 4, delta=0.1)
        self.assertAlmostEqual(line["share_waited"], 1 - 1 / (25 / 12), delta=0.03)

    def test_one_seed_one_answer(self):
        flags = ("simulate", "--json", "--compare", "allreduce,wagma", "--compute", "lognormal(1s,0.5)", "--straggle",
                 "1:2s", "--steps", 30)
        first = self.paceline(*flags).out
        self.assertTrue(first)
        self.assertEqual(self.paceline(*flags).out, first)
        self.assertNotEqual(self.paceline(*flags, "--seed", 2).out, first)

    def test_a_trace_of_a_file_and_of_a_run(self):
        times = self.write("times.txt", "2\n2000ms\n")
        self.assertEqual(self.compared("-s", "allreduce", "--steps", 5, "--compute", f"trace({times})")["allreduce"]
                         ["virtual_s"], 10)
        events = [{"event": "progress", "workers": [{"rank": rank, "step": step, "compute_s": step * (1 + rank)}
                                                    for rank in range(2)]} for step in range(4)]
        metrics = self.write("metrics.jsonl", "".join(json.dumps(event) + "\n" for event in events))
        line = self.compared("-s", "allreduce", "-w", 2, "--steps", 5, "--compute", f"trace({metrics})")["allreduce"]
        self.assertEqual((line["virtual_s"], line["share_waited"]), (10, 0.25))
        bad = self.write("bad.txt", "1\nsoon\n")
        self.assert_flags_refused("-s", "allreduce", "--compute", f"trace({bad})", words=["--compute", "line 2", "soon"])

    def test_a_network_takes_time(self):
        line = self.compared("-s", "allreduce", "--steps", 10, "--network", "latency=10ms,bandwidth=1GB/s", "--bytes",
                             "100MB")["allreduce"]
        self.assertGreater(line["step_s"], 1.15)
        self.assertEqual(line["bytes"], 10 * 4 * 6 * 25e6)

    def test_every_strategy_that_help_names_can_be_simulated(self):
        text = self.paceline("simulate", "--help").out
        names = re.findall(r"^  ([a-z][a-z-]*)\(?.*$", text.split("Strategies")[1].split("Examples")[0], re.MULTILINE)
        self.assertGreater(len(names), 4)
        done = self.compared("--compare", ",".join(names), "--steps", 30, "--accumulate", 4)
        self.assertEqual(set(done), set(names))
        for name, line in done.items():
            self.assertLess(line["loss"], line["curve"][0][1], name)

    def test_the_dead_and_the_frozen(self):
        dead = self.compared("-s", "allreduce", "--steps", 60, "--fail", "2@30s")["allreduce"]
        self.assertLess(dead["share_done"], 1)
        self.assertGreater(dead["share_done"], 0.8)
        frozen = self.compared("-s", "allreduce", "--steps", 60, "--fail", "2@30.5s+3s")["allreduce"]
        self.assertEqual((frozen["virtual_s"], frozen["share_done"]), (63, 1))
        self.assert_flags_refused("-s", "d-psgd", "--fail", "2@30s", words=["--fail", "d-psgd", "allreduce"])

    def test_table_sentence_and_plots(self):
        svg, page = os.path.join(self.folder, "plot.svg"), os.path.join(self.folder, "plot.html")
        for path in (svg, page):
            run = self.paceline("simulate", "--compare", "allreduce,wagma", "--compute", "exponential(1s)", "-o", path)
            self.assertEqual(run.code, 0, run.said())
            for word in ("samples/s", "1.00x", "had the most samples/s", "times those of allreduce"):
                self.assertIn(word, run.out)
        root = xml.etree.ElementTree.parse(svg).getroot()
        self.assertEqual(len(root.findall("{http://www.w3.org/2000/svg}polyline")), 2)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(re.findall(r'(?:src|href)="([^"]*)"', text), [])
        self.assertIn("virtual time", text)

    def test_long_ones_show_progress_on_stderr_only(self):
        run = self.paceline("simulate", "-s", "allreduce", "--steps", 5, "--json")
        self.assertEqual((run.code, run.err), (0, ""), run.said())

    def test_flags_that_are_wrong(self):
        for flags, words in (
                ((), ["job file", "--strategy"]),
                (("--workers", 4), ["--strategy"]),
                (("-s", "allredcue"), ["allredcue", "allreduce"]),
                (("-s", "wagma", "-w", 3), ["power of two"]),
                (("-s", "allreduce", "--compare", "wagma"), ["--compare", "--strategy"]),
                (("-s", "allreduce", "-w", 0), ["--workers", "0"]),
                (("-s", "allreduce", "--steps", 0), ["--steps", "0"]),
                (("-s", "allreduce", "--steps", 10**9), ["would take", "--yes"]),
                (("-s", "allreduce", "--slow", "4:2x"), ["--slow", "0 to 3"]),
                (("-s", "allreduce", "--straggle", "1:soon"), ["--straggle", "count:delay"]),
                (("-s", "allreduce", "--straggle", "worker-9:1s"), ["--straggle", "0 to 3"]),
                (("-s", "allreduce", "--compute", "normal(1s)"), ["--compute", "exponential(1s)"]),
                (("-s", "allreduce", "--compute", "trace(/nowhere)"), ["--compute", "/nowhere", "no such file"]),
                (("-s", "allreduce", "--network", "speed=1"), ["--network", "latency"]),
                (("-s", "allreduce", "--bytes", "much"), ["--bytes", "100MB"]),
                (("-s", "allreduce", "--fail", "9@1s"), ["--fail", "0 to 3"]),
                (("-s", "allreduce", "--fail", "soon"), ["--fail", "2@30s"]),
                (("-s", "allreduce", "-o", "plot.png"), [".svg", ".html"])):
            with self.subTest(flags=flags):
                self.assert_flags_refused(*flags, words=words)

    def test_help_has_both_forms(self):
        run = self.paceline("simulate", "--help")
        self.assertEqual(run.code, 0, run.said())
        for word in ("paceline simulate job.json --json", "--compare 'allreduce", "docs/jobs.md"):
            self.assertIn(word, run.out)


if __name__ == "__main__":
    main()
