"""Nodes whose workers may have little memory (memory_script.cc checks itself)."""
import json
import os
import re

from harness import IntegrationTest, main, wait_until

MEMORY = os.environ["PACELINE_MEMORY"]


class Memory(IntegrationTest):
    def setUp(self):
        super().setUp()
        up = self.paceline("up", "--memory", "512MiB", "--cpus", 4)
        self.assertEqual(up.code, 0, up.said())

    def check(self, *arguments):
        done = self.paceline("run", MEMORY, *arguments, timeout=100)
        self.assertEqual(done.code, 0, done.said())
        return done

    def test_who_takes_more_than_there_is_ends_with_the_figure_and_the_node_survives(self):
        agents = self.agents()
        done = self.check("limit", os.path.join(self.folder, "once"))
        self.assertRegex(done.err, r"\(paceline\) worker \d+ on node 0 \(runs tasks\) killed for its memory: it had \d+ MiB")
        self.assertRegex(done.err, r"\(paceline\) worker \d+ on node 0 \(actor 'greedy'\) killed for its memory: ")
        self.assertEqual(len(re.findall("killed for its memory", done.err)), 5, done.err)
        self.assertEqual(self.agents(), agents)

    def test_who_has_what_it_asked_for_is_spared(self):
        self.check("asked")

    def test_memory_is_promised_once(self):
        self.check("promised")

    def test_who_waits_for_memory_is_told_who_has_it(self):
        holder = self.start("run", MEMORY, "waits")

        def listed(kind):
            return [json.loads(line) for line in self.paceline("list", kind, "--json").out.splitlines()]

        def tasks():
            return listed("tasks")
        wait_until(lambda: any(row["lent"] for row in tasks()), 10, "the first one runs")
        waiting = self.start("run", MEMORY, "waits")
        wait_until(lambda: sum(row["missing"] for row in tasks()) == 1, 10, "the second one waits")
        status = self.paceline("status").out
        self.assertIn("wait for 1 cpu and 400 MiB of memory each", status)
        self.assertRegex(status, r"node 0: [34] of 4 cpus are free, 112 MiB of 512 MiB of memory; driver/\S+ holds 1 cpu and 400 MiB")
        nodes = listed("nodes")
        self.assertEqual((nodes[0]["memory"], nodes[0]["memory_free"]), (512 << 20, 112 << 20))
        wait_until(lambda: "the memory of node 0 is held by driver/" in waiting.err, 15, "it is told")
        holder.end()
        wait_until(lambda: [row["lent"] for row in tasks()] == [1], 10, "then it runs")

    def test_bad_sizes_are_refused(self):
        for size in ("0", "1MiB", "lots", "-4GiB", "4XB"):
            refused = self.paceline("up", "--name", "other", "--memory", size)
            self.assertEqual(refused.code, 2, refused.said())
            self.assertIn(f"--memory {size}: give a size such as 500MB or 4GiB, 64MiB at least", refused.err)
        refused = self.paceline("up", "--name", "other", "--cpus", 0)
        self.assertEqual(refused.code, 2, refused.said())


if __name__ == "__main__":
    main()
