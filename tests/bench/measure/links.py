"""Figure 27: what a link carries beside a bare TCP stream, and how long its heartbeats take meanwhile."""
from measure.bench import repetitions

SIZES = {1 << 16: "64 KiB", 1 << 20: "1 MiB", 1 << 24: "16 MiB", 1 << 26: "64 MiB", 1 << 28: "256 MiB", 1 << 30: "1 GiB", 1 << 32: "4 GiB"}


def link(bench):
    """Both in one run, interleaved at random; rates repetition by repetition, of a heartbeat the worst of each."""
    times, heartbeats = {}, {}
    for row in repetitions(bench.program("runtime", "link", "paceline_link_bench"), bench.rounds_or(5), PACELINE_BENCH_LARGE="1"):
        what, size = row["run_name"].split("/")[:2]
        turn = row["repetition_index"]
        times.setdefault((what, int(size.removeprefix("bytes:"))), {})[turn] = row["real_time"]
        heartbeats[turn] = max(heartbeats.get(turn, 0), row.get("heartbeat_ms", 0))
    values = {"heartbeat": list(heartbeats.values())}
    for size, name in SIZES.items():
        bare, ours = times.get(("bare_tcp", size), {}), times.get(("link", size), {})
        if both := sorted(bare.keys() & ours.keys()):  # None: not enough memory.
            values[name] = [bare[turn] / ours[turn] for turn in both]
    return {27: values}
