"""Small operators, large operators, and the linear-regression step of a beginner's book."""

# ruff: noqa: E501 (programs as text)

from __future__ import annotations

from benchmarks.cases import Case

_MX = "import mxnet as mx; from mxnet import nd, autograd; a = nd.ones((10, 10)); b = nd.ones((10, 10))"
_TORCH = "import torch; a = torch.ones(10, 10); b = torch.ones(10, 10)"
_MX_BIG = (
    "import mxnet as mx; from mxnet import nd; x = nd.random.normal(shape=(10000, 1000)); "
    "y = nd.random.normal(shape=(10000, 1000)); i = nd.arange(5000)"
)
_TORCH_BIG = "import torch; x = torch.randn(10000, 1000); y = torch.randn(10000, 1000); i = torch.arange(5000)"


def small(name: str, mx: str, torch: str, goals: str = "torch 1.25, mxnet 0.15") -> Case:
    """Return a case on 10 x 10 arrays: ten calls, and the wait that MXNet's engine needs."""
    calls, torch_calls = "; ".join([mx] * 10), "; ".join([torch] * 10)
    return Case(name, (_MX, f"{calls}; nd.waitall()"), (_TORCH, torch_calls), 500, goals)


def small_np(name: str, mx: str, torch: str, goals: str = "torch 1.25, mxnet 0.15") -> Case:
    """Return a case on 10 x 10 arrays of `mx.np`; its time should be that of the legacy array."""
    setup = "import mxnet as mx; from mxnet import nd, np, npx; a = np.ones((10, 10)); b = np.ones((10, 10))"
    calls, torch_calls = "; ".join([mx] * 10), "; ".join([torch] * 10)
    return Case(f"np: {name}", (setup, f"{calls}; nd.waitall()"), (_TORCH, torch_calls), 500, goals)


def big(name: str, mx: str, torch: str, goals: str) -> Case:
    """Return a case on ten million elements."""
    return Case(name, (_MX_BIG, f"r = {mx}; nd.waitall()"), (_TORCH_BIG, f"r = {torch}"), 5, goals)


_MX_LINEAR = """
import mxnet as mx
from mxnet import nd, autograd
X, Y = nd.random.normal(shape=(10, 2)), nd.random.normal(shape=(10,))
w, b = nd.random.normal(scale=0.01, shape=(2, 1)), nd.zeros((1,))
w.attach_grad(); b.attach_grad()
def step():
    with autograd.record():
        y = nd.dot(X, w) + b
        l = (y - Y.reshape(y.shape)) ** 2 / 2
    l.backward()
    for param in (w, b):
        param[:] = param - 0.03 * param.grad / 10
"""
_TORCH_LINEAR = """
import torch
X, Y = torch.randn(10, 2), torch.randn(10)
w = (torch.randn(2, 1) * 0.01).requires_grad_(); b = torch.zeros(1, requires_grad=True)
def step():
    y = torch.mm(X, w) + b
    l = (y - Y.reshape(y.shape)) ** 2 / 2
    l.sum().backward()
    with torch.no_grad():
        for param in (w, b):
            param -= 0.03 * param.grad / 10
            param.grad.zero_()
"""
_NUMBER = "torch 0.7, mxnet 0.15"
_WITHIN = "torch 1.05"

CASES = [
    small("10 x add 10x10", "a + b", "a + b"),
    small("10 x multiply 10x10", "a * b", "a * b"),
    small("10 x relu 10x10", "nd.relu(a)", "torch.relu(a)"),
    small("10 x dot 10x10", "nd.dot(a, b)", "torch.mm(a, b)"),
    small("10 x sum axis 10x10", "nd.sum(a, axis=1)", "torch.sum(a, 1)"),
    small("10 x add number", "a + 1.5", "a + 1.5", _NUMBER),
    small("10 x multiply number", "a * 2", "a * 2", _NUMBER),
    small("10 x number minus", "1 - a", "1 - a", _NUMBER),
    small_np("10 x add 10x10", "a + b", "a + b"),
    small_np("10 x relu 10x10", "npx.relu(a)", "torch.relu(a)"),
    small_np("10 x dot 10x10", "np.dot(a, b)", "torch.mm(a, b)"),
    small_np("10 x sum axis 10x10", "np.sum(a, axis=1)", "torch.sum(a, 1)"),
    small_np("10 x add number", "a + 1.5", "a + 1.5", _NUMBER),
    Case(
        "linear regression step",
        (_MX_LINEAR, "step(); nd.waitall()"),
        (_TORCH_LINEAR, "step()"),
        500,
        "torch 0.9, mxnet 0.2",
    ),
    big("add 10M", "x + y", "x + y", "torch 0.5"),
    big("exp 10M", "nd.exp(x)", "torch.exp(x)", "torch 0.5"),
    big("chain 10M", "(x + y) * x - y", "(x + y) * x - y", "torch 0.5"),
    big("sum 10M", "nd.sum(x)", "torch.sum(x)", _WITHIN),
    big("sum axis 10M", "nd.sum(x, axis=1)", "torch.sum(x, 1)", _WITHIN),
    big("softmax 10M", "nd.softmax(x)", "torch.softmax(x, -1)", _WITHIN),
    big("topk 10M", "nd.topk(x, k=5, ret_typ='value')", "torch.topk(x, 5)", _WITHIN),
    big("take 5000 rows", "nd.take(x, i)", "x[i]", _WITHIN),
]
