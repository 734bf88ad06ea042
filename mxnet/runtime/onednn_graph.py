"""oneDNN's graph compiler as an engine: ``net.hybridize(backend="onednn_graph")``.

TorchScript traces the plain kernels of a graph with copies of the parameters. oneDNN then compiles
subgraphs: it fuses several kernels into one call and chooses the memory layout. Only torch is
needed. TorchScript is deprecated in torch, so this engine is not the default.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..error import MXNetError
from ..graph.typed_graph import TypedGraph
from ..ops.fused.prepared_values import Fallback, require_finite
from .backends import Run, register_backend
from .capture.kernels import KernelWatcher
from .program import Program

__all__ = ["prepare_onednn_graph"]
WARM_UP_RUNS = 3  # TorchScript profiles shapes in the first, and compiles in the second
# Tags of torch for calls whose results depend on more than shapes.
_UNTRACEABLE = {
    torch.Tag.data_dependent_output,
    torch.Tag.dynamic_output_shape,
    torch.Tag.nondeterministic_seeded,
}
# Parts of torch's warnings for conversions (NumPy, lists) that a trace would record as constants.
_LEAVES_TORCH = ("to a NumPy array", "to a Python list")
_lock = threading.Lock()  # the fusion switch is global


def prepare_onednn_graph(graph: TypedGraph, feed: Sequence[Tensor], data: Sequence[int]) -> Run:
    """Trace and compile a graph with its parameters. Return a function that runs it.

    oneDNN's relu and clip replace NaN by a number, so the plain kernels are used if data or
    parameters are not finite.
    """
    program = Program(graph, graph.mode, feed[0].device, optimized=False)
    _require_support(graph, program, feed, data)
    floats = [i for i in data if feed[i].is_floating_point()]
    try:
        for tensor in feed:
            if tensor.is_floating_point():
                require_finite(tensor)
    except Fallback:
        return program.run
    compiled = _compile(_Traceable(program, feed, data), [feed[i].contiguous() for i in data])

    def run(feed: Sequence[Tensor]) -> list[Tensor]:
        try:
            for i in floats:
                require_finite(feed[i])
        except Fallback:
            return program.run(feed)
        inputs = [feed[i].contiguous() for i in data]
        with torch.no_grad():
            return _separate(compiled(*inputs), inputs)

    return run


def _require_support(
    graph: TypedGraph, program: Program, feed: Sequence[Tensor], data: Sequence[int]
) -> None:
    if not torch.backends.mkldnn.is_available() or not hasattr(torch.jit, "enable_onednn_fusion"):
        raise MXNetError("backend='onednn_graph' needs a torch with oneDNN and TorchScript.")
    if any(tensor.device.type != "cpu" for tensor in feed):
        raise MXNetError("backend='onednn_graph' runs graphs on the CPU alone.")
    # TorchScript computes constants once, and would return the same memory in every call.
    depends = {program.variables[i] for i in data}
    for node in graph.nodes:
        if any(entry.node in depends for entry in node.inputs):
            depends.add(node)
    for name, entry in zip(graph.output_names(), graph.heads, strict=True):
        if entry.node not in depends:
            raise MXNetError(
                f"backend='onednn_graph' does not run graphs with constant outputs: {name} does "
                "not depend on data."
            )


class _Traceable(nn.Module):
    """A module that runs a program's plain kernels. Parameters are copied to buffers."""

    def __init__(self, program: Program, feed: Sequence[Tensor], data: Sequence[int]) -> None:
        super().__init__()
        self._function = program.function
        self._data, self._count = tuple(data), len(feed)
        for i, tensor in enumerate(feed):
            if i not in self._data:
                self.register_buffer(f"parameter{i}", tensor.detach().clone())

    def forward(self, *data: Tensor) -> tuple[Tensor, ...]:
        """Return the values of all heads."""
        parameters = dict(self.named_buffers())
        given = dict(zip(self._data, data, strict=True))
        feed = [given[i] if i in given else parameters[f"parameter{i}"] for i in range(self._count)]
        return tuple(self._function(feed))


class _RefuseValues(KernelWatcher):
    """Raises for calls that cannot be traced: they read values or draw random numbers."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if _UNTRACEABLE.intersection(func.tags):
            raise MXNetError(
                f"backend='onednn_graph' cannot run this graph: {func} depends on values, or is "
                "random."
            )
        return func(*args, **(kwargs or {}))


def _compile(module: nn.Module, inputs: Sequence[Tensor]) -> nn.Module:
    """Return a traced module that oneDNN has compiled for inputs of these shapes."""
    module.eval()
    with torch.no_grad(), _RefuseValues():
        module(*inputs)
    with _lock, _fusing(), torch.no_grad(), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            compiled = torch.jit.freeze(torch.jit.trace(module, tuple(inputs), check_trace=False))
            for _ in range(WARM_UP_RUNS):
                compiled(*inputs)
        except RuntimeError as error:  # raised by TorchScript or oneDNN
            raise MXNetError(f"backend='onednn_graph' cannot run this graph: {error}") from error
    for warning in seen:
        if any(kind in str(warning.message) for kind in _LEAVES_TORCH):
            raise MXNetError(f"backend='onednn_graph' cannot run this graph: {warning.message}")
    return compiled


@contextmanager
def _fusing() -> Iterator[None]:
    """Enable oneDNN fusion for TorchScript, and restore the setting afterward."""
    before = torch.jit.onednn_fusion_enabled()
    torch.jit.enable_onednn_fusion(True)
    try:
        yield
    finally:
        torch.jit.enable_onednn_fusion(before)


def _separate(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Return contiguous outputs. Copy those that share memory with each other or with an input."""
    owned = {tensor.untyped_storage().data_ptr() for tensor in inputs}
    results = []
    for out in outputs:
        address = out.untyped_storage().data_ptr()
        if address in owned:
            out = out.clone(memory_format=torch.contiguous_format)
        owned.add(address)
        results.append(out.contiguous())
    return results


register_backend("onednn_graph", prepare_onednn_graph, prepares_quickly=True)
