"""Figure 39: a job of two workers that train a model of 25 MB is asked for eight, and then for three: until it has them, and whether a step is lost."""
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


def one_scaling(bench, strategy):
    output = bench.new_directory() + "-output"
    os.mkdir(output)
    directory = bench.new_directory()
    run = subprocess.Popen([bench.paceline, "run", bench.program("tests", "integration", "quadratic_worker"), "--workers", "2..8", "--begin-with", "2",
                            "--strategy", strategy, "--run-dir", directory, "--", "updates=1000000", f"sleep_ms=[{STEP_MS}]", f"elements={ELEMENTS}",
                            f"output={output}"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=bench.folder)
    wait_until_all_train(output, strategy, 2)
    time.sleep(BEFORE_S)
    grows = ask_for(bench, directory, 8)
    time.sleep(BETWEEN_S)
    shrinks = ask_for(bench, directory, 3)
    time.sleep(AFTER_S)
    open(os.path.join(output, "enough"), "w", encoding="utf-8").close()
    printed, _ = run.communicate(timeout=60)
    with open(os.path.join(directory, "result.json"), encoding="utf-8") as file:
        result = json.load(file)
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
