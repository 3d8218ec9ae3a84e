"""The host of a node is cut off from all others: its processes live, but nothing of it arrives anywhere, and nothing reaches it.
The others notice when the lease is over, and go on without it. Measures time.

All is in a network of its own (tests/support/cut_off.py), so that nothing of the host is changed. Where there is none the tests
are skipped, and say why.
"""
import json
import os
import sys
import time

import records
from harness import ENDLESS, SANITIZED, SLOWDOWN, SOURCE, IntegrationTest, in_release, is_alive, main, wait_until

sys.path.insert(0, os.path.join(SOURCE, "tests", "support"))
import cut_off

LEASE = 2.0
DRIVER_PATIENCE = 10  # For a driver that has lost its agent and may come back.
ENOUGH = 5  # For processes to end.
# Of four nodes; whether workers wait for the last one's.
STRATEGIES = {"allreduce": True, "nonblocking(batches=4)": True, "wagma(group=2,sync=4)": True, "streaming-diloco(period=4,fragments=2)": True,
              "sgp": True, "ad-psgd": True, "server(async)": False}
OF_TWO = {"allreduce": True, "d-psgd(ring)": True, "server(async)": False}


class CutOffs(IntegrationTest):
    def setUp(self):
        super().setUp()
        network = cut_off.private_network()
        try:
            network.__enter__()
        except cut_off.Unavailable as why:
            self.skipTest(f"nobody is cut off: {why}")
        self.addCleanup(network.__exit__, None, None, None)

    def start_cluster(self, nodes):
        """Its last node can be cut off."""
        self.assertEqual(self.paceline("up", "--nodes", nodes).code, 0)
        cut = cut_off.CutOff(os.path.join(self.runtime, "default"), nodes - 1)
        self.addCleanup(cut.__exit__)
        return cut

    def all_are_there(self, nodes):
        wait_until(lambda: len(json.loads(self.paceline("status", "--json").out)["nodes"]) == nodes, 20, "all nodes are there again")

    def start_job(self, strategy):
        run = self.start_quadratic("--strategy", strategy, "--restarts", 0, nodes=None, updates=ENDLESS, sleep_ms=[10])
        wait_until(lambda: run.process.poll() is not None or min(len(run.steps(rank)) for rank in range(4)) >= 20, 30, "all train", run)
        self.assertIsNone(run.process.poll(), run.said())
        return run

    def longest_standstill(self, run, ranks, since):
        """Of these workers, until each has gone on half a second after the lease."""
        def written():
            return {rank: os.path.getsize(os.path.join(run.run_directory, "output", f"worker-{rank}.jsonl")) for rank in ranks}
        last, at, longest = written(), dict.fromkeys(ranks, since), 0.0
        while min(at.values()) < since + LEASE + 0.5:
            self.assertLess(time.monotonic(), since + LEASE + 20 * SLOWDOWN, "they do not go on\n" + run.said())
            self.assertIsNone(run.process.poll(), run.said())
            time.sleep(0.002)
            size, now = written(), time.monotonic()
            for rank in ranks:
                if size[rank] != last[rank]:
                    longest, at[rank] = max(longest, now - at[rank]), now
            last = size
        return longest

    def go_on_without(self, cut, nodes, strategy, waits, is_first):
        run = self.start_job(strategy)
        ranks = [rank for rank in range(4) if rank * nodes // 4 == nodes - 1]
        others = [rank for rank in range(4) if rank not in ranks]
        since = time.monotonic()
        cut.cut()
        longest = self.longest_standstill(run, others, since)
        print(f"{strategy}, {nodes} nodes: the others' longest step {longest:.2f} s", flush=True)
        self.assertLess(longest, LEASE + SLOWDOWN if waits else LEASE / 2, strategy)
        if waits:
            self.assertGreater(longest, LEASE / 2, "somebody was told")
        if is_first:
            wait_until(lambda: not any(self.worker_pid(run, rank) for rank in ranks), DRIVER_PATIENCE + ENOUGH, "it ends its workers")
        self.assertTrue(is_alive(cut.agent()))
        self.enough(run)
        for rank in ranks:
            self.assertEqual(run.left()[rank], f"worker {rank} is gone: node {nodes - 1} is lost (agent/{nodes - 1} has not answered "
                                               f"for {LEASE} s); the others go on without it")
            self.assertIsNone(run.final(rank))
        self.assertEqual(run.result()["lost"], ranks)
        self.assertEqual(set(run.result()["models"]), set(map(str, others)))
        self.assertEqual(len({run.final(rank) for rank in others}), 1, strategy)
        told = {node: records.read(run.run_directory, node)[0] for node in range(nodes - 1)}
        self.assertEqual(records.disagreements(told, nodes - 1, alike=strategy.startswith("streaming")), [], strategy)

    def check(self, nodes, strategies):
        cut = self.start_cluster(nodes)
        for strategy, waits in strategies.items():
            self.all_are_there(nodes)
            with self.subTest(strategy=strategy, nodes=nodes):
                self.go_on_without(cut, nodes, strategy, waits, strategy == next(iter(strategies)))
            cut.restore()

    def test_the_others_of_four_go_on_without_a_node_that_is_cut_off(self):
        self.check(4, dict(list(STRATEGIES.items())[::3]) if SANITIZED else STRATEGIES)

    @in_release
    def test_one_of_two_goes_on_without_the_other_that_is_cut_off(self):
        self.check(2, OF_TWO)

    def test_a_node_that_is_reached_again_takes_part_in_the_next_job(self):
        cut = self.start_cluster(4)
        run = self.start_job("allreduce")
        cut.cut()
        wait_until(lambda: not self.worker_pid(run, 3), LEASE + DRIVER_PATIENCE + ENOUGH, "it ends its workers", run)
        self.enough(run)
        cut.restore()
        self.all_are_there(4)
        again = self.quadratic("--strategy", "allreduce", nodes=None, updates=20)
        self.assertEqual(len({again.final(rank) for rank in range(4)}), 1)

    def test_nobody_is_lost_who_is_cut_off_for_a_moment(self):
        cut = self.start_cluster(4)
        run = self.start_job("allreduce")
        cut.cut()
        time.sleep(LEASE / 4)
        cut.restore()
        steps = len(run.steps(0))
        wait_until(lambda: len(run.steps(0)) > steps + 50, 20, "it goes on", run)
        self.enough(run)
        self.assertEqual(run.left(), {})
        self.assertEqual(len({run.final(rank) for rank in range(4)}), 1)


if __name__ == "__main__":
    main()
