"""The operator that stands for a call of `autograd.Function` in the graph of a recorded array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from torch import Tensor

from ..error import MXNetError
from .declare import Attrs, Op
from .shapes import KnownShapes

NAME = "_CustomFunction"


class FunctionCall(Op):
    """The record of one call, which made results of these shapes.

    The only record that is in no registry: what it would run is an object that was called once, so
    no name and no attributes can lead back to it.
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]]) -> None:
        def infer(ins: KnownShapes, outs: KnownShapes, attrs: Attrs) -> tuple[KnownShapes, list]:
            return ins, list(shapes)

        super().__init__(_refuse, (NAME,), outputs=len(shapes), shape=infer, auto_inputs=False)


def _refuse(*data: Tensor) -> NoReturn:
    raise MXNetError(
        f"{NAME}: graphs of autograd.get_symbol show calls of an autograd.Function but cannot "
        "run them. Write it as mx.operator.CustomOp to run it in graphs."
    )
