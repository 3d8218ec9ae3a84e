"""Figure 7: averaging 100 MiB in windows against OpenMPI's allreduce, as it comes and with the best of its settings."""
import os

from measure.bench import TUNED, output_of, spread

BYTES = 100 << 20
HUGE = "huge pages and fewer page faults in its own buffers (GLIBC_TUNABLES)"
ALGORITHMS = {1: "linear", 2: "nonoverlapping", 3: "recursive doubling", 4: "ring", 5: "segmented ring", 6: "Rabenseifner"}
AS_IT_COMES = "as it comes"


def algorithm(number):
    return ("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", str(number))


def settings(cores, ranks):
    """Name -> (mpirun's options, environment): algorithms, binding, huge pages, each with the others as they come."""
    tried = {AS_IT_COMES: ((), {})}
    tried.update({f"algorithm {number} ({name})": (algorithm(number), {}) for number, name in ALGORITHMS.items()})
    tried["shared-memory collectives (coll sm)"] = (("--mca", "coll_sm_priority", "100"), {})
    tried["not bound to cores"] = (("--bind-to", "none"), {})
    if ranks <= cores:
        tried["bound to cores"] = (("--bind-to", "core"), {})
    tried[HUGE] = ((), {"GLIBC_TUNABLES": TUNED["GLIBC_TUNABLES"]})
    return tried


def joined(best):
    """The best algorithm with huge pages, too."""
    (name, (options, _)) = best
    return f"{name}, {HUGE}", (options, {"GLIBC_TUNABLES": TUNED["GLIBC_TUNABLES"]})


def allreduce_s(bench, ranks, in_place, seconds, options=(), environment=None):
    root = ("--allow-run-as-root",) if os.getuid() == 0 else ()
    words = ("in_place",) if in_place else ()
    printed = output_of("mpirun", "--oversubscribe", *root, *options, "-n", str(ranks), bench.program("tests", "bench", "openmpi_allreduce"),
                        str(BYTES), str(seconds), *words, OMP_NUM_THREADS="1", **(environment or {}))
    return float(printed.split()[-1]) / 1e9


def average_s(bench, way, workers, seconds):
    printed = output_of(bench.program("tests", "bench", "average_bench"), f"--benchmark_filter=^average/{way}/workers:{workers}/bytes:{BYTES}/real_time$",
                        f"--benchmark_min_time={seconds}", "--benchmark_format=csv", OMP_NUM_THREADS="1")
    row, = [line for line in printed.splitlines() if line.startswith('"average')]
    return float(row.split(",")[2]) / 1e9


def of_both_ways(bench, ranks, seconds, setting):
    return min(allreduce_s(bench, ranks, in_place, seconds, *setting) for in_place in (False, True))


def averaging(bench, seconds=1.0):
    """Every setting once; then the best of them, the default and ours in turn."""
    values, notes = {}, []
    for p in (2, 4, 8):
        tried = settings(os.cpu_count(), p)
        once = {name: of_both_ways(bench, p, seconds / 2, setting) for name, setting in tried.items()}
        quickest = min(once, key=once.get)
        if HUGE not in quickest:
            name, setting = joined((quickest, tried[quickest]))
            tried[name], once[name] = setting, of_both_ways(bench, p, seconds / 2, setting)
        best = min(once, key=once.get)
        for name, took in sorted(once.items(), key=lambda item: item[1]):
            print(f"  P={p} OpenMPI {name}: {1e3 * took:.1f} ms", flush=True)
        ratios = {"best": [], "default": []}
        for _ in range(bench.rounds_or(5)):
            ours = [average_s(bench, "in_place", p, seconds)]
            theirs = {"best": of_both_ways(bench, p, seconds, tried[best]), "default": of_both_ways(bench, p, seconds, tried[AS_IT_COMES])}
            ours.append(average_s(bench, "flip", p, seconds))
            for name, took in theirs.items():
                ratios[name].append(took / max(ours))
        print(f"averaging P={p}: {spread(ratios['best'])} times quicker than OpenMPI with {best}, {spread(ratios['default'])} than as it comes", flush=True)
        values.update({f"{name} P={p}": samples for name, samples in ratios.items()})
        notes.append(f"P = {p}: {best} ({1e3 * once[best]:.0f} ms; as it comes {1e3 * once[AS_IT_COMES]:.0f} ms, "
                     f"the slowest, {max(once, key=once.get)}, {1e3 * max(once.values()):.0f} ms)")
    bench.notes[7] = "Best of OpenMPI's settings. " + "; ".join(notes) + "."
    return {7: values}
