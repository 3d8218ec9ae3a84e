"""Figures 39 and 45: a job of two workers that train a model of 25 MB is asked for eight, and then for three: until it has them, and whether a step is lost; one of three, of 400 MB, is asked for four: how long the three wait for that."""
import json
import os
import subprocess
import time

from measure.losing import wait_until_all_train
from measure.returning import spans_of, steps_of

STRATEGIES = {"allreduce": "allreduce", "wagma": "wagma(group=1,late=skip)", "nonblocking": "nonblocking", "d-psgd": "d-psgd(ring)"}
ELEMENTS = 3_276_800  # Of 8 bytes.
STEP_MS = 100
BEFORE_S, BETWEEN_S, AFTER_S = 2.0, 4.0, 3.0
TRIES = 5
LARGE = {"allreduce": "allreduce", "wagma": "wagma(group=1,sync=20,late=skip)"}
LARGE_ELEMENTS = 100_000_000  # Of 4 bytes.
LARGE_STEP_MS = 2000
LARGE_BEFORE_S, LARGE_AFTER_S = 20.0, 15.0
LARGE_TRIES = 3


def ask_for(bench, directory, workers):
    """When the command was begun, on the machine's steady clock."""
    status = json.loads(subprocess.run([bench.paceline, "status", "--json"], check=True, capture_output=True, text=True).stdout)
    job = next(job["job"] for job in status["jobs"] if job["run_directory"] == directory)
    began = time.monotonic()
    subprocess.run([bench.paceline, "scale", str(job), str(workers)], check=True, capture_output=True)
    return began


def lost_steps(bench, directory):
    """Gradients that workers have given, less those that an average had."""
    shown = subprocess.run([bench.paceline, "replay", directory, "--decisions", "--json"], check=True, capture_output=True, text=True).stdout
    given = had = 0
    for line in map(json.loads, shown.splitlines()):
        given += line["kind"] == "arrived" and line["version"] >= 0
        had += sum("iteration" in one for one in line["contributions"]) if line["kind"] == "sealed" else 0
    return given - had


def begin(bench, strategy, places, first, program, arguments):
    """The run, its directory, and the folder of its workers' output, once all that are there train. `arguments`: of that folder."""
    output = bench.new_directory() + "-output"
    os.mkdir(output)
    directory = bench.new_directory()
    run = subprocess.Popen([bench.paceline, "run", program, "--workers", f"{first}..{places}", "--begin-with", str(first), "--strategy", strategy,
                            "--run-dir", directory, "--", *arguments(output)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=bench.folder)
    wait_until_all_train(output, strategy, first)
    return run, directory, output


def end(run, directory, output):
    """Its result, and what it printed."""
    with open(os.path.join(output, "enough"), "w", encoding="utf-8") as file:
        file.write("0")
    printed, _ = run.communicate(timeout=60)
    with open(os.path.join(directory, "result.json"), encoding="utf-8") as file:
        return json.load(file), printed


def one_scaling(bench, strategy):
    run, directory, output = begin(bench, strategy, 8, 2, bench.program("tests", "integration", "quadratic_worker"),
                                   lambda output: ["updates=1000000", f"sleep_ms=[{STEP_MS}]", f"elements={ELEMENTS}", f"output={output}"])
    time.sleep(BEFORE_S)
    grows = ask_for(bench, directory, 8)
    time.sleep(BETWEEN_S)
    shrinks = ask_for(bench, directory, 3)
    time.sleep(AFTER_S)
    result, printed = end(run, directory, output)
    if run.returncode != 0 or sum(result["joined"].values()) != 6 or sum(result["drained"].values()) != 5:
        raise SystemExit(f"{strategy}: not all came, and went: {printed}")
    spans = spans_of(directory)
    came = [min(begin for name, begin, _ in of if name in ("compute", "abandoned")) for rank, of in spans.items() if rank >= 2]
    went = [max(steps_of(spans[int(rank)])) for rank in result["drained"]]
    values = {"grows": max(came) - grows, "shrinks": max(went) - shrinks}
    if strategy == "allreduce":
        values["lost"] = lost_steps(bench, directory)
    return values


def scaling(bench):
    values = {}
    for name, strategy in STRATEGIES.items():
        found = [one_scaling(bench, strategy) for _ in range(bench.rounds_or(TRIES))]
        for key in found[0]:
            values[f"{name} {key}"] = [one[key] for one in found]
            print(f"{strategy} {key}: {', '.join(f'{one[key]:.2f}' for one in found)}", flush=True)
    return {39: values}


def one_join(bench, strategy):
    """How much longer than before one of the three waited while the fourth came, and how long that took."""
    run, directory, output = begin(bench, strategy, 4, 3, bench.program("tests", "bench", "recovery_worker"),
                                   lambda output: [output, str(LARGE_ELEMENTS), str(LARGE_STEP_MS)])
    time.sleep(LARGE_BEFORE_S)
    asked = ask_for(bench, directory, 4)
    time.sleep(LARGE_AFTER_S)
    result, printed = end(run, directory, output)
    if run.returncode != 0 or sum(result["joined"].values()) != 1:
        raise SystemExit(f"{strategy}: it did not come: {printed}")
    spans = spans_of(directory)
    new, = map(int, result["joined"])
    came = steps_of(spans[new])[0]
    waits = [(end - begin, begin, end) for rank, of in spans.items() if rank != new for name, begin, end in of if name == "wait"]
    longest = lambda of: max((length for length, begin, end in waits if of(begin, end)), default=0.0)
    # Each against as long before, and an average of four against later ones of four.
    took = came - asked
    until = longest(lambda begin, end: asked < end <= came) - longest(lambda begin, end: asked - took < end <= asked)
    with_it = longest(lambda begin, end: begin < came < end) - longest(lambda begin, end: begin > came)
    return max(until, with_it), took


def joining(bench):
    values = {}
    for name, strategy in LARGE.items():
        found = [one_join(bench, strategy) for _ in range(bench.rounds_or(LARGE_TRIES))]
        for key, each in zip(("waits", "until"), zip(*found)):
            values[f"{name} {key}"] = list(each)
            print(f"{strategy} {key}: {', '.join(f'{one:.2f}' for one in each)}", flush=True)
    return {45: values}
