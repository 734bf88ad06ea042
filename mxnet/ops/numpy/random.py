"""NumPy's samplers, with numbers or broadcast arrays as parameters.

Each distribution is declared by a sampling function of tensors. If MXNet has gradients with respect
to parameters (location-scale families, and those with one shape parameter), the function is
differentiated with fixed noise; otherwise they are zero.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...error import InvalidValue, MXNetError, ShapeError
from ...torch_private import standard_gamma
from ..attributes import DType, FloatDType, Floats, Shape
from ..declare import Op, OpContext, op
from ..shapes import Shapes, broadcast_two, given_shapes, unify

_F32 = torch.float32


def _exponential_noise(like: Tensor) -> Tensor:
    return torch.empty_like(like).exponential_()


def _uniform_noise(like: Tensor) -> Tensor:
    return torch.rand_like(like)


def _normal(loc: Tensor, scale: Tensor) -> Tensor:
    return loc + scale * torch.randn_like(loc)


def _uniform(low: Tensor, high: Tensor) -> Tensor:
    return (low + (high - low) * _uniform_noise(low)).detach()


def _gamma(shape: Tensor, scale: Tensor) -> Tensor:
    return (standard_gamma(shape.detach()) * scale).detach()


def _gumbel(loc: Tensor, scale: Tensor) -> Tensor:
    return loc - scale * torch.log(_exponential_noise(loc))


def _logistic(loc: Tensor, scale: Tensor) -> Tensor:
    return loc + scale * torch.logit(_uniform_noise(loc), 1e-7)


def _exponential(scale: Tensor) -> Tensor:
    return scale * _exponential_noise(scale)


def _rayleigh(scale: Tensor) -> Tensor:
    return scale * torch.sqrt(2 * _exponential_noise(scale))


def _pareto(a: Tensor) -> Tensor:
    return torch.expm1(_exponential_noise(a) / a)


def _weibull(a: Tensor) -> Tensor:
    return torch.pow(_exponential_noise(a), 1 / a)


def _power(a: Tensor) -> Tensor:
    return torch.exp(-_exponential_noise(a) / a.detach())


class Distribution(NamedTuple):
    """A distribution: parameters with defaults, the sampler, and the nonnegative parameters."""

    name: str
    parameters: tuple[str, ...]
    draw: Callable[..., Tensor]
    text: str
    default: Any = inspect.Parameter.empty
    nonnegative: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    has_dtype: bool = False
    has_ctx: bool = True
    total: int | None = None
    repeats: bool = False  # `size` precedes the shape of the parameters


_ABOUT = {
    "uniform": "uniformly from [`low`, `high`)",
    "normal": "from normal distributions",
    "gamma": "from gamma distributions of the given shapes and scales",
    "gumbel": "from Gumbel distributions",
    "logistic": "from logistic distributions",
    "exponential": "from exponential distributions of mean `scale`",
    "rayleigh": "from Rayleigh distributions of mode `scale`",
    "pareto": "from Pareto II (Lomax) distributions of exponent `a`",
    "weibull": "from Weibull distributions of exponent `a`",
    "powerd": "from [0, 1] with densities ``a x^(a - 1)``",
}
_LOC = ("loc", "scale")
DISTRIBUTIONS = (
    Distribution("uniform", ("low", "high"), _uniform, _ABOUT["uniform"], has_dtype=True),
    Distribution(
        "uniform_n", ("low", "high"), _uniform, _ABOUT["uniform"], has_dtype=True, repeats=True
    ),
    Distribution(
        "normal", _LOC, _normal, _ABOUT["normal"], nonnegative=("scale",), has_dtype=True, total=2
    ),
    Distribution(
        "normal_n",
        _LOC,
        _normal,
        _ABOUT["normal"],
        nonnegative=("scale",),
        has_dtype=True,
        total=2,
        repeats=True,
    ),
    Distribution(
        "gamma",
        ("shape", "scale"),
        _gamma,
        _ABOUT["gamma"],
        positive=("shape", "scale"),
        has_dtype=True,
    ),
    Distribution("gumbel", _LOC, _gumbel, _ABOUT["gumbel"], nonnegative=("scale",), total=2),
    Distribution("logistic", _LOC, _logistic, _ABOUT["logistic"], nonnegative=("scale",), total=2),
    Distribution(
        "exponential", ("scale",), _exponential, _ABOUT["exponential"], 1.0, ("scale",), total=2
    ),
    Distribution("rayleigh", ("scale",), _rayleigh, _ABOUT["rayleigh"], 1.0, ("scale",), total=2),
    Distribution("pareto", ("a",), _pareto, _ABOUT["pareto"], None, positive=("a",), total=2),
    Distribution("weibull", ("a",), _weibull, _ABOUT["weibull"], None, positive=("a",), total=2),
    Distribution("powerd", ("a",), _power, _ABOUT["powerd"], None, positive=("a",), has_ctx=False),
)


def drawn_shape(name: str, shapes: list[Shape], size: Shape | None, repeats: bool) -> Shape:
    """Return the shape of samples: `size`, into which the parameters broadcast."""
    common: Shape = ()
    for shape in shapes:
        common = broadcast_two(common, tuple(shape))
    if not size:
        return common
    if repeats:
        return (*size, *common)
    target = broadcast_two(tuple(size), common)
    if len(common) > len(size) or target != tuple(size):
        raise ShapeError(
            f"{name}: operands could not be broadcast together with shapes {list(common)} "
            f"{list(size)}."
        )
    return target


def _check_sign(name: str, row: Distribution, key: str, value: Any) -> None:
    """Raise for invalid negative or zero parameters."""
    smallest = value if not isinstance(value, Tensor) else None
    if smallest is None and value.numel() and not value.is_meta:
        smallest = value.detach().min().item()
    if smallest is None:
        return
    if key in row.nonnegative and smallest < 0:
        raise InvalidValue(f"{name}: expect {key} >= 0, but got {smallest}.")
    if key in row.positive and smallest <= 0:
        raise InvalidValue(f"{name}: expect {key} > 0, but got {smallest}.")


def _parameters(name: str, row: Distribution, inputs: tuple, numbers: dict) -> dict[str, Any]:
    """Return the parameters by name; arrays are assigned in order to those without a number."""
    arrays = iter([x for x in inputs if x is not None])
    default = None if row.default is inspect.Parameter.empty else row.default
    values = {k: numbers.get(k, default) for k in row.parameters}
    values = {k: next(arrays, None) if v is None else v for k, v in values.items()}
    for key, value in values.items():
        if value is None:
            raise MXNetError(f"{name}: give {key} as a number or as an array.")
        if key in row.nonnegative or key in row.positive:
            _check_sign(name, row, key, value)
    return values


# First parameters whose meaning differs from the glossary.
_PARAMETERS = {
    "shape": """
    Parameters
    ----------
    shape
        Shape parameter of the gamma distribution; None if passed as an array.
""",
    "a": """
    Parameters
    ----------
    a
        Shape parameter of the distribution; None if passed as an array.
""",
}


def _sampler(row: Distribution) -> Callable:
    name = f"_npi_{row.name}"

    def function(
        *given: Tensor | None,
        size: Shape | None = None,
        ctx: str = "cpu",
        dtype: torch.dtype = _F32,
        run: OpContext,
        **numbers: float | None,
    ) -> Tensor:
        values = _parameters(name, row, given, numbers)
        shapes = [tuple(v.shape) for v in values.values() if isinstance(v, Tensor)]
        shape = drawn_shape(name, shapes, size, row.repeats)
        wide = dtype if dtype is torch.float64 else _F32
        ready = (
            v.to(wide).expand(shape)
            if isinstance(v, Tensor)
            else torch.full(shape, v, dtype=wide, device=run.device)
            for v in values.values()
        )
        return row.draw(*ready).to(dtype)

    call = ", ".join(f"{k}=1.0" for k in row.parameters)
    function.__doc__ = f"""Draw {row.text}; parameters that are None are passed as arrays.
{_PARAMETERS.get(row.parameters[0], "")}
    >>> mx.nd._internal.{name}({call}, size=(2, 3)).shape
    (2, 3)
    """
    return _with_signature(function, row)


def _with_signature(function: Callable, row: Distribution) -> Callable:
    """Set name, inputs and attributes of a sampler as in MXNet."""
    kinds = inspect.Parameter
    inputs = [f"input{i + 1}" for i in range(len(row.parameters))]
    attributes: dict[str, tuple] = dict.fromkeys(row.parameters, (float | None, row.default))
    attributes["size"] = (Shape | None, None)
    if row.has_ctx:
        attributes["ctx"] = (str, "cpu")
    if row.has_dtype:
        attributes["dtype"] = (FloatDType, _F32)
    attributes["run"] = (OpContext, kinds.empty)
    parameters = [kinds(i, kinds.POSITIONAL_OR_KEYWORD, default=None) for i in inputs]
    parameters += [kinds(k, kinds.KEYWORD_ONLY, default=d) for k, (_, d) in attributes.items()]
    function.__signature__ = inspect.Signature(parameters)
    function.__annotations__ = {
        **dict.fromkeys(inputs, Tensor | None),
        **{k: annotation for k, (annotation, _) in attributes.items()},
        "return": Tensor,
    }
    function.__name__ = function.__qualname__ = row.name
    return function


def distribution(row: Distribution) -> Op:
    """Declare the sampler of a row."""
    name, keys = f"_npi_{row.name}", row.parameters

    def count(attrs: dict) -> int:
        return sum(attrs[k] is None for k in keys)

    def shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
        inputs = given_shapes(ins)
        if inputs is None:
            return ins, outs
        result = drawn_shape(name, inputs, attrs["size"], row.repeats)
        return ins, [unify(result, outs[0], "the output")]

    optional = {"input1": lambda a: count(a) > 0, "input2": lambda a: count(a) > 1}
    declare = op(
        name,
        optional={f"input{i + 1}": optional[f"input{i + 1}"] for i in range(len(keys))},
        types="A B -> @dtype=float32" if row.has_dtype else "A B -> float32",
        shape=shapes,
        total=row.total,
        outputs=("output0",) if row.total else 1,
        random=True,
    )
    return declare(_sampler(row))


for _row in DISTRIBUTIONS:
    distribution(_row)


def _bernoulli_shape(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    inputs = given_shapes(ins)
    if inputs is None:
        return ins, outs
    result = drawn_shape("_npi_bernoulli", inputs, attrs["size"], False)
    return ins, [unify(result, outs[0], "the output")]


@op(
    "_npi_bernoulli",
    optional={"input1": lambda a: a["prob"] is None and a["logit"] is None},
    types="A -> @dtype",
    shape=_bernoulli_shape,
    random=True,
)
def bernoulli(
    input1: Tensor | None = None,
    *,
    prob: float | None,
    logit: float | None,
    size: Shape | None = None,
    ctx: str = "cpu",
    dtype: DType = _F32,
    is_logit: bool,
    run: OpContext,
) -> Tensor:
    """Draw from a Bernoulli distribution, given by probability or log-odds.

    Parameters
    ----------
    prob
        Probability of 1; None if passed as an array, or with `logit`.
    logit
        Log-odds of 1.
    is_logit
        Whether the parameter is `logit`.

    >>> sample = mx.nd._internal._npi_bernoulli
    >>> sample(prob=1.0, logit=None, is_logit=False, size=(2,)).asnumpy()
    array([1., 1.], dtype=float32)
    """
    value = input1.detach().float() if input1 is not None else logit if is_logit else prob
    if value is None:
        raise MXNetError("_npi_bernoulli: pass prob or logit as a number or as an array.")
    if not isinstance(value, Tensor):
        value = torch.tensor(value, dtype=_F32, device=run.device)
    if is_logit:
        value = torch.sigmoid(value)
    elif not bool(((value >= 0) & (value <= 1)).all()):
        raise InvalidValue("_npi_bernoulli: expect probs >= 0 && probs <= 1.")
    shape = drawn_shape("_npi_bernoulli", [tuple(value.shape)], size, False)
    return torch.bernoulli(value.expand(shape)).to(dtype)


@op(
    "_npi_multinomial",
    optional={"a": lambda a: a["pvals"] is None},
    types="A -> int64",
    random=True,
)
def multinomial(
    a: Tensor | None = None,
    *,
    n: int,
    pvals: Floats | None = None,
    size: Shape | None = None,
    run: OpContext,
) -> Tensor:
    """Draw from a multinomial distribution: counts of outcomes in ``n`` draws.

    Parameters
    ----------
    a
        Probabilities as an array.
    n
        Number of draws of each sample.
    pvals
        Probabilities as numbers.
    size
        Shape of the result without the last axis of outcomes.

    >>> mx.nd._internal._npi_multinomial(n=5, pvals=(0.0, 1.0)).asnumpy()
    array([0, 5])
    """
    values = pvals if a is None else a.detach().double().tolist()
    weights = torch.tensor(values, dtype=torch.float64, device=run.device)
    shape = tuple(size or ())
    if not len(weights):
        return torch.zeros(*shape, 0, dtype=torch.int64, device=run.device)
    if weights.sum() > 1.0 + 1e-6:
        raise InvalidValue(f"_npi_multinomial: sum(pvals) > 1.0, it is {weights.sum().item():g}.")
    # The last outcome has the remaining probability, as in NumPy.
    weights = torch.cat([weights[:-1], (1 - weights[:-1].sum()).clamp(min=0).reshape(1)])
    rows = torch.Size(shape).numel()
    counts = torch.zeros(rows, len(weights), dtype=torch.int64, device=run.device)
    if n and rows:
        drawn = torch.multinomial(weights.expand(rows, -1), n, replacement=True)
        counts.scatter_add_(1, drawn, torch.ones_like(drawn))
    return counts.reshape(*shape, len(weights))


@multinomial.infer_outputs
def multinomial_shape(
    a: Shape | None = None, *, pvals: Floats | None, size: Shape | None, **_: int
) -> Shape | None:
    """One count per outcome."""
    outcomes = a[0] if pvals is None and a is not None else len(pvals or ())
    return (*(size or ()), outcomes)


@op(
    "_npi_choice",
    optional={
        "input1": lambda a: a["a"] is None or a["weighted"],
        "input2": lambda a: a["a"] is None and a["weighted"],
    },
    types="A B -> int64",
    random=True,
)
def choice(
    input1: Tensor | None = None,
    input2: Tensor | None = None,
    *,
    a: int | None,
    size: Shape | None,
    ctx: str = "cpu",
    replace: bool = True,
    weighted: bool = False,
    run: OpContext,
) -> Tensor:
    """Draw random indices below ``a`` or into an array, optionally weighted.

    Parameters
    ----------
    a
        Number of elements to choose from; None if an array is passed.
    size
        Shape of the result.
    replace
        Whether to sample with replacement.
    weighted
        Whether weights are among the inputs.
    input1
        Array to choose from, or weights.
    input2
        Weights.

    >>> mx.nd._internal._npi_choice(a=1, size=(2,)).asnumpy()
    array([0, 0])
    """
    count, weights = a, input1
    if count is None:
        assert input1 is not None  # `optional` requires the array if there is no number
        count, weights = input1.shape[0], input2
    shape = tuple(size or ())
    total = torch.Size(shape).numel()
    if not replace and total > count:
        raise InvalidValue(
            f"_npi_choice: cannot take {total} of {count} elements without replacement."
        )
    if weighted:
        if total == 0:
            return torch.empty(shape, dtype=torch.int64, device=run.device)
        assert weights is not None
        return torch.multinomial(weights.detach().double(), total, replacement=replace).reshape(
            shape
        )
    if replace:
        return torch.randint(count, shape, device=run.device)
    return torch.randperm(count, device=run.device)[:total].reshape(shape)


@choice.infer_outputs
def choice_shape(*_: Shape | None, size: Shape | None, **attrs: Any) -> Shape:
    """The output has the shape of the attribute."""
    return tuple(size or ())
