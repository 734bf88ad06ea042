"""Output layers: forward returns a prediction, backward the gradient of its loss.

They ignore incoming gradients (`out_grad`). Labels get no gradient.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from ...error import ShapeError
from ..attributes import Fraction
from ..declare import Op, OpContext, ZeroAux, op
from ..shapes import UNKNOWN, Shape, Shapes, same

Normalization = Literal["batch", "null", "valid"]


def _one_less(shares: Tensor, classes: Tensor, amount: float = 1.0) -> Tensor:
    """Subtract `amount` at each label's class (axis 1); labels out of range are skipped."""
    index = classes.clamp(0, shares.shape[1] - 1)
    taken = ((index == classes) * -amount).to(shares.dtype)
    return shares.scatter_add(1, index, taken)


# -- softmax --------------------------------------------------------------------------------------


def _label_shapes(data: Shape, multi_output: bool) -> list[Shape]:
    """Return the label shapes that match the data, the default first."""
    if not multi_output:
        return [data[:-1], data]
    area = 1
    for n in data[2:]:
        area = area * n if UNKNOWN not in (n, area) else UNKNOWN
    return [(data[0], area), (data[0], *data[2:]), (data[0], 1, *data[2:]), data]


def _agree(shape: Shape, expected: Shape) -> bool:
    return len(shape) == len(expected) and all(
        a == b or UNKNOWN in (a, b) for a, b in zip(shape, expected, strict=True)
    )


def _check_label(name: str, data: Shape, label: Shape, multi_output: bool) -> None:
    fitting = _label_shapes(tuple(data), multi_output)
    if not any(_agree(label, target) for target in fitting):
        shapes = " or ".join(str(list(s)) for s in dict.fromkeys(fitting))
        raise ShapeError(
            f"Shape inconsistent in {name}, Provided = {list(label)}, inferred shape={shapes} "
            f"for the label of data {list(data)}."
        )


def _softmax_output_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    (data,), outs = same(ins[:1], outs, attrs)
    label = ins[1]
    if data is None:
        return [data, label], outs
    if label is None:
        label = _label_shapes(data, attrs["multi_output"])[0]
    else:
        _check_label("SoftmaxOutput", data, label, attrs["multi_output"])
    return [data, label], outs


@op(
    "SoftmaxOutput",
    "Softmax",
    shape=_softmax_output_shapes,
    precision="full",
    loss=True,
    index_input="label",
    scales_loss=True,
    names_output=True,
    repeatable=True,
)
def softmax_output(
    data: Tensor,
    label: Tensor,
    *,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: Normalization = "null",
    out_grad: bool = False,
    smooth_alpha: float = 0.0,
) -> Tensor:
    """Compute the softmax; the gradient is that of the cross entropy, ``p - one_hot``.

    Classes are along axis 1 with `multi_output`, along the last axis with `preserve_shape`, and
    along all axes but the first (flattened) otherwise.

    Parameters
    ----------
    data
        Scores before softmax.
    label
        Class of each sample, or probabilities in the shape of the data.
    ignore_label
        Label that is ignored in the gradient if ``use_ignore=True``.
    multi_output
        Whether classes are along axis 1, with a label for each position of the following axes.
    use_ignore
        Whether to ignore samples of `ignore_label`.
    preserve_shape
        Whether to compute the softmax over the last axis; otherwise over all axes but the first.
    normalization
        Divisor of the gradient: none (``null``), the ``batch`` size, or the number of ``valid``
        labels.
    out_grad
        Whether to multiply by the incoming gradient.
    smooth_alpha
        Label smoothing: fraction of the target spread evenly over the other classes.

    >>> mx.nd.SoftmaxOutput(mx.nd.array([[1, 1]]), mx.nd.array([0])).asnumpy()
    array([[0.5, 0.5]], dtype=float32)
    """
    if label.shape != data.shape[:-1]:
        _check_label("SoftmaxOutput", data.shape, label.shape, multi_output)
    if multi_output:
        return torch.softmax(data, 1)
    if preserve_shape or data.ndim == 2:
        return torch.softmax(data, -1)
    return torch.softmax(data.reshape(len(data), -1), 1).reshape(data.shape)


def _by_class(
    out: Tensor, label: Tensor, multi_output: bool, preserve_shape: bool
) -> tuple[Tensor, Tensor]:
    """Return probabilities and labels with classes at axis 1."""
    if multi_output:
        return out.flatten(2) if out.ndim > 2 else out.unsqueeze(2), label.reshape(
            out.shape[0], 1, -1
        )
    if preserve_shape:
        return out.reshape(-1, out.shape[-1]), label.reshape(-1, 1)
    return out.flatten(1), label.reshape(-1)[: out.shape[0]].unsqueeze(1)


def _loss_gradient(shares: Tensor, label: Tensor, smooth_alpha: float) -> Tensor:
    classes = label.long()
    if not smooth_alpha:
        return _one_less(shares, classes)
    spread = smooth_alpha / (shares.shape[1] - 1)
    return _one_less(shares - spread, classes, 1.0 - smooth_alpha - spread)


@softmax_output.gradient
def softmax_output_gradient(
    grad: Tensor,
    out: Tensor,
    data: Tensor,
    label: Tensor,
    *,
    grad_scale: float,
    ignore_label: float,
    multi_output: bool,
    use_ignore: bool,
    preserve_shape: bool,
    normalization: str,
    out_grad: bool,
    smooth_alpha: float,
) -> tuple[Tensor, None]:
    """Return probabilities minus labels, scaled according to `normalization`."""
    if label.shape == data.shape:  # the label is a distribution
        result = (out - label) * grad_scale
    else:
        shares, classes = _by_class(out, label, multi_output, preserve_shape)
        result = _loss_gradient(shares, classes, 0.0 if multi_output else smooth_alpha)
        if use_ignore:
            result = result.masked_fill(classes == ignore_label, 0.0)
        if normalization == "valid":
            scale = grad_scale / (label != ignore_label).sum().clamp_min(1)
        elif normalization == "batch":
            scale = grad_scale / max(label.numel(), 1)
        else:
            scale = grad_scale / shares.shape[2] if multi_output else grad_scale
        if type(scale) is not float or scale != 1.0:
            result = result * scale
        result = result.reshape(out.shape)
    # 1.9.1 multiplies by the output here, not by the incoming gradient.
    return (result * out if out_grad else result), None


# -- regression -----------------------------------------------------------------------------------


def _check_regression_label(name: str, data: Shape, label: Shape) -> None:
    """Raise if the label cannot be reshaped to the data sample by sample."""
    if data == label or UNKNOWN in data or UNKNOWN in label:
        return
    if data[:1] != label[:1] or math.prod(data) != math.prod(label):
        raise ShapeError(
            f"Shape inconsistent in {name}, Provided={list(label)}, "
            f"inferred shape={list(data)} for the label."
        )


def _regression_shapes(name: str, ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    (data,), outs = same(ins[:1], outs, attrs)
    label = ins[1]
    if data is None:
        return [data, label], outs
    if label is None:
        # One output per sample: the label is a vector.
        label = data[:1] if len(data) == 2 and data[1] == 1 else data
    _check_regression_label(name, data, label)
    return [data, label], outs


def _regression(
    name: str, predict: Callable[[Tensor], Tensor], slope: Callable, doc: str, example: str
) -> Op:
    """Declare an output layer whose gradient is ``slope(out, label) * grad_scale / width``."""

    def function(data: Tensor, label: Tensor, *, grad_scale: float = 1.0) -> Tensor:
        if label.shape != data.shape:
            _check_regression_label(name, tuple(data.shape), tuple(label.shape))
        return predict(data)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}\n\n    >>> {example}\n    "
    facts = {"precision": "full", "loss": True, "scales_loss": True, "repeatable": True}
    shapes = functools.partial(_regression_shapes, name)
    record = op(name, f"_sparse_{name}", shape=shapes, **facts)(function)

    @record.gradient
    def rule(
        grad: Tensor, out: Tensor, data: Tensor, label: Tensor, *, grad_scale: float
    ) -> tuple[Tensor, None]:
        batch = label.shape[0] if label.ndim else 1
        width = max(label.numel() // max(batch, 1), 1)
        return slope(out, label.reshape(out.shape)) * (grad_scale / width), None

    return record


def _difference(out: Tensor, label: Tensor) -> Tensor:
    return out - label


def _sign_of_difference(out: Tensor, label: Tensor) -> Tensor:
    """Return 1 above the label and -1 below or at it."""
    return (out > label).to(out.dtype) * 2 - 1


linear_regression_output = _regression(
    "LinearRegressionOutput",
    torch.clone,
    _difference,
    "Return the data; the gradient is that of half the squared error: ``x - label``.",
    "mx.nd.LinearRegressionOutput(mx.nd.array([[2]]), mx.nd.array([1])).asnumpy()\n"
    "    array([[2.]], dtype=float32)",
)
logistic_regression_output = _regression(
    "LogisticRegressionOutput",
    torch.sigmoid,
    _difference,
    "Compute the sigmoid; the gradient is that of the cross entropy: ``p - label``.",
    "mx.nd.LogisticRegressionOutput(mx.nd.array([[0]]), mx.nd.array([1])).asnumpy()\n"
    "    array([[0.5]], dtype=float32)",
)
_regression(
    "MAERegressionOutput",
    torch.clone,
    _sign_of_difference,
    "Return the data; the gradient is that of the absolute error: ``sign(x - label)``.",
    "mx.nd.MAERegressionOutput(mx.nd.array([[2]]), mx.nd.array([1])).asnumpy()\n"
    "    array([[2.]], dtype=float32)",
)


# -- others ---------------------------------------------------------------------------------------


def _svm_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    (data,), outs = same(ins[:1], outs, attrs)
    label = ins[1]
    if data is None:
        return [data, label], outs
    if label is None:
        label = data[:-1]
    _check_svm_label(data, label)
    return [data, label], outs


def _check_svm_label(data: Shape, label: Shape) -> None:
    if not _agree(label, data[:-1]):
        raise ShapeError(
            f"Shape inconsistent in SVMOutput, Provided = {list(label)}, "
            f"inferred shape={list(data[:-1])} for the label."
        )


@op(
    "SVMOutput",
    shape=_svm_shapes,
    precision="full",
    loss=True,
    gradients_by_input=True,
    names_output=True,
)
def svm_output(
    data: Tensor,
    label: Tensor,
    *,
    margin: float = 1.0,
    regularization_coefficient: float = 1.0,
    use_linear: bool = False,
) -> Tensor:
    """Return the data; the gradient is that of the squared hinge loss, linear with `use_linear`.

    Parameters
    ----------
    data
        Scores of shape ``(batch, classes)``.
    label
        Class of each sample.
    margin
        Margin of the hinge loss.
    regularization_coefficient
        Factor of the gradient.
    use_linear
        Whether the hinge loss is linear; otherwise it is squared.

    >>> mx.nd.SVMOutput(mx.nd.array([[2, 1]]), mx.nd.array([0])).asnumpy()
    array([[2., 1.]], dtype=float32)
    """
    if label.shape != data.shape[:-1]:
        _check_svm_label(tuple(data.shape), tuple(label.shape))
    return data.clone()


@svm_output.gradient
def svm_output_gradient(
    grad: Tensor,
    out: Tensor,
    data: Tensor,
    label: Tensor,
    *,
    margin: float,
    regularization_coefficient: float,
    use_linear: bool,
) -> tuple[Tensor, None]:
    """Return the gradient: the label's score rises to the margin, others fall to its negative."""
    steps = torch.arange(data.shape[-1], device=data.device)
    direction = torch.where(steps == label.long().unsqueeze(-1), -1.0, 1.0).to(data.dtype)
    missing = margin + direction * data
    if use_linear:
        return direction * (missing > 0).to(data.dtype) * regularization_coefficient, None
    return direction * missing.clamp_min(0) * (2 * regularization_coefficient), None


@op(
    "MakeLoss",
    shape=same,
    precision="full",
    loss=True,
    names_single_input=True,
    gradients_by_input=True,
    names_output=True,
    repeatable=True,
)
def make_loss(
    data: Tensor,
    *,
    grad_scale: float = 1.0,
    valid_thresh: float = 0.0,
    normalization: Normalization = "null",
) -> Tensor:
    """Return the data as a loss: its gradient is `grad_scale`, whatever the incoming gradient.

    ``batch`` divides it by the number of rows (the product of all dimensions but the last),
    ``valid`` by the number of elements above `valid_thresh`.

    Parameters
    ----------
    data
        The loss of each element.
    valid_thresh
        Elements above this threshold are valid, for ``normalization='valid'``.
    normalization
        Divisor of the gradient: none (``null``), the ``batch`` size, or the number of ``valid``
        elements.

    >>> mx.nd.MakeLoss(mx.nd.array([1, 2]), grad_scale=3).asnumpy()
    array([1., 2.], dtype=float32)
    """
    return data.clone()


@make_loss.gradient
def make_loss_gradient(
    grad: Tensor,
    out: Tensor,
    data: Tensor,
    *,
    grad_scale: float,
    valid_thresh: float,
    normalization: str,
) -> Tensor:
    """Return the constant gradient."""
    if normalization == "batch":
        grad_scale /= max(math.prod(data.shape[:-1]), 1)
    scale = torch.full_like(data, grad_scale)
    if normalization == "valid":
        scale = scale / (data > valid_thresh).sum().clamp_min(1)
    return scale


def _scalar_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    data, label = ins
    if label is None and data is not None:
        label = data[:1]
    return [data, label], [(1,)]


@op("softmax_cross_entropy", shape=_scalar_shapes, precision="full")
def softmax_cross_entropy(data: Tensor, label: Tensor) -> Tensor:
    """Compute the softmax cross entropy with class labels, summed over the batch.

    Parameters
    ----------
    data
        Scores before softmax, of shape ``(batch, classes)``.
    label
        Class of each sample.

    >>> mx.nd.softmax_cross_entropy(mx.nd.array([[1, 1]]), mx.nd.array([0])).asnumpy()
    array([0.6931472], dtype=float32)
    """
    if data.ndim != 2 or label.shape != data.shape[:1]:
        raise ShapeError(
            f"softmax_cross_entropy: 2D data (batch, classes) and 1D label (batch,) are needed, "
            f"got {list(data.shape)} and {list(label.shape)}."
        )
    classes = label.long().unsqueeze(1)
    count = data.shape[1]
    shares = torch.softmax(data, 1).gather(1, classes.clamp(0, count - 1))
    outside = (classes < 0) | (classes >= count)
    return -shares.masked_fill(outside, 0.0).clamp_min(1e-8).log().sum().reshape(1)


@softmax_cross_entropy.gradient
def softmax_cross_entropy_gradient(
    grad: Tensor, out: Tensor, data: Tensor, label: Tensor
) -> tuple[Tensor, None]:
    """Return probabilities minus one-hot labels, times the incoming gradient."""
    return _one_less(torch.softmax(data, 1), label.long().unsqueeze(1)) * grad, None


def _sparseness_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    (data,), outs = same(ins[:1], outs, attrs)
    return [data, *([data[1:2]] if data is not None else ins[1:])], outs


@op(
    "IdentityAttachKLSparseReg",
    shape=_sparseness_shapes,
    precision="full",
    names_single_input=True,
    gradients_by_input=True,
)
def identity_attach_kl_sparse_reg(
    data: Tensor,
    moving_avg: ZeroAux,
    *,
    sparseness_target: Fraction = 0.1,
    penalty: float = 0.001,
    momentum: Fraction = 0.9,
    run: OpContext,
) -> Tensor:
    """Return the data; in training the gradient includes a sparsity penalty on mean activations.

    Added to the gradient of each column: ``penalty * (-target / mean + (1 - target) / (1 -
    mean))``, with a moving mean.

    Parameters
    ----------
    moving_avg
        Running mean activation of each unit, updated in place while training.
    sparseness_target
        Target of the mean activation.
    penalty
        Weight of the sparseness penalty in the gradient.

    >>> mx.nd.IdentityAttachKLSparseReg(mx.nd.array([[0.5]]), mx.nd.array([0.1])).asnumpy()
    array([[0.5]], dtype=float32)
    """
    if data.ndim != 2:
        raise ShapeError(
            f"IdentityAttachKLSparseReg: 2D data (batch, units) is needed, got {list(data.shape)}."
        )
    out = data.clone()
    if run.training:
        moving_avg = moving_avg.detach()
        moving_avg.lerp_(data.detach().mean(0), 1.0 - momentum)
        if out.requires_grad:
            mean = moving_avg.clone()
            pull = (1 - sparseness_target) / (1 - mean) - sparseness_target / mean
            out.register_hook(lambda grad: grad + pull * penalty)
    return out


def _lengths_of_labels(label: Tensor, blank_label: str) -> Tensor:
    """Return the number of labels before the padding, which is 0 if blank is first, else -1."""
    padding = label == (0 if blank_label == "first" else -1)
    ended = padding.long().cumsum(1) > 0
    return (~ended).sum(1)


@op(
    "CTCLoss",
    "ctc_loss",
    "_contrib_CTCLoss",
    "_contrib_ctc_loss",
    optional={
        "data_lengths": lambda a: a["use_data_lengths"],
        "label_lengths": lambda a: a["use_label_lengths"],
    },
    total=2,
    types="T L M N -> T",
    precision="full",
    has_labels=True,
)
def ctc_loss(
    data: Tensor,
    label: Tensor,
    data_lengths: Tensor | None = None,
    label_lengths: Tensor | None = None,
    *,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: Literal["first", "last"] = "first",
) -> Tensor:
    """Compute the connectionist temporal classification loss of each sequence.

    With the blank ``first``, labels start at 1 and are padded with 0; with ``last``, they start at
    0 and are padded with -1. The loss of a label sequence longer than its data is 0.

    Parameters
    ----------
    data
        Scores before softmax, of shape ``(time, batch, classes)``.
    label
        Labels of shape ``(batch, length)``, padded with 0 (blank first) or -1 (blank last).
    data_lengths
        Number of valid steps of each sequence.
    label_lengths
        Number of labels of each sequence.
    use_data_lengths
        Whether `data_lengths` is given; otherwise all steps are valid.
    use_label_lengths
        Whether `label_lengths` is given; otherwise the padding determines the lengths.
    blank_label
        Whether the blank is the ``first`` class (labels start at 1) or the ``last``.

    >>> mx.nd.CTCLoss(mx.nd.zeros((1, 1, 2)), mx.nd.array([[1]])).asnumpy()
    array([0.6931472], dtype=float32)
    """
    steps, batch, classes = data.shape if data.ndim == 3 else (0, 0, 0)
    if label.ndim != 2 or data.ndim != 3 or label.shape[0] != batch or label.shape[1] > steps:
        raise ShapeError(
            "CTCLoss: data (time, batch, classes) and label (batch, labels), with at most as many "
            f"labels as time steps, are needed, got {list(data.shape)} and {list(label.shape)}."
        )
    if not batch:
        return data.sum((0, 2))  # empty, and attached to the graph
    if data_lengths is not None:  # elements beyond the end have no gradient
        times = torch.arange(steps, device=data.device).unsqueeze(1)
        data = data.masked_fill((times >= data_lengths).unsqueeze(2), 0)
    shares = torch.log_softmax(data.float() if data.dtype is torch.float16 else data, 2)
    label = label.long()
    if label_lengths is None:
        label_lengths = _lengths_of_labels(label, blank_label)
    if data_lengths is None:
        data_lengths = torch.full((batch,), steps)
    blank = 0 if blank_label == "first" else classes - 1
    loss = torch.ctc_loss(shares, label, data_lengths.long(), label_lengths.long(), blank, 0, True)
    return loss.to(data.dtype)


@ctc_loss.infer_inputs
def ctc_loss_inputs(
    data: Shape | None,
    label: Shape | None,
    data_lengths: Shape | None,
    label_lengths: Shape | None,
    **_: object,
) -> dict[str, Shape]:
    """Infer labels and lengths: one row or number for each sequence of the batch."""
    if data is None:
        return {}
    batch = data[1:2]
    return {"label": (*batch, -1), "data_lengths": batch, "label_lengths": batch}


@ctc_loss.infer_outputs
def ctc_loss_output(data: Shape | None, label: Shape | None, *_: object, **__: object) -> Shape:
    """One loss for each sequence."""
    if data is not None:
        return data[1:2]
    return label[:1] if label is not None else (-1,)
