#!/usr/bin/env python3
"""The uneven workloads of the WAGMA paper on real processes: examples/translation.cpp and examples/reinforcement.cpp, every
strategy with the best of four learning rates or more. Writes docs/results/workloads.md.

    tests/bench/workloads.py BUILD --save FILE [--seeds N]    all of it; BUILD: a release build, e.g. build/release
    tests/bench/workloads.py BUILD --save FILE --rates        the learning rates only, with a seed that the page does not use
    tests/bench/workloads.py BUILD --load FILE --save FILE    what is missing in the file
    tests/bench/workloads.py --load FILE                      nothing: the page from what was saved
    tests/bench/workloads.py BUILD --imbalance                a short run: is what it draws as uneven as the page says?
"""
import argparse
import json
import os
import re
import sys

import workloads_page
from measure.bench import Bench
from measure.processor import processor
from measure.store import ROOT

SEED_OF_RATES = 11

STRATEGIES = ("allreduce", "local-sgd(period=1)", "sgp(peers=2)", "eager-sgd(majority)", "ad-psgd", "d-psgd", "wagma(sync=8)", "wagma(sync=8,late=skip)",
              "nonblocking(batches=4)")
WORKLOADS = {
    "translation": {"workers": 4, "batch": 16, "epochs": 24, "target": 0.9, "rates": (2e-3, 4e-3, 8e-3, 1.6e-2),
                    "strategies": (*STRATEGIES, "wagma(sync=8,group=4)")},
    "reinforcement": {"workers": 8, "batch": 256, "epochs": 24, "target": 0.8, "rates": (4e-3, 8e-3, 1.6e-2, 3.2e-2), "strategies": STRATEGIES},
}


class Diverged(SystemExit):
    pass


class Lab:
    """Runs of the examples."""

    def __init__(self, build):
        self.bench = Bench(build)

    def script(self, workload, rate):
        """The example with this learning rate; compiled once."""
        path = os.path.join(self.bench.folder, f"{workload}-{rate:g}.cpp")
        if not os.path.exists(path):
            with open(os.path.join(ROOT, "examples", f"{workload}.cpp"), encoding="utf-8") as file:
                text, found = re.subn(r"kRate = [0-9.e-]+;", f"kRate = {rate:g};", file.read())
            if found != 1:
                raise SystemExit(f"workloads: examples/{workload}.cpp has {found} learning rates")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def paceline(self, program, *flags, target="none"):
        """Runs `paceline run`; the run directory."""
        result, directory = self.bench.run("--target", str(target), *flags, script=program, may_diverge=True)
        if result is None:
            raise Diverged(f"workloads: {program} with {' '.join(flags)} diverged")
        return directory

    def run(self, workload, strategy, rate, seed, target="none"):
        batch, epochs = WORKLOADS[workload]["batch"], WORKLOADS[workload]["epochs"]
        if strategy.startswith("nonblocking"):  # Four mini-batches an update: a quarter each, so that an update is as large.
            batch //= 4
        directory = self.paceline(self.script(workload, rate), "--strategy", strategy, "--seed", str(seed), "--batch", str(batch),
                                  "--epochs", str(epochs), target=target)
        row = summary(directory, workload, strategy, rate, seed)
        print(f"  {workload} {strategy} rate {rate:g} seed {seed}: {row['train_s']:.1f} s, {row['samples_per_s']:.0f} samples/s, "
              f"ends at {row['evaluations'][-1][2]:.3f}", file=sys.stderr, flush=True)
        return row

    def batch_times(self):
        """Seconds of each mini-batch of the translation, one worker alone, without the first ones."""
        directory = self.paceline(self.script("translation", WORKLOADS["translation"]["rates"][0]), "--strategy", "allreduce", "--workers", "1", "--epochs", "5",
                                  "--evaluate-every-epochs", "0")
        with open(os.path.join(directory, "trace.json"), encoding="utf-8") as file:
            spans = [event["dur"] for event in json.load(file)["traceEvents"] if event.get("cat") == "compute"]
        return [micros * 1e-6 for micros in spans[20:]]


def summary(directory, workload, strategy, rate, seed):
    """What the page needs of a run."""
    with open(os.path.join(directory, "result.json"), encoding="utf-8") as file:
        result = json.load(file)
    events = read_events(directory)
    return {"workload": workload, "strategy": strategy, "rate": rate, "seed": seed, "workers": WORKLOADS[workload]["workers"],
            "evaluations": [(e["clock_s"], e["update"], e["value"]) for e in events if e["event"] == "evaluated"],
            "drawn": drawn(events) if strategy == "allreduce" else None,
            **{name: result[name] for name in ("train_s", "samples_per_s", "updates", "wait_s")}}


def read_events(directory):
    with open(os.path.join(directory, "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def drawn(events):
    """What the script logged of its mini-batches, one list an update: words, or seconds of the simulator."""
    updates = {}
    for event in events:
        if event["event"] == "metric" and event["name"] in ("words", "simulator_s"):
            updates.setdefault(event["update"], []).append(event["value"])
    return list(updates.values())


def check_imbalance(lab):
    """Prints the rows of the page's table that a short run of the built examples gives; 1 if one is out of its bound."""
    failed = 0
    for workload, epochs in (("translation", "4"), ("reinforcement", "5")):
        program = lab.bench.program("examples", f"example_{workload}")
        updates = drawn(read_events(lab.paceline(program, "--strategy", "local-sgd(period=1)", "--epochs", epochs,
                                               "--evaluate-every-epochs", "0")))
        for claim, paper, bound, here, holds in workloads_page.drawn_rows(workload, updates):
            print(f"{workload}: {claim}: {here} (held to {bound}; the paper: {paper}): {'holds' if holds else 'does not hold'}")
            failed += not holds
    return 1 if failed else 0


def machine():
    return {**processor(), "load": os.getloadavg()[0]}


def run_missing(lab, runs, workload, strategy, rate, seed, target="none"):
    """Adds the run to `runs`, unless it is there."""
    if not any((r["workload"], r["strategy"], r["rate"], r["seed"]) == (workload, strategy, rate, seed) for r in runs):
        runs.append(lab.run(workload, strategy, rate, seed, target))


def measure_rate(lab, runs, workload, strategy, rate):
    try:
        run_missing(lab, runs, workload, strategy, rate, SEED_OF_RATES, WORKLOADS[workload]["target"])
    except Diverged as error:  # A result: this rate is too large.
        print(f"  {error}", file=sys.stderr, flush=True)
        runs.append({"workload": workload, "strategy": strategy, "rate": rate, "seed": SEED_OF_RATES, "evaluations": []})


def measure_rates(lab, data):
    """The grid, and beyond it for a strategy whose best rate lies on its edge."""
    runs = data.setdefault("rates", [])
    for workload, settings in WORKLOADS.items():
        for strategy in settings["strategies"]:
            for rate in settings["rates"]:
                measure_rate(lab, runs, workload, strategy, rate)
            while (beyond := workloads_page.rate_beyond(runs, workload, strategy, settings["target"])) is not None:
                measure_rate(lab, runs, workload, strategy, beyond)


def measure(lab, seeds, data):
    if "batch_times" not in data:
        data["batch_times"] = lab.batch_times()
    best = {name: workloads_page.best_rates(data["rates"], name, settings["target"]) for name, settings in WORKLOADS.items()}
    runs = data["runs"] = [run for run in data.get("runs", []) if run["rate"] == best[run["workload"]][run["strategy"]]]
    for seed in seeds:
        for workload, settings in WORKLOADS.items():
            for strategy in settings["strategies"]:
                run_missing(lab, runs, workload, strategy, best[workload][strategy], seed)


def rounded(data):
    """Numbers with six digits."""
    if isinstance(data, dict):
        return {key: rounded(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [rounded(value) for value in data]
    return float(f"{data:.6g}") if isinstance(data, float) else data


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?")
    parser.add_argument("-o", "--output", default=os.path.join(ROOT, "docs", "results", "workloads.md"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rates", action="store_true")
    parser.add_argument("--imbalance", action="store_true")
    parser.add_argument("--save", metavar="FILE")
    parser.add_argument("--load", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.imbalance and arguments.build:
        return check_imbalance(Lab(arguments.build))
    if not (arguments.build and arguments.save or arguments.load) or arguments.imbalance:
        parser.error("give a build and where to --save, or what to --load")
    data = {}
    if arguments.load:
        with open(arguments.load, encoding="utf-8") as file:
            data = json.load(file)
    if arguments.build:
        lab = Lab(arguments.build)
        data.setdefault("machine", machine())
        try:
            measure_rates(lab, data)
            if not arguments.rates:
                measure(lab, range(1, arguments.seeds + 1), data)
        finally:  # What was measured is kept, whatever came after.
            with open(arguments.save or arguments.load, "w", encoding="utf-8") as file:
                json.dump(rounded(data), file)
    if not arguments.rates:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(workloads_page.page(data, WORKLOADS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
