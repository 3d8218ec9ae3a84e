#!/usr/bin/env python3
"""Ray's microbenchmarks by its Python API, for figures.py peers; the same work as `paceline bench NAME...`.

    ray_tasks.py SECONDS NAME...     prints {"name": ..., "per_second": ...} for each
"""
import json
import os
import sys
import time

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray  # noqa: E402

LARGE = 0.25  # Of the largest lots, so much: their rate is the same, and they take long.
PAIRS = max(1, (os.cpu_count() or 1) // 2)  # Servers where there are several.


@ray.remote
def small_value():
    return b"ok"


@ray.remote(num_cpus=0)
class Server:
    def small_value(self):
        return b"ok"


@ray.remote(num_cpus=0)
class CoroutineServer:
    async def small_value(self):
        return b"ok"


@ray.remote(num_cpus=0)
class Client:
    def tasks(self, count):
        return len(ray.get([small_value.remote() for _ in range(count)]))

    def calls(self, servers, of_each):
        return len(ray.get([server.small_value.remote() for server in servers for _ in range(of_each)]))


@ray.remote
def in_turn(servers, calls):
    return len(ray.get([servers[i % len(servers)].small_value.remote() for i in range(calls)]))


# Each makes what it needs and gives a function: a lot of work in that share of its full size -> how many operations it was.

def tasks_sync():
    return lambda _: len([ray.get(small_value.remote())])


def tasks_async(count=1000):
    return lambda share: len(ray.get([small_value.remote() for _ in range(int(count * share))]))


def multi_client_tasks():
    clients = [Client.remote() for _ in range(4)]
    return lambda share: sum(ray.get([client.tasks.remote(int(10_000 * LARGE * share)) for client in clients]))


def calls_sync(kind=Server):
    server = kind.remote()
    return lambda _: len([ray.get(server.small_value.remote())])


def calls_async(kind=Server):
    server = kind.remote()
    return lambda share: len(ray.get([server.small_value.remote() for _ in range(int(1000 * share))]))


def calls_1_n():
    client, servers = Client.remote(), [Server.remote() for _ in range(PAIRS)]
    return lambda share: ray.get(client.calls.remote(servers, int(5000 * LARGE * share)))


def calls_n_n():
    servers = [Server.remote() for _ in range(PAIRS)]
    return lambda share: sum(ray.get([in_turn.remote(servers, int(5000 * LARGE * share)) for _ in range(4)]))


def wait_1k_refs():
    def lot(share):
        waiting = [small_value.remote() for _ in range(int(1000 * share))]
        while waiting:
            _, waiting = ray.wait(waiting)
        return share
    return lot


def many_actors():
    return lambda share: len(ray.get([server.small_value.remote() for server in [Server.remote() for _ in range(max(1, int(40 * share)))]]))


BENCHMARKS = {
    "single_client_tasks_sync": tasks_sync,
    "single_client_tasks_async": tasks_async,
    "multi_client_tasks_async": multi_client_tasks,
    "1_1_actor_calls_sync": calls_sync,
    "1_1_actor_calls_async": calls_async,
    "1_n_actor_calls_async": calls_1_n,
    "n_n_actor_calls_async": calls_n_n,
    "1_1_async_actor_calls_sync": lambda: calls_sync(CoroutineServer),
    "1_1_async_actor_calls_async": lambda: calls_async(CoroutineServer),
    "many_tasks": lambda: tasks_async(int(10_000 * LARGE)),
    "single_client_wait_1k_refs": wait_1k_refs,
    "many_actors": many_actors,
}


def rate(lot, seconds):
    """Operations a second, of lots of full size until the time is up."""
    lot(0.1)  # Workers are there.
    begin, done, passed = time.perf_counter(), 0, 0
    while passed < seconds:
        done += lot(1)
        passed = time.perf_counter() - begin
    return done / passed


def main():
    seconds, names = float(sys.argv[1]), sys.argv[2:]
    ray.init(include_dashboard=False, logging_level="ERROR")
    for name in names:
        print(json.dumps({"name": name, "per_second": rate(BENCHMARKS[name](), seconds)}), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
