"""What a cluster is seen to do: lists, filters, and what waits and why (seeing_script.cc)."""
import json
import os
import re
import signal

from harness import ENDLESS, IntegrationTest, is_alive, main, wait_until

SCRIPT = os.environ["PACELINE_SEEING"]


class Seeing(IntegrationTest):
    def setUp(self):
        super().setUp()
        up = self.paceline("up", "--nodes", 2)
        self.assertEqual(up.code, 0, up.said())
        self.cpus = [node["cpus"] for node in self.listed("nodes")]

    def listed(self, what, *flags, code=0):
        done = self.paceline("list", what, "--json", *flags)
        self.assertEqual(done.code, code, done.said())
        return [json.loads(line) for line in done.out.splitlines()]

    def status(self, *flags):
        """Of all nodes: one that has not answered within a tenth of a second is left out."""
        def answered():
            done = self.paceline("status", *flags)
            self.assertEqual(done.code, 0, done.said())
            if flags:
                return json.loads(done.out) if all(node["answers"] for node in json.loads(done.out)["nodes"]) else None
            return None if "does not answer" in done.out else done.out
        return wait_until(answered, 20, "a status of all nodes")

    def begin(self, *arguments):
        """A driver of which a file is the end."""
        end_file = os.path.join(self.folder, f"end-{self.runs}")
        run = self.start("run", SCRIPT, "--", arguments[0], end_file, *arguments[1:])
        run.end_file = end_file
        wait_until(lambda: "asked" in run.out, 30, "its calls")
        return run

    def let_end(self, run):
        with open(run.end_file, "wb"):
            pass
        self.assertEqual(run.wait(60), 0, run.said())

    def lent(self, count, *flags):
        """Those workers, when so many are."""
        def workers():
            lent = self.listed("workers", "--state", "lent", *flags)
            return lent if len(lent) == count else None
        return wait_until(workers, 30, f"{count} lent workers of {flags}")

    def hold_all(self):
        """A driver whose tasks hold all cpus of both nodes, and its workers."""
        run = self.begin("tasks", sum(self.cpus), 1, -1)
        return run, self.lent(sum(self.cpus))

    def test_an_idle_cluster_is_seen_to_be_idle(self):
        nodes = self.listed("nodes")
        self.assertEqual([node["pid"] for node in nodes], [pid for i in range(2) for pid in self.agents(i)])
        for i, node in enumerate(nodes):
            self.assertEqual({key: node[key] for key in ("node", "state", "cpus_free", "workers", "actors")},
                             {"node": i, "state": "alive", "cpus_free": node["cpus"], "workers": 0, "actors": 0})
            self.assertTrue(node["address"].startswith("tcp://"), node)
        for what, none in (("workers", "no worker runs\n"), ("tasks", "nobody has tasks\n"), ("jobs", "no job has run yet\n"),
                           ("actors", "no actor lives\n")):
            self.assertEqual(self.listed(what), [])
            self.assertEqual(self.paceline("list", what).out, none)

    def test_tasks_that_wait_are_seen_with_those_who_hold_the_cpus(self):
        holder, workers = self.hold_all()
        owner = workers[0]["owner"]
        self.assertEqual({worker["owner"] for worker in workers}, {owner})
        self.assertEqual(sorted(worker["node"] for worker in workers), [i for i in range(2) for _ in range(self.cpus[i])])
        for worker in workers:
            self.assertTrue(is_alive(worker["pid"]), worker)
            self.assertTrue(os.path.exists(worker["log"]), worker)
            self.assertEqual((worker["cpus"], worker["on"], worker["actor"], worker["waits_for"]), (1, None, None, None))
        self.assertEqual([node["cpus_free"] for node in self.listed("nodes")], [0, 0])

        waiting = self.begin("tasks", 4, 1, -1)
        its, = wait_until(lambda: [row for row in self.listed("tasks") if row["owner"] != owner and row["missing"] == 4], 30, "its tasks")
        self.assertEqual((its["lent"], its["missing"], its["state"], its["cpus"], its["on"], its["node"]),
                         (0, 4, "waiting", 1, None, 0))
        self.assertEqual(its["program"], os.path.realpath(SCRIPT))
        self.assertEqual(self.listed("tasks", "--owner", its["owner"])[0]["owner"], its["owner"])
        text = self.status()
        self.assertRegex(text, rf"\ntasks of {its['owner']} \(.*\) wait for 1 cpu each, for [0-9.]+ s: no worker is lent, up to 4 more")
        for i in range(2):
            self.assertRegex(text, rf"\n  node {i}: 0 of {self.cpus[i]} cpus? are free; {owner} holds {self.cpus[i]} cpus? with")
        status = self.status("--json")
        self.assertEqual(sorted(row["owner"] for row in status["tasks"]), sorted([owner, its["owner"]]))
        self.assertEqual([[(hold["owner"], hold["cpus"]) for hold in node["held"]] for node in status["nodes"]],
                         [[(owner, cpus)] for cpus in self.cpus])

        self.let_end(holder)
        self.lent(4 if sum(self.cpus) >= 4 else sum(self.cpus), "--owner", its["owner"])
        self.let_end(waiting)
        wait_until(lambda: self.listed("workers") == [], 10, "nobody has workers")
        self.assertEqual(self.listed("tasks"), [])

    def running(self, what, count):
        """What so many workers run, as this list says."""
        def all_running():
            found = [one for row in self.listed(what) for one in row["running"]]
            return found if len(found) == count else None
        return wait_until(all_running, 30, f"{count} that run")

    def test_tasks_that_run_are_seen_by_their_names(self):
        holder, workers = self.hold_all()
        running = self.running("tasks", len(workers))
        for one in running:
            self.assertRegex(one["name"], r"^until\(std::.*string.*\)$")
            self.assertEqual((one["owner"], one["thread"]), (workers[0]["owner"], 0))
            self.assertGreaterEqual(one["for_s"], 0)
        self.assertEqual(len({one["task"] for one in running}), len(workers))
        self.assertEqual(sorted((one["worker"], one["node"]) for one in running),
                         sorted((worker["worker"], worker["node"]) for worker in workers))
        self.assertIn(f" {len(workers)} until\n", self.paceline("list", "tasks").out)
        self.assertRegex(self.paceline("list", "workers").out, r" until +- ")
        self.assertEqual({one["name"] for row in self.listed("workers") for one in row["running"]}, {running[0]["name"]})
        os.kill(workers[0]["pid"], signal.SIGSTOP)  # Nobody asks the worker.
        frozen, = wait_until(lambda: self.listed("workers", "--state", "frozen"), 10, "a frozen worker")
        self.assertEqual([one["name"] for one in frozen["running"]], [running[0]["name"]])
        os.kill(workers[0]["pid"], signal.SIGCONT)
        self.let_end(holder)

    def test_tasks_with_names_and_lambdas_are_seen_by_them(self):
        run = self.begin("named")
        names = sorted(one["name"] for one in self.running("tasks", 2))
        self.assertEqual(names[0], "count the stars")
        self.assertRegex(names[1], r"^named\(.*\)::\{lambda\(.*\)#1\}$")
        self.assertIn("count the stars", self.paceline("list", "tasks").out)
        self.let_end(run)
        wait_until(lambda: self.listed("tasks") == [], 10, "nobody has tasks")

    def test_tasks_and_calls_are_cancelled_by_their_ids(self):
        run = self.begin("cancelled")
        ids = {one["name"].split("(")[0]: one["task"] for one in self.running("workers", 3)}
        owner, = {one["owner"] for row in self.listed("workers") for one in row["running"]}
        for name, flags in (("stops", ()), ("goes on", ("--force",)), ("Counter::stops_too", ())):
            done = self.paceline("cancel", ids[name], "--json", *flags)
            self.assertEqual((done.code, json.loads(done.out or "{}")), (0, {"task": ids[name], "owner": owner}), done.said())
        self.assertEqual(run.wait(30), 0, run.said())
        gone = self.paceline("cancel", ids["stops"])
        self.assertEqual(gone.code, 2, gone.said())
        self.assertIn("has ended, or it never was", gone.err)
        self.assertIn("no node", self.paceline("cancel", 1 << 60).err)
        self.assertEqual(self.paceline("cancel", "everything").code, 2)

    def timeline(self, *flags):
        """Its spans by name, and the names of its tracks."""
        path = os.path.join(self.folder, "trace.json")
        done = self.paceline("timeline", "--output", path, "--json", *flags)
        self.assertEqual(done.code, 0, done.said())
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        spans = {}
        for event in events:
            if event["ph"] == "X":
                spans.setdefault(re.sub(r"\(.*", "", event["name"]), []).append(event)
        self.assertEqual(json.loads(done.out), {"file": path, "calls": sum(map(len, spans.values())), "lost": 0, "workers_left_out": 0,
                                                "workers": len({event["tid"] // 1024 + event["pid"] * 2**32 for event in events})})
        names = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertEqual({event["args"]["name"] for event in events if event["name"] == "process_name"}, {f"node {pid}" for pid, _ in names})
        return spans, names

    def test_a_timeline_shows_each_call_also_of_the_dead(self):
        self.assertEqual(self.timeline(), ({}, {}))
        run = self.begin("some")
        spans, names = wait_until(lambda: (seen := self.timeline()) and "until" in seen[0] and seen, 30, "the last task in the timeline")
        self.assertEqual({name: len(of_it) for name, of_it in spans.items()},
                         {"one step": 5, "step": 1, "Counter constructor": 1, "Counter::add": 3, "until": 1})
        self.assertEqual([span["args"]["failed"] for span in spans["one step"] + spans["step"]], [False] * 5 + [True])
        self.assertEqual({span["cat"] for span in spans["one step"]}, {"task"})
        self.assertEqual({names[span["pid"], span["tid"]].split(": ")[1] for span in spans["one step"]}, {"tasks"})
        self.assertEqual({names[span["pid"], span["tid"]].split(": ")[1] for span in spans["Counter::add"]}, {"Counter counter"})
        owner, = {span["args"]["owner"] for of_it in spans.values() for span in of_it}
        self.assertTrue(owner.startswith("driver/"), owner)
        self.assertTrue(all(span["dur"] >= 2000 for span in spans["one step"]), spans["one step"])
        ends = [(span["ts"], span["ts"] + span["dur"]) for span in sorted(spans["one step"], key=lambda span: span["ts"])]
        self.assertTrue(all(first[1] <= second[0] for first, second in zip(ends, ends[1:])), ends)
        self.assertTrue(spans["until"][0]["args"]["runs"])
        self.assertEqual(len({span["args"]["task"] for name in ("one step", "step", "Counter::add") for span in spans[name]}), 9)

        killed, = [worker for worker in self.listed("workers") if any(one["name"].startswith("until(") for one in worker["running"])]
        os.kill(killed["pid"], signal.SIGKILL)
        def again():
            spans, names = self.timeline()
            return (spans, names) if len(spans.get("until", [])) == 2 else None
        after, names = wait_until(again, 30, "the task on another worker")
        self.assertEqual([span["args"] for span in after["one step"]], [span["args"] for span in spans["one step"]])
        died, = [span for span in after["until"] if span["args"]["failed"]]
        self.assertEqual((died["args"]["worker"], died["args"]["died"], died["pid"]), (killed["worker"], True, killed["node"]))
        self.assertTrue(names[died["pid"], died["tid"]].endswith(": tasks (ended)"), names)
        self.let_end(run)
        wait_until(lambda: self.listed("workers") == [], 10, "nobody has workers")
        over, names = self.timeline()
        self.assertEqual(len(over["one step"]), 5)
        self.assertEqual(sorted(span["args"]["failed"] for span in over["until"]), [False, True])
        self.assertTrue(all(name.endswith(" (ended)") for name in names.values()), names)

    def test_a_timeline_that_cannot_be_written_is_one_clear_error(self):
        done = self.paceline("timeline", "--output", os.path.join(self.folder, "no", "such.json"))
        self.assertEqual((done.code, done.out), (1, ""), done.said())
        self.assertRegex(done.err, r"^paceline: .*no/such\.json.*: No such file or directory")

    def test_a_worker_shows_where_it_stands_and_goes_on(self):
        run = self.begin("tasks", 1, 1, 1)
        worker, = self.lent(1)
        wait_until(lambda: self.listed("workers")[0]["running"], 30, "its task")
        for freeze in (False, True):
            if freeze:
                os.kill(worker["pid"], signal.SIGSTOP)
                wait_until(lambda: self.listed("workers", "--state", "frozen"), 10, "a frozen worker")
            done = self.paceline("stack", worker["worker"], "--json", timeout=60)
            self.assertEqual(done.code, 0, done.said())
            shown = json.loads(done.out)
            self.assertEqual((shown["pid"], shown["node"], shown["id"]), (worker["pid"], 1, worker["id"]))
            self.assertGreaterEqual(len(shown["threads"]), 2)
            frames = shown["threads"][0]["frames"]
            at, = [frame for frame in frames if re.match(r"until\(std::", frame["function"] or "")]
            self.assertTrue(at["file"].endswith("seeing_script.cc"), at)
            self.assertFalse(at["inlined"], at)
            self.assertGreater(at["line"], 0)
            self.assertTrue(any((frame["function"] or "").startswith("paceline::worker::Executor::call(") for frame in frames), frames)
        self.assertEqual([row["id"] for row in self.listed("workers", "--state", "frozen")], [worker["id"]])
        os.kill(worker["pid"], signal.SIGCONT)
        said = self.paceline("stack", worker["id"], timeout=60)
        self.assertRegex(said.out, rf"^worker {worker['worker']} on node 1, process {worker['pid']}, runs until\n")
        self.assertRegex(said.out, r"  #\d+ +0x[0-9a-f]+  until\(std::.*  at .*seeing_script\.cc:\d+\n")
        self.let_end(run)
        self.assertEqual(self.paceline("list", "workers", "--state", "frozen", "--json").out, "")

    def test_a_stack_of_whom_there_is_not_is_one_clear_error(self):
        run = self.begin("actors")
        wait_until(lambda: self.listed("workers", "--state", "waiting"), 30, "a call that waits")
        for flags, error in ((("9",), "no worker '9' runs: there are worker 1 on node "),
                             (("askr",), "no worker 'askr' runs; did you mean 'asker'?"),
                             (("asker", "--node", 2), "there is no node 2"),
                             (("1",), "'1' may be worker 1 on node 0 (actor '")):
            done = self.paceline("stack", *flags)
            self.assertEqual((done.code, done.out), (2, ""), done.said())
            self.assertIn(error, done.err)
            self.assertEqual(done.err.count("\n"), 1, done.err)
        self.assertIn("Asker::ask(", self.paceline("stack", "asker", timeout=60).out)
        self.let_end(run)

    def test_a_driver_whose_tasks_get_no_cpu_is_told_why_once(self):
        holder, workers = self.hold_all()
        waiting = self.begin("tasks", 2, 1, -1)
        wait_until(lambda: "(paceline) tasks of " in waiting.err, 60, "a line that says why nothing runs")
        self.assertRegex(waiting.err, rf"\(paceline\) tasks of driver/[0-9-]+ that need 1 cpu have had no worker for [0-9.:]+ s?: "
                                      rf"the cpus of node 0 are held by {workers[0]['owner']} \({self.cpus[0]} cpus?, for ")
        self.let_end(holder)
        self.let_end(waiting)
        self.assertEqual(waiting.err.count("(paceline)"), 1, waiting.err)
        self.assertNotIn("(paceline)", holder.err)

    def test_tasks_for_one_node_wait_there(self):
        holder = self.begin("tasks", self.cpus[1], 1, 1)
        self.lent(self.cpus[1], "--node", 1)
        waiting = self.begin("tasks", 1, 1, 1)
        its, = wait_until(lambda: [row for row in self.listed("tasks", "--state", "waiting") if row["lent"] == 0], 30, "its task")
        self.assertEqual((its["on"], its["missing"]), (1, 1))
        self.assertEqual([node["cpus_free"] for node in self.listed("nodes")], [self.cpus[0], 0])
        text = self.status()
        self.assertIn(" each on node 1, for ", text)
        self.assertNotIn("\n  node 0", text)
        self.let_end(holder)
        self.let_end(waiting)

    def test_a_killed_worker_is_gone_and_a_frozen_one_seen(self):
        holder, workers = self.hold_all()
        killed, frozen = workers[0], workers[-1]
        os.kill(killed["pid"], signal.SIGKILL)
        def again():
            pids = [worker["pid"] for worker in self.listed("workers", "--state", "lent")]
            return len(pids) == len(workers) and killed["pid"] not in pids
        wait_until(again, 30, "another worker in its place")
        os.kill(frozen["pid"], signal.SIGSTOP)
        seen, = wait_until(lambda: self.listed("workers", "--state", "frozen"), 10, "a frozen worker")
        self.assertEqual((seen["id"], seen["owner"]), (frozen["id"], frozen["owner"]))
        os.kill(frozen["pid"], signal.SIGCONT)
        self.lent(len(workers))
        self.let_end(holder)

    def test_a_frozen_node_is_silent(self):
        holder, workers = self.hold_all()
        agent, = self.agents(1)
        os.kill(agent, signal.SIGSTOP)
        listed = self.paceline("list", "workers", "--json")
        self.assertEqual(listed.code, 1, listed.said())
        self.assertIn("node 1 does not answer: its workers are not listed", listed.err)
        self.assertEqual({json.loads(line)["node"] for line in listed.out.splitlines()} | {0}, {0})
        self.assertEqual([node["node"] for node in self.listed("nodes", code=1) if node["state"] != "alive"], [1])
        self.assertEqual(self.paceline("list", "workers", "--node", 0).code, 0)
        os.kill(agent, signal.SIGCONT)
        wait_until(lambda: all(node["state"] == "alive" for node in map(json.loads, self.paceline("list", "nodes", "--json").out.splitlines())),
                   30, "it is there again")
        self.assertEqual(len(workers), sum(self.cpus))
        self.let_end(holder)

    def test_a_node_that_is_killed_comes_back(self):
        before, = self.listed("nodes", "--node", 1)
        os.kill(before["pid"], signal.SIGKILL)
        def again():
            done = self.paceline("list", "nodes", "--node", 1, "--json")
            node = json.loads(done.out)
            self.assertEqual(done.code, 0 if node["state"] == "alive" else 1, done.said())
            return node["state"] == "alive" and node["pid"] != before["pid"]
        wait_until(again, 30, "its next agent")

    def test_calls_that_wait_say_for_whom(self):
        run = self.begin("actors")
        waits, = wait_until(lambda: self.listed("workers", "--state", "waiting"), 30, "a call that waits")
        self.assertEqual((waits["actor_name"], waits["waits_for"]), ("asker", "actor 'counter'"))
        self.assertRegex(waits["running"][0]["name"], r"^Asker::ask\(std::")
        wait_until(lambda: "(actor 'asker') waits for actor 'counter', for " in self.status(), 20, "a status of all nodes")
        self.assertEqual(sum(node["actors"] for node in self.listed("nodes")), 2)
        asker = json.loads(self.paceline("get", "actor", "asker", "--json").out)
        self.assertEqual((asker["name"], asker["pid"], asker["waits_for"], asker["restarts"]), ("asker", waits["pid"], "actor 'counter'", 0))
        self.assertEqual(json.loads(self.paceline("get", "actor", asker["id"], "--json").out)["id"], asker["id"])
        self.assertIn("waits for  actor 'counter', for ", self.paceline("get", "actor", "asker").out)
        missing = self.paceline("get", "actor", "askr")
        self.assertEqual((missing.code, missing.out), (2, ""), missing.said())
        self.assertIn("no actor 'askr' lives; did you mean 'asker'?", missing.err)
        self.assertIn("try `paceline get actor NAME`", self.paceline("get", "worker", "3").err)
        self.assertEqual([actor["name"] for actor in self.listed("actors", "--node", asker["node"], "--state", "alive") if actor["name"] == "asker"], ["asker"])
        summary = json.loads(self.paceline("summary", "--json").out)
        self.assertEqual((summary["nodes"], summary["actors"]), ({"alive": 2}, {"alive": 2}))
        self.assertEqual(sum(summary["workers"].values()), 2)
        self.assertRegex(self.paceline("summary").out, r"\nactors   2 alive\n")
        self.let_end(run)

    def test_jobs_are_listed(self):
        job = self.start_quadratic(nodes=None, workers=2, updates=ENDLESS)
        self.wait_for_update(job, 2)
        row, = self.listed("jobs", "--node", 1)
        self.assertEqual((row["job"], row["strategy"], len(row["workers"])), (1, "allreduce", 2))
        self.assertIn(row["state"], ("running", "waiting"))
        self.assertIn("allreduce", self.paceline("list", "jobs").out)
        self.assertEqual(len(self.listed("workers", "--state", "actor")), 2)
        self.enough(job)

    def test_a_jobs_workers_are_seen_as_the_actors_that_they_are(self):
        job = self.start_quadratic(nodes=None, workers=2, updates=ENDLESS)
        self.wait_for_update(job, 2)
        actors = {actor["name"]: actor for actor in self.listed("actors")}
        self.assertEqual({name: actor["class"] for name, actor in actors.items()},
                         {"worker-0": "paceline::Worker", "worker-1": "paceline::Worker"})
        self.assertRegex(self.paceline("list", "actors").out, r" worker-1 +paceline::Worker ")
        one = json.loads(self.paceline("get", "actor", "worker-1", "--json").out)
        self.assertEqual((one["id"], one["pid"], one["state"]), (actors["worker-1"]["id"], self.worker_pid(job, 1), "alive"))
        self.assertEqual(one["log"], os.path.join(job.run_directory, "logs", "worker-1.log"))
        stack = self.paceline("stack", "worker-1", timeout=60)
        self.assertRegex(stack.out, rf"^worker {one['worker']} on node {one['node']} \(actor 'worker-1'\), process {one['pid']}, ")
        self.assertIn("paceline::job::JobWorker::run(", stack.out)
        self.enough(job)

    def test_a_worker_that_is_killed_leaves_its_job(self):
        job = self.start_quadratic(nodes=None, workers=3, updates=ENDLESS)
        self.wait_for_update(job, 2)
        killed = self.paceline("kill", "worker-1")
        self.assertEqual(killed.code, 0, killed.said())
        wait_until(job.left, 20, "its leave")
        self.assertRegex(job.left()[1], r"^worker 1 ended \(cli/\d+ has killed it\): the others go on without it$")
        self.assertEqual({actor["name"] for actor in self.listed("actors")}, {"worker-0", "worker-2"})
        self.end_after(job, 2)
        self.assertEqual(job.result()["lost"], [1])
        gone = self.paceline("kill", "worker-1")
        self.assertEqual(gone.code, 2, gone.said())
        self.assertIn("no actor 'worker-1' lives, nor any other with a name", gone.err)

    def test_of_workers_of_two_jobs_one_is_meant_by_its_id(self):
        jobs = [self.start_quadratic(nodes=None, workers=2, updates=ENDLESS) for _ in range(2)]
        for job in jobs:
            self.wait_for_update(job, 2)
        ids = {self.worker_pid(job, 1): None for job in jobs}
        ids.update({actor["pid"]: actor["id"] for actor in self.listed("actors") if actor["pid"] in ids})
        for command in (("get", "actor", "worker-1"), ("kill", "worker-1")):
            done = self.paceline(*command)
            self.assertEqual((done.code, done.out), (2, ""), done.said())
            self.assertIn("2 actors are called 'worker-1': give the id of one, of ", done.err)
            for actor in ids.values():
                self.assertIn(f"{actor} (node ", done.err)
        self.assertEqual(self.paceline("stack", "worker-1").code, 2)
        self.assertEqual(self.paceline("kill", ids[self.worker_pid(jobs[1], 1)]).code, 0)
        wait_until(jobs[1].left, 20, "its leave")
        for job in jobs:
            self.end_after(job, 2)
        self.assertEqual([list(job.left()) for job in jobs], [[], [1]])

    def test_what_there_is_not_is_one_clear_error(self):
        for flags, error in ((("things",), "there is no list of things"),
                             (("worker",), "did you mean workers?"),
                             (("workers", "--node", 2), "there is no node 2: this cluster has nodes 0 to 1"),
                             (("workers", "--state", "dead"), "workers are never 'dead': their states are starting, "),
                             (("workers", "--owner", "driver/1"), "nobody has workers, driver/1 neither"),
                             (("jobs", "--owner", "driver/1"), "jobs have no owners: leave out --owner")):
            done = self.paceline("list", *flags)
            self.assertEqual((done.code, done.out), (2, ""), done.said())
            self.assertIn(error, done.err)
            self.assertEqual(done.err.count("\n"), 1, done.err)


if __name__ == "__main__":
    main(at_once=3)
