"""Training steps: time and memory."""

from __future__ import annotations

from benchmarks.rows import Program, Row
from benchmarks.rows.models import MX, TORCH


def step(
    mx: str, torch: str, shape: tuple[int, ...], loss: str = "trained", compiled: bool = False
) -> tuple[Program, dict]:
    """Return our program and those of the peers for one training step.

    Where torch is compiled as well, that takes a minute or two.
    """
    run = "step()"
    peers: dict[str, Program | None] = {
        "torch": (TORCH + f"step = {loss}(*ready({torch}, *{shape}))", run)
    }
    if len(shape) == 4:
        last = f"step = {loss}(*last(*ready({torch}, *{shape})))"
        peers["torch channels_last"] = (TORCH + last, run)
    if compiled:
        setup = f"net, x = ready({torch}, *{shape})\nstep = {loss}(torch.compile(net), x)"
        peers["torch.compile"] = (TORCH + setup, run)
    peers["mxnet"] = None
    return (MX + f"step = {loss}(*ready({mx}, *{shape}))", run), peers


_PEAK = """
import resource, threading, time
def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / 1e6
def growth(step, runs=3):
    idle = resident()
    peaks, done = [0.0], threading.Event()
    def watch():
        while not done.is_set():
            peaks.append(resident())
            time.sleep(0.002)
    thread = threading.Thread(target=watch)
    thread.start()
    for _ in range(runs):
        step()
    done.set()
    thread.join()
    return max(peaks) - idle
"""
_IDLE = """
import mxnet as mx
net = mx.gluon.model_zoo.vision.{net}()
net.initialize(mx.init.Xavier()); net.hybridize({options})
x = nd.random.normal(shape={shape})
with autograd.pause():
    net(x[:1])
megabytes = growth(trained(net, x))
"""
_MARKED = "import os; os.environ['MXNET_BACKWARD_DO_MIRROR'] = '1'\n"
_SHAPE = (8, 3, 224, 224)


def peak(net: str, shape: tuple[int, ...], options: str = "") -> str:
    """Return a program whose `megabytes` are what three training steps add to the process."""
    return MX + _PEAK + _IDLE.format(net=net, shape=shape, options=options)


_TORCH_PEAK = (
    TORCH
    + _PEAK
    + f"net, x = last(*ready(resnet50(), *{_SHAPE})); megabytes = growth(trained(net, x))"
)
_DEEP = """
import mxnet as mx
from mxnet import nd, autograd, gluon
class Deep(gluon.HybridBlock):
    def __init__(self, **kwargs):
        super(Deep, self).__init__(**kwargs)
        self.layers = gluon.nn.HybridSequential()
        for _ in range(200):
            self.layers.add(gluon.nn.Dense(256, activation="tanh"))
    def hybrid_forward(self, F, x):
        return self.layers(x)
net = Deep()
net.initialize(mx.init.Xavier()); net.hybridize()
x = nd.random.normal(shape=(4096, 256))
net(x[:1])
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
def step():
    with autograd.record():
        loss = net(x).sum()
    loss.backward()
    trainer.step(1)
    nd.waitall()
"""
_DEEP = _PEAK + _DEEP + "megabytes = growth(step)\n"


def _row(name: str, parts: tuple[Program, dict], goal: float, **more) -> Row:
    return Row(name, parts[0], parts[1], goal, **more)


ROWS = [
    _row(
        "ResNet-18 b16 training",
        step("zoo.resnet18_v1()", "resnet18()", (16, 3, 224, 224)),
        0.95,
        rounds=4,
    ),
    _row(
        "ResNet-50 b8 training",
        step("zoo.resnet50_v1()", "resnet50()", _SHAPE, compiled=True),
        0.95,
        rounds=3,
    ),
    _row(
        "BERT-small b8 training",
        step("bert()", "bert()", (128, 8, 512), "squared", True),
        0.95,
        rounds=8,
    ),
    _row(
        "unrolled LSTM training",
        step("Unrolled()", "Unrolled()", (35, 32, 200), "squared"),
        0.9,
        against=("torch",),
        number=2,
    ),
    Row(
        "ResNet-50 b8 training, memory",
        (peak("resnet50_v1", _SHAPE), "megabytes"),
        {"torch channels_last": (_TORCH_PEAK, "megabytes"), "mxnet": None},
        0.95,
        ("mxnet",),
        unit="MB",
        fresh=True,
        rounds=1,
    ),
    Row(
        "the same, recomputed",
        (_MARKED + peak("resnet50_v1", _SHAPE), "megabytes"),
        {"kept": (peak("resnet50_v1", _SHAPE), "megabytes")},
        0.6,
        unit="MB",
        fresh=True,
        rounds=1,
    ),
    Row(
        "the same, recomputed, time",
        (_MARKED + step("zoo.resnet50_v1()", "", _SHAPE)[0][0], "step()"),
        {"kept": step("zoo.resnet50_v1()", "", _SHAPE)[0]},
        1.35,
        rounds=3,
    ),
    Row(
        "200 dense layers, memory",
        (_DEEP, "megabytes"),
        {"mxnet": None},
        1.0,
        unit="MB",
        fresh=True,
        rounds=1,
    ),
    Row(
        "200 dense layers, recomputed, memory",
        (_MARKED + _DEEP, "megabytes"),
        {"kept": (_DEEP, "megabytes")},
        0.35,
        unit="MB",
        fresh=True,
        rounds=1,
    ),
]
