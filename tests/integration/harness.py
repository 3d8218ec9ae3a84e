"""What the integration tests share: a runtime directory of their own, runs in the background, and what a run wrote.

The programs come from the environment that CMake sets: PACELINE (the command line), PACELINE_QUADRATIC (the job
without torch), PACELINE_SOURCE and PACELINE_BUILD.
"""
import concurrent.futures
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PACELINE = os.environ.get("PACELINE", "build/release/cli/paceline")
QUADRATIC = os.environ.get("PACELINE_QUADRATIC", "build/release/tests/integration/quadratic_worker")
SOURCE = os.environ.get("PACELINE_SOURCE", os.getcwd())
BUILD = os.environ.get("PACELINE_BUILD", "")
WITH_TRAIN = os.environ.get("PACELINE_WITH_TRAIN", "1") == "1"
SANITIZED = bool(os.environ.get("PACELINE_SANITIZED"))
SLOWDOWN = 4.0 if SANITIZED else 1.0  # What sanitizers cost, roughly.
SKIPPED = 77  # The exit status that ctest takes for a skip.


def left_out(condition):
    """A decorator: tests that this build does not have, such as libtorch's in one without it. A test that the build has
    and that the machine lacks something for is skipped instead, and a skip counts: see main()."""
    return lambda test: None if condition else test


in_release = left_out(SANITIZED)  # Sanitized builds get a short form of the long suites.
ENDLESS = 10**7  # Updates of a job that something else ends: IntegrationTest.enough, or a signal.
NODES = (2,) if SANITIZED else (1, 2)  # Two nodes do all that one does.


def wait_until(condition, timeout, what, run=None):
    """Polls until `condition` gives something true and returns that; fails after `timeout` seconds, and then says what
    `run` has done and does."""
    deadline = time.monotonic() + timeout * SLOWDOWN
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out after {timeout:g} s: {what}" + (f"\n{run.said()}\n{run.test.state_of_all()}" if run else ""))
        time.sleep(0.02)


def read_lines(path):
    """The whole JSON lines of a file that is still being written."""
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file.read().split("\n")[:-1] if line]
    except FileNotFoundError:
        return []


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return 0


def state_of(pid):
    """A letter, "T" of a process that is stopped; "X" if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "X"


def is_alive(pid):
    """True for a process that is there and is no zombie."""
    return state_of(pid) not in "ZX"


def processes_with(variable):
    """Ids of the processes whose environment, as they were exec'd, holds this text."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if variable.encode() in file.read().split(b"\0") and is_alive(int(name)):
                    found.append(int(name))
        except OSError:
            continue
    return found


class Run:
    """`paceline ...` in the background, in a process group of its own; its output goes to files."""

    def __init__(self, test, arguments, environment=None, directory=None, program=PACELINE):
        self.test = test
        self.arguments = [program] + [str(argument) for argument in arguments]
        self.out_path = os.path.join(test.folder, f"out-{test.runs}")
        self.err_path = os.path.join(test.folder, f"err-{test.runs}")
        test.runs += 1
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(
                self.arguments, stdout=out, stderr=err, stdin=subprocess.DEVNULL, cwd=directory or test.folder,
                env=dict(test.environment, **(environment or {})), start_new_session=True)
        self.run_directory = None

    @property
    def out(self):
        with open(self.out_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def err(self):
        with open(self.err_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def code(self):
        return self.process.returncode

    def wait(self, timeout=30):
        try:
            return self.process.wait(timeout * SLOWDOWN)
        except subprocess.TimeoutExpired:
            hangs = self.test.state_of_all()
            self.end()
            raise AssertionError(f"{' '.join(self.arguments)} did not end within {timeout} s\n{self.said()}\n{hangs}") from None

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def said(self):
        return f"exit code {self.code}\n--- stdout\n{self.out[-3000:]}\n--- stderr\n{self.err[-3000:]}"

    def metrics(self):
        return read_lines(os.path.join(self.run_directory, "metrics.jsonl"))

    def result(self):
        with open(os.path.join(self.run_directory, "result.json"), encoding="utf-8") as file:
            return json.load(file)

    def update(self):
        """The last update that all have completed, as the run's metrics tell it."""
        return max([event.get("update", 0) for event in self.metrics() if event.get("event") == "progress"] or [0])

    def left(self):
        return {event["worker"]: event["text"] for event in self.metrics() if event.get("event") == "left"}

    def worker_rows(self):
        """The newest row of each worker."""
        rows = {}
        for event in self.metrics():
            for row in event.get("workers", []) if event.get("event") in ("progress", "closed") else []:
                rows[row["rank"]] = dict(row, clock_s=event.get("clock_s", 0))
        return rows

    def output(self, rank):
        return read_lines(os.path.join(self.run_directory, "output", f"worker-{rank}.jsonl"))

    def steps(self, rank):
        return [line for line in self.output(rank) if line.get("event") == "step"]

    def final(self, rank):
        finals = [line["final"] for line in self.output(rank) if "final" in line]
        return finals[0] if finals else None


class IntegrationTest(unittest.TestCase):
    """Each test has a folder, a runtime directory and a script cache of its own, and leaves no process behind."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="pl-", dir="/tmp")  # Short: Unix sockets have short names.
        runtime = os.path.join(self.folder, "r")
        os.mkdir(runtime, 0o700)
        self.runs = 0
        self.mark = f"PACELINE_TEST_MARK={self.folder}"
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith("PACELINE") or key == "PACELINE_CHANNELS"}
        self.environment.update({"XDG_RUNTIME_DIR": runtime, "PACELINE_TEST_MARK": self.folder, "NO_COLOR": "1"})
        if BUILD:  # Scripts are compiled once for all tests of a build.
            self.environment["XDG_CACHE_HOME"] = os.path.join(BUILD, "tests", "integration", "cache")
            os.makedirs(self.environment["XDG_CACHE_HOME"], exist_ok=True)
        self.runtime = os.path.join(runtime, "paceline")
        self.addCleanup(self.clean)

    def clean(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, name, text):
        """A file in the test's folder; its path."""
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def processes(self):
        """Ours that are alive: paceline, supervisors, heads, agents, fork servers, workers."""
        return processes_with(self.mark)

    def state_of_all(self):
        """What a run that hangs is seen to do: its status, and where each of its processes stands."""
        def said_by(*command):
            try:
                return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=10, check=False).stdout
            except subprocess.TimeoutExpired:
                return "(no answer)\n"
        lines = ["--- paceline status", said_by(PACELINE, "status", "--json")]
        for pid in self.processes():
            lines.append(f"--- {pid} {command_line(pid)}")
            if shutil.which("gdb"):
                lines.append(said_by("gdb", "-batch", "-nx", "-p", str(pid), "-ex", "thread apply all backtrace 12")[-4000:])
        return "\n".join(lines)

    def start(self, *arguments, environment=None, directory=None, program=PACELINE):
        run = Run(self, arguments, environment, directory, program)
        self.addCleanup(run.end)
        return run

    def paceline(self, *arguments, timeout=30, environment=None, directory=None):
        run = self.start(*arguments, environment=environment, directory=directory)
        run.wait(timeout)
        return run

    def run_script(self, script, *arguments, nodes=1, timeout=100, environment=None):
        """Runs an actor script that checks its own answers: all were right."""
        done = self.paceline("run", script, "--nodes", nodes, "--", *arguments, timeout=timeout, environment=environment)
        self.assertEqual(done.code, 0, f"{arguments}, {nodes} nodes: {done.said()}")
        return done

    def start_quadratic(self, *flags, nodes=1, workers=4, environment=None, program=QUADRATIC, **options):
        """The quadratic job in the background; `flags` are of `paceline run`, `options` of the job."""
        directory = os.path.join(self.folder, f"run-{self.runs}")
        output = os.path.join(directory, "output")
        os.makedirs(output)
        options.setdefault("output", output)
        words = [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in options.items()]
        where = ["--nodes", nodes] if nodes else []
        run = self.start("run", program, "--workers", workers, *where, "--run-dir", directory, *flags, "--", *words,
                         environment=environment)
        run.run_directory = directory
        return run

    def quadratic(self, *flags, timeout=30, **options):
        """Runs the job to its end. None of its workers may leave: a run that loses some ends well, too."""
        run = self.start_quadratic(*flags, **options)
        self.assertEqual(run.wait(timeout), 0, run.said())
        if left := run.left():
            self.fail(f"{left}\n{run.said()}\n{self.paceline('logs', run.run_directory).out}")
        return run

    def simulate_quadratic(self, strategy, workers, steps, seed=0, start=0, compute_s=None, elements=1, views=None):
        """The same job in the simulator: its rows by worker and step, and the last model's first number. `compute_s`: a
        row a step; `views`: who leaves and joins (docs/jobs.md)."""
        job = {"problem": {"kind": "least_squares", "workers": [
                   {"a": [(1, 2, 1, 2)[i % 4]] * elements, "c": [(0, 4, 8, 12)[i % 4]] * elements}
                   for i in range(workers)]},
               "start": [start] * elements, "strategy": strategy, "lr": 0.25, "steps": steps, "seed": seed,
               "compute_s": compute_s or [[1] * workers]}
        if views:
            job["views"] = views
        run = self.paceline("simulate", self.write("job.json", json.dumps(job)), "--json")
        self.assertEqual(run.code, 0, run.said())
        *rows, summary = map(json.loads, run.out.splitlines())
        return {(row["worker"], row["step"]): row for row in rows}, summary["model"][0]

    def children_named(self, word):
        return [pid for pid in self.processes() if word in command_line(pid)]

    def cluster(self, *kinds):
        """Processes of clusters, the supervisors first; of these kinds only, such as "head"."""
        order = kinds or ("supervise", "head", "agent")
        found = {pid: command_line(pid).split(" ")[1:2] for pid in self.processes()}
        return sorted((pid for pid, kind in found.items() if kind and kind[0] in order), key=lambda pid: order.index(found[pid][0]))

    def agents(self, node=None):
        return [pid for pid in self.cluster("agent") if node is None or f" --node {node} " in command_line(pid)]

    def worker_pid(self, run, rank):
        """Which process is this worker: the one that has its log open as stdout."""
        log = os.path.join(run.run_directory, "logs", f"worker-{rank}.log")
        for pid in self.processes():
            try:
                if os.readlink(f"/proc/{pid}/fd/1") == log:
                    return pid
            except OSError:
                continue
        return None

    def signal_worker(self, run, rank, what):
        pid = self.worker_pid(run, rank)
        self.assertIsNotNone(pid, f"worker {rank} has no process\n{run.said()}")
        os.kill(pid, what)
        return pid

    def fork_servers(self, run):
        """By their logs; a process may end while it is looked at."""
        pids = []
        for pid in self.processes():
            try:
                if os.readlink(f"/proc/{pid}/fd/2").startswith(os.path.join(run.run_directory, "logs", "fork-server-")):
                    pids.append(pid)
            except OSError:
                continue
        return pids

    def wait_for_update(self, run, update, timeout=60):
        def reached():
            if run.process.poll() is not None:
                raise AssertionError(f"the run ended before update {update}\n{run.said()}")
            return run.update() >= update
        wait_until(reached, timeout, f"update {update}", run)

    def enough(self, run, timeout=60, code=0):
        """An endless quadratic job is told that it is enough, and ends: well, or with this exit status."""
        with open(os.path.join(run.run_directory, "output", "enough"), "wb"):
            pass
        self.assertEqual(run.wait(timeout), code, run.said())

    def end_after(self, run, updates, code=0):
        self.wait_for_update(run, run.update() + updates)
        self.enough(run, code=code)

    def interrupt(self, run, within=5.0):
        """Ctrl-C, as a terminal sends it: the command ends with 130. Suites that have the machine to themselves say how soon."""
        begin = time.monotonic()
        os.killpg(run.process.pid, signal.SIGINT)
        self.assertEqual(run.wait(10), 130, run.said())
        self.assertLess(time.monotonic() - begin, within * SLOWDOWN)

    def assert_nobody_left(self, timeout=2.0):
        wait_until(lambda: not self.processes(), timeout,
                   "processes remain: " + "; ".join(command_line(pid) for pid in self.processes()))


def each_of(suite):
    return [suite] if isinstance(suite, unittest.TestCase) else [test for part in suite for test in each_of(part)]


class SideBySide(unittest.TextTestRunner):
    """Runs so many tests at once; what is said of one stands together."""

    def __init__(self, at_once):
        super().__init__(verbosity=2)
        self.at_once = at_once

    def run(self, test):
        def run_one(one):
            said = io.StringIO()
            result = unittest.TextTestRunner(said, verbosity=2).run(one)
            print(said.getvalue(), file=sys.stderr, end="", flush=True)
            return result
        total = self._makeResult()
        with concurrent.futures.ThreadPoolExecutor(self.at_once) as pool:
            for result in pool.map(run_one, each_of(test)):
                total.testsRun += result.testsRun
                for name in ("failures", "errors", "skipped", "expectedFailures", "unexpectedSuccesses"):
                    getattr(total, name).extend(getattr(result, name))
        print(f"{total.testsRun} tests: {'all well' if total.wasSuccessful() else 'FAILED'}", file=sys.stderr, flush=True)
        return total


def main(at_once=1):
    """Runs the suite: so many of its tests side by side, where these wait more than they compute. A skip shows, by its
    line and the exit status; with CI set, as a CI sets it, it is a failure."""
    runner = SideBySide(min(at_once, 2) if SANITIZED else at_once) if at_once > 1 else None
    result = unittest.main(verbosity=2, exit=False, testRunner=runner).result
    for test, reason in result.skipped:
        print(f"skipped: {test.id()}: {reason}", flush=True)
    if not result.wasSuccessful() or result.testsRun == 0 or (result.skipped and os.environ.get("CI")):
        sys.exit(1)
    sys.exit(SKIPPED if result.skipped else 0)
