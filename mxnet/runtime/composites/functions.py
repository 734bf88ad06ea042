"""Composites outside `mx.nd.random`: splits, and the optimizer updates of `mx.nd.contrib`.

The updates take a rescale factor as a number or an array, or lists of arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base import integer_types
from .namespace import OperatorNamespace

__all__ = [
    "adamw_update",
    "mp_adamw_update",
    "multi_adamw_update",
    "multi_lamb_update",
    "multi_mp_adamw_update",
    "multi_mp_lamb_update",
]

# The updates that symbols provide.
SYMBOLIC = ("adamw_update", "mp_adamw_update")


def _factor(F: OperatorNamespace, rescale_grad: Any, like: Any) -> Any:
    if F.is_array(rescale_grad):
        return rescale_grad
    device = {} if F.is_symbolic else {"ctx": str(like.context)}
    return F._full(shape=(1,), value=float(rescale_grad), dtype="float32", **device)


def adamw_update(
    F: OperatorNamespace,
    weight: Any,
    grad: Any,
    mean: Any,
    var: Any,
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
) -> Any:
    """Update a weight by Adam with decoupled decay; `rescale_grad` is a number or an array.

    >>> w, g = mx.nd.ones(1), mx.nd.ones(1)
    >>> m, v = mx.nd.zeros(1), mx.nd.zeros(1)
    >>> mx.nd.contrib.adamw_update(w, g, m, v, 1.0, 0.25, 1, beta1=0.5, beta2=0.75).asnumpy()
    array([0.75], dtype=float32)
    """
    numbers = {"lr": lr, "eta": eta, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "wd": wd}
    numbers |= {"clip_gradient": clip_gradient, "out": out, "name": name, **kwargs}
    return F._adamw_update(weight, grad, mean, var, _factor(F, rescale_grad, weight), **numbers)


def mp_adamw_update(
    F: OperatorNamespace,
    weight: Any,
    grad: Any,
    mean: Any,
    var: Any,
    weight32: Any,
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
) -> Any:
    """Do `adamw_update` on a half-precision weight with a float32 master copy.

    >>> w, g, m, v = (mx.nd.ones(1, dtype=t) for t in ("float16", "float16", "float32", "float32"))
    >>> out = mx.nd.contrib.mp_adamw_update(w, g, m, v, mx.nd.ones(1), mx.nd.ones(1), lr=0.1, eta=1)
    >>> out.shape
    (1,)
    """
    numbers = {"lr": lr, "eta": eta, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "wd": wd}
    numbers |= {"clip_gradient": clip_gradient, "out": out, "name": name, **kwargs}
    factor = _factor(F, rescale_grad, weight)
    return F._mp_adamw_update(weight, grad, mean, var, weight32, factor, **numbers)


def _interleave(*columns: Sequence[Any]) -> list[Any]:
    """Return w0, g0, s0, w1, g1, s1, ... as the operators take them."""
    return [array for row in zip(*columns, strict=True) for array in row]


def multi_adamw_update(
    F: OperatorNamespace,
    weights: Sequence[Any],
    grads: Sequence[Any],
    mean: Sequence[Any],
    var: Sequence[Any],
    rescale_grad: Any,
    lrs: Sequence[float],
    wds: Sequence[float],
    etas: Sequence[float],
    out: Any = None,
    name: str | None = None,
    size: int = 0,
    **kwargs: Any,
) -> Any:
    """Do `adamw_update` for many weights at once.

    >>> w, g, m, v = ([mx.nd.ones(1)] for _ in range(4))
    >>> scale = mx.nd.ones(1)
    >>> mx.nd.contrib.multi_adamw_update(w, g, m, v, scale, lrs=[0.1], wds=[0.0], etas=[1.0]).shape
    (1,)
    """
    arrays = [*_interleave(weights, grads, mean, var), _factor(F, rescale_grad, weights[0])]
    numbers = {"lrs": lrs, "wds": wds, "etas": etas, "num_weights": size or len(weights)}
    return F._multi_adamw_update(*arrays, **numbers, out=out, **kwargs)


def multi_mp_adamw_update(
    F: OperatorNamespace,
    weights: Sequence[Any],
    grads: Sequence[Any],
    mean: Sequence[Any],
    var: Sequence[Any],
    weights32: Sequence[Any],
    rescale_grad: Any,
    lrs: Sequence[float],
    wds: Sequence[float],
    etas: Sequence[float],
    out: Any = None,
    name: str | None = None,
    size: int = 0,
    **kwargs: Any,
) -> Any:
    """Do `mp_adamw_update` for many weights at once.

    >>> w, g = [mx.nd.ones(1, dtype="float16")], [mx.nd.ones(1, dtype="float16")]
    >>> m, v, w32, scale = [mx.nd.ones(1)], [mx.nd.ones(1)], [mx.nd.ones(1)], mx.nd.ones(1)
    >>> mx.nd.contrib.multi_mp_adamw_update(
    ...     w, g, m, v, w32, scale, lrs=[0.1], wds=[0.0], etas=[1.0]).dtype
    <class 'numpy.float16'>
    """
    arrays = _interleave(weights, grads, mean, var, weights32)
    arrays.append(_factor(F, rescale_grad, weights[0]))
    numbers = {"lrs": lrs, "wds": wds, "etas": etas, "num_weights": size or len(weights)}
    return F._multi_mp_adamw_update(*arrays, **numbers, out=out, **kwargs)


def multi_lamb_update(
    F: OperatorNamespace,
    weights: Sequence[Any],
    grads: Sequence[Any],
    mean: Sequence[Any],
    var: Sequence[Any],
    step_count: Sequence[int],
    lrs: Sequence[float],
    wds: Sequence[float],
    out: Any = None,
    num_tensors: int = 0,
    **kwargs: Any,
) -> Any:
    """Update many weights by LAMB at once.

    >>> w, g, m, v = ([mx.nd.ones(1)] for _ in range(4))
    >>> mx.nd.contrib.multi_lamb_update(w, g, m, v, [1], lrs=[0.1], wds=[0.0]).shape
    (1,)
    """
    numbers = {"learning_rates": lrs, "wds": wds, "step_count": step_count, **kwargs}
    numbers["num_tensors"] = num_tensors or len(weights)
    return F._multi_lamb_update(*_interleave(weights, grads, mean, var), **numbers, out=out)


def multi_mp_lamb_update(
    F: OperatorNamespace,
    weights: Sequence[Any],
    grads: Sequence[Any],
    mean: Sequence[Any],
    var: Sequence[Any],
    weights32: Sequence[Any],
    step_count: Sequence[int],
    lrs: Sequence[float],
    wds: Sequence[float],
    out: Any = None,
    num_tensors: int = 0,
    **kwargs: Any,
) -> Any:
    """Do `multi_lamb_update` on half-precision weights with float32 master copies.

    >>> w, g = [mx.nd.ones(1, dtype="float16")], [mx.nd.ones(1, dtype="float16")]
    >>> m, v, w32 = [mx.nd.ones(1)], [mx.nd.ones(1)], [mx.nd.ones(1)]
    >>> mx.nd.contrib.multi_mp_lamb_update(w, g, m, v, w32, [1], lrs=[0.1], wds=[0.0]).dtype
    <class 'numpy.float16'>
    """
    numbers = {"learning_rates": lrs, "wds": wds, "step_count": step_count, **kwargs}
    numbers["num_tensors"] = num_tensors or len(weights)
    arrays = _interleave(weights, grads, mean, var, weights32)
    return F._multi_mp_lamb_update(*arrays, **numbers, out=out)


# -- splitting ----------------------------------------------------------------------------------


def split_v2(
    F: OperatorNamespace,
    ary: Any,
    indices_or_sections: Any,
    axis: int = 0,
    squeeze_axis: bool = False,
) -> Any:
    """Split into equal sections, or at the given indices; one part comes without a list.

    >>> [p.shape for p in mx.nd.split_v2(mx.nd.zeros((4, 2)), (1, 3))]
    [(1, 2), (2, 2), (1, 2)]
    """
    if isinstance(indices_or_sections, integer_types):
        sections = int(indices_or_sections)
        if sections == 0:
            raise ValueError("Number of sections must be larger than 0")
        indices: tuple[int, ...] = () if F.is_symbolic else _starts(ary.shape[axis], sections)
    elif isinstance(indices_or_sections, tuple | list | np.ndarray):
        sections, indices = 0, (0, *(int(i) for i in indices_or_sections))
    else:
        raise ValueError("indices_or_sections must be either int or tuple of ints")
    return F._split_v2(
        ary, indices=indices, axis=axis, squeeze_axis=squeeze_axis, sections=sections
    )


def _starts(size: int, sections: int) -> tuple[int, ...]:
    if size % sections:
        raise ValueError("array split does not result in an equal division")
    return tuple(range(0, size, size // sections))
