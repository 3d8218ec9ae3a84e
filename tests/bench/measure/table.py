"""The figures of docs/benchmarks.md: what each is, what it is held against, which command measures it and how long that takes."""
import dataclasses

COMPARISONS = {"≥": lambda measured, bound: measured >= bound, "≤": lambda measured, bound: measured <= bound,
               "<": lambda measured, bound: measured < bound}


@dataclasses.dataclass(frozen=True)
class Value:
    """One number of a figure: the median of its rounds is held against the bound. Without a bound it stands beside the others."""
    key: str
    label: str
    comparison: str = ""
    bound: float = 0
    unit: str = "×"
    digits: int = 2

    def number(self, measured):
        return f"{measured:,.{self.digits}f}"

    def with_unit(self, number):
        return number + (self.unit if self.unit in ("×", "") else " " + self.unit)

    def text(self, measured):
        return self.with_unit(self.number(measured))

    def verdict(self, measured):
        """'holds', 'missed', 'not measured', or '' without a bound."""
        if measured is None:
            return "not measured"
        if not self.comparison:
            return ""
        return "holds" if COMPARISONS[self.comparison](measured["median"], self.bound) else "missed"

    def bound_text(self):
        return f"{self.comparison} {self.with_unit(f'{self.bound:,g}')}" if self.comparison else ""


@dataclasses.dataclass(frozen=True)
class Figure:
    number: int
    what: str
    command: str  # A word of `figures.py BUILD WORD`.
    values: tuple
    minutes: float  # What the command takes on two quiet cores, estimated.


def both(comparison, bound, *names, prefix="", **rest):
    return [Value(prefix + name, f"`{name}`", comparison, bound, **rest) for name in names]


def per_workers(prefix, label, comparison="", bound=0, workers=(2, 4), **rest):
    return [Value(f"{prefix} P={p}", f"{label}, P = {p}", comparison, bound, **rest) for p in workers]


def of_torch(version, untuned):
    return [Value(f"{version} {model}{kind}", f"torch {version}, {words}{beside}", "≥", bound)
            for kind, beside, bound in (("", "", 0.98), (" untuned", ", loop without allocator settings", untuned))
            for model, words in (("small", "the example's model"), ("large", "full-size convolutions"))]


SKIP = "wagma(late=skip)"
# What Paceline is held to against Ray.
PEER_BENCHMARKS = (
    ("1_1_actor_calls_sync", "calls of one actor, one at a time", 20), ("1_1_actor_calls_async", "1,000 at once", 40),
    ("1_n_actor_calls_async", "of one client to several actors", 50), ("n_n_actor_calls_async", "of four clients to several", 50),
    ("single_client_tasks_sync", "tasks, one at a time", 20), ("single_client_tasks_async", "1,000 at once", 60),
    ("multi_client_tasks_async", "of four clients", 60), ("many_tasks", "10,000 at once", 50),
    ("1_1_async_actor_calls_sync", "coroutine methods, one at a time", 30), ("1_1_async_actor_calls_async", "1,000 at once", 60),
    ("single_client_wait_1k_refs", "waits for one of 1,000 tasks, until all are there", 50), ("many_actors", "actors created and called", 50))

FIGURES = (
    Figure(1, "main job, one of 4 workers always 4× slower: time per step, times shorter than under our allreduce; each strategy at its own best learning rate where no other is named", "always_slow",
           (*both("≥", 3, "nonblocking", SKIP, digits=1),
            *[Value(f"median {name}", f"`{name}`, of the median step", "≥", 3) for name in ("nonblocking", SKIP)],
            *[Value(f"0.06 median {name}", f"`{name}`, of the median step, at a rate of 0.06, machine under load", "≥", 3)
              for name in ("nonblocking", SKIP)]), 7),
    Figure(2, "the same: time to 88 % test accuracy, times sooner than our allreduce", "always_slow",
           (*[Value(f"best {name}", f"`{name}`, each at its own best learning rate", "≥", 2, digits=1) for name in ("nonblocking", SKIP)],
            *[Value(f"0.1 {name}", f"`{name}`, all at 0.1", "≥", 2, digits=1) for name in ("nonblocking", SKIP)],
            *[Value(f"0.06 {name}", f"`{name}`, all at 0.06, machine under load", "≥", 2, digits=1) for name in ("nonblocking", SKIP)]), 7),
    Figure(3, "each step one random worker delayed by 5 mean step times: time per step, times shorter than under allreduce", "random_delay",
           (Value("wagma(sync=20)", "`wagma(sync=20)`", "≥", 1.8), *both("≥", 3, SKIP, "nonblocking")), 6),
    Figure(4, "one of two workers frozen by SIGSTOP for 10 s: the other's median step against before, and its waiting", "frozen",
           (*[Value(f"step {name}", f"step, `{name}`", "≤", 1.1) for name in ("nonblocking", "wagma(late=skip,grace=2x)")],
            *[Value(f"waiting {name}", f"waiting, `{name}`", "≤", 5, "%", 1) for name in ("nonblocking", "wagma(late=skip,grace=2x)")]), 3),
    Figure(5, "no straggler: samples/s of our allreduce, times those of torch's DistributedDataParallel over gloo (same model, batch 32)", "ddp",
           (*per_workers("python", "DDP in Python", "≥", 1.4), *per_workers("cpp", "DDP's reducer in C++", "≥", 1),
            *per_workers("is python", "what is Python: C++ loop against Python's, nothing averaged"),
            *per_workers("is gloo", "what is gloo: C++ loop with nothing averaged against DDP's reducer in C++")), 6),
    Figure(6, "one worker under Paceline against the same loop in plain libtorch, samples/s", "plain",
           (*of_torch("1.13", 1.3), *of_torch("2.15", 1.15)), 8),
    Figure(7, "averaging 100 MiB in windows (the slower of our two ways), times quicker than OpenMPI's allreduce (the faster of its two)",
           "averaging", (*per_workers("best", "best of OpenMPI's settings", "≥", 4, (2, 4, 8), digits=1),
                         *per_workers("default", "OpenMPI as it comes", "≥", 4, (2, 4, 8), digits=1)), 15),
    Figure(8, "workers forked and registered, libtorch loaded, until they answered a call", "fork",
           tuple(Value(f"{version} {count}", f"{words}, {count} worker{'s' * (count > 1)}", "≤", bound, "ms", 1)
                 for version, words in (("1.13", "Debian's libtorch 1.13"), ("2.15", "torch 2.15's wheel")) for count, bound in ((1, 10), (8, 40))), 2),
    Figure(9, "`paceline run` to the first step", "start",
           (Value("unchanged", "script unchanged", "≤", 1.5, "s"), Value("edited", "script edited", "≤", 7, "s", 1)), 1.5),
    Figure(10, "`paceline status` on a running cluster; an idle cluster over 30 s", "idle",
           (Value("status", "status", "≤", 100, "ms", 0), Value("cpu", "share of a core, all its processes", "<", 0.05, "%", 3),
            Value("actors", "the same with 1,000 idle actors, theirs included", "<", 0.05, "%", 3), Value("memory", "memory a node", "<", 30, "MB", 1)), 1),
    Figure(11, "golden numbers of the strategies' mathematics that are unit tests", "golden",
           (Value("failed", "tests that fail", "≤", 0, "", 0),), 1),
    Figure(12, "random simulated jobs against the reference: rows, summary, models to 1e-12", "random_jobs",
           (Value("jobs", "jobs of each kind of strategy", "≥", 10000, "", 0), Value("kinds", "kinds of strategies", unit="", digits=0),
            Value("findings", "kinds with a finding", "≤", 0, "", 0)), 3),
    Figure(13, "states walked of models with 3 and 4 workers, promises broken, and defects put into the explorer's own shell, network and plan that it finds",
           "explorer",
           tuple(value for prefix, name, bound in (("", "round engine", 12), ("mix ", "mix engine", 0))
                 for value in (Value(prefix + "states", f"{name}: states", unit="", digits=0),
                               Value(prefix + "models", f"{name}: models", unit="", digits=0),
                               Value(prefix + "violations", f"{name}: models with a broken promise", "≤", 0, "", 0),
                               Value(prefix + "found", f"{name}: mutations found", "≥" * bool(bound), bound, "", 0),
                               Value(prefix + "missed", f"{name}: mutations not found", "≤", 0, "", 0))), 8),
    Figure(14, "`wagma` × 1,000 steps, simulated on one core, the run of allreduce that it is compared with included", "scale",
           (Value("1024 s", "1,024 workers", "≤", 20, "s", 1), Value("1024 MB", "1,024 workers", "≤", 1000, "MB", 0),
            *[Value(f"{workers} s", f"{workers} workers", unit="s") for workers in (128, 256, 512)]), 1),
    Figure(15, "simulated time of a real run of four workers against its real time: the largest error", "prediction",
           (Value("fit trained", "main job, fitted to the run itself", "≤", 15, "%", 1),
            Value("told trained", "main job, told from an allreduce run", "≤", 15, "%", 1),
            Value("fit slept", "steps that sleep, fitted to the run itself", "≤", 15, "%", 1),
            Value("told slept", "steps that sleep, told from an allreduce run", "≤", 15, "%", 1)), 5),
    Figure(16, "`wagma`, 8 workers, one of them frozen by SIGSTOP between two syncs: mean step of the others against without (steps that sleep 20 ms)",
           "wagma_frozen", (Value("step", "step", "≤", 1.1),), 1),
    Figure(17, "recording a run's decisions: share of a step of 1 ms on one node", "recording",
           tuple(Value(str(workers), f"{workers} worker{'s' * (workers > 1)}", *(("<", 1) if workers == 8 else ()), unit="%") for workers in (1, 8, 64)), 0.5),
    Figure(18, "strategy × {reference, simulator, one node, two nodes}: every spelling of [the table](strategies/README.md) runs and agrees to 1e-12",
           "cells", (Value("failed", "suites that fail", "≤", 0, "", 0),), 10),
    Figure(19, "an update of a small model (7,850 parameters, batch 32) under allreduce: what it takes beyond the same processes' steps without averaging",
           "small_update", (*per_workers("idle", "nothing else running", "≤", 0.3, unit="ms"),
                            *per_workers("loaded", "beside two busy loops", "≤", 1, unit="ms")), 5),
    Figure(20, "a first run: building on two cores with nothing in ccache, disk and memory", "building",
           (Value("bare", "a bare Debian 12, installing and building: `./quickstart` until its run says something (`figures.py BUILD bare`)", "≤", 6, "min", 1),
            Value("installing", "of this installing", unit="min", digits=1),
            Value("packages", "disk that the packages take then", unit="GB", digits=1),
            Value("build", "disk that clone, build and compiler cache take", unit="GB", digits=1),
            Value("compiler", "memory of the largest process then", unit="GB", digits=1),
            Value("memory", "memory of a run of the example with four workers, all its processes, what they share counted once (`figures.py BUILD memory`)", unit="GB", digits=1),
            Value("first line", "packages installed: `./quickstart` until its run says something", "≤", 6, "min", 1),
            Value("processor", "processor time of that (compilers, linkers, ccache)", "≤", 900, "s", 0),
            Value("edit", "an edit of a core's source to the answer of its unit tests", "≤", 15, "s", 1),
            Value("check cold", "`./check` (`figures.py BUILD checking`)", "≤", 50, "min", 0),
            Value("check warm", "`./check` once more", "≤", 20, "min", 0),
            Value("check disk", "disk that a clone takes after `./check` (`figures.py BUILD checked`)", unit="GB", digits=1)), 12),
    Figure(21, "tensors of 10 MiB through three actors, each given to the next as a future, and back to the driver", "pipeline",
           (Value("1", "one under way", unit="MiB/s", digits=0), Value("4", "four under way", unit="MiB/s", digits=0)), 1),
    Figure(22, "messages of 64 bytes through a channel, against a bare ring, and a bare ping-pong on futexes, in the same run: times their time", "channel",
           (Value("pipelined", "pipelined", "≤", 1.5), Value("sleeping", "one at a time, both sides sleep", "≤", 1.3),
            Value("spinning", "one at a time, both sides spin", "≤", 1.5)), 1),
    Figure(23, "an update of a model of nine numbers under allreduce: what it takes beyond the same processes' steps without averaging", "nine",
           (Value("beyond P=2", "P = 2", "≤", 40, "µs", 0), Value("beyond P=4", "P = 4", "≤", 100, "µs", 0),
            *per_workers("ddp", "DDP's reducer in C++ over gloo, times ours", "≥", 1, digits=1)), 2),
    Figure(24, "a million calls to one actor in flights of 100,000, futures kept, then all asked for (all come, checked); and a million tasks behind busy workers", "flood",
           (Value("agent", "memory of the agent, beyond that of 1,000 calls", "≤", 16, "MB", 1),
            Value("caller", "memory of the caller a pending call", "≤", 500, "bytes", 0),
            Value("task", "memory of the owner a task that waits, with its future", "≤", 500, "bytes", 0), Value("seconds", "all of it", unit="s", digits=1)), 2),
    Figure(25, "calls of a method that does nothing, to an actor of the same node: past the agent, and times what they are through it (`PACELINE_CHANNELS=zmq`) in the same run; and tasks, likewise", "calls",
           tuple(value for name, words in (("1_1_actor_calls_sync", "one at a time"), ("1_1_actor_calls_async", "1,000 at once"),
                                           ("1_n_actor_calls_async", "1,000 at once to four actors"),
                                           ("single_client_tasks_sync", "tasks that do nothing, one at a time"), ("single_client_tasks_async", "tasks that do nothing, 1,000 at once"))
                 for value in (Value(name, words, unit="thousand a second", digits=1), Value(f"times {name}", f"{words}, times those over ZeroMQ", digits=1))), 1.5),
    Figure(26, "a run of a minute on two nodes whose head is killed every second, against the same run without", "heads",
           (Value("different", "models that differ in a bit", "≤", 0, "", 0), Value("status", "the slowest `status` right after a death", "≤", 300, "ms", 0),
            Value("longer", "its time, times the other's"), Value("deaths", "deaths", unit="", digits=0)), 3),
    Figure(27, "a link between two endpoints, trusted (without CURVE), through the loopback device, against a bare TCP stream in the same run: its rate, times the stream's", "link",
           (*[Value(size, f"messages of {size}", "≥", 0.8) for size in ("64 KiB", "1 MiB", "16 MiB", "64 MiB", "256 MiB", "1 GiB", "4 GiB")],
            Value("heartbeat", "the slowest of all heartbeats meanwhile, there and back", "≤", 20, "ms", 1)), 6),
    Figure(28, "the agent of the second of two nodes frozen by SIGSTOP for 30 s, of the first one's worker: its median step then, times the one before, and for how long it stood still (the lease is 2 s)", "frozen_agent",
           tuple(value for strategy in ("nonblocking", "wagma(late=skip,grace=2x)")
                 for value in (Value(f"step {strategy}", f"`{strategy}`: step", "≤", 1.1), Value(f"stood {strategy}", f"`{strategy}`: stood still", "≤", 2.5, "s", 1))), 5),
    Figure(29, "messages of a worker's session through a channel over ZeroMQ, encoded, checked and read, against bare ZeroMQ and Cap'n Proto in the same run: times their time", "messages",
           (Value("pipelined", "1,000 at once", "≤", 1.2), Value("round trip", "one at a time, answered", "≤", 1.2)), 1),
    Figure(30, "a flood of calls through the agent (`PACELINE_CHANNELS=zmq`, a million in flights of 100,000) beside a job of two workers whose steps sleep 20 ms", "beside_flood",
           (Value("turn", "the agent's longest turn, processor time", "≤", 5, "ms", 1), Value("step", "the job's step, times the one without the flood", "≤", 1.2)), 2),
    Figure(31, "Ray's microbenchmarks by `paceline bench`, times the better of Ray's Python and C++ APIs in the same run, and times CAF's remote actors over TCP (`tests/bench/peers/`)", "peers",
           tuple(value for name, words, bound in PEER_BENCHMARKS
                 for value in (Value(name, f"`{name}`: {words}", "≥", bound, digits=1), Value(f"rate {name}", f"`{name}`: ours", unit="thousand a second", digits=2)))
           + (Value("caf 1_1_actor_calls_sync", "`1_1_actor_calls_sync`, times CAF's", "≥", 3, digits=1),
              Value("caf 1_1_actor_calls_async", "`1_1_actor_calls_async`, times CAF's", "≥", 8, digits=1)), 15),
    Figure(32, "actors without libtorch, of one node", "actors",
           (Value("restart", "one with 100 MiB of durable state is killed: until its next answer", "≤", 20, "ms", 1),
            Value("killed", "one with 10,000 calls under way is killed: until all of them have ended", "≤", 100, "ms", 1),
            Value("memory", "private memory of one that has answered a call, and is idle (the median of 50)", "≤", 1, "MB", 2),
            Value("thousand", "1,000 created at once, until each has answered", unit="a second", digits=0)), 2),
    Figure(33, "lives of whole simulated clusters of 1 to 4 nodes, the head and the agents as they are: calls and names, and jobs of four workers; kills and freezes of heads, agents and workers, cuts (one-sided, too), refused connections", "cluster_lives",
           (Value("lives", "lives, a third each: without jobs; jobs, but agents stay whole; jobs", "≥", 20000, "", 0), Value("findings", "tests with a finding", "≤", 0, "", 0),
            Value("strategies", "strategies that the jobs have", unit="", digits=0), Value("well", "jobs that ended well", unit="", digits=0)), 8),
    Figure(34, "defects put into the production code, one at a time (engines, links, channels, windows, sessions, head and agents: `tests/mutations/mutations.py`), that a unit test, the simulator of clusters, random jobs or the explorer finds", "mutations",
           (Value("defects", "defects", "≥", 40, "", 0), Value("missed", "not found", "≤", 0, "", 0)), 35),
    Figure(35, "kill -9 of the last node's agent while four workers train, steps of 10 ms, under each of the 32 strategies: the others' longest step since, beyond a median one", "node_killed",
           tuple(value for nodes, of in (("2", "2 nodes"), ("4", "4 nodes"), ("4 first", "4 nodes, the first node's agent, which leads, and the driver at the last")) for value in (
               Value(f"{nodes}", f"{of}: over the strategies", unit="ms", digits=1), Value(f"{nodes} longest", f"{of}: of all", "≤", 50, "ms", 1),
               Value(f"{nodes} go on", f"{of}: strategies that go on", "≥", 32, "", 0))), 30),
    Figure(36, "the host of the last node cut off without a word (what comes from it or goes to it is dropped) while four workers train, steps of 10 ms, under each of the 32 strategies: the others' longest step since, beyond a median one (the lease is 2 s)", "host_cut_off",
           tuple(value for nodes in (2, 4) for value in (
               Value(f"{nodes}", f"{nodes} nodes: over the strategies", unit="s"), Value(f"{nodes} longest", f"{nodes} nodes: of all", "≤", 2.05, "s"),
               Value(f"{nodes} go on", f"{nodes} nodes: strategies that go on", "≥", 32, "", 0))), 30),
    Figure(37, "time that this build takes, times that of a build of the commit before views, in turn (`PACELINE_BEFORE=BUILD`)", "before",
           (*[Value(f"nine {strategy}", f"a step of nine numbers, two workers, `{strategy}`", "≤", 1.02)
              for strategy in ("allreduce", "local-sgd(period=4)", SKIP, "nonblocking", "d-psgd", "ad-psgd", "server")],
            Value("nine allreduce P=4", "the same of four workers, `allreduce`", "≤", 1.02),
            *[Value(f"example P={p}", f"a step of the example's model, `allreduce`, P = {p} (figures 5 and 6)", "≤", 1.02) for p in (1, 2, 4)],
            *[Value(f"main {strategy}", f"a step of the main job, one of 4 workers 4× slower, `{strategy}` (figures 1 to 3)", "≤", 1.02)
              for strategy in ("allreduce", "nonblocking", SKIP)],
            Value("averaging", "averaging 100 MiB in windows, P = 4 (figure 7)", "≤", 1.02),
            Value("fork 8", "8 workers forked, until they answered (figure 8)", "≤", 1.02),
            Value("start", "`paceline run` to the first step (figure 9)", "≤", 1.02), Value("status", "`paceline status` (figure 10)", "≤", 1.02)), 25),
    Figure(38, "kill -9 of one of four workers that train a model of 25 MB, steps of 0.1 s and what publishing takes: another process comes in its place", "returning",
           tuple(value for name, strategy, longest in (("allreduce", "allreduce", 1.3), ("local-sgd", "local-sgd(period=2)", 1.3), ("wagma", SKIP, 1.1), ("nonblocking", "nonblocking", 1.1), ("server", "server(async)", 1.1), ("d-psgd", "d-psgd(ring)", 1.3)) for value in (
               Value(f"{name} begins", f"`{strategy}`: from its end until it begins its first step, the rest of the one that its donor is in included", unit="ms", digits=0),
               Value(f"{name} beyond", f"`{strategy}`: from its end until its first contribution, beyond a step", "≤", 60, "ms", 0),
               Value(f"{name} longest", f"`{strategy}`: the others' longest step meanwhile, times their median one", "≤", longest))), 5),
    Figure(39, "a job of two workers that train a model of 25 MB, steps of 0.1 s and what publishing takes, is asked for eight, and then for three", "scaling",
           (*[value for name, strategy in (("allreduce", "allreduce"), ("wagma", "wagma(group=1,late=skip)"), ("nonblocking", "nonblocking"), ("d-psgd", "d-psgd(ring)")) for value in (
               Value(f"{name} grows", f"`{strategy}`: from `paceline scale` until the last of six has begun its first step", "≤", 1, "s"),
               Value(f"{name} shrinks", f"`{strategy}`: until the last of five has done its last one", "≤", 1, "s"))],
            Value("allreduce lost", "`allreduce`: gradients that were given and that no average had", "≤", 0, "", 0)), 2),
    Figure(40, "random runs whose model is the histogram of what was used, of 24 strategies on one node and two: workers are killed, come back, come and go; four of ten runs are resumed within an epoch, with other workers", "ledgers",
           (Value("runs", "runs", "≥", 200, "", 0), Value("differ", "epochs in which the ledger and the model differ, or a sample was used twice", "≤", 0, "", 0)), 12),
    Figure(41, "a job of four workers that train a model of 25 MB, steps of 0.1 s and what publishing takes, is changed six times: from `allreduce` over one of each kind of core back to it", "changing",
           (Value("within", "the slowest of six: from `paceline set` until all four are in a step of the next strategy", "≤", 1, "s"),
            Value("held", "the longest of six: for how long its workers were held", unit="s"),
            Value("wrong", "updates of the last strategy that a worker left out, or did twice", "≤", 0, "", 0)), 2),
    Figure(42, "kill -9 of the agent of the second of two nodes, while two workers on each train a model of 25 MB, steps of 0.1 s and what publishing takes: it is started again, and its workers join", "node_returns",
           tuple(value for name, strategy in (("allreduce", "allreduce"), ("wagma", SKIP), ("nonblocking", "nonblocking(batches=2)"), ("server", "server(async)")) for value in (
               Value(f"{name} until", f"`{strategy}`: from its end until the first contribution of the later of its two workers", "≤", 1, "s"),
               Value(f"{name} longest", f"`{strategy}`: the others' longest step meanwhile, times their median one", digits=1))), 5),
    Figure(43, "a run of the example on two nodes, `allreduce`, five epochs, to which 60 kills happen (workers, agents, the head, once the terminal), against the same run without", "kills",
           (Value("kills", "kills", "≥", 60, "", 0), Value("longer", "its time, times the other's", "≤", 1.15),
            Value("accuracy", "its accuracy", unit="%"), Value("seeds", "of five seeds without kills", unit="%"),
            Value("below", "how far below the lowest of these", "≤", 0, "%"),
            Value("wrong", "samples of epochs that are over that the ledger has under no name, or too often, and those that were used twice", "≤", 0, "", 0),
            Value("committed", "its samples, of the other's", unit="%", digits=1)), 18),
    Figure(44, "64 workers on eight nodes, two cores, one of them killed every second for five minutes: what head, agents and supervisor hold", "crowd",
           (Value("kills", "kills", "≥", 300, "", 0), Value("left", "processes, files and shared memory that are left when the cluster is down", "≤", 0, "", 0),
            Value("memory", "resident memory of the one that grew most: by", "≤", 1, "MB"), Value("descriptors", "descriptors, likewise", "≤", 0, "", 0),
            Value("memfds", "of them memory without a file", "≤", 0, "", 0)), 6),
    Figure(45, "a job of three workers that train a model of 400 MB, steps of 2 s and what computing and publishing take, is asked for four", "joining",
           tuple(value for name, strategy, bound in (("allreduce", "allreduce", 0.2), ("wagma", "wagma(group=1,sync=20,late=skip)", 0)) for value in (
               Value(f"{name} waits", f"`{strategy}`: the longest wait of one of the three until the fourth has had its first average, beyond the longest one of as long before, or of later averages of four", "≤", bound, "s"),
               Value(f"{name} until", f"`{strategy}`: from `paceline scale` until it has", unit="s"))), 6),
)
