"""Figure 41: the strategy of a job of four workers that train a model of 25 MB is changed while it runs: how long they are held, and whether an update is lost."""
import json
import os
import subprocess
import time

from measure.losing import wait_until_all_train
from measure.returning import ELEMENTS, STEP_MS

CHAIN = ("allreduce", "wagma(group=2,late=skip)", "nonblocking(batches=2)", "server(async)", "d-psgd(ring)", "local-sgd(period=2)", "allreduce")
BEFORE_S, BETWEEN_S = 2.0, 2.5
TRIES = 5


def job_of(bench, directory):
    status = json.loads(subprocess.run([bench.paceline, "status", "--json"], check=True, capture_output=True, text=True).stdout)
    return next(job["job"] for job in status["jobs"] if job["run_directory"] == directory)


def begun_in(directory):
    """Rank -> [(update, when it was begun, in seconds of the machine's steady clock)]."""
    with open(os.path.join(directory, "trace.json"), encoding="utf-8") as file:
        trace = json.load(file)
    begun = {}
    for event in trace if isinstance(trace, list) else trace["traceEvents"]:
        if event.get("ph") == "X" and event["tid"] > 0 and event["name"] in ("compute", "abandoned"):
            begun.setdefault(event["tid"] - 1, []).append((event["args"]["update"], event["ts"] / 1e6))
    return begun


def wrong_updates(output, changes):
    """Of the last leg, an allreduce: updates that a worker has not done, or twice."""
    wrong = 0
    for rank in range(4):
        with open(os.path.join(output, f"worker-{rank}.jsonl"), encoding="utf-8") as file:
            steps = [line["update"] for line in map(json.loads, file) if line.get("event") == "step"]
        last = [update for update in steps if update >= changes[-1]["update"]]
        wrong += len(last) - len(set(last)) + (last[-1] - changes[-1]["update"] + 1 - len(set(last)))
    return wrong


def one_run(bench):
    output = bench.new_directory() + "-output"
    os.mkdir(output)
    directory = bench.new_directory()
    run = subprocess.Popen([bench.paceline, "run", bench.program("tests", "integration", "quadratic_worker"), "--workers", "4", "--strategy", CHAIN[0],
                            "--run-dir", directory, "--", "updates=1000000", f"sleep_ms=[{STEP_MS}]", f"elements={ELEMENTS}", f"output={output}",
                            "goes_on_writing=true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=bench.folder)
    wait_until_all_train(output, CHAIN[0])
    time.sleep(BEFORE_S)
    job, asked = str(job_of(bench, directory)), []
    for strategy in CHAIN[1:]:
        asked.append(time.monotonic())
        subprocess.run([bench.paceline, "set", job, "--strategy", strategy], check=True, capture_output=True)
        time.sleep(BETWEEN_S)
    open(os.path.join(output, "enough"), "w", encoding="utf-8").close()
    printed, _ = run.communicate(timeout=60)
    with open(os.path.join(directory, "result.json"), encoding="utf-8") as file:
        changes = json.load(file).get("changes", [])
    if run.returncode != 0 or [change["strategy"] for change in changes] != list(CHAIN[1:]):
        raise SystemExit(f"not all changes were made: {printed}")
    begun = begun_in(directory)
    later = [max(min(begin for update, begin in of if update >= change["update"]) for of in begun.values()) - at for at, change in zip(asked, changes)]
    return {"within": max(later), "held": max(change["after_s"] for change in changes), "wrong": wrong_updates(output, changes)}


def changing(bench):
    found = [one_run(bench) for _ in range(bench.rounds_or(TRIES))]
    for key in found[0]:
        print(f"{key}: {', '.join(f'{one[key]:.3f}' for one in found)}", flush=True)
    return {41: {key: [one[key] for one in found] for key in found[0]}}
