"""`mx.sym.contrib`: operators from the registry, and what is made of several of them."""

from __future__ import annotations

import math
from typing import Any

from ..ops import registry
from .codegen import call, entry_of
from .control_flow import cond, foreach, while_loop
from .functions import full
from .random import uniform
from .symbol import Symbol

__all__ = [
    "adamw_update",
    "cond",
    "foreach",
    "mp_adamw_update",
    "rand_zipfian",
    "while_loop",
]


def rand_zipfian(
    true_classes: Symbol, num_sampled: int, range_max: int
) -> tuple[Symbol, Symbol, Symbol]:
    """Draw class numbers from a log-uniform distribution.

    Returns the samples, the expected counts of the true classes and those of the samples.
    """
    log_range = math.log(range_max + 1)
    drawn = uniform(0, log_range, shape=(num_sampled,), dtype="float64")
    sampled = (drawn.exp() - 1).astype("int64") % range_max

    def expected(classes: Symbol) -> Symbol:
        known = classes.astype("float64")
        return ((known + 2.0) / (known + 1.0)).log() / log_range * num_sampled

    return sampled, expected(true_classes), expected(sampled)


def _adamw(
    name: str, inputs: dict[str, Symbol], rescale_grad: Any, attrs: dict, kwargs: dict
) -> Symbol:
    if not isinstance(rescale_grad, Symbol):
        rescale_grad = full((1,), rescale_grad)
    given = {k: entry_of(v, k) for k, v in {**inputs, "rescale_grad": rescale_grad}.items()}
    return call(Symbol, registry.get(name), name, given, {**attrs, **kwargs})


def adamw_update(
    weight: Symbol,
    grad: Symbol,
    mean: Symbol,
    var: Symbol,
    rescale_grad: Any,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0,
    clip_gradient: float = -1,
    out: Any = None,
    name: str | None = None,
    **kwargs: Any,
) -> Symbol:
    """Take a step of AdamW; `rescale_grad` may be a number or a symbol."""
    inputs = {"weight": weight, "grad": grad, "mean": mean, "var": var}
    attrs = {"lr": lr, "eta": eta, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    attrs |= {"wd": wd, "clip_gradient": clip_gradient, "name": name}
    return _adamw("_adamw_update", inputs, rescale_grad, attrs, kwargs)


def mp_adamw_update(
    weight: Symbol,
    grad: Symbol,
    mean: Symbol,
    var: Symbol,
    weight32: Symbol,
    rescale_grad: Any,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0,
    clip_gradient: float = -1,
    out: Any = None,
    name: str | None = None,
    **kwargs: Any,
) -> Symbol:
    """Take a step of AdamW with a float32 copy of the weight."""
    inputs = {"weight": weight, "grad": grad, "mean": mean, "var": var, "weight32": weight32}
    attrs = {"lr": lr, "eta": eta, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    attrs |= {"wd": wd, "clip_gradient": clip_gradient, "name": name}
    return _adamw("_mp_adamw_update", inputs, rescale_grad, attrs, kwargs)
