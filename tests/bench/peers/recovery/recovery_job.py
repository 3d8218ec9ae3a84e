"""The job of tests/bench/recovery.py, the same under every peer: a vector of 6.25 million float32 (25 MB), four workers, 0.1 s of sleep
a step for computing, a gradient that costs next to nothing, a mini-batch of 32 samples a worker.

Each worker appends lines to FOLDER/worker-RANK.jsonl: `computed` when it has computed on a mini-batch, `committed` when the step that
used it is done; `samples` of a committed one are those of this worker that went into the model. FOLDER/enough holds the step at which
all end, once there is one.
"""
import json
import os
import time

import torch

ELEMENTS = 6_250_000
WORKERS = 4
BATCH = 32
COMPUTING_S = 0.1


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(ELEMENTS))

    def forward(self, batch):
        return self.weight.sum() * batch.mean()


def optimizer_of(net):
    return torch.optim.SGD(net.parameters(), lr=0.001)


def step(net, optimizer, computed, average=lambda: None):
    """One mini-batch. DDP averages gradients within `backward`, so `computed` is called just before it; others do after it."""
    optimizer.zero_grad()
    time.sleep(COMPUTING_S)
    loss = net(torch.ones(BATCH))
    computed()
    loss.backward()
    average()
    optimizer.step()


class Notes:
    def __init__(self, folder, worker):
        self.folder, self.worker = folder, worker
        self.last_step = -1  # That was noted.
        self.file = open(os.path.join(folder, f"worker-{worker}.jsonl"), "a", encoding="utf-8")

    def note(self, event, step, samples=BATCH):
        line = {"event": event, "worker": self.worker, "pid": os.getpid(), "step": step, "time": time.monotonic(), "samples": samples}
        self.last_step = step
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def is_over(self, step):
        try:
            with open(os.path.join(self.folder, "enough"), encoding="utf-8") as file:
                return step >= int(file.read())
        except OSError:
            return False
