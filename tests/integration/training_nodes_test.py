"""Training with libtorch on two nodes: what one node would have made, to the bit where the strategy is deterministic."""
from harness import main
from training import MNIST, SMALL, TrainingTest, read_checkpoint


class TwoNodes(TrainingTest):
    def tensors(self, run):
        return read_checkpoint(self.checkpoint(run))[1]

    def on(self, nodes, script, *flags, workers=2, **more):
        run = self.train(script, "--nodes", nodes, "--workers", workers, *flags, **more)
        self.assertEqual(run.result()["nodes"], [rank * nodes // workers for rank in range(workers)])
        self.assert_one_model(run, workers)
        return run

    def test_the_main_example_makes_the_same_model_on_two_nodes_as_on_one(self):
        one, two = [self.on(nodes, MNIST, "--strategy", "allreduce", "--epochs", 0.2, "--target", "none") for nodes in (1, 2)]
        self.assertGreater(two.result()["test_accuracy"], 0.5, "a fifth of an epoch teaches that much")
        self.assertEqual(two.result()["test_accuracy"], one.result()["test_accuracy"])
        self.assertEqual(two.result()["models"], one.result()["models"])
        self.assertEqual(self.tensors(two), self.tensors(one))

    def test_a_run_of_two_nodes_goes_on_from_its_checkpoint_on_two_and_on_one(self):
        whole = self.on(2, SMALL, "--epochs", 4, arguments=["norm"])
        half = self.on(2, SMALL, "--epochs", 2, arguments=["norm"])
        self.assertNotEqual(self.tensors(half), self.tensors(whole))
        for nodes in (2, 1):
            rest = self.on(nodes, SMALL, "--epochs", 4, "--resume", half.run_directory, arguments=["norm"])
            started = next(event for event in rest.metrics() if event["event"] == "started")
            self.assertEqual((started["first"], started["updates"]), (64, 128))
            self.assertEqual(self.tensors(rest), self.tensors(whole), f"on {nodes}")

    def evaluations(self, run):
        return [(event["update"], event["value"]) for event in run.metrics() if event["event"] == "evaluated"]

    def test_evaluations_come_when_the_run_says_and_show_what_they_show_on_one_node(self):
        for share, updates in ((0.5, list(range(16, 65, 16))), (1, [32, 64]), (0, [64])):
            one, two = [self.on(nodes, SMALL, "--epochs", 2, "--evaluate-every-epochs", share) for nodes in (1, 2)]
            found = self.evaluations(two)
            self.assertEqual([update for update, _ in found], updates)
            self.assertEqual(found, self.evaluations(one))
            self.assertEqual(found[-1][1], two.result()["test_accuracy"])
            self.assertGreater(found[-1][1], 0.9, "a line separates the classes")

    def test_workers_of_both_nodes_end_with_one_model_and_one_set_of_buffers(self):
        for strategy in ("wagma(group=2,sync=4)", "nonblocking(batches=2)", "local-sgd(period=4)", "d-psgd(ring)",
                         "hier-avg(k1=2,k2=4,group=2)", "ad-psgd", "noloco(period=4)"):
            with self.subTest(strategy):
                run = self.on(2, SMALL, "--strategy", strategy, workers=4, arguments=["norm"])
                self.assertGreater(run.result()["test_accuracy"], 0.9)
                buffers = self.logged(run, "buffers")
                self.assertEqual(sorted(buffers), [0, 1, 2, 3])
                self.assertEqual(len({value for values in buffers.values() for value in values}), 1, buffers)


if __name__ == "__main__":
    main()
