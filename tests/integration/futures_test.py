"""Futures on real processes: waiting for many, with deadlines (futures_script.cc checks itself)."""
import os

from harness import NODES, SANITIZED, IntegrationTest, main

FUTURES = os.environ["PACELINE_FUTURES"]
WITHOUT_LINES = {"PACELINE_CHANNELS": "zmq"}


class Futures(IntegrationTest):
    def check(self, *arguments, **options):
        return self.run_script(FUTURES, *arguments, **options)

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_timeouts_take_nothing_away(self):
        self.check("timeouts")

    def test_each_of_many_comes_out_once(self):
        for nodes in NODES:
            self.check("many", 1_000 if SANITIZED else 10_000, nodes=nodes)
        self.check("many", 1_000, environment=WITHOUT_LINES)

    def test_waiting_parts_what_is_there(self):
        self.check("looks")

    def test_tasks_that_wait_for_several_hold_nobody_up(self):
        for nodes in NODES:
            self.check("nested", 6, nodes=nodes)

    def test_who_waits_for_itself_among_others_fails(self):
        self.check("circles")

    def test_functions_of_results_run_here(self):
        for nodes in NODES:
            self.check("chains", nodes=nodes)
        self.check("then_in_tasks", 6)

    def test_main_may_return_with_functions_under_way(self):
        self.check("left", timeout=30)

    def test_map_keeps_the_order_and_ends_with_the_first_error(self):
        for nodes in NODES:
            self.check("map", nodes=nodes)

    def test_parallel_for_gives_each_index_once(self):
        self.check("counts", self.path("indices"))  # With AddressSanitizer some other ends look like addresses.

    def test_what_is_cancelled_ends(self):
        cpus = len(os.sched_getaffinity(0))
        for number, (nodes, node, environment) in enumerate(((1, 0, None), (2, 1, None), (1, 0, WITHOUT_LINES))):
            self.check("cancel", self.path(f"cancel-{number}-"), node, cpus, nodes=nodes, environment=environment)

    def test_calls_that_are_cancelled_end_and_their_actor_goes_on(self):
        for number, (nodes, node, environment) in enumerate(((1, 0, None), (2, 1, None), (1, 0, WITHOUT_LINES))):
            self.check("cancel_calls", self.path(f"calls-{number}-"), node, nodes=nodes, environment=environment)

    def test_the_first_error_of_a_map_cancels_the_others(self):
        self.check("map_ends", self.path("ends"))

    def test_all_end_whoever_cancels(self):
        for nodes in NODES:
            self.check("storm", 3, nodes=nodes)


if __name__ == "__main__":
    main(at_once=3)
