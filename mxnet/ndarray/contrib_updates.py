"""Updates of `mx.nd.contrib` that take lists, and a rescale factor as a number or array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..imperative.apply import apply
from ..ops import registry
from .creation import full
from .ndarray import NDArray


def _factor(rescale_grad: Any, like: NDArray) -> NDArray:
    if isinstance(rescale_grad, NDArray):
        return rescale_grad
    return full((1,), rescale_grad, ctx=like.context)


def adamw_update(
    weight: NDArray,
    grad: NDArray,
    mean: NDArray,
    var: NDArray,
    rescale_grad: Any,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0,
    clip_gradient: float = -1,
    out: NDArray | None = None,
    name: str | None = None,
    **kwargs: Any,
) -> NDArray:
    """Update a weight by Adam with decoupled decay; `rescale_grad` is a number or an array.

    >>> w, g = mx.nd.ones(1), mx.nd.ones(1)
    >>> m, v = mx.nd.zeros(1), mx.nd.zeros(1)
    >>> mx.nd.contrib.adamw_update(w, g, m, v, 1.0, 0.25, 1, beta1=0.5, beta2=0.75).asnumpy()
    array([0.75], dtype=float32)
    """
    raw = {"lr": lr, "eta": eta, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "wd": wd}
    raw |= {"clip_gradient": clip_gradient, **kwargs}
    inputs = (weight, grad, mean, var, _factor(rescale_grad, weight))
    return apply(registry.get("_adamw_update"), inputs, raw, out, cls=NDArray)


def mp_adamw_update(
    weight: NDArray,
    grad: NDArray,
    mean: NDArray,
    var: NDArray,
    weight32: NDArray,
    rescale_grad: Any,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0,
    clip_gradient: float = -1,
    out: NDArray | None = None,
    name: str | None = None,
    **kwargs: Any,
) -> NDArray:
    """Do `adamw_update` on a half-precision weight with a float32 master copy."""
    raw = {"lr": lr, "eta": eta, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "wd": wd}
    raw |= {"clip_gradient": clip_gradient, **kwargs}
    inputs = (weight, grad, mean, var, weight32, _factor(rescale_grad, weight))
    return apply(registry.get("_mp_adamw_update"), inputs, raw, out, cls=NDArray)


def _interleaved(*columns: Sequence[NDArray]) -> list[NDArray]:
    """Return w0, g0, s0, w1, g1, s1, ... as the operators take them."""
    return [array for row in zip(*columns, strict=True) for array in row]


def multi_adamw_update(
    weights: Sequence[NDArray],
    grads: Sequence[NDArray],
    mean: Sequence[NDArray],
    var: Sequence[NDArray],
    rescale_grad: Any,
    lrs: Sequence[float],
    wds: Sequence[float],
    etas: Sequence[float],
    out: Any = None,
    name: str | None = None,
    size: int = 0,
    **kwargs: Any,
) -> Any:
    """Do `adamw_update` for many weights at once."""
    arrays = [*_interleaved(weights, grads, mean, var), _factor(rescale_grad, weights[0])]
    raw = {"lrs": lrs, "wds": wds, "etas": etas, "num_weights": size or len(weights), **kwargs}
    return apply(registry.get("_multi_adamw_update"), arrays, raw, out, cls=NDArray)


def multi_mp_adamw_update(
    weights: Sequence[NDArray],
    grads: Sequence[NDArray],
    mean: Sequence[NDArray],
    var: Sequence[NDArray],
    weights32: Sequence[NDArray],
    rescale_grad: Any,
    lrs: Sequence[float],
    wds: Sequence[float],
    etas: Sequence[float],
    out: Any = None,
    name: str | None = None,
    size: int = 0,
    **kwargs: Any,
) -> Any:
    """Do `mp_adamw_update` for many weights at once."""
    arrays = _interleaved(weights, grads, mean, var, weights32)
    arrays.append(_factor(rescale_grad, weights[0]))
    raw = {"lrs": lrs, "wds": wds, "etas": etas, "num_weights": size or len(weights), **kwargs}
    return apply(registry.get("_multi_mp_adamw_update"), arrays, raw, out, cls=NDArray)


def multi_lamb_update(
    weights: Sequence[NDArray],
    grads: Sequence[NDArray],
    mean: Sequence[NDArray],
    var: Sequence[NDArray],
    step_count: Sequence[int],
    lrs: Sequence[float],
    wds: Sequence[float],
    out: Any = None,
    num_tensors: int = 0,
    **kwargs: Any,
) -> Any:
    """Update many weights by LAMB at once."""
    raw = {"learning_rates": lrs, "wds": wds, "step_count": step_count, **kwargs}
    raw["num_tensors"] = num_tensors or len(weights)
    arrays = _interleaved(weights, grads, mean, var)
    return apply(registry.get("_multi_lamb_update"), arrays, raw, out, cls=NDArray)


def multi_mp_lamb_update(
    weights: Sequence[NDArray],
    grads: Sequence[NDArray],
    mean: Sequence[NDArray],
    var: Sequence[NDArray],
    weights32: Sequence[NDArray],
    step_count: Sequence[int],
    lrs: Sequence[float],
    wds: Sequence[float],
    out: Any = None,
    num_tensors: int = 0,
    **kwargs: Any,
) -> Any:
    """Do `multi_lamb_update` on half-precision weights with float32 master copies."""
    raw = {"learning_rates": lrs, "wds": wds, "step_count": step_count, **kwargs}
    raw["num_tensors"] = num_tensors or len(weights)
    arrays = _interleaved(weights, grads, mean, var, weights32)
    return apply(registry.get("_multi_mp_lamb_update"), arrays, raw, out, cls=NDArray)
