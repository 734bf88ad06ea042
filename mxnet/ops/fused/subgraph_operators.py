"""Operators whose nodes have subgraphs; the executor provides their execution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from torch import Tensor

from ...error import MXNetError
from ..declare import Op, OpContext, op


class Body(Protocol):
    """A prepared graph."""

    def run(self, feed: Sequence[Tensor], context: OpContext) -> list[Tensor]:
        """Return the heads' values for one tensor per variable."""
        ...


class HoldsGraphs(Op):
    """An operator whose kernel is created from the node's subgraphs by `runner`.

    `prepare`, set by the executor, prepares a graph for execution.
    """

    prepare: ClassVar[Callable[[Any], Body]]
    runner: Callable[[Sequence[Any], dict], Callable]

    def instantiate(self, attrs: dict, subgraphs: Sequence = ()) -> Callable:
        """Return the kernel of a node."""
        return self.runner(subgraphs, attrs)


@op("_pointwise_blocks", count="num_args", outputs=lambda a: a["num_outputs"], cls=HoldsGraphs)
def pointwise_blocks(*data: Tensor, num_outputs: int, run: OpContext) -> tuple[Tensor, ...]:
    """Run the node's subgraph of pointwise operators on blocks that fit into the cache.

    >>> x = mx.sym.Variable("x")
    >>> exe = mx.sym.exp(mx.sym.tanh(x * 2)).simple_bind(mx.cpu(), x=(1024, 1024))
    >>> exe.forward()[0].shape, exe.compiled.rules
    ((1024, 1024), {'block_pointwise': 1})
    """
    raise MXNetError(
        "_pointwise_blocks runs inside graphs only: it is what chains of pointwise operators on "
        "large arrays become in inference."
    )


@op(
    "_recompute",
    count="num_args",
    outputs=lambda a: a["num_outputs"],
    cls=HoldsGraphs,
    random=True,
)
def recompute(*data: Tensor, num_outputs: int, run: OpContext) -> tuple[Tensor, ...]:
    """Run the node's subgraph; in backward, run it again with the same random draws.

    Only the subgraph's inputs are kept. Auxiliary states change in the first run only.

    >>> with mx.AttrScope(force_mirroring="True"):
    ...     y = mx.sym.exp(mx.sym.sin(mx.sym.Variable("x")))
    >>> exe = y.simple_bind(mx.cpu(), x=(2,))
    >>> exe.forward(is_train=True)[0].asnumpy()
    array([1., 1.], dtype=float32)
    >>> exe.compiled.rules
    {'recompute': 1}
    """
    raise MXNetError(
        "_recompute runs inside graphs only: it is what MXNET_BACKWARD_DO_MIRROR=1 and "
        "net.hybridize(recompute=...) make of parts of a graph in training."
    )
