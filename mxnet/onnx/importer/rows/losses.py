"""Import rows of losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions import F
from ..table import imports
from ..value import OnnxNode, Value
from .axes import as_scalar


def _channels_last(x: Any, rank: int) -> Any:
    return F.transpose(x, axes=(0, *range(2, rank), 1)) if rank > 2 else x


def _nll(node: OnnxNode, logs: Any, x: Value, target: Value, weight: Value | None) -> Any:
    """Return the negative logarithm at each target, weighted, and reduced as asked."""
    ignored = node.get("ignore_index")
    places = F.cast(target.symbol, dtype="int64")
    shares = None
    if weight is not None:
        shares = F.take(weight.symbol, F.relu(places))
    if ignored is not None:
        is_kept = F.cast(places != ignored, dtype=x.dtype.name)
        shares = is_kept if shares is None else shares * is_kept
    chosen = F.pick(_channels_last(logs, x.rank), F.relu(places), axis=-1)
    loss = F.negative(chosen if shares is None else chosen * shares)
    how = node.get("reduction", "mean")
    if how == "none":
        return loss
    total = F.sum(loss)
    if how == "mean":
        count = F.ones_like(loss) if shares is None else shares
        total = F.broadcast_div(total, F.sum(count))
    return as_scalar(total)


@imports("NegativeLogLikelihoodLoss")
def nll_loss(node: OnnxNode, x: Value, target: Value, weight: Value | None = None) -> Any:
    """The negative logarithm of the probability of the right class."""
    return _nll(node, x.symbol, x, target, weight)


@imports("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(
    node: OnnxNode, x: Value, target: Value, weight: Value | None = None
) -> Any:
    """Cross entropy of scores; the second output is the logarithm of the shares."""
    logs = F.log_softmax(x.symbol, axis=1)
    loss = _nll(node, logs, x, target, weight)
    return [loss, logs][: len(node.output_names)]


@imports("Bernoulli")
def bernoulli(node: OnnxNode, x: Value) -> Any:
    """Random ones and zeros by the probability of ones."""
    dtype = node.output_dtype() or x.dtype or np.dtype(np.float32)
    drawn = F.random.uniform_like(x.symbol) if x.shape is None else F.random.uniform(shape=x.sizes)
    return F.cast(F.broadcast_lesser(F.cast(drawn, dtype=x.dtype.name), x.symbol), dtype=dtype.name)
