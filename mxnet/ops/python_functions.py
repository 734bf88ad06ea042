"""The operator that stands for a call of `autograd.Function` in the graph of a recorded array."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ..error import MXNetError
from .declare import Attrs, Op
from .shapes import KnownShapes

NAME = "_CustomFunction"


def operator_of_function(shapes: Sequence[tuple[int, ...]]) -> Op:
    """Return the operator of one call, which made results of these shapes.

    It is in no registry: what it would run was the object that was called, which can be called
    once.
    """

    def run(*data: Tensor) -> Tensor:
        raise MXNetError(
            f"{NAME}: graphs of autograd.get_symbol show calls of an autograd.Function but cannot "
            "run them. Write it as mx.operator.CustomOp to run it in graphs."
        )

    def infer(ins: KnownShapes, outs: KnownShapes, attrs: Attrs) -> tuple[KnownShapes, list]:
        return ins, list(shapes)

    return Op(run, (NAME,), outputs=len(shapes), shape=infer, auto_inputs=False)
