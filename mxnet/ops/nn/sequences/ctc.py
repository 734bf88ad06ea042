"""Connectionist temporal classification: the loss of an unaligned label sequence."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from ....error import ShapeError
from ...declare import op
from ...shapes import Shape


def _lengths_of_labels(label: Tensor, blank_label: str) -> Tensor:
    """Return how many labels stand before the padding: 0 when blank comes first, else -1."""
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
    """Return, for each sequence, minus the log of the probability of its labels.

    Data are scores (time, batch, classes) before softmax. With the blank ``first`` labels count
    from 1 and are padded by 0; with ``last`` they count from 0 and are padded by -1. A label
    that does not fit into its sequence has the loss 0.

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
        Whether `data_lengths` is given; else all steps are valid.
    use_label_lengths
        Whether `label_lengths` is given; else padding ends the labels.
    blank_label
        Whether the blank is the ``first`` class (labels start at 1) or the ``last``.

    >>> mx.nd.CTCLoss(mx.nd.zeros((1, 1, 2)), mx.nd.array([[1]])).asnumpy()
    array([0.6931472], dtype=float32)
    """
    steps, batch, classes = data.shape if data.ndim == 3 else (0, 0, 0)
    if label.ndim != 2 or data.ndim != 3 or label.shape[0] != batch or label.shape[1] > steps:
        raise ShapeError(
            "CTCLoss: data (time, batch, classes) and label (batch, labels), with not more labels "
            f"than time steps, are needed, got {list(data.shape)} and {list(label.shape)}."
        )
    if not batch:
        return data.sum((0, 2))  # as empty as the batch, and a member of the graph
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
    """Everything has one row, or number, for each sequence of the batch."""
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
