"""`to_torch`: a model as a `torch.fx.GraphModule` that runs without MXNext."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

from .. import torch_private
from ..base import is_np_shape
from ..error import MXNetError
from ..graph import Graph, Node, interpret
from ..graph.passes.infer import infer_shapes, infer_types
from ..ops.declare import Op
from ..ops.shapes import UNKNOWN
from ..ops.tracing import tracing
from .onnx.builder import operator_of
from .source import Model, as_model
from .torch_rows import IGNORED_INPUTS, REFUSED, TORCH_ROWS, NoRow

aten = torch.ops.aten


def data_dependent_errors() -> tuple[type[Exception], ...]:
    """Return torch's exceptions for kernels that read values while they are traced."""
    from torch.fx.experimental.symbolic_shapes import (  # lazy import: it brings in SymPy
        GuardOnDataDependentSymNode,
    )

    return GuardOnDataDependentSymNode, *torch_private.data_dependent_errors()


class UnsupportedTorch(MXNetError, NotImplementedError):
    """Raised if a node cannot be converted to torch.

    >>> issubclass(mx.convert.UnsupportedTorch, mx.base.MXNetError)
    True
    """


class NeedsValues(Exception):
    """Raised if a kernel computes outside of torch."""


@dataclass
class TorchCall:
    """The node to convert, with its known shapes and types."""

    node: Node
    attrs: dict[str, Any]
    shapes: list[tuple[int, ...]] | None
    dtypes: list[torch.dtype]
    out_dtypes: list[torch.dtype]

    @property
    def op(self) -> Op:
        """The operator of the node."""
        return operator_of(self.node)

    @property
    def is_float(self) -> bool:
        """Whether the first input has floating-point numbers."""
        return self.dtypes[0].is_floating_point

    def rank(self, index: int) -> int:
        """Return the number of axes of an input; without shapes the kernel cannot be chosen."""
        if self.shapes is None:
            raise NoRow
        return len(self.shapes[index])


def to_torch(
    model: Any, params: Any = None, shapes: Mapping[str, Sequence[int]] | Sequence | None = None
) -> fx.GraphModule:
    """Convert a model to a torch module with readable code, which runs without MXNext.

    Parameters
    ----------
    model : HybridBlock, Symbol or str
        A block, a symbol, or the path of its JSON file.
    params : str, dict or list, optional
        The parameters of a symbol, in any form that `mx.onnx.export_model` takes.
    shapes : dict or list of tuple, optional
        The shapes of the inputs. Most layers do not need them; operators converted by tracing are
        specialized to these shapes.

    Returns
    -------
    torch.fx.GraphModule
        Its state dict has plain names; ``print(module.code)`` shows the code. It is in inference
        mode: Dropout is removed and BatchNorm uses its running statistics.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.initialize()
    >>> module = mx.convert.to_torch(net)
    >>> sorted(module.state_dict())
    ['bias', 'weight']
    """
    source = as_model(model, params, shapes)
    return TorchWriter(source).run()


class PredictionModule(fx.GraphModule):
    """A module for inference, without dropout and with fixed statistics; it cannot be trained."""

    def train(self, mode: bool = True) -> PredictionModule:
        """Return the module; training mode is an error."""
        if mode:
            raise UnsupportedTorch(
                "to_torch gives a program that predicts: Dropout is left out and BatchNorm uses "
                "its moving statistics. mx.convert.port (mx port) writes PyTorch code that can be "
                "trained; net.as_torch() is a live module."
            )
        return super().train(False)


class TorchWriter:
    """Writes one graph as an `fx.Graph`."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.graph = fx.Graph()
        self.root = nn.Module()
        self._facts()
        self._read: dict[Node, fx.Node] = {}
        self._fixed: set[str] = set()  # operators specialized to the given shapes

    def _facts(self) -> None:
        graph, params = self.model.graph, self.model.params
        self._params = params
        shapes: dict[str, Any] = {n: tuple(t.shape) for n, t in params.items()}
        complete = True
        for node in self.model.inputs:
            shape = self.model.shapes.get(node.name)
            complete = complete and shape is not None
            if shape is not None:
                shapes[node.name] = tuple(shape)
        self.shapes = None
        if complete:
            match = infer_shapes(graph, shapes, zero_is_unknown=not is_np_shape())
            self.shapes = match.values
        kinds = {n: t.dtype for n, t in params.items()}
        kinds.update(self.model.dtypes)
        inferred = infer_types(graph, kinds, torch.float32)
        self.dtypes = {
            n: [t or torch.float32 for t in values] for n, values in inferred.values.items()
        }

    def run(self) -> fx.GraphModule:
        """Return the module."""
        graph = self.model.graph
        used = self._used_variables(graph)
        feeds = {
            n: self.graph.placeholder(python_name(n.name)) for n in self.model.inputs if n in used
        }
        self._states = set(graph.auxiliary)
        # A parameter is read where it is first used, so that the code reads from top to bottom.
        heads = interpret(graph, lambda n: feeds.get(n, n), self._apply)
        heads = [self._value(h) for h in heads]
        self.graph.output(heads[0] if len(heads) == 1 else tuple(heads))
        self.graph.eliminate_dead_code(_has_effect)
        self._drop_unused()
        self.graph.lint()
        created = PredictionModule(self.root, self.graph, self.model.name)
        created.meta["fixed_sizes"] = sorted(self._fixed)
        created.eval()
        return created

    def _used_variables(self, graph: Graph) -> set[Node]:
        used = {e.node for e in graph.heads}
        for node in graph.nodes:
            if node.op is None:
                continue
            skipped = IGNORED_INPUTS.get(node.op.name, ())
            for name, entry in zip(node.input_names, node.inputs, strict=False):
                if name not in skipped:
                    used.add(entry.node)
        return used

    def _value(self, value: Any) -> Any:
        """Return a value as an fx node; a variable gets its node on first use."""
        if not isinstance(value, Node):
            return value
        if value not in self._read and value.name in self._params:
            path = self.model.names.get(value.name, value.name)
            self.register(path, self._params[value.name], value in self._states)
            self._read[value] = self.graph.get_attr(path)
        return self._read.get(value)

    def register(self, path: str, tensor: Tensor, is_state: bool = False) -> None:
        """Store a tensor in the module under a dotted name."""
        *folders, name = path.split(".")
        module = self.root
        for folder in folders:
            if not hasattr(module, folder):
                module.add_module(folder, nn.Module())
            module = getattr(module, folder)
        value = tensor.detach().clone()
        if is_state or not value.is_floating_point():
            module.register_buffer(name, value)
        else:
            module.register_parameter(name, nn.Parameter(value))

    def _drop_unused(self) -> None:
        """Remove parameters that no node reads, such as fixed gammas."""
        read = {n.target for n in self.graph.nodes if n.op in ("get_attr", "call_module")}
        for path in [*dict(self.root.named_parameters()), *dict(self.root.named_buffers())]:
            folder = path.rpartition(".")[0]
            if path not in read and folder not in read:
                folder, _, name = path.rpartition(".")
                delattr(self.root.get_submodule(folder), name)

    # -- nodes ------------------------------------------------------------------------------

    def call(self, function: Any, *args: Any, **kwargs: Any) -> fx.Node:
        """Add a call of a torch function, without arguments that are None at the end."""
        while args and args[-1] is None:
            args = args[:-1]
        return self.graph.call_function(function, args, kwargs)

    def method(self, name: str, x: Any, *args: Any) -> fx.Node:
        """Add a call of a method of a tensor."""
        return self.graph.call_method(name, (x, *args))

    def size(self, x: Any, axis: int) -> fx.Node:
        """Add a call that reads a size."""
        return self.graph.call_method("size", (x, axis))

    def _apply(self, node: Node, inputs: list[Any]) -> Sequence[Any]:
        call = self._call(node)
        skipped = IGNORED_INPUTS.get(call.op.name, ())
        pairs = zip(node.input_names, inputs, strict=False)
        if call.op.variadic is None:
            inputs = [None if n in skipped else self._value(v) for n, v in pairs]
        else:
            inputs = [self._value(v) for v in inputs]
        build = TORCH_ROWS.get(call.op.name)
        last = len(self.graph.nodes)
        created: Any = None
        if build is not None:
            try:
                created = build(self, call, *inputs)
            except NoRow:
                created = None
        if created is None:
            created = self._plain(call, inputs)
        if created is None:
            created = self._trace_kernel(call, inputs)
        outputs = list(created) if isinstance(created, list | tuple) else [created]
        self._name(node, outputs, last)
        return outputs

    def _call(self, node: Node) -> TorchCall:
        entries = node.inputs
        shapes = None
        if self.shapes is not None:
            shapes = [self.shapes[e.node][e.index] for e in entries]
            if any(s is None or -1 in s for s in shapes):
                shapes = None
        dtypes = [self.dtypes[e.node][e.index] for e in entries]
        return TorchCall(node, self._complete_attrs(node), shapes, dtypes, self.dtypes[node])

    def _complete_attrs(self, node: Node) -> dict[str, Any]:
        """Return the attributes, with 0 in shapes replaced by inferred sizes."""
        attrs, shape = node.typed, node.typed.get("shape")
        if node.inputs or not isinstance(shape, tuple) or 0 not in shape or is_np_shape():
            return attrs
        inferred = None if self.shapes is None else self.shapes[node][0]
        if inferred is None or UNKNOWN in inferred or 0 in inferred:
            raise UnsupportedTorch(
                f"to_torch: {node.name!r} has the shape {shape}, where 0 is to follow from the "
                "inputs of the model. Give shapes=..."
            )
        return {**attrs, "shape": inferred}

    def _name(self, node: Node, outputs: list[Any], last: int) -> None:
        fresh = set(list(self.graph.nodes)[last:])
        for output in outputs:
            if output in fresh:
                output._rename(python_name(node.name))

    def _plain(self, call: TorchCall, inputs: list[Any]) -> fx.Node | None:
        raw = call.op.raw
        if raw is None or call.attrs or not all(t.is_floating_point for t in call.dtypes):
            return None
        if not _is_torch(raw):
            return None
        result = raw(*(torch.ones(1, dtype=t) for t in call.dtypes)).dtype
        created = self.call(raw, *inputs)
        target = call.out_dtypes[0]
        return created if result is target else self.method("to", created, target)

    def _trace_kernel(self, call: TorchCall, inputs: list[Any]) -> list[Any]:
        """Write the torch functions that a kernel calls, for the known shapes."""
        node = call.node
        reason = REFUSED.get(call.op.name)
        if reason is not None:
            raise self.unsupported(call, reason)
        if call.shapes is None:
            raise self.unsupported(
                call, "is converted for the shapes of its inputs. Give shapes=..."
            )
        examples = [torch.ones(s, dtype=t) for s, t in zip(call.shapes, call.dtypes, strict=True)]
        extra = call.op.context_for(False, torch.device("cpu"))

        def run(*tensors: Tensor) -> Any:
            args = _by_position(node, tensors)
            created = call.op.function(*args, **call.attrs, **extra)
            return tuple(created) if isinstance(created, list | tuple) else (created,)

        # Fake tensors have no values, so that none can slip into the program as constants.
        record = make_fx(functionalize(run), tracing_mode="fake", _allow_non_fake_inputs=True)
        try:
            with torch.no_grad(), tracing(), _NoValues():
                traced = record(*examples)
        except Exception as error:
            raise self.unsupported(call, _explain(call.op, error)) from error
        self._fixed.add(call.op.name)
        return self._inline(traced, inputs, node)

    def _inline(self, traced: fx.GraphModule, inputs: list[Any], node: Node) -> list[Any]:
        values: dict[fx.Node, Any] = {}
        rest = iter(inputs)
        # The examples are contiguous, later inputs may not be.
        is_strided = any(n.target is aten.as_strided.default for n in traced.graph.nodes)
        for inner in traced.graph.nodes:
            if torch_private.is_view_kernel(inner.target):
                inner.target = aten.reshape.default
            if inner.op == "placeholder":
                value = next(rest)
                values[inner] = self.method("contiguous", value) if is_strided else value
            elif inner.op == "output":
                match = fx.map_arg(inner.args[0], lambda n: values[n])
                return list(match)
            elif inner.op == "get_attr":
                name = str(inner.target)
                path = f"{python_name(node.name)}_{name.replace('.', '_').strip('_')}"
                value = getattr(traced, name)
                if isinstance(value, nn.Module):  # the body of a loop
                    self.root.add_module(path, value)
                else:
                    self.register(path, value, True)
                values[inner] = self.graph.get_attr(path)
            else:
                values[inner] = self.graph.node_copy(inner, lambda n: values[n])
        raise UnsupportedTorch(f"to_torch: {node.name!r} has no output.")

    @staticmethod
    def identifier(name: str) -> str:
        """Return a name that Python and fx accept."""
        return python_name(name)

    @staticmethod
    def unsupported(call: TorchCall, why: str) -> UnsupportedTorch:
        """Return the error that a node cannot be converted."""
        return UnsupportedTorch(
            f"to_torch: operator {call.op.name} (node {call.node.name!r}) {why}"
        )

    # -- bodies of loops and branches -------------------------------------------------------

    def inline_body(
        self, graph: Graph, inputs: Sequence[Any], shapes: Sequence[Any], dtypes: Sequence[Any]
    ) -> list[Any]:
        """Inline the nodes of a body and return its outputs."""
        variables = graph.variables
        by_name = dict(zip([v.name for v in variables], shapes, strict=True))
        match = infer_shapes(graph, by_name, zero_is_unknown=not is_np_shape())
        kinds = dict(zip([v.name for v in variables], dtypes, strict=True))
        inferred = infer_types(graph, kinds, torch.float32)
        assert self.shapes is not None
        self.shapes |= match.values
        self.dtypes |= {n: [t or torch.float32 for t in v] for n, v in inferred.values.items()}
        feed = dict(zip(variables, inputs, strict=True))
        return interpret(graph, lambda node: feed[node], self._apply)

    def body_module(
        self,
        graph: Graph,
        places: Sequence[int],
        shapes: Sequence[Any],
        dtypes: Sequence[Any],
        name: str,
    ) -> fx.Node:
        """Convert a body to a module that takes all inputs of its operator."""
        outer, self.graph = self.graph, fx.Graph()
        try:
            names = [self.graph.placeholder(f"x{i}") for i in range(len(shapes))]
            chosen = [[values[i] for i in places] for values in (names, shapes, dtypes)]
            heads = self.inline_body(graph, *chosen)
            self.graph.output(tuple(self.method("clone", h) for h in heads))
            created = fx.GraphModule(self.root, self.graph, name)
        finally:
            self.graph = outer
        self.root.add_module(name, created)
        return self.graph.get_attr(name)

    # -- layers that are modules ------------------------------------------------------------

    def call_layer(self, call: TorchCall, layer: nn.Module, *args: Any) -> fx.Node:
        """Add a layer of torch under the name of the node, and a call of it."""
        path = name = python_name(call.node.name)
        taken = {p.partition(".")[0] for p in (*self.model.names.values(), *self._params)}
        number = 0
        while path in taken or hasattr(self.root, path):
            number += 1
            path = f"{name}_{number}"
        self.root.add_module(path, layer)
        return self.graph.call_module(path, args)


def _explain(op: Op, error: Exception) -> str:
    """Return the reason why the kernel of an operator cannot be traced."""
    if isinstance(error, NeedsValues):
        return (
            "computes outside of torch, with NumPy or OpenCV, on the values of its inputs. Apply "
            "it to the data before the model."
        )
    if op.value_dependent:
        return "gives an array whose size depends on values, which a torch program cannot state."
    if isinstance(error, data_dependent_errors()):
        return "chooses by the values of its inputs what to compute, which no torch program can."
    return f"cannot be recorded as torch functions: {str(error).strip().splitlines()[0]}"


class _NoValues(TorchFunctionMode):
    """Raises for kernels that read a tensor's values outside torch: tracing has no values."""

    def __torch_function__(
        self, func: Callable, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if func in (Tensor.numpy, Tensor.__array__):
            raise NeedsValues
        return func(*args, **(kwargs or {}))


def _by_position(node: Node, tensors: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """Return the inputs of a kernel with None for those that the node does not have."""
    op = node.operator
    if op.variadic is not None or len(tensors) == len(op.inputs):
        return tensors
    by_name = dict(zip(node.input_names, tensors, strict=True))
    return [by_name.get(each.name) for each in op.inputs]


def _has_effect(node: fx.Node) -> bool:
    """Return whether an unused node must be kept, such as a check of values."""
    return node.op in ("placeholder", "output") or (node.op == "call_function" and node.is_impure())


def _is_torch(function: Any) -> bool:
    if type(function).__name__ == "builtin_function_or_method":
        return True
    return (getattr(function, "__module__", "") or "").startswith("torch")


def python_name(name: str) -> str:
    """Return a name that Python and fx accept.

    >>> python_name("stage1.conv-0"), python_name("0"), python_name("in")
    ('stage1_conv_0', '_0', 'in_')
    """
    created = re.sub(r"\W", "_", name)
    if created[:1].isdigit():
        created = f"_{created}"
    return f"{created}_" if keyword.iskeyword(created) else created
