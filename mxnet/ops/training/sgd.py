"""Update rules by the gradient, its momentum or its sign.

Operators return the new weight and change their states in place; call them with ``out=weight``.
A negative ``clip_gradient`` disables clipping.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from .fused import fuse_sgd_
from .rules import MultiUpdate, Rule, TensorList, rule, scale_gradient

__all__ = ["dcasgd", "nag_mom", "sgd", "sgd_mom", "signsgd", "signum"]


def _fold_scale(
    grad: TensorList, lr: float, wd: float, rescale_grad: float, clip_gradient: float
) -> tuple[TensorList, float, float]:
    """Return gradient, rate and decay that include the scale, without a copy where possible."""
    if clip_gradient < 0 and rescale_grad:
        # lr (r g + wd w) = (lr r) (g + (wd / r) w)
        return grad, lr * rescale_grad, wd / rescale_grad
    return scale_gradient(grad, rescale_grad, clip_gradient), lr, wd


def _keeps_gradient(*, rescale_grad: float = 1.0, clip_gradient: float = -1.0, **_: Any) -> bool:
    return clip_gradient < 0 and bool(rescale_grad)


def _descend_(weight: TensorList, grad: TensorList, lr: float, wd: float) -> None:
    """Compute ``w -= lr (g + wd w)``."""
    if not fuse_sgd_(weight, grad, lr=lr, wd=wd):
        if wd:
            weight.mul_(1.0 - lr * wd)
        weight.add_(grad, alpha=-lr)


def _accumulate_(
    mom: TensorList, weight: TensorList, grad: TensorList, lr: float, wd: float, momentum: float
) -> TensorList:
    """Compute ``m = mu m - lr (g + wd w)``."""
    mom.mul_(momentum).add_(grad, alpha=-lr)
    return mom.add_(weight, alpha=-lr * wd) if wd else mom


@rule(in_one_pass=_keeps_gradient)
def sgd(
    weight: TensorList,
    grad: TensorList,
    *,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> None:
    """Compute the SGD update: ``w = (1 - lr wd) w - lr clip(rescale g)``.

    >>> mx.nd.sgd_update(mx.nd.array([1, 2]), mx.nd.array([1, -1]), lr=0.5).asnumpy()
    array([0.5, 2.5], dtype=float32)
    """
    grad, lr, wd = _fold_scale(grad, lr, wd, rescale_grad, clip_gradient)
    _descend_(weight, grad, lr, wd)


@rule(in_one_pass=_keeps_gradient)
def sgd_mom(
    weight: TensorList,
    grad: TensorList,
    mom: TensorList,
    *,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> None:
    """Compute SGD with momentum: ``m = mu m - lr (clip(rescale g) + wd w)``;  ``w += m``.

    >>> m = mx.nd.array([1, 0])
    >>> mx.nd.sgd_mom_update(mx.nd.ones(2), mx.nd.ones(2), m, lr=0.5, momentum=0.5).asnumpy()
    array([1. , 0.5], dtype=float32)
    >>> m.asnumpy()
    array([ 0. , -0.5], dtype=float32)
    """
    grad, lr, wd = _fold_scale(grad, lr, wd, rescale_grad, clip_gradient)
    # torch's momentum excludes the rate, MXNet's includes it
    if not fuse_sgd_(weight, grad, mom, lr=-1.0, gain=-lr, wd=wd, momentum=momentum):
        weight.add_(_accumulate_(mom, weight, grad, lr, wd, momentum))


@rule(in_one_pass=_keeps_gradient)
def nag_mom(
    weight: TensorList,
    grad: TensorList,
    mom: TensorList,
    *,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> None:
    """Compute Nesterov's update: ``m = mu m - lr (g + wd w)``;  ``w += mu m - lr (g + wd w)``.

    The weight decay in the momentum uses the updated weight, as in 1.9.1.

    >>> m = mx.nd.zeros(1)
    >>> mx.nd.nag_mom_update(mx.nd.ones(1), mx.nd.ones(1), m, lr=0.5, momentum=0.5).asnumpy()
    array([0.25], dtype=float32)
    """
    grad, lr, wd = _fold_scale(grad, lr, wd, rescale_grad, clip_gradient)
    _descend_(weight, grad, (1.0 + momentum) * lr, wd)
    weight.add_(mom, alpha=momentum * momentum)
    if not fuse_sgd_(weight, grad, mom, lr=0.0, gain=-lr, wd=wd, momentum=momentum):
        _accumulate_(mom, weight, grad, lr, wd, momentum)


@rule()
def signsgd(
    weight: TensorList,
    grad: TensorList,
    *,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> None:
    """Compute SignSGD's update: ``w = (1 - lr wd) w - lr sign(g)``.

    >>> mx.nd.signsgd_update(mx.nd.ones(2), mx.nd.array([3, -0.1]), lr=0.5).asnumpy()
    array([0.5, 1.5], dtype=float32)
    """
    weight.mul_(1.0 - lr * wd).add_(grad.sign(), alpha=-lr)


@rule()
def signum(
    weight: TensorList,
    grad: TensorList,
    mom: TensorList,
    *,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    wd_lh: float = 0.0,
) -> None:
    """Compute Signum's update, by the sign of the momentum.

    ``m = mu m - (1 - mu) (clip(rescale g) + wd w)``;  ``w = (1 - lr wd_lh) w + lr sign(m)``.

    Parameters
    ----------
    wd_lh
        Weight decay outside of the momentum: ``w = (1 - lr wd_lh) w + lr sign(m)``.

    >>> m = mx.nd.zeros(2)
    >>> g = mx.nd.array([3, -0.1])
    >>> mx.nd.signum_update(mx.nd.ones(2), g, m, lr=0.5, momentum=0.5).asnumpy()
    array([0.5, 1.5], dtype=float32)
    """
    grad = scale_gradient(grad, rescale_grad, clip_gradient)
    _accumulate_(mom, weight, grad, 1.0 - momentum, wd, momentum)
    weight.mul_(1.0 - lr * wd_lh).add_(mom.sign(), alpha=lr)


@rule()
def dcasgd(
    weight: TensorList,
    grad: TensorList,
    mom: TensorList | None,
    previous: TensorList,
    *,
    lr: float,
    momentum: float = 0.0,
    lamda: float = 0.04,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> None:
    """Compute DCASGD's update, with a delayed gradient corrected by ``w - previous``.

    ``m = mu m - lr (g + wd w + lamda g^2 (w - previous))``;  ``w += m``.
    """
    grad = scale_gradient(grad, rescale_grad, clip_gradient)
    move = weight.sub(previous).mul_(grad).mul_(grad).mul_(lamda)
    move.add_(grad).add_(weight, alpha=wd).mul_(-lr)
    if mom is not None:
        move = mom.mul_(momentum).add_(move)
    previous.copy_(weight)
    weight.add_(move)


# -- operators --------------------------------------------------------------------------------

sgd_update = sgd.operator("sgd_update", "_sparse_sgd_update", lazy=True)
sgd_mom_update = sgd_mom.operator("sgd_mom_update", "_sparse_sgd_mom_update", lazy=True)
nag_mom_update = nag_mom.operator("nag_mom_update")
signsgd_update = signsgd.operator("signsgd_update")
signum_update = signum.operator("signum_update")

mp_sgd_update = sgd.mixed(
    "mp_sgd_update",
    of="sgd_update",
    lazy=True,
    example="""
    >>> w, w32 = mx.nd.ones(2, dtype="float16"), mx.nd.ones(2)
    >>> mx.nd.mp_sgd_update(w, w, w32, lr=0.5).asnumpy(), w32.asnumpy()
    (array([0.5, 0.5], dtype=float16), array([0.5, 0.5], dtype=float32))
    """,
)
mp_sgd_mom_update = sgd_mom.mixed(
    "mp_sgd_mom_update",
    of="sgd_mom_update",
    lazy=True,
    example="""
    >>> w, m, w32 = mx.nd.ones(2, dtype="float16"), mx.nd.zeros(2), mx.nd.ones(2)
    >>> mx.nd.mp_sgd_mom_update(w, w, m, w32, lr=0.5, momentum=0.9).asnumpy()
    array([0.5, 0.5], dtype=float16)
    """,
)
mp_nag_mom_update = nag_mom.mixed(
    "mp_nag_mom_update",
    of="nag_mom_update",
    example="""
    >>> w, m, w32 = mx.nd.ones(1, dtype="float16"), mx.nd.zeros(1), mx.nd.ones(1)
    >>> mx.nd.mp_nag_mom_update(w, w, m, w32, lr=0.5, momentum=0.5).asnumpy()
    array([0.25], dtype=float16)
    """,
)


def _declare_multi(base: Rule, of: str, numbers: str, result: str) -> None:
    """Declare the four operators that apply `of` to many weights."""
    for mixed, preloaded in product((False, True), repeat=2):
        name = f"{'preloaded_' * preloaded}multi_{'mp_' * mixed}{of}"
        arrays = [*(["m"] if base.states else []), *(["w32"] if mixed else [])]
        dtype = "float16" if mixed else "float32"
        order = ", ".join(["w0", "g0", *(f"{a}_0" for a in arrays), "w1", "..."])
        last = "; the last two arrays are all rates and all decays" if preloaded else ""
        arguments = ", ".join(["w", "w", *arrays, *(["lrs", "wds"] if preloaded else [])])
        step = "" if preloaded else ", lrs=0.5, wds=0"
        example = f"""
        >>> w, m, w32 = mx.nd.ones(1, dtype="{dtype}"), mx.nd.ones(1), mx.nd.ones(1)
        >>> lrs, wds = mx.nd.array([0.5]), mx.nd.zeros(1)
        >>> mx.nd.{name}({arguments}{step}{numbers and ", momentum=0.5"}).asnumpy()
        array([{result}], dtype={dtype})
        """
        rates = "" if preloaded else "lrs wds "
        attributes = f"{rates}{numbers} rescale_grad clip_gradient"
        update = MultiUpdate(base, name, attributes, mixed=mixed, preloaded=preloaded)
        doc = f"Do `{'mp_' * mixed}{of}` for many weights, given as ``{order}``{last}."
        update.declare(doc, example)


_declare_multi(sgd, "sgd_update", "", "0.5")
_declare_multi(sgd_mom, "sgd_mom_update", "momentum", "1.")
