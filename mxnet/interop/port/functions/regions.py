"""Features of regions `(image, x1, y1, x2, y2)`."""

import torch
from torch import Tensor


def roi_pooling(
    x: Tensor, regions: Tensor, output_size: tuple[int, int], scale: float
) -> Tensor:
    """Return the maximum of each bin of an even grid in each region."""

    def bins(start: Tensor, end: Tensor, count: int, limit: int) -> Tensor:
        size = (end - start + 1).clamp(min=1).float()[:, None] / count
        steps = torch.arange(count, device=x.device)
        first = (steps * size).floor().long() + start[:, None]
        last = ((steps + 1) * size).ceil().long() + start[:, None]
        at = torch.arange(limit, device=x.device)
        return (at >= first[..., None]) & (at < last[..., None])

    corners = regions[:, 1:] * scale
    rounded = torch.trunc(corners + torch.where(corners < 0, -0.5, 0.5)).long()
    x1, y1, x2, y2 = rounded.unbind(1)
    rows = bins(y1, y2, output_size[0], x.shape[2])
    columns = bins(x1, x2, output_size[1], x.shape[3])
    x = x[regions[:, 0].long().clamp(0, len(x) - 1)]
    parts = [
        x.masked_fill(~m[:, None, :, None], -torch.inf).amax(2) for m in rows.unbind(1)
    ]
    x = torch.stack(parts, 2)
    parts = [
        x.masked_fill(~m[:, None, None, :], -torch.inf).amax(3)
        for m in columns.unbind(1)
    ]
    x = torch.stack(parts, 3)
    return x.masked_fill(x == -torch.inf, 0.0)


def roi_align(
    x: Tensor,
    regions: Tensor,
    output_size: tuple[int, int],
    scale: float,
    samples: int = 2,
    aligned: bool = False,
) -> Tensor:
    """Return the mean of bilinear samples in each bin of a grid over each region."""

    def weights(start: Tensor, size: Tensor, count: int, limit: int) -> Tensor:
        total = count * samples
        step = (torch.arange(total, device=x.device) + 0.5) / total
        at = start[:, None] + step.to(x.dtype) * size[:, None]
        inside = (at >= -1) & (at <= limit)
        pixels = torch.arange(limit, device=x.device)
        near = (1 - (at.clamp(0, limit - 1)[..., None] - pixels).abs()).clamp(min=0)
        return (near * inside[..., None]).unflatten(1, (count, samples)).mean(2)

    corners = regions[:, 1:] * scale - (0.5 if aligned else 0.0)
    start, size = corners[:, :2], corners[:, 2:] - corners[:, :2]
    size = size if aligned else size.clamp(min=1.0)
    rows = weights(start[:, 1], size[:, 1], output_size[0], x.shape[2])
    columns = weights(start[:, 0], size[:, 0], output_size[1], x.shape[3])
    x = x[regions[:, 0].long().clamp(0, len(x) - 1)]
    return torch.einsum("rchw,rih,rjw->rcij", x, rows, columns)
