"""Samplers of integers, choices and orders; those of distributions are in `random`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ... import dtypes
from ...error import AttributeConversionError, ShapeError
from ..attributes import IntegerDType, NumberDType, Shape
from ..declare import OpContext, op
from ..shapes import TypePattern, same
from .distributions import check_float, given_shape, needed_shape


@op("_random_randint", "random_randint", "_npi_random_randint", random=True)
def random_randint(
    *,
    low: int,
    high: int,
    shape: Shape | None = None,
    ctx: str = "",
    dtype: IntegerDType | None = None,
    run: OpContext,
) -> Tensor:
    """Draw integers evenly from [`low`, `high`), as int32 or int64.

    Parameters
    ----------
    low
        Smallest number.
    shape
        Shape of the samples.
    dtype
        ``'int32'`` or ``'int64'``; int32 by default.

    >>> mx.nd.random_randint(low=7, high=8, shape=(2,)).asnumpy()
    array([7, 7], dtype=int32)
    """
    dtype = dtype or torch.int32
    if low >= high:
        raise AttributeConversionError(
            f"_random_randint: low must be less than high, but got low={low}, high={high}."
        )
    limits = torch.iinfo(dtype)
    if low < limits.min or high - 1 > limits.max:
        raise AttributeConversionError(
            f"_random_randint: [{low}, {high}) does not fit into {dtypes.to_name(dtype)}."
        )
    size = needed_shape("_random_randint", shape)
    return torch.randint(low, high, size, dtype=dtype, device=run.device)


class _WholeNumbers(TypePattern):
    """The type that is asked for, by default int32."""

    def _read(self, word: str, bound: dict, attrs: dict) -> torch.dtype | None:
        return attrs.get("dtype") or torch.int32


random_randint.infer_outputs(given_shape)
random_randint.type_pattern = _WholeNumbers("-> @dtype")


def _precise(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64


@op(
    "_sample_multinomial",
    "sample_multinomial",
    outputs=lambda a: 2 if a["get_prob"] else 1,
    types="T -> @dtype T",
    random=True,
)
def sample_multinomial(
    data: Tensor, *, shape: Shape = (), get_prob: bool = False, dtype: NumberDType = torch.int32
) -> Tensor | tuple[Tensor, Tensor]:
    """Draw indices by the probabilities on the last axis, which need not sum to one.

    With `get_prob` also return the logarithm of the probability of what was drawn; its gradient
    makes REINFORCE.

    Parameters
    ----------
    data
        Probabilities on the last axis; the others are a batch.
    shape
        Shape of the samples drawn from each distribution.
    get_prob
        Whether to return the logarithm of the drawn probabilities too.
    dtype
        Data type of the indices.

    >>> mx.nd.sample_multinomial(nd.array([[0, 1], [1, 0]]), shape=3).asnumpy()
    array([[1, 1, 1],
           [0, 0, 0]], dtype=int32)
    """
    check_float("_sample_multinomial", data.dtype)
    batch = data.shape[:-1]
    weights = data.detach().to(_precise(data.device)).reshape(-1, data.shape[-1])
    climbing = weights.cumsum(-1)
    total = climbing[:, -1:]
    least, most = total.aminmax()
    if not bool((weights.min() >= 0) & (least > 0) & (most < math.inf)):
        raise AttributeConversionError(
            "_sample_multinomial: probabilities must be non-negative and finite, and not all zero."
        )
    draws = torch.rand(
        (len(weights), math.prod(shape)), dtype=weights.dtype, device=data.device
    ).mul_(total)
    draws = torch.minimum(draws, torch.nextafter(total, torch.zeros_like(total)))
    index = torch.searchsorted(climbing, draws, right=True)
    size = (*batch, *shape) or (1,)
    drawn = index.reshape(size).to(dtype)
    if not get_prob:
        return drawn
    chosen = data.reshape(-1, data.shape[-1]).gather(-1, index)
    return drawn, chosen.log().reshape(size)


@sample_multinomial.infer_outputs
def _multinomial_shape(data: Shape | None, *, shape: Shape, **_: Any) -> Shape | None:
    return None if data is None else (*data[:-1], *shape) or (1,)


@op("_shuffle", "shuffle", "_npi_shuffle", shape=same, bfloat16="any", random=True)
def shuffle(data: Tensor) -> Tensor:
    """Put the entries along the first axis into random order.

    >>> sorted(mx.nd.shuffle(nd.array([3, 1, 2])).asnumpy().tolist())
    [1.0, 2.0, 3.0]
    """
    return data.index_select(0, torch.randperm(len(data), device=data.device))


# -- unique samples of Zipf's law ---------------------------------------------------------------


@op("_sample_unique_zipfian", outputs=2, types="-> int64", random=True)
def sample_unique_zipfian(
    *, range_max: int, shape: Shape | None = None, run: OpContext
) -> tuple[Tensor, Tensor]:
    """Draw rows of different classes by ``P(k) = log((k + 2) / (k + 1)) / log(range_max + 1)``.

    Also return how many draws with replacement each row took.

    Parameters
    ----------
    range_max
        Number of classes.
    shape
        Rows and classes in a row.

    >>> classes, tries = mx.nd._internal._sample_unique_zipfian(range_max=4, shape=(1, 4))
    >>> sorted(classes.asnumpy()[0].tolist())
    [0, 1, 2, 3]
    """
    name = "_sample_unique_zipfian"
    if shape is None or len(shape) != 2:
        raise ShapeError(f"{name}: shape must be (rows, classes), but got {shape}.")
    if not 0 < shape[1] <= range_max:
        raise AttributeConversionError(
            f"{name}: cannot draw {shape[1]} different classes out of {range_max}."
        )
    # Where most classes are wanted, repeated draws would hardly find the last ones.
    by = _unique_by_clocks if range_max <= 32 * shape[1] else _unique_by_draws
    return by(range_max, *shape, run.device)


def _unique_by_clocks(classes: int, rows: int, wanted: int, device: torch.device) -> tuple:
    """Let each class first come after an exponential time of its rate; the earliest are drawn.

    Up to the last of them, a class that came already comes again as a Poisson process.
    """
    numbers = torch.arange(classes, dtype=_precise(device), device=device)
    rate = torch.log1p(1 / (numbers + 1)) / math.log(classes + 1)
    clock = torch.empty((rows, classes), dtype=rate.dtype, device=device).exponential_() / rate
    first, drawn = clock.topk(wanted, largest=False)
    again = (rate[drawn] * (first[:, -1:] - first)).sum(-1)
    return drawn, torch.poisson(again).long() + wanted


def _unique_by_draws(classes: int, rows: int, wanted: int, device: torch.device) -> tuple:
    """Draw with replacement, more and more, until each row has enough different classes."""
    pool = torch.empty((rows, 0), dtype=torch.int64, device=device)
    while True:
        more = max(64, 2 * wanted, pool.shape[1])
        chance = torch.rand((rows, more), dtype=_precise(device), device=device)
        fresh = torch.expm1(chance * math.log(classes + 1)).long().clamp_(max=classes - 1)
        pool = torch.cat([pool, fresh], 1)
        found = _is_first(pool).cumsum(-1)
        if int(found[:, -1].min()) >= wanted:
            break
    place = torch.searchsorted(found, torch.arange(1, wanted + 1, device=device).repeat(rows, 1))
    return pool.gather(1, place), place[:, -1] + 1


def _is_first(pool: Tensor) -> Tensor:
    """Return which elements of each row did not occur before in it."""
    ordered, origin = pool.sort(dim=1, stable=True)
    new = torch.ones_like(pool, dtype=torch.bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return torch.zeros_like(new).scatter_(1, origin, new)


@sample_unique_zipfian.infer_outputs
def _zipfian_shape(*, shape: Shape | None, **_: Any) -> list | None:
    return None if shape is None else [shape, shape[:1]]
