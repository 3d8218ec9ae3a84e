"""Figure 40: what became of each sample, against a model that is the histogram of what was used, in random runs: of any strategy, with workers killed,
that come back, come and go, and resumes with other workers within an epoch."""
import json
import os
import random
import signal
import subprocess
import time

STRATEGIES = ["allreduce", "local-sgd(period=4)", "k-avg(period=3)", "one-shot", "post-local(warmup=20,period=4)", "wagma(group=2,sync=8)",
              "wagma(group=2,sync=8,late=skip)", "adacomm(period=4,interval=0.2s)", "hier-avg(k1=2,k2=4,group=2)", "nonblocking(batches=4)",
              "nonblocking(batches=3,inflight=wait)", "eager-sgd(solo,sync=4)", "eager-sgd(majority,late=drop,sync=4)", "d-psgd(ring)",
              "matcha(ring,budget=0.5)", "sgp", "ad-psgd(bipartite)", "server(sync)", "server(async)", "server(bounded=2)", "bmuf(period=3)",
              "slowmo(period=3)", "diloco(period=3)", "decoupled-diloco(period=3)"]
FATES = ("committed", "abandoned", "skipped", "late", "lost", "tail")
SAMPLES, BATCH, STEP_MS, EPOCHS = 1201, 5, 8, 2
WITHIN_S = 120
NOBODY_IS_LEFT = "nobody is left who has the model"


class OneRun:
    """A run of the histogram, to which things happen."""

    def __init__(self, bench, strategy, *flags, workers):
        self.bench, self.directory = bench, bench.new_directory()
        self.output = self.directory + "-output"
        os.mkdir(self.output)
        self.process = subprocess.Popen(
            [bench.paceline, "run", bench.program("tests", "integration", "histogram"), "--strategy", strategy, "--workers", str(workers),
             "--batch", str(BATCH), "--restarts", "50", "--run-dir", self.directory, *flags, "--", str(SAMPLES), str(EPOCHS), self.output, str(STEP_MS)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=bench.folder)

    def kill(self, rank):
        log = os.path.join(self.directory, "logs", f"worker-{rank}.log")
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/fd/1") == log:
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                continue

    def scale(self, workers):
        status = subprocess.run([self.bench.paceline, "status", "--json"], check=False, capture_output=True, text=True)
        jobs = json.loads(status.stdout)["jobs"] if status.returncode == 0 else []
        for job in jobs:
            if job.get("run_directory") == self.directory:
                subprocess.run([self.bench.paceline, "scale", str(job["job"]), str(workers)], check=False, capture_output=True)

    def is_training(self):
        try:
            with open(os.path.join(self.directory, "metrics.jsonl"), encoding="utf-8") as file:
                return '"first_step"' in file.read()
        except OSError:
            return False

    def disturb(self, chance, nodes):
        """What was done, in words."""
        deadline = time.monotonic() + 20
        while self.process.poll() is None and not self.is_training() and time.monotonic() < deadline:
            time.sleep(0.02)
        done = []
        for _ in range(chance.randint(0, 4)):
            time.sleep(chance.uniform(0.02, 0.4))
            if self.process.poll() is not None:
                break
            if chance.random() < 0.6:
                rank = chance.randrange(4)
                self.kill(rank)
                done.append(f"kill {rank}")
            else:
                workers = chance.randint(nodes, 4)
                self.scale(workers)
                done.append(f"scale {workers}")
        return ", ".join(done)

    def end(self):
        """Rows and counts by epoch; nullopt, and why: nobody has come to the end."""
        try:
            said, _ = self.process.communicate(timeout=WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None, "it did not end"
        if self.process.returncode != 0:
            return None, said
        with open(os.path.join(self.directory, "result.json"), encoding="utf-8") as file:
            rows = {row["epoch"]: row for row in json.load(file)["ledger"]}
        models = []
        for name in os.listdir(self.output):
            with open(os.path.join(self.output, name), encoding="utf-8") as file:
                models.append([float(line) for line in file])
        # Who was asked to leave ends with the model that there was then.
        model = max(models, key=lambda counts: sum(count != 0 for count in counts))
        return (rows, [sum(count != 0 for count in model[at:at + SAMPLES]) for at in range(0, len(model), SAMPLES)]), said


def wrong_rows(rows, used, before=None):
    """`before`: what an earlier run of the same epoch had committed."""
    wrong = []
    for epoch, row in rows.items():
        earlier = (before or {}).get(epoch, {"committed": 0})["committed"]
        total = sum(row[fate] for fate in FATES)
        if row["committed"] + earlier != used[epoch] or row["twice"] or total > row["samples"]:
            wrong.append(f"{used[epoch]} used, {earlier} before: {row}")
    return wrong


def one(bench, seed):
    """The run's rows that differ, and how it failed if not for want of workers, each in words."""
    chance = random.Random(seed)
    strategy, nodes = chance.choice(STRATEGIES), chance.choice((1, 2))
    begin = chance.choice((2, 4))
    flags = ["--nodes", str(nodes), "--begin-with", str(begin)]
    resumes = chance.random() < 0.4
    first = OneRun(bench, strategy, *flags, *(["--epochs", "0.6"] if resumes else []), workers="2..4")
    did = first.disturb(chance, nodes)
    found, said = first.end()
    label = f"seed {seed}: {strategy}, {nodes} nodes, of {begin}: {did}"
    if found is None:
        return [] if NOBODY_IS_LEFT in said else [f"{label}: {said}"]
    wrong = wrong_rows(*found)
    if resumes:
        workers = chance.randint(max(2, nodes), 5)
        second = OneRun(bench, strategy if workers % 2 == 0 else "allreduce", "--nodes", str(nodes), "--resume", first.directory, workers=workers)
        did = second.disturb(chance, nodes)
        label += f"; resumed by {workers}: {did}"
        again, said = second.end()
        if again is None:
            return [] if NOBODY_IS_LEFT in said else [f"{label}: {said}"]
        wrong += wrong_rows(*again, before=found[0])
    return [f"{label}: {each}" for each in wrong]


def ledgers(bench):
    runs = bench.rounds_or(200)
    rows = 0
    for seed in range(1, runs + 1):
        wrong = one(bench, seed)
        rows += len(wrong)
        for each in wrong:
            print(each, flush=True)
        if seed % 20 == 0:
            print(f"{seed} of {runs} runs, {rows} rows that differ", flush=True)
    return {40: {"runs": [runs], "differ": [rows]}}
