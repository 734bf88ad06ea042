"""Samplers of distributions, random integers, choices and permutations.

They draw from torch's default generator of the device, which `mx.random.seed` seeds.
Each distribution is declared once: ``draw(blank, *parameters)`` fills or replaces a blank tensor,
with parameters as numbers or broadcast tensors. Three operators are derived: ``_random_x``
(numbers), ``_random_x_like`` and ``_sample_x`` (arrays of parameters, with `shape` samples for each
element). Parameters get no gradient.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from ... import dtypes
from ...accelerator import widest_float
from ...error import AttributeConversionError, DTypeError, ShapeError
from ...torch_private import standard_gamma
from ..attributes import FloatDType, IntegerDType, NumberDType, Shape
from ..declare import Op, OpContext, op
from ..families import check_same_dtype
from ..shapes import TypePattern, same, unify

MaybeFloat: TypeAlias = FloatDType | None
Number = float | Tensor


# -- sampling functions
# --------------------------------------------------------------------------------


def _uniform(blank: Tensor, low: Any, high: Any) -> Tensor:
    if isinstance(low, Tensor):
        return blank.uniform_().mul_(high - low).add_(low)
    return blank.uniform_(low, high)


def _normal(blank: Tensor, loc: Any, scale: Any) -> Tensor:
    if isinstance(loc, Tensor):
        return blank.normal_().mul_(scale).add_(loc)
    return blank.normal_(loc, scale)


def _exponential(blank: Tensor, lam: Number) -> Tensor:
    if isinstance(lam, Tensor):
        return blank.exponential_().div_(lam)
    return blank.exponential_(lam)


def _wide(blank: Tensor, value: Number) -> Tensor:
    """Broadcast a parameter to the samples, in a type supported by all kernels."""
    dtype = torch.promote_types(blank.dtype, torch.float32)
    if isinstance(value, Tensor):
        return value.to(dtype).expand(blank.shape)
    return torch.full(blank.shape, value, dtype=dtype, device=blank.device)


def _standard_gamma(alpha: Tensor) -> Tensor:
    # Torch's sampler never returns for a negative or NaN alpha.
    regular = alpha > 0
    drawn = standard_gamma(torch.where(regular, alpha, 1.0))
    return torch.where(regular, drawn, torch.where(alpha == 0, 0.0, math.nan))


def _poisson_of(rate: Tensor) -> Tensor:
    # Torch raises for an invalid rate on the CPU, and breaks the whole device on CUDA.
    regular = (rate >= 0) & (rate < 1e15)
    drawn = torch.poisson(torch.where(regular, rate, 0.0))
    return torch.where(regular, drawn, math.nan)


def _gamma(blank: Tensor, alpha: Number, beta: Number) -> Tensor:
    return (_standard_gamma(_wide(blank, alpha)) * beta).to(blank.dtype)


def _poisson(blank: Tensor, lam: Number) -> Tensor:
    return _poisson_of(_wide(blank, lam)).to(blank.dtype)


def _negative_binomial(blank: Tensor, k: Number, p: Number) -> Tensor:
    odds = ((1 - _wide(blank, p)) / p).clamp(min=0)
    return _poisson_of(_standard_gamma(_wide(blank, k)) * odds).to(blank.dtype)


def _generalized_negative_binomial(blank: Tensor, mu: Number, alpha: Number) -> Tensor:
    mean, spread = _wide(blank, mu), _wide(blank, alpha)
    is_poisson = spread == 0
    mixed = _standard_gamma(1 / torch.where(is_poisson, 1.0, spread)) * mean * spread
    return _poisson_of(torch.where(is_poisson, mean, mixed)).to(blank.dtype)


# -- the rows -----------------------------------------------------------------------------------


class Demand(NamedTuple):
    """A constraint on parameters, and its error text."""

    holds: Callable[..., bool]
    text: str


class Distribution(NamedTuple):
    """A distribution: MXNet's names and defaults of parameters, and names of their arrays."""

    name: str
    numbers: dict[str, float]
    arrays: tuple[str, ...]
    draw: Callable[..., Tensor]
    demands: tuple[Demand, ...]
    text: str
    aliases: tuple[str, ...] = ()

    def check(self, name: str, *values: float) -> None:
        """Raise unless the parameters are valid."""
        for demand in self.demands:
            if not demand.holds(*values):
                numbers = ", ".join(f"{k}={v:g}" for k, v in zip(self.numbers, values, strict=True))
                raise AttributeConversionError(f"{name}: {demand.text}, but got {numbers}.")


DISTRIBUTIONS = (
    Distribution(
        "uniform",
        {"low": 0.0, "high": 1.0},
        ("low", "high"),
        _uniform,
        (Demand(lambda low, high: low <= high, "low must be less or equal to high"),),
        "uniformly from [`low`, `high`)",
        ("uniform",),
    ),
    Distribution(
        "normal",
        {"loc": 0.0, "scale": 1.0},
        ("mu", "sigma"),
        _normal,
        (Demand(lambda loc, scale: scale > 0, "scale has to be positive"),),
        "from a normal distribution with the given mean and standard deviation",
        ("normal",),
    ),
    Distribution(
        "gamma",
        {"alpha": 1.0, "beta": 1.0},
        ("alpha", "beta"),
        _gamma,
        (
            Demand(lambda alpha, beta: alpha > 0, "alpha has to be positive"),
            Demand(lambda alpha, beta: beta > 0, "beta has to be positive"),
        ),
        "from a gamma distribution of shape `alpha` and scale `beta`",
    ),
    Distribution(
        "exponential",
        {"lam": 1.0},
        ("lam",),
        _exponential,
        (Demand(lambda lam: lam > 0, "lam has to be positive"),),
        "from an exponential distribution of rate `lam`",
    ),
    Distribution(
        "poisson",
        {"lam": 1.0},
        ("lam",),
        _poisson,
        (Demand(lambda lam: 0 <= lam < 1e15, "lam has to be non-negative, and below 1e15"),),
        "from a Poisson distribution of mean `lam`",
    ),
    Distribution(
        "negative_binomial",
        {"k": 1, "p": 1.0},
        ("k", "p"),
        _negative_binomial,
        (
            Demand(lambda k, p: k >= 0, "k has to be non-negative"),
            Demand(lambda k, p: p > 0, "p has to be positive"),
        ),
        "the number of failures before `k` successes, each of probability `p`",
    ),
    Distribution(
        "generalized_negative_binomial",
        {"mu": 1.0, "alpha": 1.0},
        ("mu", "alpha"),
        _generalized_negative_binomial,
        (
            Demand(lambda mu, alpha: mu >= 0, "mu has to be non-negative"),
            Demand(lambda mu, alpha: alpha >= 0, "alpha has to be non-negative"),
        ),
        "from a negative binomial distribution of mean `mu` and dispersion `alpha`",
    ),
)


# -- derived operators --------------------------------------------------------------------


def check_float(name: str, dtype: torch.dtype) -> None:
    """Raise unless the type is floating-point."""
    if not dtype.is_floating_point:
        raise DTypeError(
            f"Invalid Input: '{dtypes.to_name(dtype)}', valid values are: {{'float16', "
            f"'float32', 'float64'}}, for inputs of {name}."
        )


def needed_shape(name: str, shape: Shape | None) -> Shape:
    """Return the shape; raise if it is None."""
    if shape is None:
        raise ShapeError(f"{name}: the shape of the output is unknown. Pass shape=...")
    return shape


def _set_signature(
    function: Callable, name: str, doc: str, inputs: tuple[str, ...], attributes: dict[str, tuple]
) -> Callable:
    """Give a function the signature that `op` reads: name -> (annotation, default)."""
    parameter, kinds = inspect.Parameter, inspect.Parameter
    parameters = [parameter(i, kinds.POSITIONAL_OR_KEYWORD) for i in inputs]
    for key, (_, default) in attributes.items():
        parameters.append(parameter(key, kinds.KEYWORD_ONLY, default=default))
    function.__signature__ = inspect.Signature(parameters)
    function.__annotations__ = {
        **dict.fromkeys(inputs, Tensor),
        **{key: annotation for key, (annotation, _) in attributes.items()},
        "return": Tensor,
    }
    function.__name__ = function.__qualname__ = name.lstrip("_")
    function.__doc__ = doc
    return function


def _no_gradient(grad: Any, out: Any, *inputs: Tensor, **_: Any) -> tuple:
    return tuple(torch.zeros_like(x) for x in inputs)


def given_shape(*_: Any, shape: Shape | None, **attrs: Any) -> Shape | None:
    """The output has the shape of the attribute."""
    return shape


def _scalar_operator(row: Distribution) -> Op:
    name = f"_random_{row.name}"
    numbers = {k: (type(v), v) for k, v in row.numbers.items()}
    draw, check, defaults = row.draw, row.check, row.numbers

    def function(
        *,
        shape: Shape | None = None,
        ctx: str = "",
        dtype: torch.dtype | None = None,
        run: OpContext,
        **given: float,
    ) -> Tensor:
        values = [given.get(k, v) for k, v in defaults.items()]
        check(name, *values)
        size = needed_shape(name, shape)
        blank = torch.empty(size, dtype=dtype or torch.float32, device=run.device)
        return draw(blank, *values)

    attributes = {
        **numbers,
        "shape": (Shape | None, None),
        "ctx": (str, ""),
        "dtype": (MaybeFloat, None),
        "run": (OpContext, inspect.Parameter.empty),
    }
    doc = f"""Draw {row.text}.

    >>> mx.nd.random_{row.name}(shape=(2, 3)).shape
    (2, 3)
    """
    declare = op(name, f"random_{row.name}", *row.aliases, types="-> @dtype", random=True)
    record = declare(_set_signature(function, name, doc, (), attributes))
    record.infer_outputs(given_shape)
    return record


def _like_operator(row: Distribution) -> Op:
    name = f"_random_{row.name}_like"
    numbers = {k: (type(v), v) for k, v in row.numbers.items()}
    draw, check, defaults = row.draw, row.check, row.numbers

    def function(data: Tensor, **given: float) -> Tensor:
        values = [given.get(k, v) for k, v in defaults.items()]
        check(name, *values)
        check_float(name, data.dtype)
        return draw(torch.empty_like(data, memory_format=torch.contiguous_format), *values)

    doc = f"""Draw {row.text}, in the shape and type of `data`.

    >>> mx.nd.random.{row.name}_like(nd.ones((2, 3))).shape
    (2, 3)
    """
    record = op(name, shape=same, random=True)(
        _set_signature(function, name, doc, ("data",), numbers)
    )
    record.gradient(_no_gradient)
    return record


def _array_operator(row: Distribution) -> Op:
    name = f"_sample_{row.name}"
    draw = row.draw

    def function(
        *parameters: Tensor, shape: Shape = (), dtype: torch.dtype | None = None
    ) -> Tensor:
        first = parameters[0]
        for other in parameters[1:]:
            check_same_dtype(name, first, other)
            if other.shape != first.shape:
                raise ShapeError(
                    f"{name}: parameters must have one shape, but got {list(first.shape)} and "
                    f"{list(other.shape)}."
                )
        output = torch.empty(
            (*first.shape, *shape), dtype=dtype or torch.float32, device=first.device
        )
        aligned = (*first.shape, *(1 for _ in shape))
        return draw(output, *(p.detach().to(output.dtype).reshape(aligned) for p in parameters))

    attributes = {"shape": (Shape, ()), "dtype": (MaybeFloat, None)}
    doc = f"""Draw {row.text}; `shape` samples for each element of the parameters.

    >>> half = nd.array([0.5, 0.5])
    >>> mx.nd.sample_{row.name}({", ".join(["half"] * len(row.arrays))}, shape=3).shape
    (2, 3)
    """
    declare = op(
        name,
        f"sample_{row.name}",
        types="float32 -> @dtype",
        random=True,
        head_gradient=len(row.arrays) > 1,  # as in MXNet, a single parameter gets no gradient
    )
    operator = declare(_set_signature(function, name, doc, row.arrays, attributes))
    operator.gradient(_no_gradient)

    def shape_of(*ins: Shape | None, shape: Shape, **_: Any) -> Shape | None:
        merged = _together(ins)
        return None if merged is None else (*merged, *shape)

    def shapes_of_parameters(*ins: Shape | None, **_: Any) -> dict[str, Shape]:
        merged = _together(ins)
        return {} if merged is None else dict.fromkeys(row.arrays, merged)

    operator.infer_outputs(shape_of)
    operator.infer_inputs(shapes_of_parameters)
    return operator


def _together(shapes: tuple[Shape | None, ...]) -> Shape | None:
    merged = None
    for shape in shapes:
        merged = unify(merged, shape, "shapes of parameters")
    return merged


for _row in DISTRIBUTIONS:
    _scalar_operator(_row)
    _like_operator(_row)
    _array_operator(_row)


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
    """Draw integers uniformly from [`low`, `high`), as int32 or int64.

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
    """The requested type, by default int32."""

    def _read(self, word: str, bound: dict, attrs: dict) -> torch.dtype | None:
        return attrs.get("dtype") or torch.int32


random_randint.infer_outputs(given_shape)
random_randint.type_pattern = _WholeNumbers("-> @dtype")


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
    """Draw indices with the (unnormalized) probabilities on the last axis.

    With `get_prob` also return the log probabilities of the drawn indices, whose gradient is used
    in REINFORCE.

    Parameters
    ----------
    data
        Probabilities on the last axis; the others are a batch.
    shape
        Shape of the samples drawn from each distribution.
    get_prob
        Whether to also return the log probabilities of the drawn indices.
    dtype
        Data type of the indices.

    >>> mx.nd.sample_multinomial(nd.array([[0, 1], [1, 0]]), shape=3).asnumpy()
    array([[1, 1, 1],
           [0, 0, 0]], dtype=int32)
    """
    check_float("_sample_multinomial", data.dtype)
    batch = data.shape[:-1]
    weights = data.detach().to(widest_float(data.device)).reshape(-1, data.shape[-1])
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
    """Shuffle the elements along the first axis.

    >>> sorted(mx.nd.shuffle(nd.array([3, 1, 2])).asnumpy().tolist())
    [1.0, 2.0, 3.0]
    """
    return data.index_select(0, torch.randperm(len(data), device=data.device))


# -- unique samples of Zipf's law ---------------------------------------------------------------


@op("_sample_unique_zipfian", outputs=2, types="-> int64", random=True)
def sample_unique_zipfian(
    *, range_max: int, shape: Shape | None = None, run: OpContext
) -> tuple[Tensor, Tensor]:
    """Draw unique classes with ``P(k) = log((k + 2) / (k + 1)) / log(range_max + 1)``.

    Also return the number of draws with replacement for each row.

    Parameters
    ----------
    range_max
        Number of classes.
    shape
        Number of rows, and of classes per row.

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
    # If most classes are requested, repeated draws would be slow.
    by = _unique_by_clocks if range_max <= 32 * shape[1] else _unique_by_draws
    return by(range_max, *shape, run.device)


def _unique_by_clocks(classes: int, rows: int, count: int, device: torch.device) -> tuple:
    """Draw an exponential arrival time for each class, and select the earliest classes.

    Repeated arrivals up to the last selected class are Poisson-distributed.
    """
    numbers = torch.arange(classes, dtype=widest_float(device), device=device)
    rate = torch.log1p(1 / (numbers + 1)) / math.log(classes + 1)
    clock = torch.empty((rows, classes), dtype=rate.dtype, device=device).exponential_() / rate
    first, drawn = clock.topk(count, largest=False)
    again = (rate[drawn] * (first[:, -1:] - first)).sum(-1)
    return drawn, torch.poisson(again).long() + count


def _unique_by_draws(classes: int, rows: int, count: int, device: torch.device) -> tuple:
    """Draw with replacement until each row has enough different classes."""
    pool = torch.empty((rows, 0), dtype=torch.int64, device=device)
    while True:
        more = max(64, 2 * count, pool.shape[1])
        chance = torch.rand((rows, more), dtype=widest_float(device), device=device)
        fresh = torch.expm1(chance * math.log(classes + 1)).long().clamp_(max=classes - 1)
        pool = torch.cat([pool, fresh], 1)
        result = _is_first(pool).cumsum(-1)
        if int(result[:, -1].min()) >= count:
            break
    position = torch.searchsorted(result, torch.arange(1, count + 1, device=device).repeat(rows, 1))
    return pool.gather(1, position), position[:, -1] + 1


def _is_first(pool: Tensor) -> Tensor:
    """Return a mask of the first occurrences in each row."""
    ordered, origin = pool.sort(dim=1, stable=True)
    new = torch.ones_like(pool, dtype=torch.bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return torch.zeros_like(new).scatter_(1, origin, new)


@sample_unique_zipfian.infer_outputs
def _zipfian_shape(*, shape: Shape | None, **_: Any) -> list | None:
    return None if shape is None else [shape, shape[:1]]
