"""Building and binding symbols as a user meets it: each measurement in a new process."""

from __future__ import annotations

from benchmarks.cases.graphs import _CHAIN, _RESNET
from benchmarks.rows import Row

_TIMER = "import time\n"


def once(name: str, setup: str, statement: str, goal: float) -> Row:
    """Return a row whose statement runs once in a new process."""
    timed = f"start = time.perf_counter()\n{statement}\nseconds = time.perf_counter() - start"
    program = (f"{_TIMER}{setup}\n{timed}", "seconds")
    return Row(name, program, {"mxnet": None}, goal, unit="value", fresh=True, rounds=3)


_CHAINS = _CHAIN.replace("short, long = chain(1000), chain(10000)", "short = chain(3)")
# The text comes from another process: a user who loads a file has composed nothing before.
_TEXT = f"""
import subprocess, sys
program = {_RESNET!r} + "import sys; sys.stdout.write(text)"
written = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE)
text = written.stdout.decode()
import mxnet as mx
"""
_RUN = """
import time
import mxnet as mx
x = mx.sym.Variable("x")
for _ in range(1000):
    x = x + 1
exe = x.bind(mx.cpu(), {"x": mx.nd.ones((2,))})
for _ in range(3):
    exe.forward()[0].wait_to_read()
"""
_TRAIN = """
import mxnet as mx
def chain(n):
    x = mx.sym.Variable("x")
    steps = [lambda x: x + 1, mx.sym.tanh, lambda x: x * 0.5, mx.sym.relu, lambda x: x + x]
    for i in range(n):
        x = steps[i % 5](x)
    return x
exe = chain({nodes}).simple_bind(mx.cpu(), x=(8, 8))
head = mx.nd.ones((8, 8))
def step():
    exe.forward(is_train=True)
    exe.backward(head)
    exe.grad_arrays[0].wait_to_read()
for _ in range(4):
    step()
"""


def trained(title: str, nodes: int) -> Row:
    """Return a row of forward and backward through a chain of small operators."""
    program = (_TRAIN.format(nodes=nodes), "step()")
    return Row(title, program, {"mxnet": None}, 1.0, number=20, unit="us")


ROWS = [
    once("ResNet-152 infer_shape", _RESNET, "net.infer_shape(**shapes)", 1.0),
    once("ResNet-152 load_json", _TEXT, "mx.sym.load_json(text)", 1.0),
    once("ResNet-152 bind", _RESNET, "net.simple_bind(mx.cpu(), grad_req='null', **shapes)", 1.0),
    once("chain of 250, compose", _CHAINS, "chain(250)", 1.0),
    once("chain of 1,000, compose", _CHAINS, "chain(1000)", 1.0),
    once(
        "chain of 1,000, bind and run",
        _CHAINS + "long = chain(1000)",
        "long.bind(mx.cpu(), args).forward()[0].wait_to_read()",
        1.0,
    ),
    Row(
        "chain of 1,000, run again",
        (_RUN, "exe.forward()[0].wait_to_read()"),
        {"mxnet": None},
        1.0,
        number=5,
    ),
    trained("chain of 250, forward and backward", 250),
    trained("chain of 1,000, forward and backward", 1000),
]
