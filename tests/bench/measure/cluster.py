"""Figures 10, 25, 26 and 30: what a cluster takes that does nothing, calls past the agent, a head that is killed again and again, a flood beside a job."""
import json
import os
import signal
import statistics
import subprocess
import tempfile
import time

from measure.bench import output_of

EVERY = 1.0  # Seconds between two deaths of the head.


def calls(bench):
    """Past the agent and through it, interleaved."""
    script = bench.program("tests", "bench", "actor_calls")
    values = {}
    for _ in range(bench.rounds_or(9)):
        rates = {}
        for way, variables in (("line", {}), ("agent", {"PACELINE_CHANNELS": "zmq"})):
            printed = output_of(bench.paceline, "run", script, "--", "1", **variables)
            for line in printed.splitlines():
                if line.startswith("{"):
                    row = json.loads(line)
                    rates[way, row["name"]] = row["per_second"]
        for way, name in rates:
            if way == "line":
                values.setdefault(name, []).append(rates[way, name] / 1000)
                values.setdefault(f"times {name}", []).append(rates[way, name] / rates["agent", name])
    return {25: values}


class Cluster:
    """One that is up for the length of a block, in a runtime directory of its own."""

    def __init__(self, bench, nodes):
        self.bench, self.nodes, self.is_up = bench, nodes, False
        self.runtime = tempfile.mkdtemp(prefix="plb-")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.runtime}
        self.directory = os.path.join(self.runtime, "paceline", "default")

    def __enter__(self):
        self.command("up", "--nodes", str(self.nodes))
        self.is_up = True
        return self

    def down(self):
        self.command("down")
        self.is_up = False

    def __exit__(self, *_):
        if self.is_up:
            self.down()
        subprocess.run(["rm", "-rf", self.runtime], check=True)

    def command(self, *words):
        return subprocess.run([self.bench.paceline, *words], env=self.environment, check=True, capture_output=True, text=True).stdout

    def process(self, name):
        with open(os.path.join(self.directory, f"{name}.pid"), encoding="utf-8") as file:
            return int(file.read())

    def processes(self):
        return [self.process(name) for name in ("supervisor", "head", *(f"agent-{node}" for node in range(self.nodes)))]

    def job(self, updates, workers=4, sleep_ms=4):
        """A job in the background, and where its models will be: a number for each rank."""
        output = os.path.join(self.bench.new_directory(), "output")
        os.makedirs(output)
        script = self.bench.program("tests", "integration", "quadratic_worker")
        return subprocess.Popen([self.bench.paceline, "run", script, "--workers", str(workers), "--run-dir", os.path.dirname(output), "--",
                                 f"updates={updates}", f"sleep_ms=[{sleep_ms}]", f"output={output}"], env=self.environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.bench.folder), output


def models(output):
    """The model that each worker ended with."""
    found = []
    for rank in range(4):
        with open(os.path.join(output, f"worker-{rank}.jsonl"), encoding="utf-8") as file:
            found += [line["final"] for line in map(json.loads, file) if "final" in line]
    return found


def heads(bench):
    """A run of a minute whose head is killed every second, against the same run without."""
    seconds = bench.minutes * 60 if bench.minutes else 60
    with Cluster(bench, 2) as cluster:
        quiet, undisturbed = cluster.job(int(seconds * 200))
        begin = time.monotonic()
        if quiet.wait() != 0:
            raise SystemExit(f"figures.py: a run failed: {quiet.stderr.read()}")
        took = time.monotonic() - begin
        run, output = cluster.job(int(seconds * 200))
        answered, deaths = [], 0
        begin = time.monotonic()
        while run.poll() is None:
            os.kill(cluster.process("head"), signal.SIGKILL)
            deaths += 1
            dead = time.monotonic()
            if json.loads(cluster.command("status", "--json"))["nodes"][1]["answers"] and run.poll() is None:
                answered.append((time.monotonic() - dead) * 1e3)
            time.sleep(max(0.0, EVERY - (time.monotonic() - dead)))
        if run.returncode != 0:
            raise SystemExit(f"figures.py: a run failed: {run.stderr.read()}")
        longer = (time.monotonic() - begin) / took
        same = len(models(output)) == 4 and models(output) == models(undisturbed)
    return {26: {"different": [0 if same else 1], "status": [max(answered)], "longer": [longer], "deaths": [deaths]}}


def beside_flood(bench):
    """Updates a second of a job, with the flood over those of as long a time without, just before."""
    script = bench.program("tests", "integration", "calls_script")
    values = {"turn": [], "step": []}
    for _ in range(bench.rounds_or(5)):
        with Cluster(bench, 1) as cluster:
            def status(what, cluster=cluster):
                status = json.loads(cluster.command("status", "--json"))
                return status["jobs"][0]["update"] if what == "update" else status["nodes"][0]["longest_turn_cpu_s"]
            job, _ = cluster.job(10**7, workers=2, sleep_ms=20)
            time.sleep(3)
            status("turn")  # Since the last time that it was asked for.
            marks = [(time.monotonic(), status("update"))]
            time.sleep(10)
            marks.append((time.monotonic(), status("update")))
            flood = subprocess.run([bench.paceline, "run", script, "--", "flood", "1000000", "100000"],
                                   env={**cluster.environment, "PACELINE_CHANNELS": "zmq"}, stdout=subprocess.DEVNULL, cwd=bench.folder)
            marks.append((time.monotonic(), status("update")))
            values["turn"].append(1e3 * status("turn"))
            job.send_signal(signal.SIGINT)
            job.wait()
        if flood.returncode != 0:
            raise SystemExit("figures.py: a flood failed")
        without, beside = [(b[0] - a[0]) / (b[1] - a[1]) for a, b in zip(marks, marks[1:])]
        values["step"].append(beside / without)
    return {30: values}


def status_times(cluster, number):
    """Seconds of so many `status`, and what the last one said."""
    times = []
    for _ in range(number):
        begin = time.monotonic()
        said = json.loads(cluster.command("status", "--json"))
        times.append(time.monotonic() - begin)
    return times, said


def idle(bench, seconds=30):
    def used(processes):
        """Processor time, in seconds."""
        ticks = 0
        for pid in processes:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                fields = file.read().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def percent(processes):
        before = used(processes)
        time.sleep(seconds)
        return 100 * (used(processes) - before) / seconds

    with Cluster(bench, 1) as cluster:
        times, said = status_times(cluster, 10)
        node = said["nodes"][0]
        alone = percent(cluster.processes())
        script = bench.program("tests", "integration", "calls_script")
        many = subprocess.Popen([bench.paceline, "run", script, "--", "idle", "1000"], env=cluster.environment,
                                stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, cwd=bench.folder)
        if not many.stdout.readline().startswith("idle"):
            raise SystemExit("figures.py: 1,000 actors did not start")
        time.sleep(2)
        theirs = [pid for pid in filter(str.isdigit, os.listdir("/proc")) if is_program(pid, script)]
        if len(theirs) < 1000:
            raise SystemExit(f"figures.py: {len(theirs)} processes where 1,000 actors are")
        crowded = percent([*cluster.processes(), *theirs])
        many.stdin.close()
        many.wait()
    return {10: {"status": [1e3 * statistics.median(times)], "cpu": [alone], "actors": [crowded], "memory": [node["rss"] / 1e6]}}


def is_program(pid, path):
    try:
        return os.readlink(f"/proc/{pid}/exe") == os.path.realpath(path)
    except OSError:
        return False
