"""Copies, casts, and operators that change only gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...error import ShapeError
from ...torch_private import is_view
from ..attributes import ArrayCount, DType
from ..declare import Op, op
from ..families import check_same_dtype, shown, unary
from ..shapes import TypePattern, same
from .elementwise import round_away

if TYPE_CHECKING:
    from ..declare import Op


def own(tensor: Tensor) -> Tensor:
    """Return the tensor in row-major order, copied if it shares memory with another."""
    if is_view(tensor) and tensor.is_contiguous():
        return tensor.clone()
    return tensor.contiguous()


def may_share(op: Op) -> Op:
    """Decorate an operator whose kernel returns a view, so that it returns a copy, as in MXNet.

    The undecorated kernel is the variant ``"view"``, used in prepared graphs, where nothing is
    written between two steps.
    """
    function = op.function
    op.variant("view")(lambda attrs: partial(function, **attrs))
    op.function = op.kernel = _copying(function)
    return op


def in_row_order(op: Op) -> Op:
    """Copy results into row-major memory of their own, so that views of them work as in MXNet.

    Torch's factorizations return column-major results.
    """
    op.function = op.kernel = _copying(op.function)
    return op


def _copying(function: Callable) -> Callable:
    @wraps(function)
    def copying(*tensors: Tensor, **attrs: Any) -> Any:
        output = function(*tensors, **attrs)
        if type(output) is tuple:
            return tuple([own(t) for t in output])
        return output.clone() if output is tensors[0] else own(output)

    return copying


@op("_copy", "identity", shape=same, identity=True, repeatable=True)
def identity(data: Tensor) -> Tensor:
    """Return a copy.

    >>> mx.nd.identity(mx.nd.array([1, 2])).asnumpy()
    array([1., 2.], dtype=float32)
    """
    return data.clone()


@op(
    "BlockGrad",
    "stop_gradient",
    "_sparse_stop_gradient",
    shape=same,
    identity=True,
    head_gradient=False,
    repeatable=True,
)
def block_grad(data: Tensor) -> Tensor:
    """Return a copy with zero gradient.

    >>> x = mx.nd.array([3]); x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.BlockGrad(x) * x
    >>> y.backward()
    >>> x.grad.asnumpy()
    array([3.], dtype=float32)
    """
    return data.detach().clone()


@op(
    "make_loss",
    "_sparse_make_loss",
    outputs=("loss",),
    shape=same,
    precision="full",
    loss=True,
    identity=True,
    repeatable=True,
)
def make_loss(data: Tensor) -> Tensor:
    """Return a copy whose gradient is 1, whatever the incoming gradient: a loss.

    >>> mx.nd.make_loss(mx.nd.array([1, 2])).asnumpy()
    array([1., 2.], dtype=float32)
    """
    return data.clone()


@make_loss.gradient
def make_loss_gradient(grad: Tensor, out: Tensor, data: Tensor) -> Tensor:
    """Return a gradient of ones."""
    return torch.ones_like(data)


@op("_contrib_gradientmultiplier", shape=same, keeps_zeros=True)
def gradient_multiplier(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> Tensor:
    """Return a copy whose gradient is multiplied by ``scalar``; -1 reverses it.

    >>> x = mx.nd.array([1, 2]); x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.contrib.gradientmultiplier(x, scalar=-0.5)
    >>> y.backward()
    >>> x.grad.asnumpy()
    array([-0.5, -0.5], dtype=float32)
    """
    return data.clone()


@gradient_multiplier.gradient
def gradient_multiplier_gradient(
    grad: Tensor, out: Tensor, data: Tensor, *, scalar: float, **_: bool
) -> Tensor:
    """Multiply the incoming gradient."""
    return grad * scalar


unary(
    "_contrib_round_ste",
    round_away,
    "_sparse__contrib_round_ste",
    doc="Round halves away from zero; the gradient is that of the identity.",
    example=shown("mx.nd.contrib.round_ste(mx.nd.array([-1.5, 0.4]))", "[-2.,  0.]"),
    method=False,
    gradient=lambda grad, out, data: grad,
    keeps_zeros=True,
)
unary(
    "_contrib_sign_ste",
    torch.sign,
    "_sparse__contrib_sign_ste",
    doc="Sign: -1, 0 or 1; the gradient is that of the identity.",
    example=shown("mx.nd.contrib.sign_ste(mx.nd.array([-1.5, 0.4]))", "[-1.,  1.]"),
    method=False,
    exact=True,
    gradient=lambda grad, out, data: grad,
    keeps_zeros=True,
)


@op("_identity_with_attr_like_rhs", shape=same, without_gradient=("rhs",))
def identity_with_attr_like_rhs(lhs: Tensor, rhs: Tensor) -> Tensor:
    """Return a copy of the first array; the second determines its shape and storage type.

    >>> x, like = mx.nd.array([1, 2]), mx.nd.array([0, 0])
    >>> mx.nd._internal._identity_with_attr_like_rhs(x, like).asnumpy()
    array([1., 2.], dtype=float32)
    """
    check_same_dtype("_identity_with_attr_like_rhs", lhs, rhs)
    if lhs.shape != rhs.shape:
        raise ShapeError(
            "Incompatible attr in node _identity_with_attr_like_rhs at 1-th input: expected "
            f"{list(lhs.shape)}, got {list(rhs.shape)}"
        )
    return lhs.clone()


@op("zeros_like", "_sparse_zeros_like", shape=same, method=True, head_gradient=False)
def zeros_like(data: Tensor) -> Tensor:
    """Return zeros of the array's shape and dtype.

    >>> mx.nd.zeros_like(mx.nd.array([1, 2])).asnumpy()
    array([0., 0.], dtype=float32)
    """
    return torch.zeros_like(data)


@op("ones_like", shape=same, method=True, head_gradient=False)
def ones_like(data: Tensor) -> Tensor:
    """Return ones of the array's shape and dtype.

    >>> mx.nd.ones_like(mx.nd.array([1, 2])).asnumpy()
    array([1., 1.], dtype=float32)
    """
    return torch.ones_like(data)


@op(
    *("Cast", "cast", "_npi_cast", "_npx_cast"),
    shape=same,
    types="T -> @dtype",
    precision="own",
    straight_through=True,
    casts=True,
)
def cast(data: Tensor, *, dtype: DType) -> Tensor:
    """Convert to another data type; fractions are truncated, and nonzero values become True.

    Parameters
    ----------
    dtype
        The new data type, such as ``'float16'``.

    >>> mx.nd.Cast(mx.nd.array([-1.7, 2.7]), dtype="int32").asnumpy()
    array([-1,  2], dtype=int32)
    """
    return data.to(dtype, copy=True)


class AmpTypes(TypePattern):
    """Floating-point types become the attribute ``dtype``, others are unchanged."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the output from the input; the input is not inferred from the output."""
        dtype = ins[0]
        if dtype is None:
            return ins, outs
        return ins, [attrs["dtype"] if dtype.is_floating_point else dtype]


@op("amp_cast", shape=same, precision="own")
def amp_cast(data: Tensor, *, dtype: DType) -> Tensor:
    """Convert floating-point arrays for mixed precision; others are unchanged.

    Parameters
    ----------
    dtype
        The new data type.

    >>> mx.nd.amp_cast(mx.nd.array([1.5]), dtype="float16").asnumpy()
    array([1.5], dtype=float16)
    """
    return data.to(dtype if data.dtype.is_floating_point else data.dtype, copy=True)


amp_cast.type_pattern = AmpTypes(None)

# Types of mixed precision, from narrow to wide.
MIXED = (torch.bfloat16, torch.float16, torch.float32)


def common_type(types: list[torch.dtype], narrow: bool) -> torch.dtype | None:
    """Return the widest (or narrowest) of the types, or None if one is not in `MIXED`.

    >>> common_type([torch.float16, torch.float32], narrow=False)
    torch.float32
    """
    if any(t not in MIXED for t in types):
        return None
    return (min if narrow else max)(types, key=MIXED.index)


class MulticastTypes(TypePattern):
    """All outputs have the widest (or narrowest) of the inputs' types."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the outputs once every input is known."""
        if None in ins:
            return ins, outs
        target = common_type(ins, attrs["cast_narrow"])
        return ins, list(ins) if target is None else [target] * len(outs)


def pairwise_same(ins: list, outs: list, attrs: dict) -> tuple[list, list]:
    """Each output has the shape of its input, in both directions."""
    pairs = [same([i], [o], {}) for i, o in zip(ins, outs, strict=True)]
    return [i[0] for i, _ in pairs], [o[0] for _, o in pairs]


@op(
    "amp_multicast",
    count="num_outputs",
    outputs=lambda a: a["num_outputs"],
    shape=pairwise_same,
    input_names=lambda a: [f"data_{i}" for i in range(a["num_outputs"])],
    precision="own",
)
def amp_multicast(
    *data: Tensor, num_outputs: ArrayCount, cast_narrow: bool = False
) -> Tensor | tuple[Tensor, ...]:
    """Convert all arrays to the widest (or narrowest) of their floating-point types.

    Parameters
    ----------
    data
        The arrays.
    num_outputs
        Number of arrays.
    cast_narrow
        Whether to convert to the narrowest type.

    >>> x, y = mx.nd.array([1.5]), mx.nd.array([2.5])
    >>> [a.shape for a in mx.nd.amp_multicast(x, y, num_outputs=2)]
    [(1,), (1,)]
    """
    target = common_type([x.dtype for x in data], cast_narrow)
    output = tuple(x.to(target or x.dtype, copy=True) for x in data)
    return output[0] if len(output) == 1 else output


amp_multicast.type_pattern = MulticastTypes(None)
