"""Runs with random delays, worked out again from their records: who was late for which average is what
`paceline replay --decisions` prints, the formulas are those of the strategies' pages, and every model that a worker was
given must follow from them, to 1e-12.

The problem is that of quadratic_worker.cc; a worker's lines tell its model before each step, the gradient, and what it
was given.
"""
import json

from harness import IntegrationTest, NODES, in_release, main

RATE = 0.25


class Record:
    """What a run's averagings went by: who contributed what to each, and which one each worker was given."""

    def __init__(self, decisions):
        self.groups = {}  # (version, group) -> worker -> (iteration, mini-batches), None: nothing
        for line in decisions:
            if line["kind"] == "sealed":
                members = self.groups.setdefault((line["version"], line["group"]), {})
                for one in line["contributions"]:
                    found = (one["iteration"], one["batches"]) if "iteration" in one else None
                    members[one["worker"]] = found
        self.given = {}  # (worker, iteration) -> the average that it was given there, as such or to merge with
        self.merges = set()  # (worker, iteration) of the latter
        for node in {line["node"] for line in decisions}:
            self.follow([line for line in decisions if line["node"] == node])

    def follow(self, decisions):
        """The late merge with the newest average: when they arrive, or when the one that they just missed is done."""
        newest, reached, waiting, late, done, after, merges, here = {}, {}, {}, {}, {}, {}, set(), set()
        for line in reversed(decisions):  # What follows each arrival.
            worker = line.get("worker")
            if line["kind"] == "merged":
                merges.add(worker)
            elif line["kind"] == "arrived":
                line.update({"next": after.get(worker, 1 << 60), "merges": worker in merges})
                after[worker] = line["version"]
                merges.discard(worker)
        for line in decisions:
            worker = line.get("worker")
            if line["kind"] == "joined":
                here.add(worker)
            elif line["kind"] == "arrived":
                waiting[worker] = line
                if not line["merges"] and (worker, line["version"]) in done:  # Its word came after its model.
                    self.given[worker, waiting.pop(worker)["version"]] = done[worker, line["version"]]
                elif line["merges"] and reached.get(worker, -1) >= line["version"]:
                    late[worker] = newest.get(worker)
            elif line["kind"] == "executed":
                average = (line["version"], line["group"])
                for member in here & set(self.groups[average]):
                    reached[member] = line["version"]  # Perhaps with nothing: its group had not begun.
                    if any(self.groups[average].values()):
                        newest[member] = average
                    found = self.groups[average][member]
                    if found and found[0] == average[0]:
                        done[member, average[0]] = average
                    if member not in waiting:
                        continue
                    arrival = waiting[member]
                    if arrival["merges"]:
                        late.setdefault(member, newest.get(member))
                    elif found and found[0] == arrival["version"] and arrival["next"] > average[0]:
                        # Fresh, or it has joined a pending average of all.
                        self.given[member, arrival["version"]] = average
                        del waiting[member]
            elif line["kind"] == "merged":
                iteration = waiting.pop(worker)["version"]
                self.given[worker, iteration] = late.pop(worker, None)  # None: it joined after that average.
                self.merges.add((worker, iteration))


class ExplainedRuns(IntegrationTest):
    def run_job(self, strategy, nodes, workers, updates, **options):
        run = self.quadratic("--strategy", strategy, nodes=nodes, workers=workers, updates=updates, random_ms=10,
                             seed=nodes + workers, **options)
        shown = self.paceline("replay", run.run_directory, "--decisions", "--json")
        self.assertEqual(shown.code, 0, shown.said())
        lines = {rank: run.steps(rank) for rank in range(workers)}
        return run, Record([json.loads(line) for line in shown.out.splitlines()]), lines

    def assert_near(self, found, expected, message):
        self.assertAlmostEqual(found, expected, delta=1e-12 * max(1, abs(expected)), msg=message)

    def late_ones(self, record):
        return sum(found is None or found[0] < version for (version, _), members in record.groups.items()
                   for found in members.values())

    # Models -----------------------------------------------------------------------------------------------------------

    def check_models(self, strategy, nodes, workers=4, updates=40, must_be_late=True):
        with self.subTest(strategy, nodes=nodes):
            run, record, lines = self.run_job(strategy, nodes, workers, updates, x0=3, evaluate_every=0)
            evaluated, = [event for event in run.metrics() if event["event"] == "evaluated"]
            steps = sum(len(steps) for steps in lines.values())
            self.assertIn(evaluated["samples"], range(steps - workers, steps + 1), "one a step; the late may still do one")
            published = {(rank, -1): 3.0 for rank in range(workers)}
            for rank, steps in lines.items():
                for step in steps:
                    published[rank, step["update"]] = step["before"] - RATE * step["gradient"]
            averaged = merged = 0
            for rank, steps in lines.items():
                for step in steps:
                    where = f"{strategy}: worker {rank}, update {step['update']}"
                    own = published[rank, step["update"]]
                    if (rank, step["update"]) not in record.given:
                        self.assertEqual(step["outcome"], "go_on", where)
                        continue
                    members = record.groups.get(record.given[rank, step["update"]], {})
                    models = [published[member, found[0]] for member, found in members.items() if found]
                    if (rank, step["update"]) in record.merges:
                        models.append(own)
                        merged += 1
                    averaged += 1
                    self.assert_near(step["x"], sum(models) / len(models), where)
            self.assertGreater(averaged, updates // 10)
            last = max(record.groups)
            members = record.groups[last]
            mean = sum(published[member, found[0]] for member, found in members.items() if found) / \
                sum(found is not None for found in members.values())
            self.assert_near(evaluated["value"], mean, f"{strategy}: evaluated at the end")
            for rank in range(workers):
                self.assert_near(run.final(rank), mean, f"{strategy}: final model of worker {rank}")
            if must_be_late:
                self.assertGreater(self.late_ones(record), 0, "nobody was late: this shows nothing")
                self.assertGreater(merged, 0, "nobody merged: this shows nothing")

    def test_group_averages(self):
        for nodes in NODES:
            self.check_models("wagma(group=2,sync=8)", nodes)
            self.check_models("wagma(group=2,sync=8,late=skip)", nodes)
        self.check_models("wagma(group=3,sync=10,grouping=strided)", 2, workers=6)
        self.check_models("wagma(group=2,sync=8,late=skip,grace=4ms)", 2)
        self.check_models("wagma(group=2,sync=adacomm(period=8,interval=0.1s))", 2)

    @in_release
    def test_local_steps(self):
        for nodes in NODES:
            self.check_models("local-sgd(period=4,grace=3ms)", nodes)
            self.check_models("local-sgd(period=4,grace=3ms,late=skip)", nodes)
        self.check_models("adacomm(period=6,interval=0.1s)", 2, must_be_late=False)
        self.check_models("tiers(wagma(group=2,sync=4),local-sgd(period=6,late=skip))", 2)

    def check_outer_model(self, strategy, nodes, workers=4, updates=60, rate=0.7, momentum=0.9):
        with self.subTest(strategy, nodes=nodes):
            run, record, lines = self.run_job(strategy, nodes, workers, updates)
            published, samples = {}, {}
            for rank, steps in lines.items():
                since = 0
                for step in steps:
                    since += 1
                    published[rank, step["update"]] = step["before"] - RATE * step["gradient"]
                    samples[rank, step["update"]] = since
                    if step["outcome"] == "moved":
                        since = 0
            x, buffer, outer, part = 0.0, 0.0, {}, 0
            for version, group in sorted(record.groups):
                found = [(member, one[0]) for member, one in record.groups[version, group].items() if one]
                part += len({samples[one] for one in found}) > 1
                mean = sum(samples[one] * published[one] for one in found) / sum(samples[one] for one in found)
                buffer = momentum * buffer + x - mean
                x = outer[version] = x - rate * (x - mean + momentum * buffer)
            for rank, steps in lines.items():
                for step in steps:
                    if found := record.given.get((rank, step["update"])):
                        self.assert_near(step["x"], outer[found[0]], f"{strategy}: worker {rank}, update {step['update']}")
                self.assert_near(run.final(rank), x, f"{strategy}: final model of worker {rank}")
            self.assertGreater(part, 0, "all had done equally much: this shows nothing")
            self.assertTrue(record.merges, "nobody was late: this shows nothing")

    def test_an_outer_model(self):
        for nodes in NODES:
            self.check_outer_model("decoupled-diloco(period=4,quorum=2,grace=3ms)", nodes)

    # Gradients --------------------------------------------------------------------------------------------------------

    def check_eager(self, strategy, nodes, sync, accumulates=True, workers=4, updates=40):
        with self.subTest(strategy, nodes=nodes):
            run, record, lines = self.run_job(strategy, nodes, workers, updates)
            gradients = {(rank, step["update"]): step["gradient"] for rank, steps in lines.items() for step in steps}
            taken = [-1] * workers  # The last iteration whose gradient has gone into a sum.
            mean, models = {}, {}
            for version in range(updates):
                total, ends = 0.0, []
                for member, found in record.groups[version, 0].items():
                    if not found:
                        continue
                    first = taken[member] + 1 if accumulates else found[0]
                    owed = sum(gradients[member, t] for t in range(first, found[0] + 1))
                    taken[member] = found[0]
                    total += owed
                    before = lines[member][version]["before"]
                    ends.append(before - RATE * owed)
                mean[version] = total / workers
                models[version] = sum(ends) / len(ends)
            for rank, steps in lines.items():
                for step in steps:
                    where = f"{strategy}: worker {rank}, update {step['update']}"
                    average = record.given[rank, step["update"]]  # None: it came after the first ones.
                    if (step["update"] + 1) % sync == 0 or step["update"] + 1 == updates:
                        self.assert_near(step["x"], models[step["update"]], where)
                    else:
                        given = mean[average[0]] if average else 0
                        self.assert_near(step["result"], given, where)
                        self.assert_near(step["x"], step["before"] - RATE * given, where)
            self.assertGreater(self.late_ones(record), 0, "nobody was late: this shows nothing")

    def test_eager_gradients(self):
        for nodes in NODES:
            self.check_eager("eager-sgd(solo,sync=8)", nodes, 8)
            self.check_eager("eager-sgd(majority,sync=8)", nodes, 8)
            self.check_eager("eager-sgd(quorum=2,late=drop,sync=8)", nodes, 8, accumulates=False)

    def check_nonblocking(self, strategy, nodes, weight, workers=4, updates=25, batches=4):
        with self.subTest(strategy, nodes=nodes):
            run, record, lines = self.run_job(strategy, nodes, workers, updates)
            before = {}
            for steps in lines.values():
                for step in steps:
                    self.assertEqual(step["before"], before.setdefault(step["update"], step["before"]), "replicas differ")
            x, cut_short = 0.0, 0
            for version in range(updates):
                self.assert_near(before[version], x, f"{strategy}: update {version}")
                done = {member: found[1] if found else 0 for member, found in record.groups[version, 0].items()}
                cut_short += sum(n < batches for n in done.values())
                total = sum(done.values())
                x -= RATE * sum(weight(n / batches, n / total, workers) * (1, 2, 1, 2)[rank % 4] *
                                (x - (0, 4, 8, 12)[rank % 4]) for rank, n in done.items())
            for rank in range(workers):
                self.assert_near(run.final(rank), x, f"{strategy}: final model of worker {rank}")
            self.assertGreater(cut_short, 0, "everybody did everything: this shows nothing")

    def test_unequal_batches(self):
        for nodes in NODES:
            self.check_nonblocking("nonblocking(batches=4)", nodes, lambda part, _, p: part / p)
            self.check_nonblocking("nonblocking(batches=4,normalise=a)", nodes, lambda part, _, p: part * part / p)
            self.check_nonblocking("nonblocking(batches=4,normalise=d)", nodes, lambda _, share, p: share)
            self.check_nonblocking("nonblocking(batches=4,inflight=wait)", nodes, lambda part, _, p: part / p)


if __name__ == "__main__":
    main()
