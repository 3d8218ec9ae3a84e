"""The page docs/results/workloads.md from the runs of tests/bench/workloads.py. What is held to what stands here; nothing is run."""
import random
import statistics

from orderings import speedup

WAGMA, LOCAL, SGP = "wagma(sync=8)", "local-sgd(period=1)", "sgp(peers=2)"
OTHERS = ("allreduce", LOCAL, SGP, "eager-sgd(majority)", "ad-psgd", "d-psgd")
GRID_MAX = 7  # Learning rates that are tried of a strategy.
SCALE = 50  # examples/reinforcement.cpp: a fiftieth of the paper's seconds.

# (workload, claim, the other strategy, the paper's ratio): WAGMA's speed over another's.
SPEEDS = (
    ("translation", "V-C: the training in 1.39x less time than local SGD", LOCAL, 1.39),
    ("translation", "V-C: in 1.48x less time than SGP with two neighbours", SGP, 1.48),
    ("translation", "V-C: in 1.10x less time than AD-PSGD", "ad-psgd", 1.10),
    ("translation", "V-C: groups of all 16 nodes cost a factor of 1.28", "wagma(sync=8,group=4)", 1.28),
    ("reinforcement", "Fig. 10: 2.33x the throughput of local SGD, 1,024 nodes", LOCAL, 2.33),
    ("reinforcement", "Fig. 10: 2.10x that of SGP with four neighbours", SGP, 2.10),
    ("reinforcement", "Fig. 10: 1.88x that of D-PSGD", "d-psgd", 1.88),
)

PAGE = """# wagma: its uneven workloads on real processes

A small Transformer on sentences of unequal lengths ([translation.cpp](../../examples/translation.cpp)) and actor-critic learning in rooms whose simulation takes unequal times ([reinforcement.cpp](../../examples/reinforcement.cpp)), as in Sections V-C and V-D of the paper, on {cores} cores ({model}; load {load:.1f} at the start). Seeds {seeds}, strategies interleaved seed by seed; a figure is the mean, with the lowest and the highest. Written by

```
tests/bench/workloads.py build/release --save docs/results/workloads.json     # measures; 45 minutes
tests/bench/workloads.py --load docs/results/workloads.json                   # the page from what was measured
```

The paper's networks have 61 and 8 million parameters, these {words_parameters}; it has 16 nodes for the translation and 64 to 1,024 for reinforcement learning, here 4 and 8 workers share one machine. Averages cost next to nothing here, so what the paper gains by sending less cannot show; what it gains by waiting less can.

## How uneven

{uneven}
What waiting costs at most: the factor by which all updates together would be shorter if nobody ever waited for anybody, over a strategy in which all wait for all at every update, by the times above. {ceilings}

## Learning rates

Every strategy has the best of four learning rates of Adam, and of more where the best was the least or the largest of these: the one that reaches the target in the fewest updates with seed 11, which the results do not use. Averaged models take steps that are shorter than those along averaged gradients, so they bear a larger rate.

{rates}{notes}
{tables}
## What the paper claims

A ratio *holds* if its mean has four fifths of the gain that the paper states (*held to*) and WAGMA is faster under every seed; an order, if every seed shows it. Time to the target is what decides in the end; where a strategy did not reach it in some seed its whole run stands for the time, and the ratio is marked with at least (≥), at most (≤), or, where neither did, with a question mark; only a ratio that is proven holds. What waiting costs at most (above) is what waiting less can gain at most: a larger ratio cannot come about here.

{claims}
Not tried: fixed groups and groups below √P (Section V-C: 24.79 and 24.53 BLEU); four workers have no smaller groups than two. Scaling with the number of nodes (Figs. 7 and 10). 61 million parameters, WMT17, Habitat.
"""


def spread(values, digits=2, unit=""):
    return f"{statistics.mean(values):.{digits}f}{unit} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


# What a run says.

def time_to(run, target):
    """Seconds of training until an evaluation was at the target; None: never."""
    return next((clock for clock, _, value in run["evaluations"] if value >= target), None)


def end_score(run):
    """The mean of the last three evaluations: one alone is noisy."""
    return statistics.mean(value for _, _, value in run["evaluations"][-3:])


def score_at(run, clock):
    return max((e for e in run["evaluations"] if e[0] <= clock), default=(0, 0, 0.0))[2]


def rank_of_rate(run, target):
    """Less is better: updates to the target; where it is not reached, by the score at the end; a run that diverged has none."""
    if not run["evaluations"]:
        return (2, 0)
    reached = next((update for _, update, value in run["evaluations"] if value >= target), None)
    return (0, reached) if reached is not None else (1, -end_score(run))


def best_rates(runs, workload, target):
    """Strategy -> learning rate."""
    best = {}
    for run in (run for run in runs if run["workload"] == workload):
        other = best.setdefault(run["strategy"], run)
        if rank_of_rate(run, target) < rank_of_rate(other, target):
            best[run["strategy"]] = run
    return {strategy: run["rate"] for strategy, run in best.items()}


def rate_beyond(runs, workload, strategy, target):
    """The next rate to try, if the best lies on the edge of those that were: no farther than GRID_MAX rates."""
    rates = sorted(run["rate"] for run in runs if (run["workload"], run["strategy"]) == (workload, strategy))
    best = best_rates(runs, workload, target)[strategy]
    if len(rates) >= GRID_MAX or best not in (rates[0], rates[-1]):
        return None
    return best / 2 if best == rates[0] else best * 2


class Runs:
    """The runs of one workload, by strategy, in the order of their seeds."""

    def __init__(self, runs, workload, target):
        self.target = target
        self.by = {}
        for run in sorted((r for r in runs if r["workload"] == workload), key=lambda r: r["seed"]):
            self.by.setdefault(run["strategy"], []).append(run)
        #: Of each seed the time at which its first run ended: then all are compared.
        self.equal = [min(run["train_s"] for run in of_seed) for of_seed in zip(*self.by.values())]

    def at_equal_time(self, strategy):
        return [score_at(run, clock) for run, clock in zip(self.by[strategy], self.equal)]

    def end(self, strategy):
        return [end_score(run) for run in self.by[strategy]]

    def paces(self, strategy, other):
        return [a["samples_per_s"] / b["samples_per_s"] for a, b in zip(self.by[strategy], self.by[other])]

    def sooner(self, strategy, other):
        """(ratio of the times to the target, its mark) a seed; the mark says which side did not reach it."""
        ratios = []
        for a, b in zip(self.by[strategy], self.by[other]):
            own, others = time_to(a, self.target), time_to(b, self.target)
            mark = "" if own and others else "?" if not own and not others else "≥" if own else "≤"
            ratios.append(((others or b["train_s"]) / (own or a["train_s"]), mark))
        return ratios


# How uneven.

def of_values(values):
    """(least, median, 90 % quantile, largest, deviation over mean)"""
    ordered = sorted(values)
    return ordered[0], statistics.median(ordered), ordered[int(0.9 * len(ordered))], ordered[-1], statistics.pstdev(ordered) / statistics.mean(ordered)


def drawn_rows(workload, updates):
    """What the scripts drew: (claim, the paper, bound, here, holds)."""
    values = [value for update in updates for value in update]
    if workload == "translation":
        least, median, ninth, most, variation = of_values([words / 16 for words in values])
        yield ("words a sentence: deviation over mean", "no number", "0.5 to 0.7", f"{variation:.2f}, from {least:.0f} over {median:.0f} (median) and {ninth:.0f} (90 %) to {most:.0f}",
               0.5 <= variation <= 0.7)
        yield "the longest over the median", "no number", "at least 4", f"{most / median:.1f} of {len(values)} mini-batches", most / median >= 4
        return
    least, median, ninth, most, variation = of_values([seconds * SCALE for seconds in values])
    yield "the least time", "1.7 s", "1.7 to 1.75 s", f"{least:.2f} s", 1.7 <= least <= 1.75
    yield "median", "less than 2 s", "less than 2 s", f"{median:.2f} s; 90 %: {ninth:.2f} s", median < 2
    yield ("the longest of 5,000", "43.5 s", "10 to 43.5 s", f"{most:.1f} s of {len(values)}; deviation over mean {variation:.2f}", 10 <= most <= 43.5)


def makespan(times, cores):
    """Seconds until all are done that begin at once and share the cores evenly, each on one at most."""
    ordered = sorted(times)
    clock = done = 0.0
    for i, time in enumerate(ordered):
        clock += (time - done) * max(1.0, (len(ordered) - i) / cores)
        done = time
    return clock


def ceiling(updates, cores):
    """How much longer updates take in which all wait for all than if nobody waited; `updates`: the workers' times of each."""
    together = sum(makespan(times, cores) for times in updates)
    alone = sum(max(sum(times) / len(times), sum(times) / cores) for times in updates)
    return together / alone


def uneven(data):
    rows, updates = [], {}
    for workload in ("translation", "reinforcement"):
        runs = [run for run in data["runs"] if run["workload"] == workload and run["strategy"] == "allreduce"]
        updates[workload] = [update for run in runs for update in run["drawn"]]
        rows += [(f"{workload}, {claim}", paper, here, bound, "holds" if holds else "**does not hold**")
                 for claim, paper, bound, here, holds in drawn_rows(workload, updates[workload])]
    least, median, _, most, variation = of_values(data["batch_times"])
    rows.insert(2, ("translation, time of a mini-batch, one worker alone", "Fig. 6 is a picture", f"{least * 1e3:.0f} ms, median {median * 1e3:.0f} ms, {most * 1e3:.0f} ms; "
                    f"longest over median {most / median:.1f}, deviation over mean {variation:.2f}", "-", "-"))
    rows.insert(3, ("translation, how batches are made", "equally many sentences, all from one bucket drawn at random", "the same; the bucket is that of a sentence drawn at random", "-",
                    "by construction"))
    cores, dice = data["machine"]["cores"], random.Random(1)
    groups = [dice.sample(data["batch_times"], 4) for _ in range(5000)]
    ceilings = (f"Translation: **{ceiling(groups, cores):.2f}** on {cores} cores, where a worker that waits lends its core to those who compute (it would be {ceiling(groups, 4):.2f} with a core for each of "
                f"the 4). Reinforcement learning: **{ceiling(updates['reinforcement'], len(updates['reinforcement'][0])):.2f}**, simulators alone, which take no core.")
    return table(("", "the paper", "here", "held to", "verdict"), rows), ceilings


# Tables and claims.

def results_table(runs):
    rows = []
    for strategy, of in runs.by.items():
        times = [time_to(run, runs.target) for run in of]
        reached = [time for time in times if time is not None]
        to_target = spread(reached, 1, " s") if reached else "-"
        if len(reached) < len(times):
            to_target += f"; **not reached** in {len(times) - len(reached)} of {len(times)}"
        waited = [100 * run["wait_s"] / (run["workers"] * run["train_s"]) for run in of]
        rows.append((f"`{strategy}`", f"{of[0]['rate']:g}", to_target, spread([run["samples_per_s"] for run in of], 0), f"{statistics.mean(waited):.0f} %",
                     spread([run["train_s"] for run in of], 1, " s"), spread(runs.end(strategy), 3), spread(runs.at_equal_time(strategy), 3)))
    return table(("strategy", "rate", f"to {runs.target:g}", "samples/s", "waited", "whole run", "score at the end", "score at equal time"), rows)


def holds_or_not(holds):
    return "holds" if holds else "**does not hold**"


def speed_claim(runs, claim, other, paper):
    bound = speedup(paper)
    paces, sooner = runs.paces(WAGMA, other), runs.sooner(WAGMA, other)
    marks = "".join(sorted({mark for _, mark in sooner if mark}))
    ratios = [ratio for ratio, _ in sooner]
    proven = not bound.missed(ratios) and set(marks) <= {"≥"}
    return (claim, f"{paper:.2f}", f"{bound.mean_least:.3f}", spread(paces), holds_or_not(not bound.missed(paces)),
            (marks + " " if marks else "") + spread(ratios), holds_or_not(proven))


def order_claims(translation, learning):
    """(claim, the paper, here, holds)"""
    def listed(values, strategies):
        means = {strategy: statistics.mean(values(strategy)) for strategy in strategies}
        return ", ".join(f"`{s}` {v:.3f}" for s, v in sorted(means.items(), key=lambda item: -item[1]))

    def above(values, upper, lower, factor=1.0):
        """Under every seed each of `upper` is above `factor` times each of `lower`."""
        return all(u > factor * l for high in upper for low in lower for u, l in zip(values(high), values(low)))

    quickest = {other: min(translation.paces(WAGMA, other)) for other in OTHERS if other != "eager-sgd(majority)"}
    yield ("Fig. 7: the highest throughput of all on 16 nodes", "shown; eager-SGD is not in it",
           "least over " + ", ".join(f"`{o}` {r:.2f}" for o, r in quickest.items()), min(quickest.values()) > 1)
    end = translation.end
    yield ("Fig. 8: the highest score at the end", "BLEU 26.12; SGP 26.01, local SGD 25.98, D-PSGD 25.69, AD-PSGD 25.21", listed(end, (WAGMA, *OTHERS)),
           above(end, [WAGMA], OTHERS))
    yield "Fig. 8: D-PSGD and AD-PSGD end below WAGMA, SGP and local SGD", "as above", "the same", above(end, [WAGMA, SGP, LOCAL], ["d-psgd", "ad-psgd"])
    ad = learning.paces("ad-psgd", WAGMA)
    slower = {other: min(learning.paces(WAGMA, other)) for other in (LOCAL, SGP, "d-psgd")}
    yield ("Fig. 10: only AD-PSGD has a higher throughput", "shown", f"`ad-psgd` over WAGMA {spread(ad)}; WAGMA at least " + ", ".join(f"{r:.2f} over `{o}`" for o, r in slower.items()),
           min(ad) > 1 and min(slower.values()) > 1)
    equal = learning.at_equal_time
    others = (LOCAL, SGP, "d-psgd", "ad-psgd")
    yield "Fig. 11: the highest score at equal times", "SPL 0.77 after 10 hours (83.1 % of 0.922)", listed(equal, (WAGMA, *others)), above(equal, [WAGMA], others)
    yield "Fig. 11: SGP scores higher than local SGD at equal times", "shown", "the same", above(equal, [SGP], [LOCAL])
    yield ("Fig. 11: AD-PSGD hardly learns (held to: less than half of WAGMA's score)", "0.051", f"{statistics.mean(equal('ad-psgd')):.3f}",
           above(equal, [WAGMA], ["ad-psgd"], factor=2))


def claims(translation, learning):
    by_name = {"translation": translation, "reinforcement": learning}
    speeds = [speed_claim(by_name[workload], claim, other, paper) for workload, claim, other, paper in SPEEDS]
    orders = [(claim, paper, here, holds_or_not(holds)) for claim, paper, here, holds in order_claims(translation, learning)]
    return (table(("WAGMA", "the paper", "held to", "samples/s, here", "verdict", "time to the target, here", "verdict"), speeds) + "\n"
            + table(("claim", "the paper", "here", "verdict"), orders))


def rates_table(runs, workloads):
    rows = []
    for workload, settings in workloads.items():
        for strategy in settings["strategies"]:
            of = sorted((r for r in runs if r["workload"] == workload and r["strategy"] == strategy), key=lambda r: r["rate"])
            cells = []
            for run in of:
                missed, rank = rank_of_rate(run, settings["target"])
                cells.append(f"{run['rate']:g}: " + (f"{rank}", f"not reached ({-rank:.2f})", "diverged")[missed])
            rows.append((workload, f"`{strategy}`", "; ".join(cells)))
    return table(("", "strategy", "rate: updates to the target"), rows)


def page(data, workloads):
    translation, learning = (Runs(data["runs"], name, settings["target"]) for name, settings in workloads.items())
    uneven_table, ceilings = uneven(data)
    tables = ""
    for title, score, runs, name in (("Translation", "Score: share of the words of 320 held-out sentences that are right, the words before each given.", translation, "translation"),
                                     ("Reinforcement learning", "Score: success weighted by path length (SPL) in 300 fixed rooms, as in the paper.", learning, "reinforcement")):
        tables += (f"## {title}\n\n{score} Samples are {'sentences' if name == 'translation' else 'steps'}. *Waited*: share of the workers' time. *At equal time*: of each seed, when its first run ended. "
                   "`nonblocking` takes four mini-batches an update, each a quarter as large.\n\n" + results_table(runs) + "\n")
    return PAGE.format(cores=data["machine"]["cores"], model=data["machine"]["model"], load=data["machine"]["load"], seeds=", ".join(str(s) for s in sorted({r["seed"] for r in data["runs"]})),
                       words_parameters="93 and 7 thousand", uneven=uneven_table, ceilings=ceilings,
                       rates=rates_table(data["rates"], workloads), notes="".join(f"\n{note}\n" for note in data.get("notes", [])), tables=tables.rstrip("\n") + "\n", claims=claims(translation, learning))
