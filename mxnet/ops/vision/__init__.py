"""Detection, regions, sampling and image preprocessing."""

from . import boxes, deformable, detectors, image, roi, spatial_transform
