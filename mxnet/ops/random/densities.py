"""Densities of the distributions in `random`, for arrays of samples.

Parameters have the leading axes of the samples; each element applies to all samples at its
position. Discrete samples have no gradient.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable

import torch
from torch import Tensor

from ...dtypes import to_name
from ...error import DTypeError, ShapeError
from ..declare import Op, op
from ..families import check_same_dtype
from ..shapes import Shape, unify

LogDensity = Callable[..., Tensor]


def _uniform(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    # MXNet does not check whether the sample is in the interval.
    return -torch.log(high - low) + torch.zeros_like(x)


def _normal(x: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    return -0.5 * ((x - mu) / sigma) ** 2 - torch.log(sigma) - 0.5 * math.log(2 * math.pi)


def _gamma(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """`beta` is the rate here, but the scale in samplers."""
    return alpha * torch.log(beta) + (alpha - 1) * torch.log(x) - beta * x - torch.lgamma(alpha)


def _exponential(x: Tensor, lam: Tensor) -> Tensor:
    return torch.log(lam) - lam * x


def _poisson(x: Tensor, lam: Tensor) -> Tensor:
    return torch.xlogy(x, lam) - lam - torch.lgamma(x + 1)


def _negative_binomial(x: Tensor, k: Tensor, p: Tensor) -> Tensor:
    ways = torch.lgamma(x + k) - torch.lgamma(x + 1) - torch.lgamma(k)
    return ways + k * torch.log(p) + torch.xlogy(x, 1 - p)


def _generalized_negative_binomial(x: Tensor, mu: Tensor, alpha: Tensor) -> Tensor:
    return _negative_binomial(x, 1 / alpha, 1 / (1 + mu * alpha))


def _dirichlet(x: Tensor, alpha: Tensor) -> Tensor:
    scale = torch.lgamma(alpha.sum(-1)) - torch.lgamma(alpha).sum(-1)
    return torch.xlogy(alpha - 1, x).sum(-1) + scale


def _check(name: str, sample: Tensor, parameters: tuple[Tensor, ...]) -> None:
    if not sample.is_floating_point():
        raise DTypeError(f"{name} only supports floating point types, not {to_name(sample.dtype)}.")
    first = parameters[0]
    for other in parameters:
        check_same_dtype(name, sample, other)
        if other.shape != first.shape:
            raise ShapeError(
                f"{name}: parameters must have the same shape, but got {list(first.shape)} and "
                f"{list(other.shape)}."
            )


def _density(
    name: str, logarithm: LogDensity, *parameters: str, discrete: bool, doc: str, example: str
) -> Op:
    """Declare the density of a univariate distribution."""
    full = f"_random_pdf_{name}"

    def function(sample: Tensor, *given: Tensor, is_log: bool = False) -> Tensor:
        _check(full, sample, given)
        leading = given[0].shape
        if sample.shape[: len(leading)] != leading:
            raise ShapeError(
                f"{full}: parameters of {list(leading)} need samples whose shape starts with it, "
                f"but got {list(sample.shape)}."
            )
        aligned = (*leading, *(1 for _ in sample.shape[len(leading) :]))
        x = sample.detach() if discrete else sample
        result = logarithm(x, *(p.reshape(aligned) for p in given))
        return result if is_log else result.exp()

    constant = ("sample",) if discrete or logarithm is _uniform else ()
    declare = op(full, full[1:], precision="widest", without_gradient=constant)
    record = declare(_set_signature(function, full, doc, example, parameters))

    def shapes_of_parameters(x: Shape | None, *given: Shape | None, **_: bool) -> dict:
        merged = None
        for shape in given:
            merged = unify(merged, shape, "shapes of parameters")
        return {} if merged is None else dict.fromkeys(parameters, merged)

    def shape_of(x: Shape | None, *given: Shape | None, **_: bool) -> Shape | None:
        return x

    record.infer_inputs(shapes_of_parameters)
    record.infer_outputs(shape_of)
    return record


def _set_signature(
    function: Callable, name: str, doc: str, example: str, parameters: tuple[str, ...]
) -> Callable:
    """Set the input names for `op` and the docstring."""
    kinds = inspect.Parameter
    inputs = ("sample", *parameters)
    function.__signature__ = inspect.Signature(
        [kinds(i, kinds.POSITIONAL_OR_KEYWORD) for i in inputs]
        + [kinds("is_log", kinds.KEYWORD_ONLY, default=False)]
    )
    function.__annotations__ = {**dict.fromkeys(inputs, Tensor), "is_log": bool, "return": Tensor}
    function.__name__ = function.__qualname__ = name.lstrip("_")
    arguments, target = example.split(" -> ")
    function.__doc__ = (
        f"{doc}\n\n    >>> mx.nd.{name[1:]}({arguments}).asnumpy()\n    {target}\n    "
    )
    return function


_ONE = "nd.array([[1.0]]), nd.array([1.0])"
_density(
    "uniform",
    _uniform,
    "low",
    "high",
    discrete=False,
    doc="Return the density ``1 / (high - low)`` for all samples, also outside the interval.",
    example="nd.array([[1.0]]), nd.array([0.0]), nd.array([2.0]) -> array([[0.5]], dtype=float32)",
)
_density(
    "normal",
    _normal,
    "mu",
    "sigma",
    discrete=False,
    doc="Return the density of a normal distribution with mean `mu` and deviation `sigma`.",
    example=_ONE + ", nd.array([1.0]) -> array([[0.3989423]], dtype=float32)",
)
_density(
    "gamma",
    _gamma,
    "alpha",
    "beta",
    discrete=False,
    doc="Return the density of a gamma distribution with shape `alpha` and rate `beta`.",
    example=_ONE + ", nd.array([1.0]) -> array([[0.36787945]], dtype=float32)",
)
_density(
    "exponential",
    _exponential,
    "lam",
    discrete=False,
    doc="Return the density of an exponential distribution: ``lam exp(-lam x)``.",
    example=_ONE + " -> array([[0.36787945]], dtype=float32)",
)
_density(
    "poisson",
    _poisson,
    "lam",
    discrete=True,
    doc="Return the probability of a count in a Poisson distribution with mean `lam`.",
    example=_ONE + " -> array([[0.36787945]], dtype=float32)",
)
_density(
    "negative_binomial",
    _negative_binomial,
    "k",
    "p",
    discrete=True,
    doc="Return the probability of a number of failures before `k` successes of probability `p`.",
    example=_ONE + ", nd.array([0.5]) -> array([[0.25]], dtype=float32)",
)
_density(
    "generalized_negative_binomial",
    _generalized_negative_binomial,
    "mu",
    "alpha",
    discrete=True,
    doc="Return the probability of a count in a negative binomial distribution (`mu`, `alpha`).",
    example=_ONE + ", nd.array([1.0]) -> array([[0.25]], dtype=float32)",
)


@op("_random_pdf_dirichlet", "random_pdf_dirichlet", precision="widest")
def random_pdf_dirichlet(sample: Tensor, alpha: Tensor, *, is_log: bool = False) -> Tensor:
    """Return the density of a Dirichlet distribution, with samples along the last axis.

    >>> mx.nd.random_pdf_dirichlet(nd.array([[0.5, 0.5]]), nd.array([[1.0, 1.0]])).asnumpy()
    array([1.], dtype=float32)
    """
    name = "_random_pdf_dirichlet"
    _check(name, sample, (alpha,))
    leading, extra = alpha.shape[:-1], sample.ndim - alpha.ndim
    if sample.shape[: len(leading)] != leading or sample.shape[-1] != alpha.shape[-1]:
        raise ShapeError(
            f"{name}: alpha of {list(alpha.shape)} does not match samples of {list(sample.shape)}."
        )
    aligned = (*leading, *(1 for _ in range(extra)), alpha.shape[-1])
    result = _dirichlet(sample, alpha.reshape(aligned))
    result = result if result.ndim else result.reshape(1)
    return result if is_log else result.exp()


@random_pdf_dirichlet.infer_outputs
def _dirichlet_shape(x: Shape | None, alpha: Shape | None, **_: bool) -> Shape | None:
    return None if x is None else x[:-1] or (1,)
