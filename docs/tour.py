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

    def __init__(self, data: Tensor) -> None:
        self.data = data
        self.member: Tensor | None = None  # represents the array in torch's graph
        self.session: Session | None = None  # the recording that made it; none of a leaf
        self.grad: Array | None = None

    def attach_grad(self) -> None:
        """Make this array a leaf with a gradient array."""
        self.member = self.data.data.requires_grad_()
        self.grad = Array(torch.zeros_like(self.data))

    def __setitem__(self, index: Any, value: Tensor) -> None:
        self.data[index] = value


class Session:
    """One recording. It knows the leaves that it has read, so that backward can ask for them."""

    def __init__(self) -> None:
        self.leaves: dict[Array, Tensor] = {}


RECORDING: Session | None = None


def operand(array: Array) -> Tensor:
    """Return the tensor that an operator reads."""
    if RECORDING is None or array.member is None:
        return array.data
    if array.session is None:
        RECORDING.leaves[array] = array.member
    return array.member


def call(record: Op, *arrays: Array, **attributes: Any) -> Array:
    """Run an operator on arrays; torch records it if that is asked for."""
    with torch.set_grad_enabled(RECORDING is not None):
        result = record.function(*map(operand, arrays), **attributes)
    array = Array(result.detach())
    if result.requires_grad:
        array.member, array.session = result, RECORDING
    return array


def backward(head: Tensor, leaves: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return the gradients of the leaves: the only function that calls torch's engine.

    The engine hands them back and keeps nothing in the leaves, so threads may share them.
    """
    return torch.autograd.grad(head, leaves)


def write_gradients(arrays: Sequence[Array], gradients: Sequence[Tensor]) -> None:
    """Copy gradients into their arrays: torch's may be views of one another."""
    torch._foreach_copy_([a.grad.data for a in arrays if a.grad], list(gradients))


def run_backward(head: Array) -> None:
    """Write the gradients of a recorded result into the arrays of the leaves behind it."""
    assert head.member is not None and head.session is not None
    leaves = head.session.leaves
    write_gradients(list(leaves), backward(head.member, list(leaves.values())))


# The functions that users call are generated from the records.
nd = {name: lambda *a, _op=record, **k: call(_op, *a, **k) for name, record in REGISTRY.items()}

# The real ones: mxnet/runtime/array.py, mxnet/runtime/recording.py, mxnet/runtime/apply.py,
# mxnet/runtime/backward.py, mxnet/runtime/gradients.py; mxnet/ndarray/.


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


# 5. Running graphs --------------------------------------------------------------------------
#
# A graph is a function of tensors. It is prepared once for each way of running it: passes rewrite
# it, and the result becomes straight-line Python. Whoever has arrays turns them into a feed, calls
# the function, and makes an array of the result.


class GraphFunction:
    """A graph as a function; it owns all programs that were prepared for the graph."""

    def __init__(self, head: Node) -> None:
        self.head = head
        self._programs: dict[bool, Callable[[dict[str, Tensor]], Tensor]] = {}

    def run(self, feed: dict[str, Tensor], differentiable: bool) -> Tensor:
        """Return the result for one tensor per variable."""
        if differentiable not in self._programs:
            self._programs[differentiable] = self._prepare(differentiable)
        with torch.set_grad_enabled(differentiable):
            return self._programs[differentiable](feed)

    def _prepare(self, differentiable: bool) -> Callable[[dict[str, Tensor]], Tensor]:
        """Generate ``def run(feed)`` with one line for each node."""
        nodes = in_order(fuse_activations(self.head))
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
        lines.append(f"    return {names[nodes[-1]]}")
        exec("\n".join(lines), space)
        return space["run"]


class Executor:
    """Arrays that are bound to a function."""

    def __init__(self, head: Node, shapes: dict[str, tuple[int, ...]], trained: set[str]) -> None:
        generator = torch.Generator().manual_seed(0)
        self.arrays = {
            name: Array(torch.randn(shape, generator=generator) * 0.3)
            for name, shape in infer_shapes(head, shapes).items()
        }
        for name in trained & set(self.arrays):
            self.arrays[name].attach_grad()
        self.trained = [a for a in self.arrays.values() if a.member is not None]
        self.function = GraphFunction(head)

    def forward(self) -> Array:
        """Run the function on the bound arrays."""
        feed = {n: a.data if a.member is None else a.member for n, a in self.arrays.items()}
        self.head = self.function.run(feed, differentiable=True)
        return Array(self.head.detach())

    def backward(self) -> None:
        """Write the gradients of the trained arrays."""
        leaves = [a.member for a in self.trained if a.member is not None]
        write_gradients(self.trained, backward(self.head, leaves))


def cached_op(function: GraphFunction, **arrays: Array) -> Array:
    """Run the function on arrays that are passed to it, recorded as any other call."""
    feed = {name: operand(array) for name, array in arrays.items()}
    result = function.run(feed, differentiable=RECORDING is not None)
    array = Array(result.detach())
    if result.requires_grad:
        array.member, array.session = result, RECORDING
    return array


# The real ones: mxnet/runtime/function.py, mxnet/runtime/program.py, mxnet/runtime/executor.py,
# mxnet/runtime/cached_op.py.


# 6. Training --------------------------------------------------------------------------------


@torch.no_grad()  # torch records only where it is asked to
def main() -> None:
    """Train a small network bound, eagerly and as a cached operator, and compare."""
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

    def train(compute: Callable[[dict[str, Array]], Array]) -> float:
        """Train recorded calls on the same weights, and return the loss."""
        global RECORDING
        arrays = {name: Array(value.clone()) for name, value in start.items()}
        for array in arrays.values():
            array.attach_grad()
        result = Array(x)
        for _ in range(401):
            RECORDING = Session()
            result = compute(arrays)
            RECORDING = None
            run_backward(result)
            for array in arrays.values():
                array.data.sub_(array.grad.data, alpha=0.1)
        return float(result.data)

    data, label = Array(x), Array(target)

    def eagerly(w: dict[str, Array]) -> Array:
        h = nd["FullyConnected"](data, w["fc1_weight"], w["fc1_bias"], num_hidden=32)
        y = nd["relu"](h)
        y = nd["FullyConnected"](y, w["fc2_weight"], w["fc2_bias"], num_hidden=1)
        return nd["mean"](nd["square"](nd["subtract"](y, label)))

    eager_loss = train(eagerly)
    function = GraphFunction(loss)
    cached_loss = train(lambda w: cached_op(function, data=data, label=label, **w))

    feed = {name: array.data for name, array in executor.arrays.items()}
    walked = float(interpret(loss, feed, lambda n, v: n.op.function(*v, **n.attributes)))
    print(f"operators {len(REGISTRY)}, nodes {len(in_order(loss))}")
    print(
        f"loss by the graph {graph_loss:.4f}, eagerly {eager_loss:.4f}, as a cached operator "
        f"{cached_loss:.4f}, by the walk {walked:.4f}"
    )
    assert graph_loss < 0.05
    assert max(abs(graph_loss - other) for other in (eager_loss, cached_loss, walked)) < 1e-3


if __name__ == "__main__":
    main()
