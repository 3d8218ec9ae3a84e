"""Figures 11 to 14, 17 and 18: counts and times that programs of the tests print."""
import json
import os
import re
import subprocess
import sys
import time

from measure.bench import output_of
from measure.store import ROOT


def googletest(program, **settings):
    """Tests that were run and tests that failed, by their names, and all that was printed."""
    done = subprocess.run([program], env={**os.environ, **settings}, capture_output=True, text=True)
    finished = re.findall(r"^\[ +(OK|FAILED) +\] (\S+)(?:, where .*)? \(\d+ ms\)$", done.stdout, re.MULTILINE)
    if not finished:
        raise SystemExit(f"{program} ran no tests: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return [name for _, name in finished], [name for how, name in finished if how == "FAILED"], done.stdout


def golden(bench):
    failed = []
    for program in (("tests", "support", "reference", "paceline_reference_test"), ("algorithms", "paceline_algorithms_test")):
        failed += googletest(bench.program(*program))[1]
    return {11: {"failed": [len(failed)]}}


def random_jobs(bench):
    jobs = 10000 if bench.rounds is None else 10 * bench.rounds
    names, failed, _ = googletest(bench.program("tests", "sim", "paceline_sim_reference_test"), PACELINE_RANDOM_JOBS=str(jobs))
    kinds = [name for name in names if "RandomJobsHaveTheSameRowsOnOneAgent" in name]
    return {12: {"jobs": [jobs], "kinds": [len(kinds)], "findings": [len(failed)]}}


def walked(program, suite, prefix):
    """The models that were walked, the states in them, and which of the defects were found."""
    names, failed, printed = googletest(program)
    of_models = [name for name in names if "KeepsItsPromises" in name]
    mutations = [name for name in names if f"/{suite}.IsFound" in name]
    broken = [name for name in failed if name in of_models]
    unseen = [name for name in failed if name in mutations]
    states = sum(int(number) for number in re.findall(r": (\d+) states, \d+ ends", printed))
    return {prefix + "states": [states], prefix + "models": [len(of_models)], prefix + "violations": [len(broken)],
            prefix + "found": [len(mutations) - len(unseen)], prefix + "missed": [len(unseen)]}


def explorer(bench):
    rounds = walked(bench.program("tests", "sim", "paceline_explorer_test"), "Mutated", "")
    mixing = walked(bench.program("tests", "sim", "paceline_mix_explorer_test"), "MixMutated", "mix ")
    return {13: {**rounds, **mixing}}


def cluster_lives(bench):
    """Lives of whole simulated clusters: without jobs, and with jobs of every strategy."""
    lives = 6700 if bench.rounds is None else 10 * bench.rounds
    names, failed, printed = googletest(bench.program("tests", "sim", "paceline_sim_cluster_test"), PACELINE_CLUSTER_LIVES=str(lives), PACELINE_EVERY_MOMENT="1")
    lived = [int(number) for number in re.findall(r"^(\d+) lives, \d+ (?!kills)", printed, re.MULTILINE)]
    jobs = [int(number) for number in re.findall(r"^\d+ lives, (\d+) jobs ended well", printed, re.MULTILINE)]
    kinds = [name for name in names if "TrainingTest.EndsWithOneModel" in name]
    return {33: {"lives": [sum(lived)], "findings": [len(failed)], "strategies": [len(kinds)], "well": [sum(jobs)]}}


def mutations(_bench):
    """Defects in the production code: how many were tried, and how many no test finds. Those that were tried before are not again: delete the
    file for that."""
    file = os.path.join(ROOT, "tests", "mutations", "tried.json")
    command = [sys.executable, "-B", os.path.join(ROOT, "tests", "mutations", "run.py"), "--jobs", str(os.cpu_count()), "--tried", file]
    if subprocess.run(command, check=False).returncode not in (0, 1) or not os.path.exists(file):
        raise SystemExit("mutations: it did not come to its end, see above")
    with open(file, encoding="utf-8") as tried:
        found = [one["found"] for one in json.load(tried).values()]
    return {34: {"defects": [len(found)], "missed": [found.count("")]}}


def scale(bench):
    values = {}
    for workers in (128, 256, 512, 1024):
        begin = time.monotonic()
        simulation = subprocess.Popen([bench.paceline, "simulate", "--strategy", "wagma", "--workers", str(workers), "--steps", "1000",
                                       "--compute", "lognormal(1s,0.3)"], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(simulation.pid, 0)
        if status != 0:
            raise SystemExit(f"scale: paceline simulate with {workers} workers failed")
        values[f"{workers} s"] = [time.monotonic() - begin]
    values["1024 MB"] = [used.ru_maxrss * 1024 / 1e6]  # Of the last one.
    return {14: values}


def recording(bench):
    printed = output_of(bench.program("scheduler", "paceline_record_bench"), "--benchmark_format=json")
    took_ns = {row["name"].rsplit("/", 1)[1]: row["cpu_time"] for row in json.loads(printed)["benchmarks"]}
    return {17: {workers: [100 * took_ns[workers] / 1e6] for workers in ("1", "8", "64")}}


def cells(bench):
    """Suites whose runs on processes, simulations and references are compared with each other."""
    suites = "golden_runs|real_and_simulated|nonblocking_neighbours|decoupled_runs|explained_runs|asynchronous_runs|paceline_sim_reference_test"
    done = subprocess.run(["ctest", "--test-dir", bench.build, "-R", f"^({suites})$"], cwd=ROOT, capture_output=True, text=True)
    found = re.search(r"(\d+) tests failed out of (\d+)", done.stdout)
    if not found or int(found.group(2)) != len(suites.split("|")):
        raise SystemExit(f"cells: ctest did not run all suites: {done.stdout[-2000:]}{done.stderr}")
    return {18: {"failed": [int(found.group(1))]}}
