"""Figures 8 to 10 and 21: how long it takes to begin, what an idle cluster costs, and how fast actors pass on tensors."""
import json
import os
import time

from measure.bench import EXAMPLE, interrupt, output_of


def fork(bench):
    """Workers with libtorch loaded, from create() until each has answered: medians of 20 rounds, once a round of ours."""
    version = bench.torch_version()
    values = {f"{version} 1": [], f"{version} 8": []}
    for _ in range(bench.rounds_or(12)):
        printed = output_of(bench.paceline, "run", bench.program("tests", "bench", "actor_start"))
        for line in printed.splitlines():
            if "heard of" in line:
                values[f"{version} {line.split()[0]}"].append(float(line.split()[-2]))
    return {8: values}


def pipeline(bench):
    """MiB/s of tensors of 10 MiB that came back from the third of three actors."""
    values = {"1": [], "4": []}
    for _ in range(bench.rounds_or(9)):
        for line in output_of(bench.paceline, "run", bench.program("tests", "bench", "tensor_pipeline")).splitlines():
            values[line.split()[0]].append(float(line.split()[-2]))
    return {21: values}


def first_step(bench, script):
    """Seconds from the start of `paceline run` to the job's first step."""
    begin = time.monotonic()
    job = bench.start(script, "--workers", "4", "--epochs", "1", "--target", "none")
    took = None
    for line in job.stdout:
        if json.loads(line).get("event") == "first_step":
            took = time.monotonic() - begin
            break
    interrupt(job)
    return took


def start(bench):
    unchanged, edited = [], []
    first_step(bench, EXAMPLE)
    for k in range(bench.rounds_or(5)):
        unchanged.append(first_step(bench, EXAMPLE))
        copy = os.path.join(bench.folder, "edited.cpp")
        with open(EXAMPLE, encoding="utf-8") as source, open(copy, "w", encoding="utf-8") as target:
            target.write(source.read() + f"// edit {k} {time.time()}\n")
        edited.append(first_step(bench, copy))
    return {9: {"unchanged": unchanged, "edited": edited}}
