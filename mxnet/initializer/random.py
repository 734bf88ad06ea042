"""Initializers that draw: uniform, normal, Xavier, orthogonal. `mx.random.seed` repeats them."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from .. import ndarray as nd
from ..imperative.handle import writable
from ..ndarray import NDArray
from ..ops import interpreters
from .base import Initializer, register


def _place(arr: NDArray) -> Tensor | None:
    """Return the memory to draw into, None where a copy of drawn numbers is needed."""
    if arr.stype != "default" or arr._ctx is not None or interpreters.eager:
        return None
    place = writable(arr)
    return place if place.dtype is torch.float32 and place.is_contiguous() else None


def _fill_uniform(arr: NDArray, scale: float) -> None:
    place = _place(arr)
    if place is not None and scale >= 0:
        place.uniform_(-scale, scale)  # the same numbers, without another array for them
    else:
        arr[:] = nd.random.uniform(-scale, scale, arr.shape, ctx=arr.ctx)


def _fill_normal(arr: NDArray, sigma: float) -> None:
    place = _place(arr)
    if place is not None and sigma >= 0:
        place.normal_(0.0, sigma)
    else:
        arr[:] = nd.random.normal(0.0, sigma, arr.shape, ctx=arr.ctx)


@register
class Uniform(Initializer):
    """Draw evenly from ``[-scale, scale)``.

    Parameters
    ----------
    scale
        Largest absolute value.

    >>> w = mx.nd.array([[9, 9]])
    >>> mx.init.Uniform(0.1)(mx.init.InitDesc("fc_weight"), w)
    >>> bool(abs(w.asnumpy()).max() <= 0.1)
    True
    """

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, _: str, arr: NDArray) -> None:
        _fill_uniform(arr, self.scale)


@register
class Normal(Initializer):
    """Draw from a normal distribution around 0 with standard deviation ``sigma``.

    Parameters
    ----------
    sigma
        Standard deviation.

    >>> w = mx.nd.zeros((100,))
    >>> mx.init.Normal(0.1)(mx.init.InitDesc("fc_weight"), w)
    >>> bool(0 < w.norm().asscalar() < 3)
    True
    """

    def __init__(self, sigma: float = 0.01) -> None:
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, _: str, arr: NDArray) -> None:
        _fill_normal(arr, self.sigma)


@register
class Orthogonal(Initializer):
    """Make the rows (or, if they are more, the columns) orthogonal, of length ``scale``.

    Parameters
    ----------
    scale
        The length of each row or column.
    rand_type
        What the matrix is drawn from before it is made orthogonal: ``'uniform'`` or ``'normal'``.

    >>> w = mx.nd.zeros((2, 3))
    >>> mx.init.Orthogonal(scale=1.0)(mx.init.InitDesc("fc_weight"), w)
    >>> (mx.nd.dot(w, w.T).asnumpy().round(3) + 0).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(
        self, scale: float = 1.414, rand_type: Literal["uniform", "normal"] = "uniform"
    ) -> None:
        super().__init__(scale=scale, rand_type=rand_type)
        self.scale = scale
        self.rand_type = rand_type

    def _init_weight(self, _: str, arr: NDArray) -> None:
        shape = (arr.shape[0], math.prod(arr.shape[1:]))
        if self.rand_type == "uniform":
            drawn = nd.random.uniform(-1.0, 1.0, shape).asnumpy()
        elif self.rand_type == "normal":
            drawn = nd.random.normal(0.0, 1.0, shape).asnumpy()
        else:
            raise ValueError(f"Unknown random type {self.rand_type!r}: use uniform or normal")
        left, _, right = np.linalg.svd(drawn, full_matrices=False)
        made = left if left.shape == shape else right
        arr[:] = (self.scale * made).reshape(arr.shape).astype(np.float32)


@register
class Xavier(Initializer):
    """Keep the size of signals about the same from layer to layer.

    Draws within ``sqrt(magnitude / n)``, where ``n`` is the number of inputs of a neuron
    (``factor_type="in"``), of outputs ("out") or their mean ("avg").

    Parameters
    ----------
    rnd_type
        ``'uniform'`` (the bound is the edge) or ``'gaussian'`` (it is the standard deviation).
    factor_type
        Whose number counts: inputs (``'in'``), outputs (``'out'``) or their mean (``'avg'``).
    magnitude
        3 is Glorot's choice for ``'uniform'``, 2 with ``'in'`` is He's for ``'gaussian'``.

    >>> w = mx.nd.zeros((2, 4))
    >>> mx.init.Xavier()(mx.init.InitDesc("fc_weight"), w)
    >>> bool(abs(w.asnumpy()).max() <= 1)
    True
    """

    def __init__(
        self,
        rnd_type: Literal["uniform", "gaussian"] = "uniform",
        factor_type: Literal["avg", "in", "out"] = "avg",
        magnitude: float = 3,
    ) -> None:
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _bound(self, name: str, shape: tuple[int, ...]) -> float:
        if len(shape) < 2:
            raise ValueError(
                f"Xavier initializer cannot be applied to vector {name}. It requires at least 2D."
            )
        window = math.prod(shape[2:])
        fan_in, fan_out = shape[1] * window, shape[0] * window
        factors = {"avg": (fan_in + fan_out) / 2.0, "in": fan_in, "out": fan_out}
        if self.factor_type not in factors:
            raise ValueError(f"Incorrect factor type {self.factor_type!r}: use avg, in or out")
        return math.sqrt(self.magnitude / factors[self.factor_type])

    def _init_weight(self, name: str, arr: NDArray) -> None:
        bound = self._bound(name, arr.shape)
        if self.rnd_type == "uniform":
            _fill_uniform(arr, bound)
        elif self.rnd_type == "gaussian":
            _fill_normal(arr, bound)
        else:
            raise ValueError(f"Unknown random type {self.rnd_type!r}: use uniform or gaussian")


@register
class MSRAPrelu(Xavier):
    """Draw as He et al. for layers before a (leaky) rectifier: ``magnitude = 2 / (1 + slope^2)``.

    Parameters
    ----------
    factor_type
        Whose number counts: inputs (``'in'``), outputs (``'out'``) or their mean (``'avg'``).
    slope
        Slope of the rectifier's negative side.

    >>> mx.init.MSRAPrelu(slope=0).magnitude
    2.0
    """

    def __init__(
        self, factor_type: Literal["avg", "in", "out"] = "avg", slope: float = 0.25
    ) -> None:
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}
