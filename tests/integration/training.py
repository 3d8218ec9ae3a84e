"""Training scripts of libtorch, and what they leave: what the tests of training share."""
import json
import os
import struct

from harness import IntegrationTest, SOURCE

SMALL = os.path.join(SOURCE, "tests", "integration", "small_training.cpp")
MNIST = os.path.join(SOURCE, "examples", "fashion_mnist.cpp")
WIDTHS = {"F32": 4, "F64": 8, "I64": 8, "U8": 1, "I32": 4, "F16": 2, "BF16": 2, "BOOL": 1}


def read_checkpoint(path):
    """The header of a safetensors file and the bytes of its tensors, after checking that the file is whole."""
    with open(path, "rb") as file:
        data = file.read()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    ends = sorted(tensor["data_offsets"] for name, tensor in header.items() if name != "__metadata__")
    assert ends[0][0] == 0 and ends[-1][1] == len(data) - 8 - size, "the file is not whole"
    assert all(before[1] == after[0] for before, after in zip(ends, ends[1:])), "holes between tensors"
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        elements = 1
        for dimension in tensor["shape"]:
            elements *= dimension
        assert tensor["data_offsets"][1] - tensor["data_offsets"][0] == elements * WIDTHS[tensor["dtype"]], name
    return header, data[8 + size:]


class TrainingTest(IntegrationTest):
    seconds = 120  # That a run may take.
    standing = 0  # Nodes of the cluster that is up.

    def cluster_of(self, nodes):
        """Runs without --nodes are on a cluster of so many from now on, and do not each start one, which would load
        libtorch anew."""
        if nodes == self.standing:
            return
        if self.standing:
            self.assertEqual(self.paceline("down").code, 0)
        self.assertEqual(self.paceline("up", "--nodes", nodes).code, 0)
        self.standing = nodes

    def start_training(self, script, *flags, arguments=(), environment=None):
        directory = os.path.join(self.folder, f"run-{self.runs}")
        run = self.start("run", script, "--run-dir", directory, *flags, "--", *arguments, environment=environment)
        run.run_directory = directory
        return run

    def train(self, script, *flags, code=0, timeout=None, **more):
        run = self.start_training(script, *flags, **more)
        self.assertEqual(run.wait(timeout or self.seconds), code, run.said())
        return run

    def checkpoint(self, run):
        return os.path.join(run.run_directory, "checkpoint.safetensors")

    def logged(self, run, name):
        """What each worker logged under this name, in order."""
        values = {}
        for event in run.metrics():
            if event["event"] == "metric" and event["name"] == name:
                values.setdefault(event["worker"], []).append(event["value"])
        return values

    def assert_one_model(self, run, workers):
        """By the hashes of what the workers ended with."""
        models = run.result()["models"]
        self.assertEqual(sorted(models, key=int), [str(rank) for rank in range(workers)])
        self.assertEqual(len(set(models.values())), 1, models)
