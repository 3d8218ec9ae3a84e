"""The command line: clusters that are up, their status and logs, --json, interrupts, the cache of scripts, the trace."""
import contextlib
import csv
import fcntl
import json
import os
import re
import signal
import statistics
import struct
import subprocess
import termios
import time
import urllib.error
import urllib.request

from harness import ENDLESS, IntegrationTest, PACELINE, QUADRATIC, SLOWDOWN, SOURCE, in_release, main, parent_of, wait_until

RESULT_FIELDS = {"event", "strategy", "time_to_target_s", "samples_per_s", "step_s", "metric", "wait_s",
                 "group_averages", "global_averages", "skipped_steps", "abandoned_batches"}

SCRIPT = """#include <paceline.h>
#include <cstdio>
int square(int x) { return x * x; }
int main(int argc, char** argv) {
  std::printf("%d\\n", paceline::async(square, 7).get());
  for (int i = 1; i < argc; ++i) std::printf("argument %s\\n", argv[i]);
}
"""


class Clusters(IntegrationTest):
    def test_a_cluster_is_up_until_it_is_told_to_go_down(self):
        up = self.paceline("up")
        self.assertEqual(up.code, 0, up.said())
        self.assertIn("cluster 'default' is up: 1 node", up.out)
        status = self.paceline("status", "--json")
        self.assertEqual(status.code, 0, status.said())
        report = json.loads(status.out)
        self.assertEqual((report["name"], len(report["nodes"]), report["jobs"]), ("default", 1, []))
        self.assertIn("default", self.paceline("status").out)
        down = self.paceline("down")
        self.assertEqual((down.code, down.out), (0, "cluster 'default' is down\n"), down.said())
        self.assert_nobody_left()
        self.assertEqual([name for name in os.listdir(self.runtime) if not name.startswith(".")], [])

    def assert_refused(self, run, code, *words):
        self.assertEqual(run.code, code, run.said())
        self.assertEqual(len(run.err.splitlines()), 1, run.err)
        for word in words:
            self.assertIn(word, run.err)

    def test_a_cluster_gets_more_nodes(self):
        """All know each other, and that they are so many still when the head is another one."""
        self.assertEqual(self.paceline("up").code, 0)
        more = self.paceline("up", "--add", 1)
        self.assertEqual((more.code, more.out), (0, "cluster 'default' has 2 nodes\n"), more.said())
        more = self.paceline("up", "--add", 2, "--json")
        self.assertEqual((more.code, json.loads(more.out)["nodes"]), (0, 4), more.said())
        self.assertEqual(len(self.agents()), 4)
        os.kill(self.cluster("head")[0], signal.SIGKILL)
        run = self.start_quadratic(nodes=None, workers=4)
        self.assertEqual(run.wait(30), 0, run.said())
        self.assertEqual(run.result()["nodes"], [0, 1, 2, 3])
        os.kill(self.cluster("supervise")[0], signal.SIGKILL)
        self.assert_refused(self.paceline("up", "--add", 1), 1, "supervisor", "was killed", "paceline down")

    def test_a_cluster_gets_more_nodes_only_where_it_can(self):
        self.assert_refused(self.paceline("up", "--add", 1), 2, "no cluster", "paceline up")
        self.assertEqual(self.paceline("up", "--nodes", 2).code, 0)
        self.assert_refused(self.paceline("up", "--add", 63), 2, "--add 63", "2 nodes", "64")
        for flag in (("--nodes", 2), ("--cpus", 1), ("--memory", "1GiB")):
            self.assert_refused(self.paceline("up", "--add", 1, *flag), 2, "--add", flag[0])
        self.assertEqual(len(self.agents()), 2)

    def test_two_clusters_run_side_by_side(self):
        for name, nodes in (("one", 1), ("two", 2)):
            self.assertEqual(self.paceline("up", "--name", name, "--nodes", nodes).code, 0)
        runs = [self.start_in(name, 2 * nodes) for name, nodes in (("one", 1), ("two", 2))]
        for run in runs:
            self.assertEqual(run.wait(20), 0, run.said())
        for name, nodes in (("one", 1), ("two", 2)):
            report = json.loads(self.paceline("status", "--name", name, "--json").out)
            self.assertEqual(len(report["nodes"]), nodes)
        again = self.paceline("up", "--name", "two")
        self.assertEqual(again.code, 2, again.said())
        self.assertIn("cluster 'two' is already up", again.err)
        which = self.paceline("status")
        self.assertIn("these are: one, two", which.err)
        for name in ("one", "two"):
            self.assertEqual(self.paceline("down", "--name", name).code, 0)
        self.assert_nobody_left()

    def start_in(self, cluster, workers):
        """A run on a cluster that is up."""
        self.environment["PACELINE_CLUSTER"] = cluster
        try:
            return self.start_quadratic(nodes=None, workers=workers, updates=60, sleep_ms=[5])
        finally:
            del self.environment["PACELINE_CLUSTER"]

    def test_two_runs_without_a_cluster_do_not_meet(self):
        runs = [self.start_quadratic(updates=60, sleep_ms=[5], nodes=nodes) for nodes in (1, 2)]
        for run in runs:
            self.assertEqual(run.wait(20), 0, run.said())
        self.assert_nobody_left()

    def test_status_of_a_running_job_comes_at_once_and_says_what_the_workers_do(self):
        self.assertEqual(self.paceline("up").code, 0)
        run = self.start_quadratic(nodes=None, updates=ENDLESS, sleep_ms=[5], evaluate_every=10, log=2,
                                   metric={"name": "accuracy"})
        self.wait_for_update(run, 20)
        times = []
        for _ in range(9):
            begin = time.monotonic()
            status = self.paceline("status", "--json")
            times.append(time.monotonic() - begin)
            self.assertEqual(status.code, 0, status.said())
        job, = json.loads(status.out)["jobs"]
        self.assertEqual([worker["rank"] for worker in job["workers"]], [0, 1, 2, 3])
        self.assertEqual([worker["pid"] for worker in job["workers"]],
                         [self.worker_pid(run, worker["rank"]) for worker in job["workers"]])
        self.assertGreater(job["update"], 20)
        self.assertGreater(job["age_s"], 0)
        self.assertEqual(job["run_directory"], run.run_directory)
        self.assertEqual(os.path.basename(job["script"]), "quadratic_worker")
        self.assertTrue(os.path.isabs(job["script"]))
        evaluation = job["evaluation"]
        self.assertEqual((evaluation["name"], evaluation["update"] % 10), ("accuracy", 0), evaluation)
        self.assertGreater(evaluation["update"], 0)
        self.assertEqual([logged["name"] for logged in job["logged"]], ["value0", "value1"])
        for logged in job["logged"]:
            self.assertEqual(logged["value"] + 1, logged["update"], "updates that were done then")
            self.assertGreaterEqual(logged["update"], 20)
        text = self.paceline("status").out
        self.assertRegex(text, r"\naccuracy [0-9.]+ %.*, update \d+0, at ")
        self.assertRegex(text, r"\nvalue1 \d+ \(worker \d\), update \d+, at ")
        watching = self.start("status", "--watch")
        self.assertLess(statistics.median(times), 0.1 * SLOWDOWN, times)

        self.signal_worker(run, 2, signal.SIGSTOP)  # status says who waits for whom.
        time.sleep(0.5)
        job, = json.loads(self.paceline("status", "--json").out)["jobs"]
        self.assertEqual(job["waiting"]["missing"], [2])
        self.assertEqual(job["workers"][2]["state"], "frozen")
        self.signal_worker(run, 2, signal.SIGCONT)
        driver, = [pid for pid in self.processes() if parent_of(pid) == run.process.pid]
        os.kill(driver, signal.SIGKILL)
        self.assertEqual(run.wait(5), 1, run.said())
        self.assertIn("the driver quadratic_worker was killed", run.err)
        wait_until(lambda: not json.loads(self.paceline("status", "--json").out)["jobs"], 5, "the job ends with its driver")
        wait_until(lambda: "no job runs" in watching.out, 5, "status is shown again")
        self.assertIn(f" s\nof {job['script']}\nin {run.run_directory}\n", watching.out)
        self.assertEqual(self.paceline("down").code, 0)
        self.assertEqual(watching.wait(10), 0, "it ends with the cluster")
        self.assert_nobody_left()

    def scrape(self, address, token):
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=10) as answer:
            return {name: float(value) for name, value in
                    (line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if not line.startswith("#"))}

    def test_prometheus_is_served_to_who_has_the_token(self):
        self.assertEqual(self.paceline("up").code, 0)
        run = self.start_quadratic(updates=ENDLESS, nodes=None, workers=2, sleep_ms=[2])
        server = self.start("metrics", "--port", "0")
        line = wait_until(lambda: server.out.strip(), 10, "the address")
        address, token_file = re.search(r"(http://127\.0\.0\.1:\d+/metrics), .* in (\S+)", line).groups()
        self.assertEqual(os.stat(token_file).st_mode & 0o777, 0o600)
        with open(token_file, encoding="utf-8") as file:
            token = file.read().strip()
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.scrape(address, "x" * len(token))
        self.assertEqual(refused.exception.code, 401)

        def done():
            return next((value for name, value in self.scrape(address, token).items()
                         if name.startswith("paceline_job_updates_done")), 0)
        before = wait_until(done, 15, "the first update")
        wait_until(lambda: done() > before, 15, "further updates")
        workers = [name for name in self.scrape(address, token) if name.startswith("paceline_worker_samples_total")]
        self.assertEqual(len(workers), 2, workers)
        run.end()
        self.assertEqual(self.paceline("down").code, 0)
        self.assertEqual(server.wait(10), 0, server.said())

    def test_a_stale_runtime_directory_is_swept(self):
        self.assertEqual(self.paceline("up").code, 0)
        for pid in self.cluster():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.cluster(), 2, "the cluster dies")
        self.assertIn("default", os.listdir(self.runtime))
        up = self.paceline("up")
        self.assertEqual(up.code, 0, up.said())
        self.assertEqual(self.paceline("down").code, 0)


class Runs(IntegrationTest):
    def test_json_lines_end_with_the_result(self):
        run = self.quadratic("--json", updates=30, sleep_ms=[2], evaluate_every=10, nodes=2)
        events = [json.loads(line) for line in run.out.splitlines()]
        self.assertTrue(all(isinstance(event, dict) and "event" in event for event in events))
        result = events[-1]
        self.assertEqual(result["event"], "result")
        self.assertLessEqual(RESULT_FIELDS, set(result))
        self.assertEqual(result["strategy"], "allreduce")
        self.assertGreater(result["step_s"], 0.002)
        self.assertIsNone(result["time_to_target_s"])
        self.assertEqual(len([event for event in events if event["event"] == "evaluated"]), 3)

    def test_training_time_ends_with_the_last_update(self):
        for strategy in ("allreduce", "nonblocking", "d-psgd(ring)", "server(async)"):
            began = time.monotonic()
            run = self.quadratic("--strategy", strategy, updates=20, sleep_ms=[2], linger_ms=[2000])
            took = time.monotonic() - began
            ended = [event["clock_s"] for event in run.metrics()
                     if event["event"] in ("progress", "closed") and event.get("update") == 20]
            self.assertGreaterEqual(len(ended), 6, "news while the workers linger, four a second")
            self.assertEqual(set(ended[1:]), {run.result()["train_s"]}, f"{strategy}: {ended}")
            self.assertLess(run.result()["train_s"], took - 2.0, f"{strategy}: the workers' lingering counts")
            self.assertGreater(run.result()["train_s"], 20 * 0.002, strategy)

    def test_a_comparison_runs_every_strategy_and_prints_a_table(self):
        strategies = "allreduce,nonblocking(batches=2),wagma"
        run = self.start_quadratic("--compare", strategies, updates=20, sleep_ms=[2, 2, 2, 8])
        self.assertEqual(run.wait(30), 0, run.said())
        for strategy in ("allreduce", "nonblocking(batches=2)", "wagma"):
            self.assertIn(strategy, run.out[run.out.index("strategy"):])

    def test_the_run_directory_holds_everything(self):
        run = self.quadratic(updates=300, sleep_ms=[2], nodes=2)
        with open(os.path.join(run.run_directory, "configuration.json"), encoding="utf-8") as file:
            configuration = json.load(file)
        self.assertEqual(configuration["options"]["workers"], 4)
        self.assertIn("OMP_NUM_THREADS", configuration["environment"])
        with open(os.path.join(run.run_directory, "trace.json"), encoding="utf-8") as file:
            trace = json.load(file)
        events = trace["traceEvents"]
        names = {event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
        self.assertLessEqual({f"worker {rank}" for rank in range(4)}, names)
        nodes = {event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == "process_name"}
        self.assertLessEqual({"node 0", "node 1"}, nodes)
        categories = {event["cat"] for event in events if event["ph"] == "X"}
        self.assertLessEqual({"compute", "wait", "average"}, categories)
        self.assertEqual({event["name"] for event in events if event["ph"] == "X"}, categories)  # So that Perfetto adds them up.
        counters = {event["name"] for event in events if event["ph"] == "C"}
        self.assertEqual(counters, {"samples/s", "workers that wait", "loss"})
        self.assertTrue(all(event["dur"] >= 0 for event in events if event["ph"] == "X"))
        self.assertEqual(sorted(os.listdir(os.path.join(run.run_directory, "logs")))[-4:],
                         [f"worker-{rank}.log" for rank in range(4)])

    def test_logs_prints_what_workers_wrote(self):
        run = self.quadratic(updates=3, say="hello from a worker")
        self.assertRegex(run.out, r"(?m)^\(paceline::Worker worker-2 pid=\d+\) hello from a worker$")
        logs = self.paceline("logs", run.run_directory, "--only", "worker-2")
        self.assertEqual(logs.code, 0, logs.said())
        self.assertIn("hello from a worker", logs.out)
        self.assertEqual(logs.out.count("== "), 1)
        nothing = self.paceline("logs", os.path.join(self.folder, "nowhere"))
        self.assertEqual(nothing.code, 2, nothing.said())

    def test_logs_are_followed_until_the_run_ends(self):
        run = self.start_quadratic(updates=ENDLESS, sleep_ms=[5], say="hello from a worker")
        self.wait_for_update(run, 10)
        following = self.start("logs", run.run_directory, "-f", "--only", "worker-")
        time.sleep(0.5)
        for name in ("worker-2", "worker-9"):  # One that is there, and one that comes later.
            with open(os.path.join(run.run_directory, "logs", name + ".log"), "a", encoding="utf-8") as log:
                log.write("written later\nnot a whole line")
        self.enough(run)
        self.assertEqual(following.wait(10), 0, following.said())
        self.assertEqual(following.out.count("hello from a worker"), 4)
        self.assertIn("[worker-2] written later\n", following.out)
        self.assertIn("[worker-9] written later\n", following.out)
        self.assertNotIn("not a whole line", following.out)

    def test_the_numbers_of_a_run_are_exported(self):
        run = self.quadratic(updates=30, sleep_ms=[20], evaluate_every=10)
        exported = self.paceline("export", run.run_directory)
        self.assertEqual(exported.code, 0, exported.said())
        rows = list(csv.DictReader(exported.out.splitlines()))
        evaluated = [(event["update"], event["value"]) for event in run.metrics() if event["event"] == "evaluated"]
        self.assertEqual([(int(row["update"]), float(row["value"])) for row in rows if row["name"] == "model"],
                         [(update, float(f"{value:.9g}")) for update, value in evaluated])
        self.assertTrue(any(row["name"] == "loss" for row in rows))
        self.assertEqual({row["run"] for row in rows}, {os.path.basename(run.run_directory)})
        boards = os.path.join(self.folder, "boards")
        written = self.paceline("export", run.run_directory, "--tensorboard", boards)
        path, = written.out.splitlines()
        self.assertTrue(path.startswith(os.path.join(boards, os.path.basename(run.run_directory), "events.out.tfevents.")), path)
        with open(path, "rb") as file:
            self.assertEqual(file.read().count(b"\x0a\x05model"), 3)
        nothing = self.paceline("export", os.path.join(self.folder, "nowhere"))
        self.assertEqual(nothing.code, 2, nothing.said())
        self.assertEqual(len(nothing.err.splitlines()), 1)

    def test_a_run_ends_with_a_summary(self):
        run = self.quadratic(updates=30, sleep_ms=[2], evaluate_every=10)
        self.assertRegex(run.out, r"all 30 updates are done\n\d+ samples in \d+\.\d s \(\d+ samples/s\); 4 workers waited for .*\n"
                                  r"model [\d.]+, the best of 3\nrun directory: ")
        stopped = self.quadratic(updates=ENDLESS, sleep_ms=[2], stop_rank=1, stop_update=20)
        self.assertRegex(stopped.out, r"ended after \d+ updates: ")

    def test_bash_completes_commands_and_flags(self):
        script = self.paceline("completion", "bash")
        self.assertEqual(script.code, 0, script.said())

        def completed(*words):
            line = f"{script.out}\nCOMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; _paceline; printf '%s\\n' \"${{COMPREPLY[@]}}\""
            return subprocess.run(["bash", "-c", line], check=True, capture_output=True, text=True, cwd=SOURCE).stdout.split()

        self.assertEqual(completed("paceline", "re"), ["replay", "report", "reproduce"])
        self.assertEqual(completed("paceline", "logs", "--fol"), ["--follow"])
        self.assertEqual(completed("paceline", "run", "--strat"), ["--strategy"])
        self.assertEqual(completed("paceline", "list", ""), ["nodes", "workers", "tasks", "jobs", "actors"])
        self.assertEqual(completed("paceline", "list", "w"), ["workers"])
        self.assertEqual(completed("paceline", "completion", "f"), ["fish"])
        self.assertEqual(completed("paceline", "list", "workers", "--ow"), ["--owner"])
        self.assertEqual(completed("paceline", "run", "examples/fashion"), ["examples/fashion_mnist.cpp"])
        self.assertTrue(self.paceline("completion", "zsh").out.startswith("#compdef paceline\n"), "it may lie in fpath")
        fish = self.paceline("completion", "fish").out
        self.assertIn("-l follow", fish)
        self.assertIn("'__fish_seen_subcommand_from list' -a 'nodes workers tasks jobs actors'", fish)
        self.assertEqual(self.paceline("completion", "csh").code, 2)

    def test_check_says_whether_the_machine_is_fit(self):
        table = self.paceline("check")
        self.assertIn("memory", table.out)
        lines = [json.loads(line) for line in self.paceline("check", "--json").out.splitlines()]
        found = {line["what"]: line for line in lines}
        self.assertEqual(found["descriptors"]["verdict"], "good", found)
        self.assertEqual(found["compiler"]["verdict"], "good", found)
        self.assertEqual(table.code, 1 if "bad" in {line["verdict"] for line in lines} else 0)
        few = subprocess.run(["sh", "-c", f"ulimit -n 64; exec {PACELINE} check"], check=False, capture_output=True, text=True,
                             env=self.environment)
        self.assertEqual(few.returncode, 1, few.stdout + few.stderr)
        self.assertRegex(few.stdout, r"descriptors +64 +bad")

    @in_release  # It compiles its script.
    def test_bench_measures_what_it_is_asked_for(self):
        environment = {"XDG_CACHE_HOME": os.path.join(self.folder, "cache")}
        listed = [json.loads(line)["name"] for line in self.paceline("bench", "--list", "--json").out.splitlines()]
        self.assertIn("single_client_tasks_sync", listed)
        run = self.paceline("bench", "--seconds", "0.01", "--rounds", "1", "--json", environment=environment, timeout=150)
        self.assertEqual(run.code, 0, run.said())
        found = [json.loads(line) for line in run.out.splitlines()]
        self.assertEqual([line["name"] for line in found], listed)
        for line in found:
            self.assertGreater(line["per_second"], 0, line)
            self.assertEqual(line["spread"], 0, line)
        wrong = self.paceline("bench", "single_client_task_sync")
        self.assertEqual(wrong.code, 2, wrong.said())
        self.assertIn("did you mean single_client_tasks_sync?", wrong.err)
        self.assertEqual(self.paceline("bench", "--seconds", "0").code, 2)

    def test_clean_removes_old_runs_and_the_cache_and_nothing_else(self):
        cache = os.path.join(self.folder, "cache")
        environment = {"XDG_CACHE_HOME": cache}
        os.makedirs(os.path.join(cache, "paceline", "scripts", "old"))
        for name, file, age in (("old", "metrics.jsonl", 7200), ("young", "metrics.jsonl", 60),
                                ("comparison/1-a", "metrics.jsonl", 7200), ("comparison/2-b", "metrics.jsonl", 60),
                                ("no run", "notes", 7200), ("actors/logs", "counter.log", 7200),
                                ("young actors/logs", "counter.log", 60), ("no actors/logs", "notes", 7200)):
            folder = os.path.join(self.folder, "runs", name)
            os.makedirs(folder)
            path = os.path.join(folder, file)
            with open(path, "w", encoding="utf-8") as file:
                file.write("x" * 1000)
            os.utime(path, (time.time() - age, time.time() - age))

        def clean(*flags):
            run = self.paceline("clean", "--runs", "1h", *flags, environment=environment, directory=self.folder)
            self.assertEqual(run.code, 0, run.said())
            self.assertIn("runs/old", run.out)
            return sorted(os.listdir(os.path.join(self.folder, "runs")))

        kept = ["comparison", "no actors", "no run", "young", "young actors"]
        self.assertEqual(clean("--dry-run"), sorted([*kept, "actors", "old"]))
        listed = self.paceline("clean", "--runs", "1h", "--dry-run", "--json", environment=environment, directory=self.folder)
        self.assertIn({"path": "runs/old", "bytes": 1000}, [json.loads(line) for line in listed.out.splitlines()])
        self.assertTrue(os.path.exists(os.path.join(cache, "paceline", "scripts", "old")))
        self.assertEqual(clean(), kept)
        self.assertFalse(os.path.exists(os.path.join(cache, "paceline", "scripts", "old")))
        self.assertEqual(self.paceline("clean", "--runs", "1d", environment=environment, directory=self.folder).code, 0)
        self.assertEqual(self.paceline("clean", "--runs", "d", environment=environment, directory=self.folder).code, 2)
        self.assertEqual(self.paceline("up").code, 0)
        refused = self.paceline("clean", environment=environment)
        self.assertEqual(refused.code, 2, refused.said())
        self.assertIn("a cluster is up", refused.err)

    def test_version_and_help_are_there(self):
        self.assertRegex(self.paceline("version").out, r"\d+\.\d+\.\d+")
        self.assertEqual(set(json.loads(self.paceline("version", "--json").out)), {"paceline", "libtorch"})
        self.assertEqual(self.paceline("run", "--help").code, 0)
        self.assertEqual(self.paceline("frobnicate").code, 2)
        self.assertEqual(self.paceline().code, 2)


class Drivers(IntegrationTest):
    """Programs that are started by themselves, without `paceline run`."""

    def start_driver(self, *options, **environment):
        environment.setdefault("PATH", os.path.dirname(PACELINE) + ":" + os.environ["PATH"])
        return self.start(*options, program=QUADRATIC, environment=environment)

    def test_one_starts_a_cluster_that_ends_with_it(self):
        run = self.start_driver("updates=20", "sleep_ms=[1]")
        self.assertEqual(run.wait(20), 0, run.said())
        self.assert_nobody_left()
        self.assertEqual([name for name in os.listdir(self.runtime) if not name.startswith(".")], [])

    def test_it_uses_a_cluster_that_is_up(self):
        self.assertEqual(self.paceline("up").code, 0)
        run = self.start_driver("updates=20", "sleep_ms=[1]")
        self.assertEqual(run.wait(20), 0, run.said())
        self.assertEqual(len(self.agents()), 1, "of the cluster that is up")
        for nowhere in ("nowhere", os.path.join(self.folder, "nowhere")):
            named = self.start_driver("updates=20", PACELINE_CLUSTER=nowhere)
            self.assertEqual(named.wait(20), 1, named.said())
            self.assertIn("nowhere", named.err)
            self.assertIn("no cluster", named.err)

    def test_flags_of_a_run_are_taken_from_its_own_arguments(self):
        directory = os.path.join(self.folder, "own")
        run = self.start_driver("updates=20", "sleep_ms=[1]", "--workers=3", "--strategy=local-sgd(period=5)", "--own-flag=7",
                                f"--run-dir={directory}", "--", "--strategy=nothing-that-there-is")
        self.assertEqual(run.wait(20), 2, run.said())
        self.assertIn("is not KEY=VALUE", run.err)  # What follows -- is the program's own, which looks at all of them.
        run = self.start_driver("updates=20", "sleep_ms=[1]", "--workers=3", "--strategy=local-sgd(period=5)", "--own-flag=7",
                                f"--run-dir={directory}")
        self.assertEqual(run.wait(20), 0, run.said())
        with open(os.path.join(directory, "result.json"), encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual((len(result["nodes"]), result["strategy"], result["global_averages"]), (3, "local-sgd(period=5)", 4))
        self.assertEqual(run.err, "")
        misspelt = self.start_driver("updates=20", "sleep_ms=[1]", "--stratgy=nonblocking")
        self.assertEqual(misspelt.wait(20), 0, misspelt.said())
        self.assertEqual(misspelt.err, "paceline: --stratgy is no flag of ours and left to the program: did you mean --strategy?\n")
        for flag, text in [("--workers=0", "--workers 0"), ("--strategy=nothing", "nothing"), ("--compare=allreduce,wagma", "paceline run"),
                           ("--seed=x", "seed")]:
            wrong = self.start_driver("updates=20", flag)
            self.assertEqual(wrong.wait(20), 2, wrong.said())
            self.assertIn(text, wrong.err)
            self.assertEqual(len(wrong.err.splitlines()), 1, wrong.said())

    def test_what_is_no_checkpoint_is_said_before_anything_starts(self):
        model = os.path.join(self.folder, "model.safetensors")
        with open(model, "wb") as file:
            file.write((2).to_bytes(8, "little") + b"{}")
        text = f"paceline: --resume {model}: not a checkpoint of this version of Paceline: a model alone is read with paceline::load, before me.share\n"
        run = self.start_driver("updates=20", f"--resume={model}")
        self.assertEqual(run.wait(20), 2, run.said())
        self.assertEqual(run.err, text)
        self.assertEqual(run.out, "", "no run directory was made")
        nowhere = self.start_driver("updates=20", f"--resume={model}-of-nobody")
        self.assertEqual(nowhere.wait(20), 2, nowhere.said())
        other = self.paceline("run", QUADRATIC, "--resume", model, "--", "updates=20")
        self.assertEqual((other.code, other.err, other.out), (2, text, ""), other.said())

    def test_its_cluster_ends_also_when_it_is_killed(self):
        run = self.start_driver("updates=100000000", "sleep_ms=[2]")
        wait_until(lambda: len(self.agents()) == 1 and len(self.processes()) > 8, 15, "the driver's workers")
        os.kill(run.process.pid, signal.SIGKILL)
        self.assert_nobody_left(timeout=5)

    def test_without_the_command_line_it_says_what_is_missing(self):
        run = self.start_driver("updates=20", PATH="/nowhere")
        self.assertEqual(run.wait(20), 1, run.said())
        self.assertIn("no `paceline` to start one", run.err)
        self.assertEqual(len(run.err.splitlines()), 1, run.said())


class Interrupts(IntegrationTest):
    def start_endless(self, **options):
        run = self.start_quadratic(updates=ENDLESS, sleep_ms=[5], **options)
        self.wait_for_update(run, 20)
        return run

    def check_interrupt(self, nodes):
        run = self.start_endless(nodes=nodes)
        self.interrupt(run, within=1.0)
        self.assertIn("interrupted before the first checkpoint was written", run.err)
        self.assertTrue(run.result()["interrupted"])
        self.assert_nobody_left()

    def test_ctrl_c_ends_a_run_on_one_node(self):
        self.check_interrupt(1)

    def test_ctrl_c_ends_a_run_on_two_nodes(self):
        self.check_interrupt(2)

    def test_ctrl_c_at_a_terminal_ends_a_run_that_shows_a_live_block(self):
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

        def take_the_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        process = subprocess.Popen(
            [PACELINE, "run", QUADRATIC, "--workers", "2", "--run-dir", os.path.join(self.folder, "run"), "--",
             "updates=10000000", "sleep_ms=[5]"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=self.folder,
            env=dict(self.environment, TERM="xterm"), preexec_fn=take_the_terminal)
        self.addCleanup(process.kill)
        os.close(theirs)
        shown = b""
        begin = time.monotonic()
        while b"worker" not in shown or time.monotonic() - begin < 1.5:
            shown += os.read(ours, 65536)
        os.write(ours, b"\x03")
        begin = time.monotonic()
        with contextlib.suppress(OSError):  # Hung up.
            while data := os.read(ours, 65536):
                shown += data
        self.assertEqual(process.wait(10), 130, shown[-2000:])
        self.assertLess(time.monotonic() - begin, 1.0 * SLOWDOWN)
        self.assertIn(b"interrupted before the first checkpoint was written", shown)
        self.assertIn(b"\x1b[", shown, "a live block moves the cursor")
        self.assertNotRegex(shown, rb"\x1b\[[0-9;]*m", "NO_COLOR is set")
        self.assert_nobody_left()

    def test_ctrl_c_ends_a_run_with_a_frozen_worker(self):
        for nodes in (1, 2):
            run = self.start_endless(nodes=nodes)
            self.signal_worker(run, 1, signal.SIGSTOP)
            self.interrupt(run, within=1.0)
            self.assert_nobody_left()

    def test_ctrl_c_ends_a_run_with_a_worker_that_is_in_a_long_mini_batch(self):
        run = self.start_quadratic(updates=ENDLESS, sleep_ms=[5], busy_ms=[0, 0, 0, 60_000])
        wait_until(lambda: any(event["event"] == "first_step" for event in run.metrics()), 15, "the first step")
        self.interrupt(run, within=1.0)
        self.assert_nobody_left()

    def test_a_second_ctrl_c_kills(self):
        run = self.start_endless()
        self.signal_worker(run, 1, signal.SIGSTOP)  # So that the first one does not do it at once.
        os.killpg(run.process.pid, signal.SIGINT)
        time.sleep(0.1)
        self.interrupt(run, within=0.3)
        self.assert_nobody_left()

    def test_a_killed_command_takes_its_cluster_with_it(self):
        run = self.start_endless(nodes=2)
        os.kill(run.process.pid, signal.SIGKILL)
        wait_until(lambda: not self.cluster(), 3, "the cluster ends")
        wait_until(lambda: not self.children_named("fork-server"), 3, "the fork servers end")
        wait_until(lambda: not self.processes(), 5, "the driver ends")


class Scripts(IntegrationTest):
    def test_a_script_is_compiled_once_and_gets_its_arguments(self):
        cache = os.path.join(self.folder, "cache")
        environment = {"XDG_CACHE_HOME": cache}
        script = self.write("squares.cpp", SCRIPT)
        first = self.paceline("run", script, "--", "--flag", "two words", timeout=60, environment=environment)
        self.assertEqual(first.code, 0, first.said())
        self.assertEqual(first.out, "49\nargument --flag\nargument two words\n")

        entry, = os.listdir(os.path.join(cache, "paceline", "scripts"))
        program = os.path.join(cache, "paceline", "scripts", entry, "squares")
        compiled = os.stat(program)
        begin = time.monotonic()
        second = self.paceline("run", script, environment=environment)
        self.assertEqual((second.code, second.out), (0, "49\n"), second.said())
        self.assertLess(time.monotonic() - begin, 1.5 * SLOWDOWN)
        self.assertEqual((os.stat(program).st_ino, os.stat(program).st_mtime_ns), (compiled.st_ino, compiled.st_mtime_ns))

        self.write("squares.cpp", SCRIPT.replace("async(square, 7)", "async(square, 8)"))
        third = self.paceline("run", script, timeout=60, environment=environment)
        self.assertEqual(third.out, "64\n", third.said())

    def write_parts(self):
        """A script that needs another source, a folder of headers and a library."""
        os.makedirs(os.path.join(self.folder, "parts", "include"))
        self.write("parts/include/squares.h", "inline int square(int x) { return x * x; }\nunsigned long of_library();\nint added(int x);\n")
        self.write("parts/added.cpp", "#include <squares.h>\n#include <zlib.h>\nint added(int x) { return square(x) + 1; }\n"
                   "unsigned long of_library() { return crc32(0, nullptr, 0); }\n")
        return """#include <paceline.h>
#include <cstdio>
#include <squares.h>
int main(int argc, char** argv) {
  std::printf("%d %lu %d\\n", paceline::async(added, 7).get(), of_library(), argc);
}
"""

    @in_release
    def test_a_script_of_several_sources_with_includes_and_libraries(self):
        environment = {"XDG_CACHE_HOME": os.path.join(self.folder, "cache")}
        text = self.write_parts()
        script = self.write("parts/flags.cpp", text)
        parts = [os.path.join(self.folder, "parts", name) for name in ("added.cpp", "include")]
        told = self.paceline("run", script, parts[0], "first", "-I", parts[1], "-l", "z", "--", "--second", timeout=60,
                             environment=environment)
        self.assertEqual((told.code, told.out), (0, "50 0 3\n"), told.said())

        script = self.write("parts/says.cpp", "// paceline: sources=added.cpp includes=include libraries=z\n" + text)
        said = self.paceline("run", script, timeout=60, environment=environment)
        self.assertEqual((said.code, said.out), (0, "50 0 1\n"), said.said())
        # A change of what only the other source includes is seen.
        self.write("parts/include/squares.h", "inline int square(int x) { return x * x * x; }\nunsigned long of_library();\nint added(int x);\n")
        changed = self.paceline("run", script, timeout=60, environment=environment)
        self.assertEqual((changed.code, changed.out), (0, "344 0 1\n"), changed.said())

    @in_release
    def test_what_is_wrong_with_parts_of_a_script_is_said(self):
        self.write_parts()
        for line, text in [("sources=nowhere.cpp", "nowhere.cpp"), ("source=added.cpp", "sources="), ("sources=include/squares.h", "no C++ source"),
                           ("libraries=nosuch", "nosuch")]:
            with self.subTest(line):
                script = self.write("parts/wrong.cpp", f"// paceline: {line}\nint main() {{}}\n")
                run = self.paceline("run", script, timeout=60)
                self.assertNotEqual(run.code, 0)
                self.assertIn(text, run.err)
                self.assertEqual(run.err.count("paceline: "), 1 + run.err.count("// paceline: "), run.err)
        of_a_program = self.paceline("run", QUADRATIC, "-l", "m")
        self.assertNotEqual(of_a_program.code, 0)
        self.assertIn("compiled already", of_a_program.err)

    def test_the_exit_code_of_a_script_is_the_commands(self):
        script = self.write("three.cpp", "int main() { return 3; }\n")
        run = self.paceline("run", script, timeout=60)
        self.assertEqual(run.code, 3, run.said())


if __name__ == "__main__":
    main()
