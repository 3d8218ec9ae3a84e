"""The page docs/recovery.md from the jobs of tests/bench/recovery.py. Nothing is run."""
import math
import statistics

from recovery_lines import AFTER_S
from recovery_systems import HEARTBEAT_MS, JOIN_MS, SYSTEMS, TICK_MS, WORKERS

ENOUGH = 20  # Kills of a row.
BATCH, COMPUTING_S = 32, 0.1  # As in tests/bench/peers/recovery/recovery_job.py.

PAGE = """# What a killed worker costs

One worker of four is killed, again and again, under Paceline and under three others: [torchft](https://github.com/pytorch/torchft), [torchrun](https://docs.pytorch.org/docs/stable/elastic/run.html) with DDP, and [Ray Train](https://docs.ray.io/en/latest/train/train.html). The same job and the same kills on one machine: how long until a worker is back, how long the others stand, and what was computed for nothing.

{table}
Cells are *p50 / p99* over the kills of their row. Of so few kills p99 is the worst.{few}

- *Back*: from the kill until the process in the dead one's place has done a step whose samples are in the model.
- *The others' longest step*: of the workers that were not killed, the longest time from one step done to the next, from the kill until all have done a step again; in seconds, and times the median step of the undisturbed job. Where all are started again it is the time until the others are there, too.
- *Lost time*: of the whole job. What a worker took from its last step before the kill that stays in the model to the first that ends at least {after:g} s after all take part again, less what the steps that it did in between take when nothing happens (their mean); the mean over the workers. Where little is lost the noise of steps can make it less than nothing. So four seconds without one of four are a second lost. It holds what the others lose since a process that starts takes their cores.
- *Lost samples*: computed, and then in no model, or computed again. A worker's mini-batch has {batch} samples, a step of all four {all_samples}. What the dead one was computing when it was killed counts for nobody.

## How to read it

- **They are for different things.** torchft, torchrun and Ray Train run on many machines and on GPUs, and outlive the loss of a machine. Paceline runs on one machine, on CPUs; its workers are forked from a process that has the program and libtorch loaded, and the state is copied through memory. Most of the difference comes from that, and a worker on another machine would have neither.
- **Most of *back* is the start of a Python process.** One that has torch and an optimiser has taken {import_s:.1f} s of processor time here; torch is PyPI's, with CUDA, since its build for CPUs is not on PyPI. torchrun and Ray Train start four at once, on {cores} cores. With a core for each worker all of these rows would be shorter, and Paceline's little.
- **Under torchft the others do not wait for who comes back.** They stand until the dead one's heartbeat is missed and those that are left have met again, and give up a step or two of all for it; of *back* about a third is lost, not all. By design it is the nearest to what Paceline does. The step in which a new worker gets its state counts without that worker's samples.
- **torchrun and Ray Train start all workers again**, which is what they are for: simple, and right for any script. Their lost samples follow from how often they checkpoint, which here is as often as one can in memory; with a checkpoint every hour half an hour is lost.
- **Under Paceline one process starts, too**, but it has nothing to load, and the others hold for part of a step while it gets a state. Its own ledger, which also counts what the dead worker was computing and what nobody read in its place while it was away, says: {ledger}.

## What did not come back

Two ways that are the first ones to take did not outlive a kill here, and others were measured instead:

- torchft's `DistributedDataParallel` over gloo: who dies within an average ends the others, too, whose communication hook fails with an `AssertionError`; all begin again, with the model of the beginning where there is no checkpoint. In 10 of 11 kills that were tried by hand all four began again; the logs of the last four, which were kept, say that it was this. Measured is `Manager.allreduce` after the backward pass, and the optimiser's wrapper, which give up the step and go on.
- torchrun as it comes, with torch {torch}: the workers that it started again did not come together within two minutes (tried once): they tried to reach ports on which nobody listened any more, as it looks the dead ones' addresses in the store that torchrun keeps for all of them. Measured is `TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1`, with which each start has a store of its own.

{stuck}## How it was measured

The job is a vector of 6.25 million float32 (25 MB) whose gradient costs next to nothing, plain SGD, four workers, a mini-batch of {batch} samples and {computing:g} s of sleep a step for computing, so that the number of cores matters little while training goes on; averaging is real. Each worker notes when it has computed on a mini-batch, and when the step with it is done. All figures follow from these lines (`tests/bench/recovery_lines.py`). A kill is SIGKILL to the process of one worker, both drawn from a seed, {calm:g} to {calm_end:g} s after all take part again. Jobs of up to {kills} kills, the systems in turn, rounds: {rounds}.

On {cores} cores ({model}), {memory} GB, {dates}; the load when the jobs began was {low:.1f} to {high:.1f}. Paceline {paceline}, Python {python}, torch {torch}, torchft {torchft}, Ray {ray}. One thread a worker for mathematics.
{notes}
| | settings |
|---|---|
| Paceline | `--restarts` high enough, else as it comes |
| torchft | four groups of one worker, each under a torchrun of its own that starts it again (`torchrun --monitor-interval 0.1`); quorum while computing (its default). Lighthouse: who has no heartbeat for {heartbeat:,} ms is dead (5,000 as it comes), who is late is waited for {join:,} ms (60,000), it looks every {tick} ms (100) |
| torchrun | `torchrun --standalone --monitor-interval 0.1`, with as many restarts as are needed; a checkpoint in memory after every step, written beside the next one |
| Ray Train | `max_failures=-1`, `RAY_TRAIN_HEALTH_CHECK_INTERVAL_S=0.1` (2 as it comes), `TORCH_PROCESS_GROUP_SHUTDOWN_TIMEOUT_S=1` (30), `RAY_worker_niceness=0` (15: beside others its workers would hardly run), two CPUs for it to share, since it starts a spare process for each; a checkpoint in memory every 10 steps by `ray.train.report`, since one every step made a step twice as long |

These suit a quick return on one machine. A lighthouse that is so impatient would be wrong about a worker whose network stutters.

Changed after looking: torchft's lighthouse first had 1,000 and 2,000 ms, under which the others stood for 3 s; Ray's workers first had Ray's own niceness, and came back after a minute beside other builds; and there were the two ways above that did not outlive a kill.

## Again

```
tests/bench/peers/recovery/setup.sh DIR                     # the others, once, into a throw-away folder: 6 GB, 3 minutes
rm docs/results/recovery.json                               # what is kept is not measured again
tests/bench/recovery.py build/release --peers DIR           # {minutes} minutes; ended and called again it goes on
tests/bench/recovery.py --load docs/results/recovery.json   # this page from what was measured
```

It needs a release build and 1 GB of `/dev/shm`. `recovery.py --only torchft` measures some of them, `recovery.py --logs FOLDER` keeps what they printed. What was measured is in [recovery.json](results/recovery.json); a test compares it with this page.
"""

COLUMNS = (("back", "back_s", 2), ("the others' longest step", "longest_s", 2), ("times their median step", "longest_steps", 1), ("lost time", "lost_s", 2),
           ("lost samples", "lost_samples", 0))


def quantile(values, share):
    """The smallest that so large a share of the values does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def cell(values, digits, unit):
    return f"{quantile(values, 0.5):.{digits}f} / {quantile(values, 0.99):.{digits}f}{unit}"


def row(name, jobs):
    kills = [kill for job in jobs for kill in job["kills"]]
    stuck = sum("stuck" in job for job in jobs)
    number = f"{len(kills)}" + (f", and {stuck} after which it was over" if stuck else "")
    step = f"{1000 * statistics.median(job['median_step_s'] for job in jobs if job['kills']):.0f} ms"
    return [name, number, step, *(cell([kill[key] for kill in kills], digits, " s" if key.endswith("_s") else "×" if key.endswith("steps") else "") for _, key, digits in COLUMNS)]


def table(raw):
    rows = [("", "kills", "median step", *(title for title, _, _ in COLUMNS))]
    rows.append(("---",) * len(rows[0]))
    for system in SYSTEMS:
        jobs = [job for job in raw["jobs"] if job["system"] == system.name]
        if jobs:
            version = raw["versions"].get(system.version, "")
            rows.append(row(f"{system.name} {version}".strip(), jobs))
    return "".join("| " + " | ".join(cells) + " |\n" for cells in rows)


def ledger_text(raw):
    """What Paceline itself says became of samples: lost ones are none that its workers noted as computed."""
    parts = []
    for system in SYSTEMS:
        jobs = [job for job in raw["jobs"] if job["system"] == system.name and "ledger" in job]
        if jobs:
            kills = sum(len(job["kills"]) for job in jobs)
            sums = {fate: sum(job["ledger"][fate] for job in jobs) for fate in ("committed", "lost", "late", "twice")}
            parts.append(f"{system.name}: {sums['committed']:,} committed, {sums['lost']:,} lost, {sums['late']:,} late, {sums['twice']:,} twice over {kills} kills")
    return "; ".join(parts)


def few_text(jobs):
    """Where a row has not enough kills."""
    numbers = {system.name: sum(len(job["kills"]) + ("stuck" in job) for job in jobs if job["system"] == system.name) for system in SYSTEMS}
    few = [name for name, number in numbers.items() if number < ENOUGH]
    return f" **Fewer than {ENOUGH} kills: {'all rows' if len(few) == len(SYSTEMS) else ', '.join(few)}.**" if few else ""


def stuck_text(jobs):
    stuck = [job["stuck"] for job in jobs if "stuck" in job]
    return "".join(f"- {text}; the job was over.\n" for text in stuck) + ("\n" if stuck else "")


def page(raw):
    jobs, machine, versions = raw["jobs"], raw["machine"], raw["versions"]
    loads = [job["load"] for job in jobs]
    return PAGE.format(table=table(raw), after=AFTER_S, batch=BATCH, all_samples=WORKERS * BATCH, computing=COMPUTING_S, import_s=raw["import_s"], ledger=ledger_text(raw),
                       stuck=stuck_text(jobs), few=few_text(jobs), calm=raw["calm_s"][0], calm_end=raw["calm_s"][1], rounds=max(job["round"] for job in jobs) + 1,
                       kills=max(len(job["kills"]) for job in jobs), cores=machine["cores"], model=machine["model"], memory=machine["memory_gb"],
                       dates=" and ".join(sorted({job["date"] for job in jobs})), low=min(loads), high=max(loads), heartbeat=HEARTBEAT_MS, join=JOIN_MS, tick=TICK_MS,
                       notes="".join(f"\n{note}\n" for note in raw["notes"]), minutes=raw["minutes"],
                       **{name.lower(): version for name, version in versions.items()})
