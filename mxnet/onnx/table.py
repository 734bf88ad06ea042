"""The table of ONNX rows: how each registered operator is written as ONNX nodes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .builder import Builder, Call

Emit = Callable[..., "str | Sequence[str]"]
FAMILIES = (
    "elementwise",
    "arithmetic",
    "reduce",
    "shape_changing",
    "indexing",
    "ordering",
    "creation",
    "dense",
    "convolution",
    "pooling",
    "normalization",
    "activation",
    "recurrent",
    "sequence",
    "attention",
    "vision",
    "boxes",
    "control_flow",
    "quantization",
    "quantized_layers",
    "numpy_math",
    "numpy_shapes",
    "numpy_rest",
    "rearranging",
    "proposals",
    "interchange",
)


class Row(NamedTuple):
    """How one operator is exported.

    `emit` is called as ``emit(builder, call, *input_names)`` and returns the name of each output.
    `ignores` names inputs that only matter in training, such as labels.
    """

    emit: Emit
    ignores: tuple[str, ...]
    since: int


_rows: dict[str, Row] = {}
_refused: dict[str, str] = {}


def row(*names: str, ignores: tuple[str, ...] = (), since: int = 12) -> Callable[[Emit], Emit]:
    """Register how operators are exported, from an opset on."""

    def register(emit: Emit) -> Emit:
        for name in names:
            if name in _rows:
                raise ValueError(f"operator {name!r} has two ONNX rows")
            _rows[name] = Row(emit, ignores, since)
        return emit

    return register


def refuse(*names: str, why: str) -> None:
    """Say why operators are not exported, and what to do instead."""
    _refused.update(dict.fromkeys(names, why))


def why_refused(name: str) -> str:
    """Return why an operator without a row is not exported."""
    usual = "has no ONNX row. mx.onnx.get_operator_support() lists those that have."
    return _refused.get(name, usual)


@cache
def rows() -> dict[str, Row]:
    """Return all rows by the registered name of their operator."""
    for family in FAMILIES:
        importlib.import_module(f".rows.{family}", __package__)
    return _rows


def emit_nothing_new(g: Builder, call: Call, data: str, *_: str) -> str:
    """Pass the first input on: what the operator adds matters in training only."""
    return data
