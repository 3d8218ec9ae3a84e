"""Streams of values on real processes (streams_script.cc checks itself)."""
import os

from harness import NODES, SANITIZED, IntegrationTest, main

STREAMS = os.environ["PACELINE_STREAMS"]
VALUES = 2_000 if SANITIZED else 20_000


class Streams(IntegrationTest):
    def check(self, *arguments, **options):
        return self.run_script(STREAMS, *arguments, **options)

    def test_values_come_in_order(self):
        for nodes in NODES:
            self.check("order", VALUES, nodes=nodes)
        self.check("order", 500, environment={"PACELINE_CHANNELS": "zmq"})

    def test_who_gives_them_is_only_so_far_ahead(self):
        for nodes in NODES:
            self.check("backpressure", self.folder, nodes=nodes)

    def test_errors_come_behind_the_values(self):
        self.check("errors")

    def test_a_stream_that_is_dropped_ends_its_task(self):
        self.check("dropped", self.folder)

    def test_waits_may_be_too_short(self):
        self.check("timeouts")

    def test_what_dies_and_is_run_again_gives_each_value_once(self):
        self.check("dies", self.folder, VALUES)

    def test_coroutines_and_tasks_read(self):
        for nodes in NODES:
            self.check("nested", 300, nodes=nodes)

    def test_main_may_return_in_the_middle(self):
        self.check("left", timeout=30)


if __name__ == "__main__":
    main()
