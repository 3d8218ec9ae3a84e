"""The agent that a run's driver is connected to is killed, or stands still: the job goes on, and the driver through another
agent."""
import json
import os
import signal

from harness import SLOWDOWN, IntegrationTest, main, wait_until


class DriverMoves(IntegrationTest):
    def begin(self, *flags, nodes=2, workers=4, updates=2000, **options):
        run = self.start_quadratic("--strategy", options.pop("strategy", "allreduce"), "--restarts", "0", *flags, nodes=nodes, workers=workers,
                                   updates=updates, sleep_ms=[2], elements=32, **options)
        self.wait_for_update(run, 20)
        return run

    def begin_on_a_cluster_that_stays(self):
        self.assertEqual(self.paceline("up", "--nodes", 2).code, 0)
        return self.begin(nodes=None, updates=1000000)

    def jobs(self):
        return json.loads(self.paceline("status", "--json").out)["jobs"]

    def kill_agent(self, node):
        os.kill(self.agents(node)[0], signal.SIGKILL)

    def moves(self, run):
        return run.out.count("it goes on through that of node")

    def assert_went_on(self, run, lost, moves=1):
        self.assertEqual(run.wait(60), 0, run.said())
        self.assertEqual(self.moves(run), moves, run.said())
        self.assertEqual(run.result()["lost"], lost)
        ended = [event for event in run.metrics() if event["event"] == "final"]
        self.assertEqual(sorted(event["worker"] for event in ended), [rank for rank in range(4) if rank not in lost])
        self.assertEqual(len({event["model"] for event in ended}), 1)

    def test_the_run_ends_as_if_any_other_node_had_been_lost(self):
        for strategy in ("allreduce", "wagma(group=2,sync=8)", "sgp", "server(async)"):
            with self.subTest(strategy):
                run = self.begin(strategy=strategy, updates=1500)
                self.kill_agent(0)
                self.assert_went_on(run, [0, 1])
                self.assert_nobody_left(5)

    def test_no_evaluation_is_missed_and_none_is_told_twice(self):
        run = self.begin(updates=1500, evaluate_every=5)
        self.kill_agent(0)
        self.assert_went_on(run, [0, 1])
        evaluated = [event["update"] for event in run.metrics() if event["event"] == "evaluated"]
        self.assertEqual(evaluated, list(range(5, 1501, 5)))

    def test_what_workers_print_is_shown_from_there_on(self):
        run = self.begin(updates=1500, say_every=1)
        self.kill_agent(0)
        self.assert_went_on(run, [0, 1])
        lines = [line for line in (run.out + run.err).splitlines() if "worker-3" in line and "at update" in line]
        seen = [int(line.rsplit(" ", 1)[1]) for line in lines]
        self.assertEqual(seen, sorted(set(seen)), "in order, each once")
        self.assertEqual(seen[-1], 1499, "what was on its way to the lost agent is in the log only")

    def test_the_next_agent_may_be_lost_too(self):
        run = self.begin(nodes=4, updates=3000)
        for node in (0, 1):
            before = self.moves(run)
            self.kill_agent(node)
            wait_until(lambda: self.moves(run) > before, 10 * SLOWDOWN, "it moves", run)
            self.wait_for_update(run, run.update() + 20)
        self.assert_went_on(run, [0, 1], moves=2)

    def test_a_node_without_workers_is_all_that_is_lost(self):
        run = self.begin(nodes=3, workers=2, environment={"PACELINE_NODE": "2"}, updates=1500)
        self.kill_agent(2)
        self.assertEqual(run.wait(60), 0, run.said())
        self.assertEqual((run.result()["nodes"], run.result().get("lost")), ([0, 1], None))

    def test_an_agent_that_stands_still_is_left(self):
        run = self.begin(updates=4000)
        frozen = self.agents(0)[0]
        os.kill(frozen, signal.SIGSTOP)
        try:
            wait_until(lambda: self.moves(run) > 0, 20 * SLOWDOWN, "it moves", run)
            self.wait_for_update(run, run.update() + 50)
        finally:
            os.kill(frozen, signal.SIGCONT)
        self.assert_went_on(run, [0, 1])

    def test_what_a_worker_throws_reaches_the_driver_that_has_moved(self):
        run = self.begin(updates=4000, fail="throw", fail_rank=3, fail_update=600)
        self.kill_agent(0)
        self.assertEqual(run.wait(60), 1, run.said())
        self.assertEqual(self.moves(run), 1)
        self.assertIn("worker 3", run.err)

    def test_it_can_be_interrupted(self):
        run = self.begin(updates=1000000)
        self.kill_agent(0)
        wait_until(lambda: self.moves(run) > 0, 10 * SLOWDOWN, "it moves", run)
        self.interrupt(run)
        self.assert_nobody_left(5)

    def test_a_driver_that_is_killed_leaves_nothing_of_its_job(self):
        run = self.begin_on_a_cluster_that_stays()
        self.kill_agent(0)
        wait_until(lambda: self.moves(run) > 0, 10 * SLOWDOWN, "it moves", run)
        os.kill(run.process.pid, signal.SIGKILL)
        wait_until(lambda: not self.worker_pid(run, 3), 5 * SLOWDOWN, "its workers end")

    def test_one_whose_driver_ends_with_its_agent_is_over_soon(self):
        run = self.begin_on_a_cluster_that_stays()
        os.killpg(run.process.pid, signal.SIGSTOP)  # The command, and the script that it runs.
        self.kill_agent(0)
        os.killpg(run.process.pid, signal.SIGKILL)
        self.assertTrue(self.worker_pid(run, 3), "the driver might come back")
        wait_until(lambda: not self.worker_pid(run, 3), 15, "its workers end, 10 s later")
        wait_until(lambda: self.jobs() == [], 5 * SLOWDOWN, "and so does the job")

    def test_where_nobody_is_left_it_says_so(self):
        run = self.begin(nodes=1, updates=1000000)
        self.kill_agent(0)
        self.assertEqual(run.wait(60), 1, run.said())
        self.assertRegex(run.err, "agent-0.sock is gone|node 0 was lost, with its workers")


if __name__ == "__main__":
    main(at_once=4)
