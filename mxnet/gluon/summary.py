"""The table that `Block.summary` prints."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from ..dtypes import to_torch
from ..ndarray import NDArray
from .parameter import ParameterError

if TYPE_CHECKING:
    from .block import Block

WIDTH = 80
_ROW = "{:>20}  {:>42} {:>15}"


class _Line:
    """A line of the table; layers are ordered by completion."""

    def __init__(self, title: str, shape: str) -> None:
        self.title, self.shape = title, shape
        self.total = self.trainable = self.shared = 0


def _describe(block: Block, layer: Block) -> str:
    """Return the block that the user hybridized: the outer block or the layer."""
    return "it" if _is_all_active(block) else f"its layer {layer.name!r}"


def _is_all_active(block: Block) -> bool:
    children = list(block._children.values())
    own = getattr(block, "_active", None)
    return own if own is not None else bool(children) and all(map(_is_all_active, children))


def summarize(block: Block, inputs: tuple) -> None:
    """Run the block on the inputs and print a line for every layer."""
    from .nn import HybridSequential, Sequential  # layers are blocks, which import this module

    lines = [_Line("Input", _shapes(inputs))]
    seen: set[int] = set()
    handles: list[Any] = []
    sizes = {"parameters": 0, "outputs": 0}

    def watch(layer: Block) -> None:
        if getattr(layer, "_active", False):  # layers of a graph are not called
            raise ParameterError(
                f'"{block.name}" must not be hybridized to print summary: call '
                f"hybridize(False) on {_describe(block, layer)} before it, or use "
                "mx.viz.print_costs."
            )
        if not isinstance(layer, Sequential | HybridSequential):
            handles.append(layer.register_forward_hook(note))

    def note(layer: Block, _: tuple, outputs: Any) -> None:
        line = _Line(f"{type(layer).__name__}-{len(lines)}", _shapes(outputs))
        for param in layer.params.values():
            size = math.prod(param.shape)
            line.total += size
            if param.grad_req != "null":
                line.trainable += size
            if id(param) in seen:
                line.shared += size
            else:
                sizes["parameters"] += size * to_torch(param.dtype).itemsize
            seen.add(id(param))
        if not layer._children:
            sizes["outputs"] += _bytes(outputs)
        lines.append(line)

    from torch.utils.flop_counter import FlopCounterMode  # imports Triton where it is installed

    try:
        block.apply(watch)
        with FlopCounterMode(display=False) as counter:
            block(*inputs)
        sys.stdout.write(_table(lines) + _costs(counter.get_total_flops() // 2, **sizes))
    finally:
        for handle in handles:
            handle.detach()


def _shapes(value: Any) -> str:
    """Format the shapes of nested outputs; the outermost list has no brackets."""
    if isinstance(value, NDArray):
        return str(value.shape)
    if isinstance(value, list | tuple):
        return ", ".join(_nested(v) for v in value)
    return str(value)


def _bytes(value: Any) -> int:
    if isinstance(value, NDArray):
        return value.size * to_torch(value.dtype).itemsize
    return sum(map(_bytes, value)) if isinstance(value, list | tuple) else 0


def _costs(multiply_adds: int, parameters: int, outputs: int) -> str:
    """Return two lines that MXNet does not print: multiply-adds and memory of a forward pass."""
    return (
        f"Multiply-adds: {multiply_adds:,}\n"
        f"Memory: {_readable(parameters)} of parameters, {_readable(outputs)} of layers' outputs\n"
    )


def _readable(size: float) -> str:
    """Return a number of bytes with a unit.

    >>> _readable(512), _readable(3_500_000)
    ('512 B', '3.5 MB')
    """
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _nested(value: Any) -> str:
    return f"[{_shapes(value)}]" if isinstance(value, list | tuple) else _shapes(value)


def _table(lines: list[_Line]) -> str:
    total = sum(line.total for line in lines)
    trainable = sum(line.trainable for line in lines)
    shared = sum(line.shared for line in lines)
    rows = [_ROW.format(line.title, line.shape, line.total) for line in lines]
    return "\n".join(
        [
            "-" * WIDTH,
            _ROW.format("Layer (type)", "Output Shape", "Param #"),
            "=" * WIDTH,
            *rows,
            "=" * WIDTH,
            "Parameters in forward computation graph, duplicate included",
            f"   Total params: {total}",
            f"   Trainable params: {trainable}",
            f"   Non-trainable params: {total - trainable}",
            f"Shared params in forward computation graph: {shared}",
            f"Unique parameters in model: {total - shared}",
            "-" * WIDTH,
            "",
        ]
    )
