"""DistributedDataParallel with a Gluon network: two processes equal one process."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

LIMIT = 120  # seconds

WORKER = """
import sys
import torch
import torch.distributed as dist
import mxnet as mx
from mxnet.gluon import nn

rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{folder}/store{size}", rank=rank,
                        world_size=size)
mx.random.seed(1 + rank)  # DDP sends the values of the first process to all
net = nn.HybridSequential()
net.add(nn.Dense(4, in_units=3, activation="tanh"), nn.Dense(1, in_units=4))
net.initialize()
net.hybridize()
module = torch.nn.parallel.DistributedDataParallel(net.as_torch())
optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
for _ in range(5):
    loss = (module(x[rank::size]) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
net.save_parameters(f"{folder}/{size}-{rank}.params")
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_two_ddp_processes_match_one_process(tmp_path):
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(rank), str(size), str(tmp_path)],
                         env=environment)
        for size in (1, 2)
        for rank in range(size)
    ]  # fmt: skip
    try:
        assert [worker.wait(LIMIT) for worker in workers] == [0, 0, 0]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait(LIMIT)
    import mxnet as mx

    one, *two = (mx.nd.load(f"{tmp_path}/{name}.params") for name in ("1-0", "2-0", "2-1"))
    for name, array in one.items():
        for other in two:
            np.testing.assert_allclose(other[name].asnumpy(), array.asnumpy(), rtol=1e-5, atol=1e-7)
