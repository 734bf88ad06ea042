"""`TensorList`: torch's tensor methods on many tensors at once.

Update rules are written for one weight and run on all: ``h.addcmul_(g, g)`` on lists is one call
of ``torch._foreach_addcmul_``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Tensors = Sequence[Tensor]


class TensorList(list[Tensor]):
    """A list of tensors whose methods apply to each of them.

    Every method that torch has as ``torch._foreach_<method>`` is there. Methods that end in an
    underscore change the tensors and return the list itself.

    >>> moments = TensorList([torch.ones(1), torch.zeros(2)])
    >>> moments.mul_(0.5).add(1)
    [tensor([1.5000]), tensor([1., 1.])]
    >>> moments
    [tensor([0.5000]), tensor([0., 0.])]
    """

    _contiguous: bool | None = None  # not known yet

    def __getattr__(self, name: str) -> Callable[..., TensorList]:
        if name.startswith("_"):
            raise AttributeError(name)
        call = getattr(torch, f"_foreach_{name}", None)
        if call is None:
            raise AttributeError(f"torch has no method {name!r} for lists of tensors")
        method = _in_place(call) if name.endswith("_") else _out_of_place(call)
        setattr(TensorList, name, method)  # the next access does not come here
        return getattr(self, name)

    def clamp_(self, low: float, high: float) -> TensorList:
        """Keep all elements between two numbers."""
        return self.clamp_max_(high).clamp_min_(low)

    def clamp(self, low: float, high: float) -> TensorList:
        """Return the elements, kept between two numbers."""
        return self.clamp_max(high).clamp_min_(low)

    def is_contiguous(self) -> bool:
        """Return whether all tensors are contiguous; checked once."""
        known = self._contiguous
        if known is None:
            known = self._contiguous = all(map(Tensor.is_contiguous, self))
        return known


def _in_place(call: Callable[..., None]) -> Callable[..., TensorList]:
    def method(self: TensorList, *operands: object, **numbers: object) -> TensorList:
        call(self, *operands, **numbers)
        return self

    return method


def _out_of_place(call: Callable[..., Tensors]) -> Callable[..., TensorList]:
    def method(self: TensorList, *operands: object, **numbers: object) -> TensorList:
        return TensorList(call(self, *operands, **numbers))

    return method


def as_list(tensors: TensorList | Tensor) -> TensorList:
    """Return the tensors as a list; rules may run on a single tensor, which costs less."""
    return TensorList([tensors]) if isinstance(tensors, Tensor) else tensors


def scale_gradient(grad: TensorList, rescale_grad: float, clip_gradient: float) -> TensorList:
    """Return ``clip(rescale g)``, perhaps `grad` itself; a negative limit does not clip."""
    if rescale_grad != 1.0:
        grad = grad.mul(rescale_grad)
    return grad.clamp(-clip_gradient, clip_gradient) if clip_gradient >= 0 else grad


def decay_gradient(
    grad: TensorList, weight: TensorList, wd: float, rescale_grad: float, clip_gradient: float
) -> TensorList:
    """Return ``clip(rescale g + wd w)``, perhaps `grad` itself; a negative limit does not clip."""
    if not wd:
        return scale_gradient(grad, rescale_grad, clip_gradient)
    grad = scale_gradient(grad, rescale_grad, -1.0).add(weight, alpha=wd)
    return grad.clamp_(-clip_gradient, clip_gradient) if clip_gradient >= 0 else grad
