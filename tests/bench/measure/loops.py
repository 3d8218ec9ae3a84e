"""Figures 5, 6, 19 and 23: the same loop under Paceline, in plain libtorch, and under torch's DistributedDataParallel (training_loop.cpp, ddp.py)."""
import os
import statistics
import subprocess
import sys

from measure.bench import TUNED, UNTUNED, busy_loops, metric, output_of, spread
from measure.store import ROOT

BATCH = 32


def as_job(bench, model, steps, processes, *flags):
    """Samples/s of all workers together."""
    _, directory = bench.run(*flags, script=bench.program("tests", "bench", "training_loop"), arguments=("job", model, str(steps), str(processes)))
    return sum(metric(directory, "steady_samples_per_s"))


def without_runtime(bench, how, model, steps, processes, settings=None):
    return float(output_of(bench.program("tests", "bench", "training_loop"), how, model, str(steps), str(processes), **(settings or TUNED)))


def in_python(python, how, processes, steps):
    return float(output_of(python, os.path.join(ROOT, "tests", "bench", "ddp.py"), how, str(processes), str(BATCH), str(steps), **TUNED).split()[-1])


def python_with_torch():
    for python in filter(None, (os.environ.get("PACELINE_PYTHON"), sys.executable, "/usr/bin/python3")):
        if subprocess.run([python, "-c", "import torch.distributed"], check=False, capture_output=True).returncode == 0:
            return python
    raise SystemExit("figures.py: no python here has torch: apt-get install python3-torch, or name one with PACELINE_PYTHON")


def ddp(bench, steps=800):
    """All sides follow each other in every round. What is Python, and what gloo, shows in loops that leave one or both out."""
    python = python_with_torch()
    values = {}
    for p in (2, 4):
        sides = {"ours": lambda: as_job(bench, "small", steps, p), "cpp": lambda: without_runtime(bench, "ddp", "small", steps, p),
                 "python": lambda: in_python(python, "ddp", p, steps), "cpp alone": lambda: without_runtime(bench, "plain", "small", steps, p),
                 "python alone": lambda: in_python(python, "plain", p, steps)}
        pace = {name: [] for name in sides}
        for _ in range(bench.rounds_or(5)):
            for name, side in sides.items():
                pace[name].append(side())
            print(f"  P={p}: " + ", ".join(f"{name} {values[-1]:.0f}" for name, values in pace.items()) + " samples/s", flush=True)
        for key, over, under in (("python", "ours", "python"), ("cpp", "ours", "cpp"), ("is python", "cpp alone", "python alone"), ("is gloo", "cpp alone", "cpp")):
            values[f"{key} P={p}"] = [a / b for a, b in zip(pace[over], pace[under])]
        bench.notes[5] = bench.notes.get(5, "Samples/s, medians:") + f" P = {p}: " + ", ".join(
            f"{words} {statistics.median(pace[name]):,.0f}" for name, words in
            (("ours", "our allreduce"), ("cpp", "DDP's reducer in C++"), ("python", "DDP in Python"), ("cpp alone", "C++ loops that average nothing"),
             ("python alone", "Python loops that average nothing"))) + "."
    return {5: values}


def plain(bench):
    """One worker's loop with the runtime and without it: the same program, the same steps."""
    version = bench.torch_version()
    values = {}
    for model, steps in (("small", 1600), ("large", 600)):
        tuned, untuned = [], []
        for _ in range(bench.rounds_or(21)):
            ours = as_job(bench, model, steps, 1)
            tuned.append(ours / without_runtime(bench, "plain", model, steps, 1))
            untuned.append(ours / without_runtime(bench, "plain", model, steps, 1, UNTUNED))
        print(f"plain {model}: {spread(tuned)} times the loop with the same settings, {spread(untuned)} times that without allocator settings", flush=True)
        values.update({f"{version} {model}": tuned, f"{version} {model} untuned": untuned})
    return {6: values}


def small_update(bench, steps=3000):
    """What an update takes beyond a step of as many processes that do not average: both in turn, alone and beside busy loops."""
    values = {}
    for load, loops in (("idle", 0), ("loaded", 2)):
        for p in (2, 4):
            beyond = []
            with busy_loops(loops):
                for _ in range(bench.rounds_or(5)):
                    alone, job = (1e3 * BATCH * p / pace for pace in (without_runtime(bench, "plain", "tiny", steps, p), as_job(bench, "tiny", steps, p)))
                    beyond.append(job - alone)
                    print(f"  {load}, P={p}: {job:.3f} ms an update, {alone:.3f} ms a step without averaging", flush=True)
            values[f"{load} P={p}"] = beyond
    return {19: values}


def nine(bench, steps=6000):
    """The same for a model of nine numbers, in microseconds; and beside DDP's reducer over gloo, C++ against C++."""
    values = {}
    for p in (2, 4):
        beyond, times_less = [], []
        for _ in range(bench.rounds_or(5)):
            alone, ddp_step, job = (1e6 * BATCH * p / pace for pace in
                                    (without_runtime(bench, "plain", "nine", steps, p), without_runtime(bench, "ddp", "nine", steps, p),
                                     as_job(bench, "nine", steps, p)))
            beyond.append(job - alone)
            times_less.append((ddp_step - alone) / (job - alone))
            print(f"  P={p}: {job:.0f} us an update, {ddp_step:.0f} us under DDP, {alone:.0f} us a step without averaging", flush=True)
        values[f"beyond P={p}"] = beyond
        values[f"ddp P={p}"] = times_less
    return {23: values}
