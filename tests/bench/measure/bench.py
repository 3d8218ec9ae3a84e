"""What measuring needs: a build, a folder for what runs leave behind, runs and their results."""
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from measure.store import ROOT

EXAMPLE = os.path.join(ROOT, "examples", "fashion_mnist.cpp")
MAIN_JOB = os.path.join(ROOT, "tests", "bench", "main_job.cpp")  # The example at a learning rate that is named.
# Of comparators: what a job's workers get.
TUNED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
         "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=1073741824"}
UNTUNED = {name: value for name, value in TUNED.items() if name != "GLIBC_TUNABLES"}


def diverged(done):
    """Whether a `paceline run` that is over (a CompletedProcess with its stderr) failed since its loss was no number."""
    return done.returncode != 0 and re.search(r"loss is -?(nan|inf)", done.stderr) is not None


class Bench:
    def __init__(self, build, rounds=None, minutes=None, record=False):
        """rounds, minutes: what a measurement takes instead of its own number of rounds and limit of time; record: for the page."""
        self.build = os.path.abspath(build)
        self.paceline = self.program("cli", "paceline")
        self.holder = tempfile.TemporaryDirectory(prefix="paceline-figures-")
        self.folder = self.holder.name
        self.rounds = rounds
        self.minutes = minutes
        self.record = record
        self.notes = {}  # Figure -> what the page says beside it.

    def program(self, *path):
        return os.path.join(self.build, *path)

    def rounds_or(self, number):
        return self.rounds or number

    def new_directory(self):
        return os.path.join(self.folder, f"run-{time.monotonic_ns()}")

    def run(self, *flags, script=EXAMPLE, arguments=(), may_diverge=False):
        """One run of a script; its result and its run directory. A run that may diverge has no result if it did."""
        directory = self.new_directory()
        done = subprocess.run([self.paceline, "run", script, "--json", "--run-dir", directory, *flags, *(("--", *arguments) if arguments else ())],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        if may_diverge and diverged(done):
            return None, directory
        if done.returncode != 0:
            raise SystemExit(f"paceline run {script} {' '.join(flags)} failed: {done.stderr}")
        with open(os.path.join(directory, "result.json"), encoding="utf-8") as file:
            return json.load(file), directory

    def start(self, script, *flags, arguments=(), directory=None, environment=None):
        """A run in the background; its events are the lines of its output."""
        return subprocess.Popen([self.paceline, "run", script, "--json", "--run-dir", directory or self.new_directory(), *flags,
                                 *(("--", *arguments) if arguments else ())],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=self.folder, env=environment)

    def torch_version(self):
        """'1.13' or '2.15', of the build's libtorch."""
        with open(self.program("paceline-compile.json"), encoding="utf-8") as file:
            return ".".join(json.load(file)["torch"].split(".")[:2])


def interrupt(job):
    job.send_signal(signal.SIGINT)
    job.communicate()


def metric(directory, name):
    """What the workers of a run logged under that name."""
    with open(os.path.join(directory, "metrics.jsonl"), encoding="utf-8") as file:
        return [event["value"] for event in map(json.loads, file) if event.get("name") == name]


def output_of(*command, **settings):
    """What a program prints. `settings`: environment beside ours."""
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def repetitions(program, number, **settings):
    """Each repetition of each of a program's benchmarks, all in one go and interleaved at random: its row, as Google Benchmark prints it."""
    printed = output_of(program, "--benchmark_format=json", "--benchmark_enable_random_interleaving=true", f"--benchmark_repetitions={number}", **settings)
    return [row for row in json.loads(printed)["benchmarks"] if row["run_type"] == "iteration" and not row.get("error_occurred")]


def batches_of_its_own(strategy, *flags):
    """`--accumulate 8` for strategies that do not bring their mini-batches themselves."""
    return (*flags, *(() if strategy.startswith("nonblocking") else ("--accumulate", "8")))


def mean_step(result):
    """Seconds an update, what is waited at rare syncs included."""
    return result["train_s"] / result["updates"]


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})" if values else "none"


def worker_pids(directory):
    """Rank -> pid, by the log that a worker writes to."""
    pids = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            target = os.readlink(f"/proc/{pid}/fd/1")
        except OSError:
            continue
        if target.startswith(os.path.join(directory, "logs")) and "worker-" in target:
            pids[int(target.rsplit("worker-", 1)[1].rstrip("'.log"))] = int(pid)
    return pids


@contextlib.contextmanager
def busy_loops(count):
    """Processes that compute without end."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
