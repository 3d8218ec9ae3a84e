#!/usr/bin/env python3
"""The job of tests/bench/recovery.py under Ray Train: a TorchTrainer over gloo, whose group of workers is started again, as often as need
be, from the last checkpoint that was reported.

    ray_train.py FOLDER       FOLDER: where its checkpoints lie, too; to be in a tmpfs
"""
import os
import sys
import tempfile

import ray
import ray.train
import recovery_job as job
import torch
from ray.train.torch import TorchConfig, TorchTrainer, prepare_model

CPUS = 0.5  # Of a worker: Ray starts a spare process for each one of the whole.
EVERY = 10  # Steps between two checkpoints: one a step makes a step twice as long.


def load(net, optimizer):
    """The step to begin with."""
    checkpoint = ray.train.get_checkpoint()
    if not checkpoint:
        return 0
    with checkpoint.as_directory() as directory:
        state = torch.load(os.path.join(directory, "state.pt"), weights_only=True)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def report(folder, net, optimizer, step, rank):
    """All report together; the first has the checkpoint."""
    with tempfile.TemporaryDirectory(dir=folder) as directory:
        checkpoint = None
        if rank == 0:
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, os.path.join(directory, "state.pt"))
            checkpoint = ray.train.Checkpoint.from_directory(directory)
        ray.train.report({"step": step}, checkpoint=checkpoint)


def train(config):
    folder, rank = config["folder"], ray.train.get_context().get_world_rank()
    torch.set_num_threads(1)
    net = job.Net()
    optimizer = job.optimizer_of(net)
    step = load(net, optimizer)
    parallel = prepare_model(net)
    notes = job.Notes(folder, rank)
    while not notes.is_over(step):
        job.step(parallel, optimizer, lambda at=step: notes.note("computed", at))
        notes.note("committed", step)
        step += 1
        if step % EVERY == 0:
            report(folder, net, optimizer, step, rank)


def main():
    folder = sys.argv[1]
    ray.init(address="local", num_cpus=CPUS * job.WORKERS, include_dashboard=False, object_store_memory=200_000_000)
    run = ray.train.RunConfig(storage_path=os.path.join(folder, "storage"), name="recovery", failure_config=ray.train.FailureConfig(max_failures=-1),
                              checkpoint_config=ray.train.CheckpointConfig(num_to_keep=2))
    scaling = ray.train.ScalingConfig(num_workers=job.WORKERS, resources_per_worker={"CPU": CPUS})
    TorchTrainer(train, train_loop_config={"folder": folder}, torch_config=TorchConfig(backend="gloo"), scaling_config=scaling, run_config=run).fit()
    ray.shutdown()


if __name__ == "__main__":
    main()
