"""The table that `Block.summary` prints."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from ..ndarray import NDArray

if TYPE_CHECKING:
    from .block import Block

WIDTH = 80
_ROW = "{:>20}  {:>42} {:>15}"


class _Line:
    """One layer in the order in which the layers ended."""

    def __init__(self, title: str, shape: str) -> None:
        self.title, self.shape = title, shape
        self.total = self.trainable = self.shared = 0


def summarize(block: Block, inputs: tuple) -> None:
    """Run the block once on the inputs and print what every layer did."""
    from .nn import HybridSequential, Sequential  # layers are blocks: they import us

    lines = [_Line("Input", _shapes(inputs))]
    seen: set[int] = set()
    handles: list[Any] = []

    def watch(layer: Block) -> None:
        if getattr(layer, "_active", False):
            raise AssertionError(
                f'"{layer.name}" must not be hybridized to print summary. '
                "mx.viz.print_costs(net, x) takes hybridized blocks too."
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
            seen.add(id(param))
        lines.append(line)

    try:
        block.apply(watch)
        block(*inputs)
        sys.stdout.write(_table(lines))
    finally:
        for handle in handles:
            handle.detach()


def _shapes(value: Any) -> str:
    """Return the shapes in nested outputs; the outermost list goes without brackets."""
    if isinstance(value, NDArray):
        return str(value.shape)
    if isinstance(value, list | tuple):
        return ", ".join(_nested(v) for v in value)
    return str(value)


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
