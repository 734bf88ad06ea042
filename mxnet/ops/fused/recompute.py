"""A part of a graph whose results are computed again for backward instead of being kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from ...error import MXNetError
from ..declare import Op, OpContext, op


class HoldsGraphs(Op):
    """An operator whose kernel is made from the graphs of its node by `runner`."""

    runner: Callable[[Sequence[Any], dict], Callable]

    def instantiate(self, attrs: dict, subgraphs: Sequence = ()) -> Callable:
        """Return the kernel of one node."""
        return self.runner(subgraphs, attrs)


@op(
    "_recompute",
    count="num_args",
    outputs=lambda a: a["num_outputs"],
    cls=HoldsGraphs,
    random=True,
)
def recompute(*data: Tensor, num_outputs: int, run: OpContext) -> tuple[Tensor, ...]:
    """Run the graph of the node; for backward, run it again with the same random draws.

    The graph's inputs are kept, nothing else. Auxiliary states change in the first run only.

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
