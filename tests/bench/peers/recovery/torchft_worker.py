#!/usr/bin/env python3
"""One replica group of one worker of tests/bench/recovery.py under torchft: its optimiser's wrapper, and its averages over its gloo. A group
that comes back gets its state from another one. (Its DistributedDataParallel does not do: where another dies within an average over gloo,
its communication hook ends this process, too, with an AssertionError.)

    TORCHFT_LIGHTHOUSE=http://HOST:PORT torchrun --nproc-per-node 1 --max-restarts N --monitor-interval 0.1 torchft_worker.py FOLDER GROUP
"""
import datetime
import sys

import recovery_job as job
from torchft import Manager, Optimizer, ProcessGroupGloo

TIMEOUT = datetime.timedelta(seconds=10)


def main():
    folder, group = sys.argv[1], int(sys.argv[2])
    net = job.Net()
    inner = job.optimizer_of(net)

    def load(state):
        net.load_state_dict(state["net"])
        inner.load_state_dict(state["optimizer"])

    manager = Manager(pg=ProcessGroupGloo(timeout=TIMEOUT), min_replica_size=1, load_state_dict=load,
                      state_dict=lambda: {"net": net.state_dict(), "optimizer": inner.state_dict()}, replica_id=f"group_{group}",
                      hostname="localhost", timeout=TIMEOUT, quorum_timeout=6 * TIMEOUT, init_sync=False)
    optimizer = Optimizer(manager, inner)
    notes = job.Notes(folder, group)

    def computed():
        """Of the step that the others are at, too."""
        manager.wait_quorum()
        notes.note("computed", manager.current_step())

    while not notes.is_over(manager.current_step()):
        job.step(net, optimizer, computed, lambda: manager.allreduce(net.weight.grad).wait())
        if manager.current_step() > notes.last_step:  # Otherwise the step was given up.
            notes.note("committed", notes.last_step, job.BATCH if manager.is_participating() else 0)
    manager.shutdown(wait=False)


if __name__ == "__main__":
    main()
