"""What the lines that workers note (tests/bench/peers/recovery/recovery_job.py) say of kills. Nothing is run here."""
import statistics
from dataclasses import dataclass

AFTER_S = 1.0  # What a kill leaves behind is looked for so long after the job was whole again.


@dataclass(frozen=True)
class Kill:
    time: float
    victim: int
    pid: int


@dataclass(frozen=True)
class Step:
    """One that a worker did."""
    worker: int
    pid: int
    step: int
    time: float


class History:
    """What all workers did: steps whose samples are in the model in the end (`kept`), and samples that were computed for nothing or
    are computed again (`lost`, as (time, samples))."""

    def __init__(self, lines):
        self.kept, self.lost = {}, []
        for worker in sorted({line["worker"] for line in lines}):
            self.kept[worker] = self.read(worker, [line for line in lines if line["worker"] == worker])

    def read(self, worker, lines):
        kept, computed = [], None
        for line in sorted(lines, key=lambda line: line["time"]):
            if line["event"] == "computed":
                if computed:
                    self.lost.append((computed["time"], computed["samples"]))
                computed = line
                while kept and kept[-1].pid != line["pid"] and kept[-1].step >= line["step"]:  # It is done again.
                    self.lost.append((kept.pop().time, line["samples"]))
            elif line["samples"]:
                kept.append(Step(worker, line["pid"], line["step"], line["time"]))
                computed = None
        return kept

    def back(self, kill):
        """The first step of the process that came in the place of the killed one."""
        return next(step for step in self.kept[kill.victim] if step.time > kill.time and step.pid != kill.pid)

    def whole(self, kill):
        """When all have done a step since then."""
        back = self.back(kill).time
        return max(next(step.time for step in steps if step.time >= back) for steps in self.kept.values())


def gaps(steps):
    return [(b.time - a.time, a.time, b.time) for a, b in zip(steps, steps[1:])]


def figures(lines, kills, begin):
    """Of each kill what the page says; and the mean and the median step of the time in which nothing happened, of which `begin` is the first."""
    history = History(lines)
    wholes = [history.whole(kill) for kill in kills]
    quiet = [(since, kill.time) for since, kill in zip([begin, *(whole + AFTER_S for whole in wholes)], kills)]
    steps = [length for of in history.kept.values() for length, a, b in gaps(of) if any(since <= a and b <= until for since, until in quiet)]
    mean, median = statistics.mean(steps), statistics.median(steps)
    rows = []
    for i, (kill, whole) in enumerate(zip(kills, wholes)):
        since = wholes[i - 1] if i else begin
        back = history.back(kill).time
        longest = max(length for worker, of in history.kept.items() if worker != kill.victim for length, a, b in gaps(of) if b > kill.time and a < whole)
        rows.append({"victim": kill.victim, "back_s": round(back - kill.time, 3), "longest_s": round(longest, 3), "longest_steps": round(longest / median, 2),
                     "lost_s": round(lost_time(history, kill, whole, mean), 3),
                     "lost_samples": sum(samples for time, samples in history.lost if since < time <= whole)})
    return rows, {"mean_step_s": round(mean, 4), "median_step_s": round(median, 4)}


def lost_time(history, kill, whole, mean):
    """Of the whole job, in seconds: what its workers took from the last step before the kill to one after it was whole again, less
    what the steps that they did meanwhile take."""
    lost = 0.0
    for steps in history.kept.values():
        first = max(i for i, step in enumerate(steps) if step.time <= kill.time)
        last = next(i for i, step in enumerate(steps) if step.time >= whole + AFTER_S)
        lost += steps[last].time - steps[first].time - (last - first) * mean
    return lost / len(history.kept)
