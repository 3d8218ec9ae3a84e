"""Actors whose calls run at a time, in real processes (concurrent_actors_script.cc checks itself)."""
import os

from harness import NODES, SANITIZED, IntegrationTest, main

CONCURRENT_ACTORS = os.environ["PACELINE_CONCURRENT_ACTORS"]
WAYS = (None, {"PACELINE_CHANNELS": "zmq"})  # Past the agent, and through it.


class ConcurrentActors(IntegrationTest):
    def check(self, *arguments, **options):
        self.run_script(CONCURRENT_ACTORS, *arguments, **options)

    def test_calls_run_at_a_time(self):
        for threads in (1, 2, 16):
            for way in WAYS:
                self.check("together", threads, environment=way)

    def test_groups_do_not_wait_for_each_other(self):
        for nodes in NODES:
            self.check("groups", nodes, nodes=nodes)

    def test_a_coroutine_goes_on_in_its_thread(self):
        self.check("coroutines", 100)

    def test_a_flood(self):
        self.check("flood", 2_000 if SANITIZED else 20_000)

    def test_the_calls_of_a_killed_one_end(self):
        for way in WAYS:
            self.check("killed", 500, environment=way)

    def test_one_of_several_is_cancelled(self):
        for way in WAYS:
            self.check("cancelled", environment=way)

    def test_a_restarted_one_has_its_threads_again(self):
        self.check("restarted")

    def test_two_call_each_other(self):
        for nodes in NODES:
            self.check("circle", nodes, nodes=nodes)

    def test_bad_numbers_are_refused(self):
        self.check("refused")


if __name__ == "__main__":
    main()
