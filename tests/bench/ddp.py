"""The loop of training_loop.cpp (model: small) in Python: prints samples/s of all processes together.

    python3 tests/bench/ddp.py ddp|plain PROCESSES BATCH STEPS        needs python3-torch

ddp: under torch's DistributedDataParallel over gloo; plain: processes that do not average.
"""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 5, stride=2, padding=2)
        self.conv2 = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.fc1 = nn.Linear(32 * 7 * 7, 256)
        self.fc2 = nn.Linear(256, 10)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x)).flatten(1)
        return self.fc2(torch.relu(self.fc1(x)))


def work(rank, how, processes, batch, steps):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", rank=rank, world_size=processes)
    net = nn.parallel.DistributedDataParallel(Net()) if how == "ddp" else Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    data = torch.randint(0, 256, (60000, 28, 28), dtype=torch.uint8)  # As large as the real set: values do not matter for speed.
    labels = torch.randint(0, 10, (60000,))
    criterion = nn.CrossEntropyLoss()
    begin = time.perf_counter()
    for step in range(steps):
        if step == steps // 4:
            dist.barrier()
            begin = time.perf_counter()
        index = torch.randint(0, 60000, (batch,))
        x = data[index].unsqueeze(1).float().div_(255).sub_(0.286).div_(0.353)
        optimizer.zero_grad()
        loss = criterion(net(x), labels[index])
        loss.backward()
        optimizer.step()
        loss.item()
    dist.barrier()
    took = time.perf_counter() - begin
    if rank == 0:
        print(f"{(steps - steps // 4) * batch * processes / took:.1f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    processes, batch, steps = (int(word) for word in sys.argv[2:5])
    mp.spawn(work, (sys.argv[1], processes, batch, steps), nprocs=processes)
