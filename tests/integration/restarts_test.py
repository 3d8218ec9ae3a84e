"""What happens when the cluster's own processes are killed, frozen or started again: supervisor, head and agents."""
import glob
import json
import os
import re
import shutil
import signal
import threading
import time

from harness import ENDLESS, IntegrationTest, PACELINE, QUADRATIC, SLOWDOWN, in_release, main, wait_until

UPDATES = 400


class KilledHeads:
    """Kills the head again and again, until the end of the block, and counts."""

    def __init__(self, test, every):
        self.test, self.every, self.count = test, every * SLOWDOWN, 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.kill)

    def kill(self):
        while not self.over.wait(self.every):
            for pid in self.test.cluster("head"):
                os.kill(pid, signal.SIGKILL)
                self.count += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class TheHead(IntegrationTest):
    def check_run(self, strategy, nodes):
        """Killed all the while: no step is lost, and the models are, bit for bit, what they are without."""
        quiet = self.quadratic("--strategy", strategy, nodes=nodes, updates=UPDATES, sleep_ms=[4])
        with KilledHeads(self, 0.25) as heads:
            killed = self.quadratic("--strategy", strategy, nodes=nodes, updates=UPDATES, sleep_ms=[4])
        self.assertGreaterEqual(heads.count, 2)
        for rank in range(4):
            self.assertEqual(killed.final(rank), quiet.final(rank))
        self.assertEqual(killed.result()["updates"], UPDATES)
        self.assert_nobody_left()

    def test_a_run_goes_on_without_losing_a_step(self):
        self.check_run("allreduce", 2)

    @in_release
    def test_so_it_does_on_one_node_and_with_neighbours(self):
        self.check_run("local-sgd(period=4)", 1)
        self.check_run("d-psgd(ring)", 2)

    def test_what_it_is_asked_while_it_is_killed_is_answered(self):
        """Jobs are submitted and closed, once each, and `status` answers soon."""
        self.assertEqual(self.paceline("up", "--nodes", 2).code, 0)
        with KilledHeads(self, 0.25) as heads:
            for _ in range(8):
                run = self.start_quadratic(nodes=None, updates=20, sleep_ms=[1])
                self.assertEqual(run.wait(30), 0, run.said())
                begin = time.monotonic()
                status = self.paceline("status", "--json")
                self.assertEqual(status.code, 0, status.said())
                self.assertEqual(len(json.loads(status.out)["nodes"]), 2)
                self.assertLess(time.monotonic() - begin, 0.6 * SLOWDOWN)
        self.assertGreaterEqual(heads.count, 2)
        self.assertEqual(json.loads(self.paceline("status", "--json").out)["jobs"], [], "none is left behind")
        self.assertEqual(self.paceline("down").code, 0)
        self.assert_nobody_left()

    def test_a_head_that_is_frozen_is_no_reason_to_stay_up(self):
        self.assertEqual(self.paceline("up").code, 0)
        os.kill(self.cluster("head")[0], signal.SIGSTOP)
        down = self.paceline("down")
        self.assertEqual(down.code, 0, down.said())
        self.assertIn("the cluster does not answer", down.err)
        self.assert_nobody_left()

    def test_a_driver_that_is_killed_while_there_is_no_head_leaves_no_job(self):
        self.assertEqual(self.paceline("up").code, 0)
        run = self.start_quadratic(nodes=None, updates=ENDLESS, sleep_ms=[2])
        self.wait_for_update(run, 5)
        os.kill(self.cluster("supervise")[0], signal.SIGSTOP)  # Nobody starts the next one for a while.
        os.kill(self.cluster("head")[0], signal.SIGKILL)
        run.end()
        os.kill(self.cluster("supervise")[0], signal.SIGCONT)
        wait_until(lambda: json.loads(self.paceline("status", "--json").out or "{}").get("jobs") == [], 10, "the job ends")
        self.assertEqual(self.paceline("down").code, 0)


class WhatBecameOfJobs(IntegrationTest):
    """The next head finds it (DIRECTORY/state.db)."""

    def jobs(self, code=0):
        listed = self.paceline("list", "jobs", "--json")
        self.assertEqual(listed.code, code, listed.said())
        return [json.loads(line) for line in listed.out.splitlines()], listed.err

    def kill_head(self, next_one=True):
        head, = self.cluster("head")
        os.kill(head, signal.SIGKILL)
        if next_one:
            wait_until(lambda: self.cluster("head") not in ([], [head]), 10, "the next head")

    def database(self):
        return os.path.join(self.environment["XDG_RUNTIME_DIR"], "paceline", "default", "state.db")

    def test_heads_and_agents_that_are_started_anew_know_it_and_use_no_number_again(self):
        self.assertEqual(self.paceline("up", "--nodes", 2).code, 0)
        self.assertEqual(self.start_quadratic(nodes=None, updates=20).wait(30), 0)
        failing = self.start_quadratic("--minimum", "4", "--restarts", "0", nodes=None, updates=ENDLESS, sleep_ms=[2])
        self.wait_for_update(failing, 5)
        os.kill(self.worker_pid(failing, 1), signal.SIGKILL)
        self.assertEqual(failing.wait(30), 1, failing.said())
        running = self.start_quadratic(nodes=None, updates=ENDLESS, sleep_ms=[2])
        self.wait_for_update(running, 5)
        self.kill_head()
        first, second, third = self.jobs()[0]
        self.assertEqual((first["job"], first["state"], first["updates"]), (1, "ended", 20))
        self.assertEqual((second["job"], second["state"]), (2, "failed"))
        self.assertIn("--minimum asks for 4", second["failure"])
        self.assertIn(third["state"], ("running", "waiting"))
        for node in (1, 0):
            os.kill(self.agents(node)[0], signal.SIGKILL)
        self.assertEqual(running.wait(30), 1, running.said())
        self.kill_head()
        self.assertEqual(self.start_quadratic(nodes=None, updates=20).wait(30), 0)
        rows = self.jobs()[0]
        self.assertEqual([(row["job"], row["state"]) for row in rows], [(1, "ended"), (2, "failed"), (3, "failed"), (4, "ended")])
        nodes = [json.loads(line) for line in self.paceline("list", "nodes", "--json").out.splitlines()]
        self.assertEqual([node["starts"] for node in nodes], [2, 2])
        self.assertRegex(self.paceline("list", "jobs", "--state", "ended").out, r"\n +4  ended +allreduce +20 ")
        self.assertEqual(self.paceline("down").code, 0)
        self.assert_nobody_left()

    @in_release
    def test_a_run_that_lost_a_node_says_which_and_one_that_was_interrupted_that_it_was(self):
        self.assertEqual(self.paceline("up", "--nodes", 2).code, 0)
        run = self.start_quadratic("--restarts", 0, nodes=None, updates=ENDLESS, sleep_ms=[2])
        self.wait_for_update(run, 5)
        os.kill(self.agents(1)[0], signal.SIGKILL)
        wait_until(lambda: run.left(), 20, "its workers are gone", run)
        self.end_after(run, 20)
        run = self.start_quadratic(nodes=None, updates=ENDLESS, sleep_ms=[2])
        self.wait_for_update(run, 5)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(30), 130, run.said())
        self.kill_head()
        lost, interrupted = self.jobs()[0]
        self.assertEqual([(one["node"], bool(one["cause"])) for one in lost["lost_nodes"]], [(1, True)])
        self.assertEqual((lost["state"], interrupted["state"]), ("ended", "interrupted"))
        self.assertEqual(self.paceline("down").code, 0)

    @in_release
    def test_a_damaged_database_is_put_aside(self):
        self.assertEqual(self.paceline("up").code, 0)
        self.assertEqual(self.start_quadratic(nodes=None, updates=20).wait(30), 0)
        self.assertEqual(os.stat(self.database()).st_mode & 0o077, 0, "nobody else's")
        for end in ("", "-wal"):
            with open(self.database() + end, "r+b") as file:
                file.write(b"x" * 8192)
        self.kill_head()
        self.assertEqual(self.start_quadratic(nodes=None, updates=20).wait(30), 0)
        self.assertTrue(os.path.exists(self.database() + ".damaged"))
        self.assertEqual([row["state"] for row in self.jobs()[0]], ["ended"])
        self.assertEqual(self.paceline("down").code, 0)
        self.assertFalse(os.path.exists(self.database()))

    def test_where_nothing_can_be_written_jobs_run_and_the_list_says_so(self):
        self.assertEqual(self.paceline("up").code, 0)
        supervisor, = self.cluster("supervise")
        os.kill(supervisor, signal.SIGSTOP)
        self.kill_head(next_one=False)
        for name in glob.glob(self.database() + "*"):
            os.remove(name)
        os.makedirs(self.database())  # A folder where the file would be.
        os.kill(supervisor, signal.SIGCONT)
        self.assertEqual(self.start_quadratic(nodes=None, updates=20).wait(30), 0)
        rows, err = self.jobs()
        self.assertEqual([row["state"] for row in rows], ["ended"])
        self.assertIn("the head cannot keep what becomes of jobs: ", err)
        os.rmdir(self.database())
        wait_until(lambda: self.jobs()[1] == "", 10, "it is tried again")
        self.kill_head()
        rows, err = self.jobs()
        self.assertEqual(([row["state"] for row in rows], err), (["ended"], ""))
        self.assertEqual(self.paceline("down").code, 0)


class TheSupervisor(IntegrationTest):
    def test_without_it_all_goes_on_and_down_ends_it(self):
        self.assertEqual(self.paceline("up", "--nodes", 2).code, 0)
        os.kill(self.cluster("supervise")[0], signal.SIGKILL)
        run = self.start_quadratic(nodes=None, updates=50, sleep_ms=[1])
        self.assertEqual(run.wait(30), 0, run.said())
        again = self.paceline("up")
        self.assertEqual(again.code, 2, "it is up: " + again.said())
        down = self.paceline("down")
        self.assertEqual((down.code, down.err), (0, ""), down.said())
        self.assert_nobody_left()

    def test_a_run_whose_supervisor_is_killed_or_frozen_leaves_nothing(self):
        for what in (signal.SIGKILL, signal.SIGSTOP):
            run = self.start_quadratic(updates=ENDLESS, sleep_ms=[2], nodes=2)
            self.wait_for_update(run, 5)
            os.kill(self.cluster("supervise")[0], what)
            self.end_after(run, 20)
            self.assert_nobody_left()
            self.assertEqual([name for name in os.listdir(self.runtime) if not name.startswith(".")], [])

    def test_a_killed_command_takes_its_cluster_with_it_even_without_one(self):
        run = self.start_quadratic(updates=ENDLESS, sleep_ms=[2], nodes=2)
        self.wait_for_update(run, 5)
        os.kill(self.cluster("supervise")[0], signal.SIGKILL)
        os.kill(run.process.pid, signal.SIGKILL)
        self.assert_nobody_left(5)

    def test_ctrl_c_ends_a_frozen_cluster(self):
        run = self.start_quadratic(updates=ENDLESS, sleep_ms=[2], nodes=2)
        self.wait_for_update(run, 5)
        for pid in self.cluster():
            os.kill(pid, signal.SIGSTOP)
        self.interrupt(run, within=9)
        self.assert_nobody_left()

    def test_none_of_its_processes_runs_twice(self):
        self.assertEqual(self.paceline("up").code, 0)
        directory = os.path.join(self.runtime, "default")
        for kind in ("supervise", "head", "agent"):
            second = self.paceline(kind, "--directory", directory)
            self.assertEqual(second.code, 2, second.said())
            self.assertIn("runs already", second.err)
        self.assertEqual(self.paceline("down").code, 0)

    def test_what_keeps_a_process_from_starting_is_told_at_once(self):
        directory = os.path.join(self.folder, "cluster")
        os.makedirs(os.path.join(directory, "head.sock", "in-the-way"))
        os.chmod(directory, 0o700)
        failed = self.paceline("supervise", "--directory", directory)
        self.assertEqual(failed.code, 1, failed.said())
        self.assertIn("the head ended (exit status", failed.err)
        self.assertIn("head.sock", failed.err)

    @in_release
    def test_up_says_what_kept_the_cluster_from_starting(self):
        up = self.start("-c", f"ulimit -n 20; exec {PACELINE} up", program="/bin/sh")
        self.assertEqual(up.wait(20), 1, up.said())
        self.assertIn("while the cluster started", up.err)
        self.assertRegex(up.err, "[Tt]oo many open files")
        self.assertEqual(self.paceline("up").code, 0, "and nothing of it is in the way")
        self.assertEqual(self.paceline("down").code, 0)


class Agents(IntegrationTest):
    def test_a_killed_agent_is_started_again_and_takes_the_next_job(self):
        self.assertEqual(self.paceline("up", "--nodes", 3).code, 0)
        for node in (0, 2, 1):
            run = self.start_quadratic(nodes=None, updates=ENDLESS, sleep_ms=[2])
            self.wait_for_update(run, 5)
            os.kill(self.agents(node)[0], signal.SIGKILL)
            wait_until(lambda: run.left(), 20, "its workers are gone", run)
            self.end_after(run, 50)
        run = self.start_quadratic(nodes=None, updates=30, workers=6)
        self.assertEqual(run.wait(30), 0, run.said())
        status = json.loads(self.paceline("status", "--json").out)
        self.assertEqual([node["answers"] for node in status["nodes"]], [True] * 3)
        self.assertEqual(status["jobs"], [])
        self.assertEqual(self.paceline("down").code, 0)
        self.assert_nobody_left()

    def test_a_frozen_agent_that_goes_on_takes_the_next_job(self):
        """Lost to those that needed it, and linked to them again: all is as before, and nobody was started anew."""
        self.assertEqual(self.paceline("up", "--nodes", 3).code, 0)
        run = self.start_quadratic(nodes=None, updates=ENDLESS, sleep_ms=[2], workers=6)
        self.wait_for_update(run, 5)
        agent, = self.agents(1)
        os.kill(agent, signal.SIGSTOP)
        wait_until(lambda: run.left(), 20, "its workers are gone", run)
        self.assertIn("node 1 is lost (agent/1 has not answered for 2.0 s)", run.out)
        self.end_after(run, 50)
        os.kill(agent, signal.SIGCONT)
        run = self.start_quadratic(nodes=None, updates=30, workers=6)
        self.assertEqual(run.wait(30), 0, run.said())
        self.assertEqual(self.agents(1), [agent])
        self.assertEqual(json.loads(self.paceline("status", "--json").out)["jobs"], [])
        self.assertEqual(self.paceline("down").code, 0)
        self.assert_nobody_left()

    def check_return(self, strategy, node, how=signal.SIGKILL):
        """The job goes on without it, and its workers join when its agent is there again, or goes on."""
        its = [rank for rank in range(6) if rank // 2 == node]
        run = self.start_quadratic("--strategy", strategy, nodes=None, workers=6, updates=ENDLESS, sleep_ms=[4], goes_on_writing=True)
        self.wait_for_update(run, 20)
        agent, = self.agents(node)
        os.kill(agent, how)
        if how == signal.SIGSTOP:
            wait_until(lambda: set(run.left()) == set(its), 20, "its workers are gone", run)
            os.kill(agent, signal.SIGCONT)
        wait_until(lambda: {event["worker"] for event in run.metrics() if event.get("event") == "returned"} == set(its), 30, "they join", run)
        self.wait_for_update(run, run.update() + 40)
        jobs = json.loads(self.paceline("list", "jobs", "--json").out.splitlines()[-1])
        self.assertFalse(jobs.get("lost_nodes"), jobs)
        self.end_after(run, 40)
        result = run.result()
        self.assertEqual(result["joined"], {str(rank): 1 for rank in its}, strategy)
        self.assertNotIn("lost", result)
        self.assertEqual(set(result["models"]), set("012345"), strategy)
        self.assertEqual(len(set(result["models"].values())), 1, result["models"])
        lost, back = (next(event for event in run.metrics() if event.get("event") == kind) for kind in ("node_lost", "node_joined"))
        self.assertEqual((lost["node"], back["node"], back["leg"]), (node, node, 1))
        self.assertIn(f"node {node} takes part in the job from here on: workers can join there\n", run.out)
        return run

    def test_a_lost_node_comes_back_to_its_job(self):
        self.assertEqual(self.paceline("up", "--nodes", 3).code, 0)
        self.check_return("allreduce", 2)
        self.check_return("wagma(group=2,grouping=strided,late=skip)", 1, signal.SIGSTOP)
        run = self.check_return("allreduce", 0)  # That of the driver, and which leads.
        self.assertEqual(run.out.count("it goes on through that of node"), 1)
        self.assertEqual(self.paceline("down").code, 0)
        self.assert_nobody_left()

    @in_release
    def test_so_it_does_under_strategies_of_every_kind(self):
        self.assertEqual(self.paceline("up", "--nodes", 3).code, 0)
        for strategy in ("local-sgd(period=5)", "nonblocking(batches=2)", "eager-sgd(solo,sync=5)", "server(bounded=2)", "ad-psgd(bipartite)",
                         "d-psgd(ring)", "sgp", "slowmo(period=3)"):
            with self.subTest(strategy):
                self.check_return(strategy, 1)
        self.assertEqual(self.paceline("down").code, 0)

    def test_where_the_program_is_gone_from_the_disk_those_that_cannot_be_started_are_named(self):
        program = os.path.join(self.folder, "program")
        shutil.copy(QUADRATIC, program)
        self.assertEqual(self.paceline("up", "--nodes", 2).code, 0)
        run = self.start_quadratic(nodes=None, program=program, updates=ENDLESS, sleep_ms=[4], goes_on_writing=True)
        self.wait_for_update(run, 5)
        os.remove(program)
        self.signal_worker(run, 1, signal.SIGKILL)  # Forked from a process that has it.
        wait_until(lambda: [event["worker"] for event in run.metrics() if event.get("event") == "returned"] == [1], 20, "its return", run)
        agent, = self.agents(1)
        os.kill(agent, signal.SIGKILL)
        for worker in (2, 3):
            wait_until(lambda: re.search(f"warning: worker {worker}, which was to join, has ended: .*/program: No such file or directory",
                                         run.said()), 30, f"worker {worker} is named", run)
        self.end_after(run, 20)
        self.assertEqual(self.paceline("down").code, 0)
        self.assert_nobody_left()

    def test_fewer_than_the_minimum_go_on_for_a_lost_node_that_comes_back(self):
        self.assertEqual(self.paceline("up", "--nodes", 2).code, 0)
        run = self.start_quadratic("--minimum", 4, nodes=None, updates=ENDLESS, sleep_ms=[4], goes_on_writing=True)
        self.wait_for_update(run, 5)
        agent, = self.agents(1)
        os.kill(agent, signal.SIGKILL)
        wait_until(lambda: {event["worker"] for event in run.metrics() if event.get("event") == "returned"} == {2, 3}, 30, "they join", run)
        self.wait_for_update(run, run.update() + 20)
        self.end_after(run, 20)
        self.assertNotIn("lost", run.result())
        for flags, most in ((("--minimum-wait", "2s"), 20), (("--elastic", "no"), 5)):
            run = self.start_quadratic("--minimum", 4, *flags, nodes=None, updates=ENDLESS, sleep_ms=[4], goes_on_writing=True)
            self.wait_for_update(run, 5)
            agent, = self.agents(1)
            os.kill(agent, signal.SIGSTOP)
            self.assertEqual(run.wait(most + 10), 1, run.said())
            self.assertIn("paceline: workers 2, 3 were lost: 2 of 4 remain", run.err)
            few = "workers 2, 3 were lost: 2 of 4 remain, and --minimum asks for 4; the node may come back, and the run goes on for 2 s so"
            self.assertEqual(run.said().count(few), int(flags[1] == "2s"), run.said())
            os.kill(agent, signal.SIGCONT)
            wait_until(lambda: json.loads(self.paceline("status", "--json").out)["jobs"] == [] and self.agents(1), 20, "the node is there")
        self.assertEqual(self.paceline("down").code, 0)
        self.assert_nobody_left()

    def test_where_nobody_is_started_again_it_does_not(self):
        self.assertEqual(self.paceline("up", "--nodes", 2).code, 0)
        run = self.start_quadratic("--restarts", 0, nodes=None, updates=ENDLESS, sleep_ms=[2])
        self.wait_for_update(run, 5)
        agent, = self.agents(1)
        os.kill(agent, signal.SIGKILL)
        wait_until(lambda: self.agents(1) not in ([], [agent]), 20, "the next agent")
        self.wait_for_update(run, run.update() + 200)
        self.end_after(run, 20)
        self.assertEqual(run.result()["lost"], [2, 3])
        self.assertEqual([event for event in run.metrics() if event.get("event") == "node_joined"], [])
        self.assertEqual(self.paceline("down").code, 0)

    def test_down_ends_frozen_ones(self):
        for node in (0, 1):
            self.assertEqual(self.paceline("up", "--nodes", 2).code, 0)
            os.kill(self.agents(node)[0], signal.SIGSTOP)
            down = self.paceline("down")
            self.assertEqual(down.code, 0, down.said())
            self.assert_nobody_left()
            self.assertEqual(self.paceline("status").code, 2, "and nobody says that it is still up")


if __name__ == "__main__":
    main(at_once=3)
