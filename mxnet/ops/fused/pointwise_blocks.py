"""Pointwise operators that follow each other, computed block by block."""

from __future__ import annotations

from torch import Tensor

from ...error import MXNetError
from ..declare import OpContext, op
from .holds_graphs import HoldsGraphs


@op("_pointwise_blocks", count="num_args", outputs=lambda a: a["num_outputs"], cls=HoldsGraphs)
def pointwise_blocks(*data: Tensor, num_outputs: int, run: OpContext) -> tuple[Tensor, ...]:
    """Run the pointwise operators of the node's graph on blocks that fit into the cache.

    >>> x = mx.sym.Variable("x")
    >>> exe = mx.sym.exp(mx.sym.tanh(x * 2)).simple_bind(mx.cpu(), x=(1024, 1024))
    >>> exe.forward()[0].shape, exe.compiled.rules
    ((1024, 1024), {'block_pointwise': 1})
    """
    raise MXNetError(
        "_pointwise_blocks runs inside graphs only: it is what chains of pointwise operators on "
        "large arrays become in inference."
    )
