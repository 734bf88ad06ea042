"""SGD and AdamW for many weights in one call.

Arrays come weight by weight: ``w0, g0, w1, g1, ...``, with states after each gradient. The
``preloaded`` forms end with two arrays, all learning rates and all weight decays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from ...error import MXNetError
from ..attributes import Floats
from ..declare import op
from ..shapes import Shapes, unify
from .adaptive_updates import one_number, usable
from .steps import adam_, alike, all_rescaled, check_shapes, sgd_, sgd_momentum_


class SeveralWeights:
    """How the arrays of a many-weights operator are laid out: roles a weight, then extras."""

    def __init__(self, *roles: str, extras: tuple[str, ...] = (), count: str = "num_weights"):
        self.roles, self.extras, self.count = roles, extras, count
        self.declaration: dict[str, Any] = {
            "outputs": lambda attrs: attrs[count],
            "input_names": lambda attrs: [
                *(f"{role}_{i}" for i in range(attrs[count]) for role in roles),
                *extras,
            ],
            "shape": self.shapes,
        }

    def split(self, name: str, data: Sequence[Tensor], count: int) -> list[tuple[Tensor, ...]]:
        """Return the arrays role by role, checked; extras follow."""
        width, extras = len(self.roles), len(self.extras)
        if count < 1 or len(data) != count * width + extras:
            each = ", ".join(self.roles)
            rest = f" and {', '.join(self.extras)}" if extras else ""
            raise MXNetError(
                f"{name}: {self.count}={count} needs {count} times ({each}){rest}, that is "
                f"{count * width + extras} arrays, got {len(data)}."
            )
        together = data[: count * width]
        for i in range(0, len(together), width):
            check_shapes(name, *together[i : i + width])
        return [*(together[i::width] for i in range(width)), *data[count * width :]]

    def shapes(self, ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
        """Give each weight's arrays and its output one shape."""
        ins, outs, width = list(ins), list(outs), len(self.roles)
        for i in range(len(outs)):
            own = slice(i * width, (i + 1) * width)
            shape = outs[i]
            for known in ins[own]:
                shape = unify(shape, known, f"arrays of weight {i}")
            ins[own] = [shape] * width
            outs[i] = shape
        return ins, outs

    @staticmethod
    def result(new: Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
        """Return one weight as it is, several as a tuple."""
        return new[0] if len(new) == 1 else tuple(new)

    def narrowed(
        self, wide: Sequence[Tensor], weights: Sequence[Tensor]
    ) -> Tensor | tuple[Tensor, ...]:
        """Return 32-bit weights in the type of the 16-bit ones."""
        return self.result([w.to(like.dtype) for w, like in zip(wide, weights, strict=True)])


def check_count(name: str, count: int, **given: Sequence) -> None:
    """Refuse per-weight attributes of another length."""
    for key, values in given.items():
        if len(values) != count:
            raise MXNetError(f"{name}: {key} must have {count} values, got {len(values)}.")


def _pick(items: Sequence[Tensor], positions: list[int]) -> list[Tensor]:
    return [items[i] for i in positions]


def _sgd_all_(
    name: str,
    weights: Sequence[Tensor],
    grads: Sequence[Tensor],
    moms: Sequence[Tensor] | None,
    lrs: Sequence[float],
    wds: Sequence[float],
    momentum: float = 0.0,
) -> None:
    """Step in place; weights with equal numbers and type go together."""
    check_count(name, len(weights), lrs=lrs, wds=wds)
    for (lr, wd, _), positions in alike(lrs, wds, [w.dtype for w in weights]):
        own, slopes = _pick(weights, positions), _pick(grads, positions)
        if moms is None:
            sgd_(own, slopes, lr, wd)
        else:
            sgd_momentum_(own, slopes, _pick(moms, positions), lr, wd, momentum)


def _widened(grads: Sequence[Tensor], wide: Sequence[Tensor]) -> list[Tensor]:
    return [g.to(w.dtype) for g, w in zip(grads, wide, strict=True)]


_SGD = SeveralWeights("weight", "grad")
_SGD_MOM = SeveralWeights("weight", "grad", "mom")
_MP_SGD = SeveralWeights("weight", "grad", "weight32")
_MP_SGD_MOM = SeveralWeights("weight", "grad", "mom", "weight32")
_LOADED = ("lrs", "wds")
_LOADED_SGD = SeveralWeights("weight", "grad", extras=_LOADED)
_LOADED_SGD_MOM = SeveralWeights("weight", "grad", "mom", extras=_LOADED)
_LOADED_MP_SGD = SeveralWeights("weight", "grad", "weight32", extras=_LOADED)
_LOADED_MP_SGD_MOM = SeveralWeights("weight", "grad", "mom", "weight32", extras=_LOADED)


@op("multi_sgd_update", **_SGD.declaration)
def multi_sgd_update(
    *data: Tensor,
    lrs: Floats,
    wds: Floats,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Do `sgd_update` for many weights, given as ``w0, g0, w1, g1, ...``.

    >>> a, b = mx.nd.ones(1), mx.nd.ones(2)
    >>> a, b = mx.nd.multi_sgd_update(a, a, b, b, lrs=(0.5, 1), wds=(0, 0), num_weights=2)
    >>> a.asnumpy(), b.asnumpy()
    (array([0.5], dtype=float32), array([0., 0.], dtype=float32))
    """
    weights, grads = _SGD.split("multi_sgd_update", data, num_weights)
    new = [w.clone() for w in weights]
    grads = all_rescaled(grads, rescale_grad, clip_gradient)
    _sgd_all_("multi_sgd_update", new, grads, None, lrs, wds)
    return _SGD.result(new)


@op("multi_sgd_mom_update", mutates=("mom",), **_SGD_MOM.declaration)
def multi_sgd_mom_update(
    *data: Tensor,
    lrs: Floats,
    wds: Floats,
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Do `sgd_mom_update` for many weights, given as ``w0, g0, mom0, w1, ...``.

    >>> w, m = mx.nd.ones(1), mx.nd.ones(1)
    >>> mx.nd.multi_sgd_mom_update(w, w, m, lrs=0.5, wds=0, momentum=0.5).asnumpy()
    array([1.], dtype=float32)
    """
    weights, grads, moms = _SGD_MOM.split("multi_sgd_mom_update", data, num_weights)
    new = [w.clone() for w in weights]
    grads = all_rescaled(grads, rescale_grad, clip_gradient)
    _sgd_all_("multi_sgd_mom_update", new, grads, moms, lrs, wds, momentum)
    return _SGD_MOM.result(new)


@op("multi_mp_sgd_update", mutates=("weight32",), **_MP_SGD.declaration)
def multi_mp_sgd_update(
    *data: Tensor,
    lrs: Floats,
    wds: Floats,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Do `mp_sgd_update` for many weights, given as ``w0, g0, w32_0, w1, ...``.

    >>> w, w32 = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1)
    >>> mx.nd.multi_mp_sgd_update(w, w, w32, lrs=0.5, wds=0).asnumpy()
    array([0.5], dtype=float16)
    """
    weights, grads, wide = _MP_SGD.split("multi_mp_sgd_update", data, num_weights)
    grads = all_rescaled(_widened(grads, wide), rescale_grad, clip_gradient)
    _sgd_all_("multi_mp_sgd_update", wide, grads, None, lrs, wds)
    return _MP_SGD.narrowed(wide, weights)


@op("multi_mp_sgd_mom_update", mutates=("mom", "weight32"), **_MP_SGD_MOM.declaration)
def multi_mp_sgd_mom_update(
    *data: Tensor,
    lrs: Floats,
    wds: Floats,
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Do `mp_sgd_mom_update` for many weights, given as ``w0, g0, mom0, w32_0, w1, ...``.

    >>> w, m, w32 = mx.nd.ones(1, dtype="float16"), mx.nd.zeros(1), mx.nd.ones(1)
    >>> mx.nd.multi_mp_sgd_mom_update(w, w, m, w32, lrs=0.5, wds=0, momentum=0.9).asnumpy()
    array([0.5], dtype=float16)
    """
    name = "multi_mp_sgd_mom_update"
    weights, grads, moms, wide = _MP_SGD_MOM.split(name, data, num_weights)
    grads = all_rescaled(_widened(grads, wide), rescale_grad, clip_gradient)
    _sgd_all_(name, wide, grads, moms, lrs, wds, momentum)
    return _MP_SGD_MOM.narrowed(wide, weights)


@op("preloaded_multi_sgd_update", **_LOADED_SGD.declaration)
def preloaded_multi_sgd_update(
    *data: Tensor,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Do `multi_sgd_update` with rates and decays as arrays: ``w0, g0, ..., lrs, wds``.

    >>> w, lrs, wds = mx.nd.ones(1), mx.nd.array([0.5]), mx.nd.zeros(1)
    >>> mx.nd.preloaded_multi_sgd_update(w, w, lrs, wds).asnumpy()
    array([0.5], dtype=float32)
    """
    name = "preloaded_multi_sgd_update"
    weights, grads, lrs, wds = _LOADED_SGD.split(name, data, num_weights)
    new = [w.clone() for w in weights]
    grads = all_rescaled(grads, rescale_grad, clip_gradient)
    _sgd_all_(name, new, grads, None, lrs.tolist(), wds.tolist())
    return _LOADED_SGD.result(new)


@op("preloaded_multi_sgd_mom_update", mutates=("mom",), **_LOADED_SGD_MOM.declaration)
def preloaded_multi_sgd_mom_update(
    *data: Tensor,
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Do `multi_sgd_mom_update` with rates and decays as arrays: ``w0, g0, mom0, ..., lrs, wds``.

    >>> w, m, lrs, wds = mx.nd.ones(1), mx.nd.ones(1), mx.nd.array([0.5]), mx.nd.zeros(1)
    >>> mx.nd.preloaded_multi_sgd_mom_update(w, w, m, lrs, wds, momentum=0.5).asnumpy()
    array([1.], dtype=float32)
    """
    name = "preloaded_multi_sgd_mom_update"
    weights, grads, moms, lrs, wds = _LOADED_SGD_MOM.split(name, data, num_weights)
    new = [w.clone() for w in weights]
    grads = all_rescaled(grads, rescale_grad, clip_gradient)
    _sgd_all_(name, new, grads, moms, lrs.tolist(), wds.tolist(), momentum)
    return _LOADED_SGD_MOM.result(new)


@op("preloaded_multi_mp_sgd_update", mutates=("weight32",), **_LOADED_MP_SGD.declaration)
def preloaded_multi_mp_sgd_update(
    *data: Tensor,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Do `multi_mp_sgd_update` with rates and decays as arrays: ``w0, g0, w32_0, ..., lrs, wds``.

    >>> w, w32, lrs = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1), mx.nd.array([0.5])
    >>> mx.nd.preloaded_multi_mp_sgd_update(w, w, w32, lrs, mx.nd.zeros(1)).asnumpy()
    array([0.5], dtype=float16)
    """
    name = "preloaded_multi_mp_sgd_update"
    weights, grads, wide, lrs, wds = _LOADED_MP_SGD.split(name, data, num_weights)
    grads = all_rescaled(_widened(grads, wide), rescale_grad, clip_gradient)
    _sgd_all_(name, wide, grads, None, lrs.tolist(), wds.tolist())
    return _LOADED_MP_SGD.narrowed(wide, weights)


@op(
    "preloaded_multi_mp_sgd_mom_update",
    mutates=("mom", "weight32"),
    **_LOADED_MP_SGD_MOM.declaration,
)
def preloaded_multi_mp_sgd_mom_update(
    *data: Tensor,
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Do `multi_mp_sgd_mom_update` with rates and decays as two arrays at the end.

    >>> w, w32, lrs = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1), mx.nd.array([0.5])
    >>> m, wds = mx.nd.zeros(1), mx.nd.zeros(1)
    >>> mx.nd.preloaded_multi_mp_sgd_mom_update(w, w, m, w32, lrs, wds, momentum=0.9).asnumpy()
    array([0.5], dtype=float16)
    """
    name = "preloaded_multi_mp_sgd_mom_update"
    weights, grads, moms, wide, lrs, wds = _LOADED_MP_SGD_MOM.split(name, data, num_weights)
    grads = all_rescaled(_widened(grads, wide), rescale_grad, clip_gradient)
    _sgd_all_(name, wide, grads, moms, lrs.tolist(), wds.tolist(), momentum)
    return _LOADED_MP_SGD_MOM.narrowed(wide, weights)


def _adamw_all_(
    name: str,
    weights: Sequence[Tensor],
    grads: Sequence[Tensor],
    means: Sequence[Tensor],
    variances: Sequence[Tensor],
    lrs: Floats,
    wds: Floats,
    etas: Floats,
    **betas: float,
) -> None:
    check_count(name, len(weights), lrs=lrs, wds=wds, etas=etas)
    for (lr, wd, eta, _), positions in alike(lrs, wds, etas, [w.dtype for w in weights]):
        own = [_pick(arrays, positions) for arrays in (weights, grads, means, variances)]
        adam_(*own, lr=eta * lr, decay=eta * wd, **betas)


_ADAMW = SeveralWeights("weight", "grad", "mean", "var", extras=("rescale_grad",))
_MP_ADAMW = SeveralWeights("weight", "grad", "mean", "var", "weight32", extras=("rescale_grad",))


@op("_multi_adamw_update", mutates=("mean", "var"), **_ADAMW.declaration)
def multi_adamw_update(
    *data: Tensor,
    lrs: Floats,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wds: Floats,
    etas: Floats,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Do `_adamw_update` for many weights: ``w0, g0, mean0, var0, w1, ..., rescale_grad``.

    >>> w, m, v, one = mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1), mx.nd.ones(1)
    >>> step = dict(lrs=0.25, wds=0, etas=1, beta1=0.5, beta2=0.75)
    >>> mx.nd._internal._multi_adamw_update(w, w, m, v, one, **step, out=w).asnumpy()
    array([0.75], dtype=float32)
    """
    name = "_multi_adamw_update"
    weights, grads, means, variances, rescale = _ADAMW.split(name, data, num_weights)
    new = [w.clone() for w in weights]
    scale = one_number(name, rescale)
    if usable(scale):
        grads = all_rescaled(grads, scale, clip_gradient)
        betas = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        _adamw_all_(name, new, grads, means, variances, lrs, wds, etas, **betas)
    return _ADAMW.result(new)


@op(
    "_multi_mp_adamw_update",
    mutates=("mean", "var", "weight32"),
    **_MP_ADAMW.declaration,
)
def multi_mp_adamw_update(
    *data: Tensor,
    lrs: Floats,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wds: Floats,
    etas: Floats,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Do `_mp_adamw_update` for many weights; a 32-bit copy follows each weight's states.

    >>> w, w32, m, v = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> step = dict(lrs=0.25, wds=0, etas=1, beta1=0.5, beta2=0.75)
    >>> one = mx.nd.ones(1)
    >>> mx.nd._internal._multi_mp_adamw_update(w, w, m, v, w32, one, **step, out=w).asnumpy()
    array([0.75], dtype=float16)
    """
    name = "_multi_mp_adamw_update"
    weights, grads, means, variances, wide, rescale = _MP_ADAMW.split(name, data, num_weights)
    scale = one_number(name, rescale)
    if not usable(scale):
        return _MP_ADAMW.result([w.clone() for w in weights])
    grads = all_rescaled(_widened(grads, wide), scale, clip_gradient)
    betas = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    _adamw_all_(name, wide, grads, means, variances, lrs, wds, etas, **betas)
    return _MP_ADAMW.narrowed(wide, weights)
