#!/usr/bin/env python3
"""The figures of docs/benchmarks.md: measures them, and holds the page against what was measured.

    tests/bench/figures.py BUILD NAME... [--record] [--rounds N] [--minutes M]      BUILD: a release build, e.g. build/release
    tests/bench/figures.py --bounds     every figure against its bound; exit status 1 if the page does not say what the data says
    tests/bench/figures.py --page       writes the page's tables from the data
"""
import argparse
import statistics
import sys

from measure import actors, averaging, before, bounds, building, calls, changing, cluster, crowd, freezing, kills, ledgers, links, loops, losing, main_job, page, peers, prediction, programs, rates, returning, scaling, startup
from measure.bench import Bench
from measure.store import Store

# Each gives {figure: {key: samples}}.
MEASUREMENTS = {
    "rates": rates.measure, "always_slow": main_job.always_slow, "random_delay": main_job.random_delay, "frozen": freezing.frozen,
    "wagma_frozen": freezing.wagma_frozen, "frozen_agent": freezing.frozen_agent, "node_killed": losing.node_killed, "host_cut_off": losing.host_cut_off, "ddp": loops.ddp, "plain": loops.plain, "small_update": loops.small_update, "nine": loops.nine, "channel": calls.channel, "messages": calls.messages, "beside_flood": cluster.beside_flood, "flood": calls.flood, "calls": cluster.calls, "heads": cluster.heads,
    "link": links.link, "peers": peers.peers, "actors": actors.actors,
    "averaging": averaging.averaging, "fork": startup.fork, "pipeline": startup.pipeline, "start": startup.start, "idle": cluster.idle, "golden": programs.golden,
    "random_jobs": programs.random_jobs, "explorer": programs.explorer, "cluster_lives": programs.cluster_lives, "mutations": programs.mutations, "scale": programs.scale, "recording": programs.recording,
    "cells": programs.cells, "prediction": prediction.prediction,
    "building": building.building, "bare": building.bare, "checking": building.checking,
    "checked": building.checked, "memory": building.memory, "before": before.before,
    "returning": returning.returning, "node_returns": returning.node_returns, "scaling": scaling.scaling, "joining": scaling.joining, "ledgers": ledgers.ledgers, "changing": changing.changing,
    "kills": kills.kills, "crowd": crowd.crowd,
}


def say(values):
    for number, samples_by_key in values.items():
        for key, samples in samples_by_key.items():
            print(f"figure {number} {key}: {statistics.median(samples):.3f} ({min(samples):.3f} to {max(samples):.3f}, {len(samples)})", flush=True)


def measure(bench, name):
    """What is done stays, whatever becomes of the next."""
    print(f"== {name}", flush=True)
    values = MEASUREMENTS[name](bench)
    say(values)
    if not bench.record:
        return
    store = Store()
    for number, samples in values.items():
        store.record(number, samples)
    store.data["notes"].update({str(number): text for number, text in bench.notes.items()})
    store.save()
    page.write(store)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASUREMENTS))
    parser.add_argument("--record", action="store_true", help="keep it in docs/benchmarks.json, and write the page")
    parser.add_argument("--rounds", type=int, help="instead of the measurement's own number: to try it out")
    parser.add_argument("--minutes", type=float, help="when `rates` stops; the next call goes on")
    parser.add_argument("--bounds", action="store_true")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.page:
        page.write(Store())
    if given.bounds:
        sys.exit(bounds.check(Store()))
    if given.page:
        return
    if not given.build or not given.names or not set(given.names) <= set(MEASUREMENTS):
        parser.error(f"a build and names of: {', '.join(MEASUREMENTS)}")
    bench = Bench(given.build, given.rounds, given.minutes, given.record)
    for name in given.names:
        measure(bench, name)


if __name__ == "__main__":
    main()
