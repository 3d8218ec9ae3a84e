#!/usr/bin/env python3
"""One worker of tests/bench/recovery.py under torchrun: DistributedDataParallel over gloo, and a checkpoint after every step.

    torchrun --nproc-per-node 4 --max-restarts N --monitor-interval 0.1 torchrun_worker.py FOLDER

torchrun starts all workers anew when one dies, and these begin with the checkpoint. It lies in memory (FOLDER is to be in a tmpfs)
and is written by rank 0, beside its next step's computing: so no more than the step under way is computed again.
"""
import os
import sys
import threading

import recovery_job as job
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Checkpoint:
    """Written by a thread; the one before is whole until the new one is."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "checkpoint.pt")
        self.writing = None

    def load(self, net, optimizer):
        """The step to begin with."""
        if not os.path.exists(self.path):
            return 0
        state = torch.load(self.path, weights_only=True)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        return state["step"]

    def save(self, net, optimizer, step):
        if self.writing:
            self.writing.join()
        state = {"net": {name: value.clone() for name, value in net.state_dict().items()}, "optimizer": optimizer.state_dict(), "step": step}
        self.writing = threading.Thread(target=self.write, args=(state,))
        self.writing.start()

    def write(self, state):
        torch.save(state, self.path + ".new")
        os.replace(self.path + ".new", self.path)


def main():
    folder = sys.argv[1]
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    net = job.Net()
    optimizer = job.optimizer_of(net)
    checkpoint = Checkpoint(folder)
    step = checkpoint.load(net, optimizer)
    parallel = DistributedDataParallel(net)
    notes = job.Notes(folder, rank)
    while not notes.is_over(step):
        job.step(parallel, optimizer, lambda at=step: notes.note("computed", at))
        notes.note("committed", step)
        step += 1
        if rank == 0:
            checkpoint.save(net, optimizer, step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
