"""What `ImageDetRecordIter` does to an image and its boxes: MXNet's ``det_aug_default``.

Boxes are rows: class, left, top, right, bottom (parts of width and height), and what follows.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from ..error import MXNetError
from ..formats.image_codec import opencv
from .image_changes import bordered, resized, resized_short

Range = tuple[float, ...]


class DetectionChanges(NamedTuple):
    """The parameters of the changes; `ImageDetRecordIter` documents them."""

    data_shape: tuple[int, int, int]
    resize: int = -1
    rand_crop_prob: float = 0.0
    min_crop_scales: Range = (0.0,)
    max_crop_scales: Range = (1.0,)
    min_crop_aspect_ratios: Range = (1.0,)
    max_crop_aspect_ratios: Range = (1.0,)
    min_crop_overlaps: Range = (0.0,)
    max_crop_overlaps: Range = (1.0,)
    min_crop_sample_coverages: Range = (0.0,)
    max_crop_sample_coverages: Range = (1.0,)
    min_crop_object_coverages: Range = (0.0,)
    max_crop_object_coverages: Range = (1.0,)
    num_crop_sampler: int = 1
    crop_emit_mode: Literal["center", "overlap"] = "center"
    emit_overlap_thresh: float = 0.3
    max_crop_trials: tuple[int, ...] = (25,)
    rand_pad_prob: float = 0.0
    max_pad_scale: float = 1.0
    max_random_hue: int = 0
    random_hue_prob: float = 0.0
    max_random_saturation: int = 0
    random_saturation_prob: float = 0.0
    max_random_illumination: int = 0
    random_illumination_prob: float = 0.0
    max_random_contrast: float = 0.0
    random_contrast_prob: float = 0.0
    rand_mirror_prob: float = 0.0
    fill_value: int = 127
    inter_method: int = 1
    resize_mode: Literal["force", "shrink", "fit"] = "force"

    def applied(
        self, pixels: np.ndarray, boxes: np.ndarray, chance: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the changed image, not larger than ``data_shape``, and its boxes."""
        if self.resize > 0:
            pixels = resized_short(pixels, self.resize, self.inter_method, chance)
        pixels = self._colored(pixels, chance)
        if chance.random() < self.rand_mirror_prob:
            pixels, boxes = pixels[:, ::-1], boxes.copy()
            boxes[:, 1], boxes[:, 3] = 1 - boxes[:, 3], 1 - boxes[:, 1]
        if self.max_pad_scale > 1 and chance.random() < self.rand_pad_prob:
            pixels, boxes = self._padded(pixels, boxes, chance)
        if chance.random() < self.rand_crop_prob:
            pixels, boxes = self._cropped(pixels, boxes, chance)
        return self._fitted(pixels, chance), boxes

    # -- colors ---------------------------------------------------------------------------------

    def _colored(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        limits = (
            (self.max_random_hue, self.random_hue_prob),
            (self.max_random_illumination, self.random_illumination_prob),
            (self.max_random_saturation, self.random_saturation_prob),
        )  # in OpenCV's order: hue, lightness, saturation
        shift = [
            int(chance.integers(-limit, limit, endpoint=True))
            if limit and chance.random() < probability
            else 0
            for limit, probability in limits
        ]
        if any(shift):
            cv2 = opencv()
            hls = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2HLS).astype(np.int16)
            hls = np.clip(hls + np.array(shift, np.int16), 0, (180, 255, 255)).astype(np.uint8)
            pixels = cv2.cvtColor(hls, cv2.COLOR_HLS2RGB)
        if self.max_random_contrast and chance.random() < self.random_contrast_prob:
            factor = 1 + chance.uniform(-self.max_random_contrast, self.max_random_contrast)
            pixels = opencv().convertScaleAbs(np.ascontiguousarray(pixels), alpha=factor)
        return pixels

    # -- ground around the image ---------------------------------------------------------------

    def _padded(
        self, pixels: np.ndarray, boxes: np.ndarray, chance: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        scale = chance.uniform(1, self.max_pad_scale)
        height, width = pixels.shape[:2]
        right, down = int(width * (scale - 1)), int(height * (scale - 1))
        left = int(chance.integers(0, right, endpoint=True))
        top = int(chance.integers(0, down, endpoint=True))
        pixels = np.ascontiguousarray(pixels)
        pixels = bordered(pixels, top, down - top, left, right - left, self.fill_value)
        moved = boxes.copy()
        moved[:, (1, 3)] = (boxes[:, (1, 3)] * width + left) / (width + right)
        moved[:, (2, 4)] = (boxes[:, (2, 4)] * height + top) / (height + down)
        return pixels, moved

    # -- crops -----------------------------------------------------------------------------------

    def _cropped(
        self, pixels: np.ndarray, boxes: np.ndarray, chance: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        height, width = pixels.shape[:2]
        for sampler in chance.permutation(self.num_crop_sampler):
            for _ in range(self._of(self.max_crop_trials, sampler)):
                crop = self._proposal(sampler, width / height, chance)
                if not self._acceptable(crop, boxes, sampler):
                    continue
                kept = self._kept(crop, boxes)
                if len(kept):
                    return _cut(pixels, crop), kept
        return pixels, boxes

    def _of(self, values: tuple, sampler: int) -> float:
        """Return a sampler's own value, or the only one that was given."""
        if len(values) not in (1, self.num_crop_sampler):
            raise MXNetError(
                f"{values} should have one value, or one for each of num_crop_sampler "
                f"{self.num_crop_sampler}."
            )
        return values[sampler if len(values) > 1 else 0]

    def _proposal(
        self, sampler: int, aspect: float, chance: np.random.Generator
    ) -> tuple[float, float, float, float]:
        """Draw (left, top, right, bottom) as parts of the image."""
        scale = chance.uniform(
            self._of(self.min_crop_scales, sampler), self._of(self.max_crop_scales, sampler)
        )
        scale = max(scale, 1e-3)
        low = max(self._of(self.min_crop_aspect_ratios, sampler) / aspect, scale * scale)
        high = min(self._of(self.max_crop_aspect_ratios, sampler) / aspect, 1 / scale / scale)
        ratio = math.sqrt(chance.uniform(min(low, high), max(low, high)))
        width, height = min(1.0, scale * ratio), min(1.0, scale / ratio)
        left, top = chance.uniform(0, 1 - width), chance.uniform(0, 1 - height)
        return left, top, left + width, top + height

    def _acceptable(self, crop: tuple, boxes: np.ndarray, sampler: int) -> bool:
        """Whether some object and the crop cover each other as much as is asked for."""
        common, area = _common(crop, boxes), (crop[2] - crop[0]) * (crop[3] - crop[1])
        sizes = _sizes(boxes)
        with np.errstate(divide="ignore", invalid="ignore"):
            measures = (
                (common / (sizes + area - common), self.min_crop_overlaps, self.max_crop_overlaps),
                (
                    common / area,
                    self.min_crop_sample_coverages,
                    self.max_crop_sample_coverages,
                ),
                (
                    common / sizes,
                    self.min_crop_object_coverages,
                    self.max_crop_object_coverages,
                ),
            )
            good = np.ones(len(boxes), bool)
            for found, least, most in measures:
                good &= (found >= self._of(least, sampler)) & (found <= self._of(most, sampler))
        return bool(good.any())

    def _kept(self, crop: tuple, boxes: np.ndarray) -> np.ndarray:
        """Return the boxes that stay, in parts of the crop."""
        left, top, right, bottom = crop
        if self.crop_emit_mode == "center":
            x, y = (boxes[:, 1] + boxes[:, 3]) / 2, (boxes[:, 2] + boxes[:, 4]) / 2
            stays = (x >= left) & (x <= right) & (y >= top) & (y <= bottom)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                stays = _common(crop, boxes) / _sizes(boxes) >= self.emit_overlap_thresh
        kept = boxes[stays].copy()
        kept[:, (1, 3)] = np.clip((kept[:, (1, 3)] - left) / (right - left), 0, 1)
        kept[:, (2, 4)] = np.clip((kept[:, (2, 4)] - top) / (bottom - top), 0, 1)
        return kept

    # -- the size of the batch -------------------------------------------------------------------

    def _fitted(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        _, height, width = self.data_shape
        pixels = np.ascontiguousarray(pixels)
        old_height, old_width = pixels.shape[:2]
        if self.resize_mode == "shrink" and old_height <= height and old_width <= width:
            return pixels
        if self.resize_mode != "force":  # the edge that is too long decides
            if old_height * width > old_width * height:
                width = old_width * height // old_height
            else:
                height = old_height * width // old_width
        if pixels.shape[:2] == (height, width):
            return pixels
        return resized(pixels, max(1, width), max(1, height), self.inter_method, chance)


def _sizes(boxes: np.ndarray) -> np.ndarray:
    return np.maximum(0, boxes[:, 3] - boxes[:, 1]) * np.maximum(0, boxes[:, 4] - boxes[:, 2])


def _common(crop: tuple, boxes: np.ndarray) -> np.ndarray:
    left, top, right, bottom = crop
    across = np.minimum(right, boxes[:, 3]) - np.maximum(left, boxes[:, 1])
    down = np.minimum(bottom, boxes[:, 4]) - np.maximum(top, boxes[:, 2])
    return np.maximum(0, across) * np.maximum(0, down)


def _cut(pixels: np.ndarray, crop: tuple) -> np.ndarray:
    height, width = pixels.shape[:2]
    left, right = int(crop[0] * width), max(int(crop[0] * width) + 1, int(crop[2] * width))
    top, bottom = int(crop[1] * height), max(int(crop[1] * height) + 1, int(crop[3] * height))
    return pixels[top:bottom, left:right]
