"""Figure 15: how long `paceline simulate` says that a real run takes, against how long it took."""
import json
import statistics

from measure.bench import EXAMPLE, batches_of_its_own, mean_step, output_of

STRATEGIES = ("allreduce", "local-sgd", "wagma(late=skip)", "nonblocking")
SLEPT = ("sleep_ms=[20,25,22,60]", "updates=60")


def error_of(simulated, real):
    """Percent."""
    return 100 * abs(simulated / real - 1)


def answers(bench, directory, *flags):
    lines = [json.loads(line) for line in output_of(bench.paceline, "simulate", "--from", directory, "--json", *flags).splitlines()]
    return lines[0], lines[1:]


def compare(bench, kind, strategies, run):
    """Largest errors: of fits to the runs themselves, and of what the allreduce run tells of the others, per update."""
    results = {strategy: run(strategy) for strategy in strategies}
    fitted = {strategy: 100 * abs(answers(bench, directory)[0]["error_share"]) for strategy, (_, directory) in results.items()}
    told = {}
    for strategy in strategies[1:]:
        _, (answer,) = answers(bench, results["allreduce"][1], "--strategy", strategy)
        told[strategy] = error_of(answer["step_s"], mean_step(results[strategy][0]))
    for name, errors in (("fitted", fitted), ("told from allreduce", told)):
        print(f"  {kind}, {name}: " + ", ".join(f"{strategy} {error:.1f} %" for strategy, error in errors.items()), flush=True)
    return fitted, told


def prediction(bench):
    """Of the main job, four workers on the cores there are, one of them 4x slower; and of steps that sleep, which share no core."""
    def train(seed):
        return lambda strategy: bench.run("--workers", "4", "--slow", "3:4x", "--epochs", "1", "--target", "none", "--seed", str(seed),
                                          "--strategy", strategy, *batches_of_its_own(strategy), script=EXAMPLE)

    def sleep(strategy):
        return bench.run("--workers", "4", "--strategy", strategy, script=bench.program("tests", "integration", "quadratic_worker"), arguments=SLEPT)
    values, by_strategy = {}, {}
    for seed in range(1, bench.rounds_or(3) + 1):
        for name, errors in zip(("fit trained", "told trained"), compare(bench, "trained", STRATEGIES, train(seed))):
            values.setdefault(name, []).append(max(errors.values()))
            for strategy, error in errors.items():
                by_strategy.setdefault((name, strategy), []).append(error)
        slept = compare(bench, "slept", ("allreduce", "local-sgd", "wagma(late=skip)", "nonblocking(batches=1)"), sleep)
        for name, errors in zip(("fit slept", "told slept"), slept):
            values.setdefault(name, []).append(max(errors.values()))
    words = {"fit trained": "fitted", "told trained": "told from allreduce"}
    bench.notes[15] = "The main job, errors: " + "; ".join(
        f"`{strategy}` {words[name]} {statistics.median(errors):.1f} %" for (name, strategy), errors in by_strategy.items()) + "."
    return {15: values}
