"""`L2Normalization`, whose epsilon is under the root."""

from torch import Tensor


def l2_normalize(x: Tensor, mode: str = "instance", eps: float = 1e-10) -> Tensor:
    """Divide by the Euclidean norm of each instance, channel or position."""
    axes = {"instance": range(1, x.ndim), "channel": [1], "spatial": range(2, x.ndim)}
    norm = (x.square().sum(tuple(axes[mode]), keepdim=True) + eps).sqrt()
    return x / norm
