"""Figure 37: what this build takes, times what another one took that was made of an earlier commit (PACELINE_BEFORE), in turn."""
import os
import re
import statistics

from measure import averaging, startup
from measure.bench import EXAMPLE, MAIN_JOB, Bench, batches_of_its_own, mean_step, output_of, spread
from measure.cluster import Cluster, status_times
from measure.loops import BATCH, as_job

STRATEGIES = ("allreduce", "local-sgd(period=4)", "wagma(late=skip)", "nonblocking", "d-psgd", "ad-psgd", "server")


def step(model, steps, processes, *flags):
    """Seconds of a step of training_loop.cpp."""
    return lambda bench: BATCH * processes / as_job(bench, model, steps, processes, *flags)


def main_job(strategy):
    def took(bench):
        flags = batches_of_its_own(strategy, "--workers", "4", "--slow", "3:4x", "--strategy", strategy, "--seed", "1", "--epochs", "1", "--target", "none")
        return mean_step(bench.run(*flags, script=MAIN_JOB, arguments=("0.1",))[0])
    return took


def fork_8(bench):
    (times,) = (times for key, times in startup.fork(bench)[8].items() if key.endswith(" 8"))
    return statistics.median(times)


def status(bench):
    with Cluster(bench, 1) as cluster:
        return statistics.median(status_times(cluster, 20)[0])


# Key -> seconds, the fewer the better.
PAIRS = {
    **{f"nine {strategy}": step("nine", 20000, 2, "--strategy", strategy) for strategy in STRATEGIES},
    "nine allreduce P=4": step("nine", 20000, 4),
    **{f"example P={p}": step("small", 400, p) for p in (1, 2, 4)},
    **{f"main {strategy}": main_job(strategy) for strategy in ("allreduce", "nonblocking", "wagma(late=skip)")},
    "averaging": lambda bench: max(averaging.average_s(bench, way, 4, 0.5) for way in ("in_place", "flip")),
    "fork 8": fork_8,
    "start": lambda bench: startup.first_step(bench, EXAMPLE),
    "status": status,
}


def of_earlier(took, build):
    """What was wrong in it and has been mended since is no measurement: it is asked again, but not for ever."""
    for _ in range(3):
        try:
            return took(build)
        except SystemExit as failure:
            print(f"  the earlier build failed, and is asked again: {failure}", flush=True)
    return took(build)


def commit_of(build):
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        source = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.+)$", file.read(), re.MULTILINE)[1]
    return output_of("git", "-C", source, "rev-parse", "--short", "HEAD").strip()


def before(bench):
    other = os.environ.get("PACELINE_BEFORE")
    if not other:
        raise SystemExit("figures.py: name a release build of the earlier commit: PACELINE_BEFORE=DIR tests/bench/figures.py BUILD before")
    this, earlier = Bench(bench.build, 1), Bench(other, 1)
    bench.notes[37] = f"The earlier build is of commit {commit_of(other)}."
    for build in (this, earlier):
        startup.first_step(build, EXAMPLE)  # Compiled for both.
    values = {}
    for key, took in PAIRS.items():
        values[key] = []
        for number in range(bench.rounds_or(9)):
            if number % 2:
                then = of_earlier(took, earlier)
                now = took(this)
            else:
                now = took(this)
                then = of_earlier(took, earlier)
            values[key].append(now / then)
        print(f"  {key}: {spread(values[key])}", flush=True)
    return {37: values}
