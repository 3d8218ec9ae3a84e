"""Tasks under load and in distress: each ends with its result, or says why not (tasks_script.cc checks itself)."""
import os
import re
import signal
import threading

from harness import NODES, SANITIZED, IntegrationTest, main, wait_until

TASKS = os.environ["PACELINE_TASKS"]
WITHOUT_LINES = {"PACELINE_CHANNELS": "zmq"}


class Tasks(IntegrationTest):
    def check(self, *arguments, **options):
        return self.run_script(TASKS, *arguments, **options)

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_a_flood_of_tasks_is_run(self):
        for nodes in NODES:
            self.check("flood", 5_000 if SANITIZED else 200_000, nodes=nodes)
        self.check("flood", 2_000 if SANITIZED else 20_000, environment=WITHOUT_LINES)

    def test_many_tasks_wait_in_little_memory(self):
        done = self.check("pending", 2_000 if SANITIZED else 100_000)
        each = int(re.search(r"(\d+) bytes each", done.out)[1])
        if not SANITIZED:
            self.assertLess(each, 1000, done.out)

    def test_long_tasks_use_all_nodes(self):
        for nodes in NODES:
            self.check("spill", self.path(f"met-{nodes}"), nodes, len(os.sched_getaffinity(0)), nodes=nodes)

    def test_a_task_runs_on_the_node_that_it_names(self):
        for nodes in NODES:
            self.check("on_nodes", nodes, nodes=nodes)

    def test_spread_tasks_go_to_nodes_in_turn(self):
        for nodes in (1, 2, 3):
            self.check("spread", nodes, nodes=nodes)

    def test_spread_tasks_of_a_node_that_is_killed_are_run(self):
        up = self.paceline("up", "--nodes", 2)
        self.assertEqual(up.code, 0, up.said())
        begun = self.path("begun")
        run = self.start("run", TASKS, "spread_lost", begun)
        wait_until(lambda: os.path.exists(begun) and os.path.getsize(begun) >= 3, 20, "some run")
        for agent in self.agents(1):
            os.kill(agent, signal.SIGKILL)
        self.assertEqual(run.wait(60), 0, run.said())

    def test_large_tasks_are_run(self):
        self.check("large", 20, 5_000_000)
        self.check("large", 20, 5_000_000, environment=WITHOUT_LINES)

    def test_results_are_arguments(self):
        for nodes in NODES:
            self.check("chains", 200, nodes=nodes)

    def test_a_task_that_kills_its_worker_is_run_again_as_often_as_it_says(self):
        for number, environment in enumerate((None, WITHOUT_LINES)):
            self.check("deaths", self.path(f"runs-{number}"), environment=environment)

    def test_tasks_have_names_and_timeouts_and_are_run_again_as_they_say(self):
        for number, (nodes, node, environment) in enumerate(((1, 0, None), (2, 1, None), (1, 0, WITHOUT_LINES))):
            self.check("options", self.path(f"options-{number}-"), node, nodes=nodes, environment=environment)

    def test_tasks_of_workers_that_are_killed_end(self):
        """Whoever has written its id into the file last is killed, again and again."""
        for nodes, retries in ((1, 0), (1, 100), (2, 0)):
            victim, over = self.path(f"victim-{nodes}-{retries}"), threading.Event()
            ours = set()

            def kill_workers(victim=victim, over=over, ours=ours):
                while not over.wait(0.1):
                    try:
                        with open(victim) as file:
                            pid = int(file.read())
                        os.unlink(victim)
                        if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(TASKS):
                            os.kill(pid, signal.SIGKILL)
                            ours.add(pid)
                    except (OSError, ValueError):
                        pass

            killer = threading.Thread(target=kill_workers)
            killer.start()
            try:
                self.check("kills", victim, 4, retries, nodes=nodes)
            finally:
                over.set()
                killer.join()
            self.assertGreater(len(ours), 2, "workers were killed")

    def test_what_waits_behind_a_long_task_goes_elsewhere(self):
        self.check("behind", self.path("behind"))

    def test_a_tree_of_tasks_that_wait_for_tasks_is_run(self):
        for nodes in NODES:
            self.check("tree", 4 if SANITIZED else 6, nodes=nodes)

    def test_a_second_owner_gets_its_share(self):
        self.check("fair")

    def test_what_a_dead_owner_held_is_free(self):
        self.check("owner_died")

    def test_main_may_return_with_tasks_under_way(self):
        self.check("outstanding", timeout=30)
        wait_until(lambda: not self.processes(), 10, "all processes to end")

    def test_tasks_need_what_they_say(self):
        self.check("shapes")


if __name__ == "__main__":
    main(at_once=3)
