"""Detection, regions, sampling and image preprocessing."""

from __future__ import annotations

from . import boxes, correlation, deformable, image, multibox, proposal, roi, spatial_transform
