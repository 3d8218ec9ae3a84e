"""Each strategy at its own best learning rate: the main job with one of 4 workers always 4x slower, over a grid of rates.

Which run is worth doing next follows from those that were done: the whole grid with one seed; then two seeds at each strategy's best
rate and its neighbours, which may make another one the best; then five at the best. So a limit of time leaves out what matters least, and
the next call goes on. Runs are lines of docs/benchmarks_rates.jsonl: to measure anew, delete it."""
import datetime
import json
import math
import os
import statistics
import time

from measure.bench import MAIN_JOB, batches_of_its_own, mean_step
from measure.store import ROOT

DATA = os.path.join(ROOT, "docs", "benchmarks_rates.jsonl")
STRATEGIES = ("allreduce", "nonblocking", "wagma", "wagma(late=skip)", "local-sgd")
RATES = (0.03, 0.06, 0.1, 0.15, 0.2, 0.3)
SEEDS_TO_CHOOSE = 2
SEEDS_AT_THE_BEST = 5
KEPT = ("time_to_target_s", "updates", "train_s", "samples_per_s", "test_accuracy")


def read(path=DATA):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def runs_of(runs, strategy, rate):
    return [run for run in runs if (run["strategy"], run["rate"]) == (strategy, rate)]


def median_time(runs, strategy, rate):
    """Of the seeds; one that did not reach the target took for ever."""
    times = [run["time_to_target_s"] or math.inf for run in runs_of(runs, strategy, rate)]
    return statistics.median(times) if times else math.inf


def best_rate(runs, strategy):
    """None: the target was reached at none."""
    best = min(RATES, key=lambda rate: median_time(runs, strategy, rate))
    return best if math.isfinite(median_time(runs, strategy, best)) else None


def beside(rate):
    at = RATES.index(rate)
    return RATES[max(0, at - 1):at + 2]


def next_run(runs):
    """(strategy, rate, seed), or None: all is there."""
    def lacking(rates_of, seeds):
        """Strategies take turns, so that what is compared is measured at about the same time."""
        for seed in range(1, seeds + 1):
            for rate in RATES:
                for strategy in STRATEGIES:
                    if rate in rates_of(strategy) and seed not in {run["seed"] for run in runs_of(runs, strategy, rate)}:
                        return strategy, rate, seed
        return None

    def best_alone(strategy):
        best = best_rate(runs, strategy)
        return () if best is None else (best,)

    def best_and_beside(strategy):
        return [rate for best in best_alone(strategy) for rate in beside(best)]

    return lacking(lambda _: RATES, 1) or lacking(best_and_beside, SEEDS_TO_CHOOSE) or lacking(best_alone, SEEDS_AT_THE_BEST)


def measure(bench):
    """Goes on with the grid until all is there or the time is up. What is not for the page is kept in the build."""
    path = DATA if bench.record else bench.program(os.path.basename(DATA))
    end = time.monotonic() + 60 * (bench.minutes or 60)
    runs = read(path)
    while todo := next_run(runs):
        if time.monotonic() >= end:
            print(f"rates: time is up, {len(runs)} runs done; the next would be {todo}: call again to go on")
            break
        strategy, rate, seed = todo
        flags = batches_of_its_own(strategy, "--workers", "4", "--slow", "3:4x", "--strategy", strategy, "--seed", str(seed))
        result, _ = bench.run(*flags, script=MAIN_JOB, arguments=(str(rate),), may_diverge=True)
        run = {"strategy": strategy, "rate": rate, "seed": seed, "diverged": result is None,
               **{key: result[key] if result else None for key in KEPT}, "date": datetime.date.today().isoformat(), "load": round(os.getloadavg()[0], 1)}
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(run) + "\n")
        runs.append(run)
        print(f"  {strategy} at {rate}, seed {seed}: " + ("diverged" if run["diverged"] else
              f"target after {run['time_to_target_s']} s, accuracy {run['test_accuracy']}"), flush=True)
    return {}


def sooner(runs, strategy, other="allreduce"):
    """How many times sooner the target was reached, each at its best rate, seed by seed."""
    mine, theirs = ({run["seed"]: run["time_to_target_s"] for run in runs_of(runs, name, best_rate(runs, name))} for name in (strategy, other))
    return [theirs[seed] / mine[seed] for seed in sorted(mine.keys() & theirs.keys()) if mine[seed] and theirs[seed]]


def seconds(values):
    return f"{statistics.median(values):.1f} s ({min(values):.1f} to {max(values):.1f})"


def best_row(runs, strategy):
    rate = best_rate(runs, strategy)
    if rate is None:
        return f"| `{strategy}` | none reached it | | | | |"
    there = runs_of(runs, strategy, rate)
    ended = [run for run in there if not run["diverged"]]
    times = [run["time_to_target_s"] for run in there if run["time_to_target_s"]]
    ratios = sooner(runs, strategy) if best_rate(runs, "allreduce") else []
    ratio = f"{statistics.median(ratios):.2f}× ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else ""
    step = statistics.median([1e3 * mean_step(run) for run in ended])
    pace = statistics.median([run["samples_per_s"] for run in ended])
    return f"| `{strategy}` | {rate} | {seconds(times)}, {len(times)} of {len(there)} seeds | {ratio} | {step:.1f} ms | {pace:,.0f} |"


def grid_cell(runs, strategy, rate):
    there = runs_of(runs, strategy, rate)
    reached = [run for run in there if run["time_to_target_s"]]
    if not there:
        return "not measured"
    if len(reached) < len(there):
        ended = [run["test_accuracy"] for run in there if not run["diverged"]]
        diverged = f", {len(there) - len(ended)} diverged" if len(ended) < len(there) else ""
        at_the_end = f", {100 * statistics.median(ended):.1f} % at the end" if ended else ""
        return f"{len(reached)} of {len(there)} reached it{diverged}{at_the_end}"
    text = f"{median_time(runs, strategy, rate):.1f} s, {statistics.median([run['updates'] for run in there]):.0f} updates ({len(there)})"
    return f"**{text}**" if rate == best_rate(runs, strategy) else text


def section(runs):
    """Of the page."""
    if not runs:
        return "Not measured.\n"
    lines = ["| strategy | best rate | time to 88 % | sooner than allreduce at its best | time per step | samples/s |", "|---|---|---|---|---|---|"]
    lines += [best_row(runs, strategy) for strategy in STRATEGIES]
    lines += ["", "Time to 88 % and updates until then at every rate, medians (number of seeds):", "",
              "| strategy | " + " | ".join(map(str, RATES)) + " |", "|---|" + "---|" * len(RATES)]
    lines += [f"| `{strategy}` | " + " | ".join(grid_cell(runs, strategy, rate) for rate in RATES) + " |" for strategy in STRATEGIES]
    dates = sorted({run["date"] for run in runs})
    lines += ["", f"{len(runs)} runs, {dates[0]}{' to ' + dates[-1] if len(dates) > 1 else ''}." + (" The grid is not complete." if next_run(runs) else "")]
    return "\n".join(lines) + "\n"
