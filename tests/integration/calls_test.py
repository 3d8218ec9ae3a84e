"""Calls under load and in distress: what is sent arrives, or its sender hears why not (calls_script.cc checks itself)."""
import os
import resource
import shutil
import signal

from harness import NODES, SANITIZED, IntegrationTest, in_release, main, wait_until

CALLS = os.environ["PACELINE_CALLS"]
BEFORE = (0, 50)  # Calls, so few or so many that those that count go past the agent.


class Calls(IntegrationTest):
    def check(self, *arguments, **options):
        self.run_script(CALLS, *arguments, **options)

    def test_a_flood_of_calls_arrives(self):
        for nodes in NODES:
            self.check("flood", 20_000 if SANITIZED else 200_000, 20_000 if SANITIZED else 100_000, nodes=nodes)

    def test_calls_before_an_actor_is_ready_arrive(self):
        self.check("before_ready", 20_000)

    def test_calls_to_a_stopped_actor_arrive_when_it_goes_on_and_keep_nobody(self):
        for before in BEFORE:
            self.check("stopped", 10_000, before)

    @in_release
    def test_calls_to_a_busy_actor_arrive(self):
        self.check("busy", 50_000)

    def test_large_calls_arrive(self):
        self.check("large", 20, 5_000_000)

    def test_calls_to_a_killed_actor_end_and_say_so(self):
        for nodes in NODES:
            for before in BEFORE:
                self.check("killed", 10_000, before, nodes=nodes)

    def test_no_call_overtakes_another_whichever_way_each_goes(self):
        self.check("mixed", 5_000 if SANITIZED else 20_000)

    def test_many_callers_of_one_actor_get_their_own_results(self):
        self.check("callers", 6, 500 if SANITIZED else 3_000)

    def test_an_actor_stays_until_its_calls_are_answered_and_no_longer(self):
        for nodes in NODES:
            self.check("temporary", 20, nodes=nodes)

    def test_many_actors_at_once(self):
        _, descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
        actors = 200 if SANITIZED else min(2000, (descriptors - 128) // 8)
        self.check("many", actors)

    def test_where_a_fork_server_cannot_be_started_again_nobody_waits_for_it(self):
        program = shutil.copy(CALLS, os.path.join(self.folder, "calls"))
        done = self.paceline("run", program, "--", "server_failed", timeout=60)
        self.assertEqual(done.code, 0, done.said())

    def test_an_actor_on_no_node_is_an_error(self):
        for nodes in NODES:
            self.check("nowhere", nodes=nodes)

    def test_calls_that_wait_in_a_circle_fail(self):
        for actors in (1, 2, 5):
            for before in BEFORE:
                self.check("circle", actors, before)

    def test_tasks_that_wait_for_tasks_give_their_cpus_back(self):
        self.check("nested", 4, 1)
        self.check("nested", 4, 8)

    def test_nothing_is_left_when_paceline_run_is_killed(self):
        run = self.start("run", CALLS, "--", "busy", "1000000")
        wait_until(lambda: len(self.processes()) >= 5, 10, "command, driver, fork server and worker")
        os.kill(run.process.pid, signal.SIGKILL)
        self.assert_nobody_left(5)

    def lose_a_node(self, how):
        run = self.start("run", CALLS, "--nodes", "2", "--", "node_lost")
        wait_until(lambda: "calls" in run.out, 10, "its calls")
        agent, = self.agents(1)
        os.kill(agent, how)
        wait_until(lambda: "lost" in run.out, 20, "an error")
        if how == signal.SIGSTOP:
            os.kill(agent, signal.SIGCONT)
        self.assertEqual(run.wait(20), 0, run.said())

    def test_calls_to_a_node_that_is_killed_end_and_say_so_until_it_is_back(self):
        self.lose_a_node(signal.SIGKILL)

    def test_calls_to_a_node_that_is_frozen_end_within_the_lease_and_say_so_until_it_goes_on(self):
        self.lose_a_node(signal.SIGSTOP)


if __name__ == "__main__":
    main()
