"""Training steps of two processes with one thread each, exchanging gradients over loopback.

MXNet runs a scheduler and a server besides, torch DistributedDataParallel on Gloo. Set
OMP_NUM_THREADS=1.
"""

# ruff: noqa: E501 (programs as text)

from __future__ import annotations

from benchmarks.cases import Case

# The measured process is a worker; the other processes of the job run the same program, and the
# second worker makes a step for each line that it reads.
_MX = '''
import os, socket, subprocess, sys
program = r"""
import os, sys
import mxnet as mx
from mxnet import autograd, gluon, nd
store = mx.kvstore.create("dist_sync")
def lenet():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(20, 5, activation="tanh"), gluon.nn.MaxPool2D(2), gluon.nn.Conv2D(50, 5, activation="tanh"),
            gluon.nn.MaxPool2D(2), gluon.nn.Flatten(), gluon.nn.Dense(500, activation="tanh"), gluon.nn.Dense(10))
    return net
net = {net}
net.initialize(mx.init.Xavier()); net.hybridize(static_alloc=True, static_shape=True)
x, y = nd.random.uniform(shape={shape}), nd.array([i % 10 for i in range({shape}[0])])
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
with autograd.record(): net(x)  # in prediction MXNet changes the layout of weights, and its servers refuse them
trainer = gluon.Trainer(net.collect_params(), "sgd", {{"learning_rate": 0.01}}, kvstore=store)
def step():
    with autograd.record():
        loss = loss_of(net(x), y)
    loss.backward()
    trainer.step(2 * {shape}[0])
    nd.waitall()
"""
follow = program + "\\nfor line in sys.stdin: step()\\n"
with socket.socket() as free:
    free.bind(("127.0.0.1", 0)); port = free.getsockname()[1]
os.environ.update(DMLC_PS_ROOT_URI="127.0.0.1", DMLC_PS_ROOT_PORT=str(port), DMLC_NUM_WORKER="2", DMLC_NUM_SERVER="1", DMLC_INTERFACE="lo")
def start(role):
    env = dict(os.environ, DMLC_ROLE=role, OMP_NUM_THREADS="1")
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", follow], env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
others = [start(role) for role in ("scheduler", "server", "worker")]
os.environ["DMLC_ROLE"] = "worker"
exec(program)
def both():
    others[2].stdin.write("\\n"); others[2].stdin.flush(); step()
both(); both()
'''
_TORCH = '''
import os, socket, subprocess, sys
program = r"""
import sys, torch
from torch import nn
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:PORT", rank=RANK, world_size=2)
def lenet():
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.Tanh(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(800, 500), nn.Tanh(), nn.Linear(500, 10))
class Basic(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
                                  nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o))
        self.skip = nn.Identity() if stride == 1 and i == o else nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))
    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))
def resnet18():
    blocks = [Basic(i, o, s) for i, o, s in ((64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1))]
    return nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
net = nn.parallel.DistributedDataParallel({net})
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.rand({shape}), torch.arange({shape}[0]) % 10
loss_of = nn.CrossEntropyLoss()
def step():
    optimizer.zero_grad()
    loss_of(net(x), y).backward()
    optimizer.step()
"""
with socket.socket() as free:
    free.bind(("127.0.0.1", 0)); program = program.replace("PORT", str(free.getsockname()[1]))
follow = program.replace("RANK", "1") + "\\nfor line in sys.stdin: step()\\n"
other = subprocess.Popen([sys.executable, "-c", follow], env=dict(os.environ, OMP_NUM_THREADS="1"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
exec(program.replace("RANK", "0"))
def both():
    other.stdin.write("\\n"); other.stdin.flush(); step()
both(); both()
'''


def two_workers(title: str, mx: str, torch: str, shape: str, number: int) -> Case:
    """Return a case: one step of two workers."""
    return Case(
        title,
        (_MX.format(net=mx, shape=shape), "both()"),
        (_TORCH.format(net=torch, shape=shape), "both()"),
        number,
        "torch 1.05, mxnet 0.6",
        limit=100,
    )


# A process belongs to one job, and a group of cases has one process: ResNet has its own group.
CASES = [two_workers("LeNet, 2 workers, batch 64", "lenet()", "lenet()", "(64, 1, 28, 28)", 5)]
