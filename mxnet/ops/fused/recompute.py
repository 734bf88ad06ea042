"""A part of a graph whose results are computed again for backward instead of being kept."""

from __future__ import annotations

from torch import Tensor

from ...error import MXNetError
from ..declare import OpContext, op
from .holds_graphs import HoldsGraphs


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
