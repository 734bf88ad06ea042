"""The core of MXNext in small: from one operator to a trained graph.

Run it: ``python docs/tour.py``. Read it from top to bottom; it needs torch and nothing of mxnet.
Each section builds one idea of the library in a few lines and ends with the files that hold the
real one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

# 1. Operators -------------------------------------------------------------------------------
#
# An operator is a plain function on torch tensors. Positional parameters are arrays, keyword-only
# ones are attributes. The decorator reads the signature and keeps a record; nothing about an
# operator is written down a second time.


@dataclass
class Op:
    """Everything the library knows about one operator."""

    name: str
    function: Callable[..., Tensor]
    inputs: list[str]
    attributes: dict[str, Any]
    infer_inputs: Callable[..., dict[str, tuple[int, ...]]] | None = None


REGISTRY: dict[str, Op] = {}


def op(name: str) -> Callable[[Callable[..., Tensor]], Op]:
    """Declare a function as an operator."""

    def declare(function: Callable[..., Tensor]) -> Op:
        parameters = inspect.signature(function).parameters.values()
        record = Op(
            name,
            function,
            [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD],
            {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY},
        )
        REGISTRY[name] = record
        return record

    return declare


@op("FullyConnected")
def fully_connected(data: Tensor, weight: Tensor, bias: Tensor, *, num_hidden: int) -> Tensor:
    """Compute ``data @ weight.T + bias``."""
    return torch.nn.functional.linear(data, weight, bias)


# Shapes that follow from others: a layer's weight needs no shape from the user.
fully_connected.infer_inputs = lambda data, num_hidden: {
    "weight": (num_hidden, data[-1]),
    "bias": (num_hidden,),
}


@op("relu")
def relu(data: Tensor) -> Tensor:
    """Compute ``max(x, 0)``."""
    return torch.relu(data)


@op("square")
def square(data: Tensor) -> Tensor:
    """Compute ``x * x``."""
    return data * data


@op("mean")
def mean(data: Tensor) -> Tensor:
    """Compute the mean of all elements."""
    return data.mean()


@op("subtract")
def subtract(left: Tensor, right: Tensor) -> Tensor:
    """Compute ``left - right``."""
    return left - right


# The real ones: mxnet/ops/declare.py (the decorator), mxnet/ops/nn/dense.py (FullyConnected).


# 2. Arrays ----------------------------------------------------------------------------------
#
# An array is memory with a fixed place. In a recorded computation it is also a member of torch's
# graph, by a second tensor on the same memory: writing into the array never disturbs the graph's
# bookkeeping, and a gradient always arrives in the same memory.


class Array:
    """A tensor, and what it is to autograd: nothing, a leaf, or the result of a recorded call."""

    def __init__(self, data: Tensor, member: Tensor | None = None) -> None:
        self.data, self.member = data, member
        self.grad: Array | None = None

    def attach_grad(self) -> None:
        """Make this array a leaf with a gradient array."""
        self.member = self.data.data.requires_grad_()
        self.grad = Array(torch.zeros_like(self.data))

    def __setitem__(self, index: Any, value: Tensor) -> None:
        self.data[index] = value


RECORDING = False


def call(record: Op, *arrays: Array, **attributes: Any) -> Array:
    """Run an operator on arrays; torch records it if that is asked for."""
    if not RECORDING:
        return Array(record.function(*(a.data for a in arrays), **attributes))
    operands = [a.data if a.member is None else a.member for a in arrays]
    with torch.enable_grad():
        result = record.function(*operands, **attributes)
    return Array(result.detach(), result if result.requires_grad else None)


def backward(head: Array, leaves: Sequence[Array]) -> None:
    """Write the gradients of a recorded result into the arrays of the leaves.

    Torch's gradients may be views of one another, so they are copied.
    """
    assert head.member is not None
    members = [leaf.member for leaf in leaves if leaf.member is not None]
    gradients = torch.autograd.grad(head.member, members)
    torch._foreach_copy_([leaf.grad.data for leaf in leaves if leaf.grad], list(gradients))


# The functions that users call are generated from the records.
nd = {name: lambda *a, _op=record, **k: call(_op, *a, **k) for name, record in REGISTRY.items()}

# The real ones: mxnet/runtime/README.md lists them in the order of a call; mxnet/ndarray/.


# 3. Graphs ----------------------------------------------------------------------------------
#
# A graph is data: nodes with an operator, attributes and inputs. A variable has no operator.
# One walk interprets a graph; what it computes depends on what is fed in and how nodes are applied.


@dataclass(eq=False)
class Node:
    """One use of an operator, or a variable."""

    name: str
    op: Op | None = None
    inputs: list[Node] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)


def symbol(record: Op, name: str, *inputs: Node, **attributes: Any) -> Node:
    """Make a node; inputs that are not given become variables such as ``fc1_weight``."""
    variables = [Node(f"{name}_{missing}") for missing in record.inputs[len(inputs) :]]
    return Node(name, record, [*inputs, *variables], attributes)


def in_order(head: Node) -> list[Node]:
    """Return the nodes of a graph, inputs first."""
    order: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node not in order:
            for each in node.inputs:
                visit(each)
            order[node] = None

    visit(head)
    return list(order)


def interpret(head: Node, feed: dict[str, Any], apply: Callable[[Node, list[Any]], Any]) -> Any:
    """Walk a graph: values of variables come from `feed`, those of nodes from `apply`."""
    values: dict[Node, Any] = {}
    for node in in_order(head):
        if node.op is None:
            values[node] = feed[node.name]
        else:
            values[node] = apply(node, [values[each] for each in node.inputs])
    return values[head]


def infer_shapes(head: Node, known: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all variables: the same walk, on tensors without memory."""
    shapes = dict(known)
    meta: dict[Node, Tensor] = {}
    for node in in_order(head):
        if node.op is None:
            continue
        if node.op.infer_inputs is not None:
            first = node.inputs[0]
            data = meta[first].shape if first.op else shapes[first.name]
            inferred = node.op.infer_inputs(tuple(data), **node.attributes)
            for name, each in zip(node.op.inputs, node.inputs, strict=True):
                if each.op is None and name in inferred:
                    shapes[each.name] = inferred[name]
        operands = [
            meta[each] if each.op else torch.empty(shapes[each.name], device="meta")
            for each in node.inputs
        ]
        meta[node] = node.op.function(*operands, **node.attributes)
    return shapes


# The real ones: mxnet/graph/node.py, mxnet/graph/graph.py (`interpret`),
# mxnet/graph/passes/infer.py, mxnet/symbol/.


# 4. Passes ----------------------------------------------------------------------------------
#
# A pass takes a graph and returns one that computes the same with less work. This one replaces a
# layer and its activation by one operator.


@op("FusedLayer")
def fused_layer(data: Tensor, weight: Tensor, bias: Tensor, *, num_hidden: int) -> Tensor:
    """Compute ``relu(data @ weight.T + bias)`` in the memory of the sum."""
    return torch.nn.functional.linear(data, weight, bias).relu_()


def fuse_activations(head: Node) -> Node:
    """Fuse relu into the layer before it."""
    if head.op is None:
        return head
    inputs = [fuse_activations(each) for each in head.inputs]
    if head.op is relu and inputs[0].op is fully_connected:
        layer = inputs[0]
        return Node(head.name, fused_layer, layer.inputs, layer.attributes)
    return Node(head.name, head.op, inputs, head.attributes)


# The real ones: mxnet/graph/rewrite.py (patterns and rules), mxnet/graph/passes/,
# mxnet/graph/optimize.py (which run); fused operators are in mxnet/ops/fused/.
# `print(net.compiled(x))` shows what they did.


# 5. Executors -------------------------------------------------------------------------------
#
# Running a graph often deserves preparation: an executor turns it into one straight-line function
# and keeps its arrays. Backward is torch's, over the kernels that ran.


class Executor:
    """A graph with arrays bound to its variables."""

    def __init__(self, head: Node, shapes: dict[str, tuple[int, ...]], trained: set[str]) -> None:
        generator = torch.Generator().manual_seed(0)
        self.arrays = {
            name: Array(torch.randn(shape, generator=generator) * 0.3)
            for name, shape in infer_shapes(head, shapes).items()
        }
        for name in trained & set(self.arrays):
            self.arrays[name].attach_grad()
        self.trained = [a for a in self.arrays.values() if a.member is not None]
        self.run = self._compile(fuse_activations(head))

    def _compile(self, head: Node) -> Callable[[dict[str, Tensor]], Tensor]:
        """Generate ``def run(feed)`` with one line for each node."""
        nodes = in_order(head)
        names = {node: f"v{i}" for i, node in enumerate(nodes)}
        space: dict[str, Any] = {}
        lines = ["def run(feed):"]
        for node in nodes:
            if node.op is None:
                lines.append(f"    {names[node]} = feed[{node.name!r}]")
                continue
            space[f"f_{names[node]}"] = node.op.function
            operands = [names[each] for each in node.inputs]
            options = [f"{key}={value!r}" for key, value in node.attributes.items()]
            arguments = ", ".join([*operands, *options])
            lines.append(f"    {names[node]} = f_{names[node]}({arguments})")
        lines.append(f"    return {names[head]}")
        exec("\n".join(lines), space)
        return space["run"]

    def forward(self) -> Array:
        """Run the graph on the bound arrays."""
        feed = {n: a.data if a.member is None else a.member for n, a in self.arrays.items()}
        with torch.enable_grad():
            result = self.run(feed)
        self.output = Array(result.detach(), result)
        return self.output

    def backward(self) -> None:
        """Write the gradients of the trained arrays."""
        backward(self.output, self.trained)


# The real ones: mxnet/runtime/README.md lists them in the order of a call.


# 6. Training --------------------------------------------------------------------------------


@torch.no_grad()  # torch records only where it is asked to
def main() -> None:
    """Train a small network twice, eagerly and as a graph, and compare."""
    global RECORDING
    x = torch.linspace(-2, 2, 64)[:, None]
    target = torch.sin(2 * x)

    hidden = symbol(fully_connected, "fc1", Node("data"), num_hidden=32)
    hidden = symbol(relu, "relu1", hidden)
    out = symbol(fully_connected, "fc2", hidden, num_hidden=1)
    error = symbol(subtract, "error", out, Node("label"))
    loss = symbol(mean, "loss", symbol(square, "square", error))
    weights = {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"}

    executor = Executor(loss, {"data": x.shape, "label": target.shape}, weights)
    executor.arrays["data"][:] = x
    executor.arrays["label"][:] = target
    start = {name: executor.arrays[name].data.clone() for name in weights}

    for _ in range(400):
        executor.forward()
        executor.backward()
        for array in executor.trained:
            array.data.sub_(array.grad.data, alpha=0.1)
    graph_loss = float(executor.forward().data)

    arrays = {name: Array(value) for name, value in start.items()}
    for array in arrays.values():
        array.attach_grad()
    data, label = Array(x), Array(target)
    for _ in range(401):
        RECORDING = True
        h = nd["FullyConnected"](data, arrays["fc1_weight"], arrays["fc1_bias"], num_hidden=32)
        y = nd["relu"](h)
        y = nd["FullyConnected"](y, arrays["fc2_weight"], arrays["fc2_bias"], num_hidden=1)
        eager = nd["mean"](nd["square"](nd["subtract"](y, label)))
        RECORDING = False
        backward(eager, list(arrays.values()))
        for array in arrays.values():
            array.data.sub_(array.grad.data, alpha=0.1)
    eager_loss = float(eager.data)

    feed = {name: array.data for name, array in executor.arrays.items()}
    walked = float(interpret(loss, feed, lambda n, v: n.op.function(*v, **n.attributes)))
    print(f"operators {len(REGISTRY)}, nodes {len(in_order(loss))}")
    print(f"loss by the graph {graph_loss:.4f}, eagerly {eager_loss:.4f}, by the walk {walked:.4f}")
    assert graph_loss < 0.05
    assert abs(graph_loss - eager_loss) < 1e-3 and abs(graph_loss - walked) < 1e-5


if __name__ == "__main__":
    main()
