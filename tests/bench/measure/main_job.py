"""Figures 1 to 3: the main job with a slow worker, and with delays."""
from measure import rates
from measure.bench import MAIN_JOB, batches_of_its_own, mean_step, spread

SKIP = "wagma(late=skip)"


def rates_to_take(strategies):
    """Each strategy's best, where the grid has been measured; else the example's for all. With the prefix of figure 2's values."""
    best = {strategy: rates.best_rate(rates.read(), strategy) for strategy in strategies}
    return ("best", best) if all(best.values()) else ("0.1", dict.fromkeys(strategies, 0.1))


def always_slow(bench):
    """One of 4 workers 4x slower: time per step and time to 88 %, paired by seed, each evaluated at fixed numbers of samples."""
    strategies = ("allreduce", "nonblocking", SKIP)
    prefix, rate = rates_to_take(strategies)
    results = {strategy: [] for strategy in strategies}
    for seed in range(1, bench.rounds_or(5) + 1):
        for strategy in strategies:
            flags = batches_of_its_own(strategy, "--workers", "4", "--slow", "3:4x", "--strategy", strategy, "--seed", str(seed))
            result, _ = bench.run(*flags, script=MAIN_JOB, arguments=(str(rate[strategy]),))
            results[strategy].append(result)
            print(f"  seed {seed} {strategy} at {rate[strategy]}: {mean_step(result) * 1e3:.1f} ms a step, target after {result['time_to_target_s']} s and "
                  f"{result['updates']} updates, accuracy {result['test_accuracy']}", flush=True)
    steps, times = {}, {}
    for strategy in strategies[1:]:
        pairs = list(zip(results["allreduce"], results[strategy]))
        steps[strategy] = [mean_step(a) / mean_step(b) for a, b in pairs]
        steps[f"median {strategy}"] = [a["step_s"] / b["step_s"] for a, b in pairs]
        reached = [a["time_to_target_s"] / b["time_to_target_s"] for a, b in pairs if a["time_to_target_s"] and b["time_to_target_s"]]
        print(f"always_slow {strategy}: time per step {spread(steps[strategy])} times shorter; time to 88 % {spread(reached)} times sooner "
              f"({len(reached)} of {len(pairs)} pairs reached it)")
        if len(reached) == len(pairs):
            times[f"{prefix} {strategy}"] = reached
    return {1: steps, 2: times}


def random_delay(bench):
    """Each step one random worker sleeps 5 mean step times (of a run without delays); who and in which order is drawn from the seed."""
    common = ("--workers", "4", "--epochs", "1", "--target", "none")
    base, _ = bench.run("--strategy", "allreduce", *batches_of_its_own("allreduce", *common))
    delay = f"1:{5 * mean_step(base) * 1e3:.0f}ms"
    print(f"  mean step {mean_step(base) * 1e3:.1f} ms, delay {delay}", flush=True)
    strategies = ("allreduce", "wagma(sync=20)", SKIP, "nonblocking")
    steps = {strategy: [] for strategy in strategies}
    for seed in range(1, bench.rounds_or(5) + 1):
        for strategy in strategies:
            result, _ = bench.run("--strategy", strategy, "--straggle", delay, "--seed", str(seed), *batches_of_its_own(strategy, *common))
            steps[strategy].append(mean_step(result))
            print(f"  seed {seed} {strategy}: {steps[strategy][-1] * 1e3:.1f} ms a step", flush=True)
    return {3: {strategy: [a / b for a, b in zip(steps["allreduce"], steps[strategy])] for strategy in strategies[1:]}}
