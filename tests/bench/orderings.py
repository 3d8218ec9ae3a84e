#!/usr/bin/env python3
"""What the papers say about accuracy, pace and time to an accuracy, on a small real network: the Fashion-MNIST example on
real processes. Measures, and writes docs/results/real-networks.json (what was measured) and real-networks.md (the page).

    tests/bench/orderings.py build/release                 measure with this build what is not kept yet, and write both:
                                                           about an hour on two cores (to measure anew, delete the figures)
    tests/bench/orderings.py build/release --minutes 20    no run is begun after that; call again to go on
    tests/bench/orderings.py --load FILE                   write the page from figures that were kept
    tests/bench/orderings.py build/release --quick         a short run: is still quicker what the page says is so by far?
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "examples", "fashion_mnist.cpp")
PAGE = os.path.join(ROOT, "docs", "results", "real-networks.md")
RAW = os.path.join(ROOT, "docs", "results", "real-networks.json")
SEEDS, EPOCHS, WORKERS = 5, 2, 4
TARGET = 0.85
LOSS, REPORTS = 0.5, 10  # Of training; the mean of so many reports in a row, of which there are four a second.
QUICK_EPOCHS, BY_FAR = 0.3, 1.3
DELAY, DELAY_STEPS = "1:40ms", 1.5  # As many steps without delays as the page's delay was where it was measured.
SLOW = "3:2x"
RUN_TIMEOUT_S = 600
COMMON = ("--workers", str(WORKERS), "--evaluate-every-epochs", "0.1", "--target", "none")


@dataclass(frozen=True)
class Job:
    """A strategy and the flags that its runs get besides the common ones."""
    strategy: str
    flags: tuple = ()


def delayed(strategy):
    return Job(strategy, ("--straggle", DELAY))


def slowed(strategy):
    """An update of four mini-batches; nonblocking brings them itself."""
    return Job(strategy, ("--slow", SLOW) + (() if strategy.startswith("nonblocking") else ("--accumulate", "4")))


class Raw:
    """What was measured: for each job and seed the updates, the seconds that they took, and the evaluations; and what is
    to be said of these very figures."""

    def __init__(self, runs=(), notes=()):
        self.runs, self.notes = {}, list(notes)
        for run in runs:
            self.add(run)

    @classmethod
    def load(cls, path):
        with open(path, encoding="utf-8") as file:
            return cls(**json.load(file))

    def add(self, run):
        self.runs[Job(run["strategy"], tuple(run["flags"])), run["seed"]] = run

    def save(self, path):
        lines = ",\n".join(json.dumps(run) for run in self.runs.values())
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"notes": ' + json.dumps(self.notes, ensure_ascii=False) + ', "runs": [\n' + lines + "\n]}\n")

    def pairs(self, job, other):
        """The runs of both under the seeds that both have."""
        seeds = sorted({seed for of, seed in self.runs if of == job} & {seed for of, seed in self.runs if of == other})
        return [(self.runs[job, seed], self.runs[other, seed]) for seed in seeds]


# What is compared: a figure of two runs of one seed -------------------------------------------------------------------

def accuracy(run):
    """Percent, of the averaged model on the test set, at the end."""
    return 100 * run["evaluations"][-1][1]


def step_s(run):
    return run["train_s"] / run["updates"]


def time_to_target(run):
    return next((clock for clock, value in run["evaluations"] if value >= TARGET), None)


def time_to_loss(run):
    reports = run["losses"]
    return next((reports[end - 1][0] for end in range(REPORTS, len(reports) + 1)
                 if statistics.mean(loss for _, loss in reports[end - REPORTS:end]) <= LOSS), None)


def points_above(run, other):
    return accuracy(run) - accuracy(other)


def pace_over(run, other):
    return step_s(other) / step_s(run)


def sooner(time_of, run, other):
    """0 if `run` never comes to it; an `other` that never does counts as if it did at its end, which is too little."""
    own = time_of(run)
    return (time_of(other) or other["train_s"]) / own if own else 0.0


def sooner_than(run, other):
    return sooner(time_to_target, run, other)


def loss_sooner_than(run, other):
    return sooner(time_to_loss, run, other)


# Bounds, as in `paceline reproduce` -----------------------------------------------------------------------------------

@dataclass(frozen=True)
class Bound:
    mean_least: float = None
    each_above: float = None

    def missed(self, figures):
        """None if the bound is kept; else how it is not."""
        if self.each_above is not None:
            if max(figures) < self.each_above:
                return "reversed"
            if min(figures) <= self.each_above:
                return "within noise"
        if self.mean_least is not None and statistics.mean(figures) < self.mean_least:
            return "missed"
        return None

    def __str__(self):
        parts = [] if self.mean_least is None else [f"≥ {self.mean_least:g}"]
        return ", ".join(parts + ([] if self.each_above is None else [f"each > {self.each_above:g}"]))


ORDER = Bound(each_above=1)  # Of a ratio: an order is one only if every seed shows it.
BETTER = Bound(each_above=0)  # Of points.


def as_good(points):
    return Bound(mean_least=-points)


def speedup(paper):
    """Four fifths of the gain that the paper states, and faster under every seed."""
    return Bound(mean_least=round(1 + 0.8 * (paper - 1), 3), each_above=1)


@dataclass(frozen=True)
class Row:
    paper: str
    claim: str
    job: Job
    other: Job
    figure: callable
    bound: Bound


def rows():
    """Every claim that is tried."""
    wagma, delays = delayed("wagma"), "where a random worker is late"
    rivals = ("allreduce", "local-sgd(period=1)", "d-psgd", "sgp(peers=2)", "eager-sgd(majority,sync=10)")
    for other in rivals:
        yield Row("WAGMA, Fig. 4", f"quicker than {other} {delays}", wagma, delayed(other), pace_over, ORDER)
    yield Row("WAGMA, Fig. 4", f"AD-PSGD is quicker {delays}", delayed("ad-psgd"), wagma, pace_over, ORDER)
    for other in (*rivals, "ad-psgd"):
        yield Row("WAGMA, Fig. 5", f"sooner accurate than {other} {delays}", wagma, delayed(other), sooner_than, ORDER)
    yield Row("WAGMA, Fig. 5", "as accurate as allreduce with the same delays", wagma, delayed("allreduce"), points_above, as_good(0.6))
    for other in ("sgp(peers=2)", "d-psgd", "ad-psgd"):
        yield Row("WAGMA, Fig. 5", f"more accurate than {other} with the same delays", wagma, delayed(other), points_above, BETTER)
    yield Row("SGP, abstract", "within 1.2 points of allreduce", Job("sgp"), Job("allreduce"), points_above, as_good(1.2))
    yield Row("SGP, 5.3", "two peers are more accurate than one", Job("sgp(peers=2)"), Job("sgp"), points_above, BETTER)
    yield Row("SGP, abstract", "more accurate than D-PSGD", Job("sgp"), Job("d-psgd(bipartite,order=atc)"), points_above, BETTER)
    yield Row("SGP, 1", f"sooner accurate than allreduce {delays}", delayed("sgp(peers=2)"), delayed("allreduce"), sooner_than, ORDER)
    hier, k_avg = Job("hier-avg(k1=4,k2=8,group=2)"), Job("k-avg(period=4)")
    yield Row("Hier-AVG, Table 1", "half the averages of all, and no less accurate", hier, k_avg, points_above, as_good(0.5))
    yield Row("Hier-AVG, Table 1", "half the averages of all, and more accurate", hier, k_avg, points_above, BETTER)
    yield Row("Hier-AVG, conclusion", "sooner accurate than K-AVG with half the averages", hier, k_avg, sooner_than, ORDER)
    yield Row("Hier-AVG, 4.1", "a longer k2 costs no accuracy", Job("hier-avg(k1=4,k2=32,group=2)"), hier, points_above, as_good(0.5))
    for base in ("allreduce", "d-psgd", "matcha"):
        ours = slowed("nonblocking(batches=4)" if base == "allreduce" else f"nonblocking({base},batches=4)")
        where = "where the slowest takes twice as long"
        yield Row("Non-blocking, Table 1", f"as accurate as {base}", ours, slowed(base), points_above, as_good(0.5))
        yield Row("Non-blocking, 6", f"twice the pace of {base} {where}", ours, slowed(base), pace_over, speedup(2))
        yield Row("Non-blocking, abstract", f"the same training loss in half the time of {base} {where}", ours, slowed(base), loss_sooner_than, speedup(2))
        yield Row("Non-blocking, abstract", f"accurate in half the time of {base} {where}", ours, slowed(base), sooner_than, speedup(2))
    adacomm = Job("adacomm(period=20,interval=1s)")
    yield Row("AdaComm, Table 1", "more accurate than tau=1", adacomm, Job("local-sgd(period=1)"), points_above, BETTER)
    yield Row("AdaComm, Fig. 6", "a long fixed period ends less accurate", Job("local-sgd(period=1)"), Job("local-sgd(period=30)"), points_above, BETTER)


NOT_TRIED = (
    ("AdaComm, Fig. 9 to 13", "1.4 to 3.5 times sooner at the same loss",
     "on one host an averaging costs next to nothing; a slower network needs a second host or rights over this one's"),
    ("SGP, abstract", "3 times as fast as allreduce on 10 Gbit/s Ethernet", "as above"),
    ("Hier-AVG, 4.3", "less time for communication", "as above: inside a host no average is dearer than another"),
)


def spread(figures, digits=2):
    return f"{statistics.mean(figures):.{digits}f} ({min(figures):.{digits}f} to {max(figures):.{digits}f})"


def here(row, pairs, figures):
    text = f"`{row.job.strategy}` over `{row.other.strategy}`: {spread(figures)}"
    if row.figure is points_above:
        return f"{text} points, {statistics.mean(accuracy(run) for run, _ in pairs):.2f} of {statistics.mean(accuracy(run) for _, run in pairs):.2f} %"
    return text


HEAD = """# Small real networks

Claims of the papers about accuracy, pace and time to an accuracy, on real processes: the example `fashion_mnist.cpp`, {workers} workers, {epochs} epochs, {seeds} seeds. {tally}. Measured with the first command, which keeps its figures in [real-networks.json](real-networks.json); the second
makes this page from them, and a test compares the two.

```
tests/bench/orderings.py build/release
tests/bench/orderings.py --load docs/results/real-networks.json
```

- *Accurate*: the averaged model's accuracy on the test set after {epochs} epochs; differences in points, seed by seed. *Sooner accurate*: training time to {target:.0f} %, evaluated every tenth of an epoch. *Loss*: training time until {reports} reports of the workers' mean training loss, of which there are four a second, are {loss} on average. Who never comes to it is 0 times sooner; another that never does counts as if it did at its end. *Pace*: time an update.
- *A random worker is late*: `--straggle {delay}`, at every step. *The slowest takes twice as long*: `--slow {slow}`, four mini-batches an update.
- *Here*: the mean, with the lowest and the highest seed. *Bound*: ≥ is of the mean, *each >* of every seed. An order that not every seed shows is *within noise*, one that every seed shows the other way round *reversed*; neither holds. *Twice* is held to four fifths of the gain.
- On one host an average costs next to nothing, so what the papers gain by sending less does not show: it is in the simulated pages.
{notes}
| paper | claim | here | bound | verdict |
|---|---|---|---|---|
"""


def page_of(raw):
    lines, verdicts = [], []
    seeds = len({seed for _, seed in raw.runs})
    for row in rows():
        pairs = raw.pairs(row.job, row.other)
        if not pairs:
            lines.append((row.paper, row.claim, "-", str(row.bound), "not tried"))
            verdicts.append("not tried")
            continue
        figures = [row.figure(run, other) for run, other in pairs]
        text = here(row, pairs, figures) + (f"; {len(pairs)} of {seeds} seeds" if len(pairs) < seeds else "")
        how = row.bound.missed(figures)
        verdicts.append("does not hold" if how else "holds")
        lines.append((row.paper, row.claim, text, str(row.bound), f"**does not hold**: {how}" if how else "holds"))
    for paper, claim, why in NOT_TRIED:
        lines.append((paper, claim, why, "-", "not tried"))
        verdicts.append("not tried")
    tally = f"{len(verdicts)} claims. " + "; ".join(f"{kind}: {verdicts.count(kind)}" for kind in ("holds", "does not hold", "not tried"))
    head = HEAD.format(workers=WORKERS, epochs=EPOCHS, seeds=seeds, tally=tally, target=100 * TARGET, loss=LOSS, reports=REPORTS, delay=DELAY, slow=SLOW,
                       notes="".join(f"- {note}\n" for note in raw.notes))
    return head + "".join("| " + " | ".join(line) + " |\n" for line in lines)


# Measuring ------------------------------------------------------------------------------------------------------------

def measure(build, job, seed, epochs=EPOCHS):
    """One run; None, with a word on stderr, for one that fails or hangs."""
    with tempfile.TemporaryDirectory(prefix="paceline-orderings-") as folder:
        directory = os.path.join(folder, "run")
        try:
            subprocess.run([os.path.join(os.path.abspath(build), "cli", "paceline"), "run", SCRIPT, "--strategy", job.strategy,
                            "--seed", str(seed), "--epochs", str(epochs), "--json", "--run-dir", directory, *COMMON, *job.flags],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder, check=True, timeout=RUN_TIMEOUT_S)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failure:
            print(f"  seed {seed} {job.strategy} {' '.join(job.flags)}: left out: {failure} {failure.stderr or ''}", file=sys.stderr, flush=True)
            return None
        with open(os.path.join(directory, "result.json"), encoding="utf-8") as file:
            result = json.load(file)
        with open(os.path.join(directory, "metrics.jsonl"), encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
    losses = [[round(event["clock_s"], 3), round(event["loss"], 4)] for event in events if event["event"] == "progress" and event.get("update", 0) > 0]
    evaluations = [[round(event["clock_s"], 3), round(event["value"], 4)] for event in events if event["event"] == "evaluated"]
    print(f"  seed {seed} {job.strategy} {' '.join(job.flags)}: {100 * evaluations[-1][1]:.1f} %, {result['train_s']:.1f} s", file=sys.stderr, flush=True)
    return {"strategy": job.strategy, "flags": list(job.flags), "seed": seed, "updates": result["updates"],
            "train_s": round(result["train_s"], 3), "evaluations": evaluations, "losses": losses}


def measure_missing(build, raw, arguments):
    """Seed after seed, so that what changes on the machine meets all of them. Each run is kept once it is done."""
    end = time.monotonic() + 60 * arguments.minutes
    jobs = list(dict.fromkeys(job for row in rows() for job in (row.job, row.other)))
    missing = [(job, seed) for seed in range(1, arguments.seeds + 1) for job in jobs if (job, seed) not in raw.runs]
    for done, (job, seed) in enumerate(missing):
        if time.monotonic() >= end:
            print(f"time is up, {len(missing) - done} runs are missing: call again to go on", file=sys.stderr)
            return
        if run := measure(build, job, seed):
            raw.add(run)
            raw.save(arguments.save)


def as_late_here(build):
    """What makes of a job of the page the one whose delays are as long beside this machine's steps: where steps are slow,
    the others' computing fills the page's delay."""
    undelayed = measure(build, Job("allreduce"), 1, QUICK_EPOCHS)
    delay = f"1:{math.ceil(1000 * DELAY_STEPS * step_s(undelayed))}ms" if undelayed else DELAY
    return lambda job: Job(job.strategy, tuple(delay if flag == DELAY else flag for flag in job.flags))


def check_quickly(build, raw):
    """Runs the jobs of the claims of pace that every kept seed shows by far; 1 if one of them is now the other way round."""
    late = as_late_here(build)
    by_far = [row for row in rows() if row.figure is pace_over
              and min((pace_over(*pair) for pair in raw.pairs(row.job, row.other)), default=0) >= BY_FAR]
    jobs = dict.fromkeys(job for row in by_far for job in (row.job, row.other))
    found = {job: measure(build, late(job), 1, QUICK_EPOCHS) for job in jobs}
    failed = not by_far
    for row in by_far:
        run, other = found[row.job], found[row.other]
        ratio = pace_over(run, other) if run and other else 0
        failed |= ratio <= 1
        print(f"{row.paper}: {row.claim}: {ratio:.2f}: {'as the page says' if ratio > 1 else 'not as the page says'}")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", help="a release build, e.g. build/release")
    parser.add_argument("--load", metavar="FILE", help="measure nothing: the page of these figures")
    parser.add_argument("--save", metavar="FILE", default=RAW, help="where what is measured is kept")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no run after that")
    parser.add_argument("--quick", action="store_true", help="write nothing: compare a short run with the page")
    parser.add_argument("-o", "--output", default=PAGE)
    arguments = parser.parse_args()
    if bool(arguments.build) == bool(arguments.load):
        parser.error("give a build to measure with, or --load FILE")
    kept = arguments.load or arguments.save
    raw = Raw.load(kept) if arguments.load or os.path.exists(kept) else Raw()
    if arguments.quick:
        return check_quickly(arguments.build or parser.error("--quick needs a build"), raw)
    if arguments.build:
        measure_missing(arguments.build, raw, arguments)
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(page_of(raw))
    return 0


if __name__ == "__main__":
    sys.exit(main())
