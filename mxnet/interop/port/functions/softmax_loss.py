"""The loss of `SoftmaxOutput`."""

import torch.nn.functional as F
from torch import Tensor


def softmax_loss(
    scores: Tensor,
    label: Tensor,
    dim: int = -1,
    ignore_label: int | None = None,
    normalization: str = "null",
    smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy of classes along an axis, scaled as MXNet does.

    With `smoothing`, this share of each target is spread over the other classes.
    """
    if label.shape == scores.shape:
        return -(label * F.log_softmax(scores, dim)).sum()
    scores = scores.movedim(dim, -1)
    places = scores.shape[1:-1].numel() if dim == 1 else 1
    scores, label = scores.reshape(-1, scores.shape[-1]), label.reshape(-1).long()
    classes = scores.shape[1]
    within = (label >= 0) & (label < classes)
    spread = smoothing / (classes - 1)
    target = F.one_hot(label.clamp(0, classes - 1), classes) * within[:, None]
    target = target * (1 - smoothing - spread) + spread
    losses = scores.logsumexp(1) - (target * scores).sum(1)
    if ignore_label is not None:
        losses = losses[label != ignore_label]
    if normalization == "valid":
        ignored = -1 if ignore_label is None else ignore_label
        return losses.sum() / (label != ignored).sum().clamp(min=1)
    if normalization == "batch":
        return losses.sum() / label.numel()
    return losses.sum() / places
