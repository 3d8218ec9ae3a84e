"""A checkpoint as Python's `safetensors` reads it: names, types, shapes and values are what the run had."""
import json
import os
import subprocess
import sys

from harness import SOURCE, main
from training import SMALL, TrainingTest

PYTHONS = (os.path.join(SOURCE, "build", "python", "bin", "python"), sys.executable)  # The first is made by ./check.
READ = """
import json, sys
from safetensors import safe_open
with safe_open(sys.argv[1], framework="numpy") as file:
    tensors = {name: file.get_tensor(name) for name in file.keys()}
    print(json.dumps({"metadata": file.metadata(), "tensors": {
        name: [str(tensor.dtype), list(tensor.shape), tensor.reshape(-1).tolist()] for name, tensor in tensors.items()}}))
"""


def python_with_safetensors():
    for python in PYTHONS:
        if os.path.exists(python) and subprocess.run([python, "-c", "import safetensors.numpy"], check=False,
                                                     capture_output=True).returncode == 0:
            return python
    return None


class Checkpoint(TrainingTest):
    def test_pythons_package_reads_what_the_run_had(self):
        python = python_with_safetensors()
        if not python:
            self.skipTest("no Python here has safetensors and numpy: python3 -m venv build/python, then "
                          "build/python/bin/pip install safetensors numpy")
        run = self.train(SMALL, arguments=["norm"])
        read = subprocess.run([python, "-c", READ, self.checkpoint(run)], check=True, capture_output=True, text=True)
        found = json.loads(read.stdout)
        self.assertEqual(found["metadata"]["format"], "pt")
        self.assertEqual((found["metadata"]["update"], found["metadata"]["strategy"]), ("128", "allreduce"))
        shapes = {"0.weight": [2, 8], "0.bias": [2], "1.weight": [2], "1.bias": [2]}
        model = {name: ("float32", shape) for name, shape in shapes.items()}
        model |= {"1.running_mean": ("float32", [2]), "1.running_var": ("float32", [2]), "1.num_batches_tracked": ("int64", [])}
        momenta = {f"paceline.optimizer.momentum_buffer.{name}": ("float32", shape) for name, shape in shapes.items()}
        tensors = found["tensors"]
        self.assertEqual({name: (kind, shape) for name, (kind, shape, _) in tensors.items()}, model | momenta)
        for name in model:
            self.assertEqual(tensors[name][2], self.logged(run, name)[0], name)
        self.assertEqual(tensors["1.num_batches_tracked"][2], [128])
        for name in momenta:
            self.assertTrue(any(tensors[name][2]), name)


if __name__ == "__main__":
    main()
