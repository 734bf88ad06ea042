"""Augmentation of the image record iterators.

MXNet's ``aug_default`` for images, and ``det_aug_default`` for images with boxes.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from ..error import MXNetError
from ..formats.image_codec import opencv

ATTEMPTS = 10
NO_LIMIT = 1e10
# MXNet applies the weights of red, green, blue to the channels blue, green, red.
GRAY = np.array([0.114, 0.587, 0.299], np.float32)
PCA = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.814], [-0.5836, -0.6948, 0.4203]])
PCA = PCA * (55.46, 4.794, 1.148)


class Changes(NamedTuple):
    """The parameters of the augmentation; `ImageRecordIter` documents them."""

    data_shape: tuple[int, int, int]
    resize: int = -1
    rand_crop: bool = False
    random_resized_crop: bool = False
    max_rotate_angle: int = 0
    max_aspect_ratio: float = 0.0
    min_aspect_ratio: float | None = None
    max_shear_ratio: float = 0.0
    max_crop_size: int = -1
    min_crop_size: int = -1
    max_random_scale: float = 1.0
    min_random_scale: float = 1.0
    max_random_area: float = 1.0
    min_random_area: float = 1.0
    max_img_size: float = NO_LIMIT
    min_img_size: float = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    pca_noise: float = 0.0
    random_h: int = 0
    random_s: int = 0
    random_l: int = 0
    rotate: int = -1
    fill_value: int = 255
    inter_method: int = 1
    pad: int = 0

    def applied(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        """Return the augmented image, with the height and width of ``data_shape``."""
        if self.resize > 0:
            pixels = resized_short(pixels, self.resize, self.inter_method, chance)
        if self._bends:
            pixels = self._bent(pixels, chance)
        if self.pad > 0:
            pixels = bordered(pixels, self.pad, self.pad, self.pad, self.pad, self.fill_value)
        pixels = self._crop(pixels, chance)
        if self._colors:
            pixels = self._change_colors(pixels, chance)
        return pixels

    # -- rotation, shear and scale ---------------------------------------------------------------

    @property
    def _bends(self) -> bool:
        aspect = not self.random_resized_crop and (
            self.max_aspect_ratio != 0 or self.min_aspect_ratio is not None
        )
        return (
            aspect
            or self.max_rotate_angle > 0
            or self.max_shear_ratio > 0
            or self.rotate > 0
            or (self.max_random_scale, self.min_random_scale) != (1.0, 1.0)
            or self.max_img_size != NO_LIMIT
            or self.min_img_size != 0.0
        )

    def _bent(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        shear = chance.uniform(-self.max_shear_ratio, self.max_shear_ratio)
        angle = chance.integers(-self.max_rotate_angle, self.max_rotate_angle, endpoint=True)
        angle = math.radians(self.rotate if self.rotate > 0 else angle)
        scale, ratio = (
            self._scale(chance),
            1.0 if self.random_resized_crop else self._aspect(chance),
        )
        across = 2 * scale / (1 + ratio)
        down = ratio * across
        a, b = math.cos(angle), math.sin(angle)
        height, width = pixels.shape[:2]
        new_width, new_height = (
            max(self.min_img_size, min(self.max_img_size, _scale_edge(edge, scale)))
            for edge in (width, height)
        )
        matrix = np.array(
            [
                [across * a - shear * b * down, across * b + shear * a * down, 0.0],
                [-b * down, a * down, 0.0],
            ],
            np.float32,
        )
        matrix[:, 2] = (np.array([new_width, new_height]) - matrix[:, :2] @ [width, height]) / 2
        size = max(1, int(new_width)), max(1, int(new_height))
        method = interpolation(self.inter_method, pixels, *size, chance)
        output = opencv().warpAffine(
            pixels,
            matrix,
            size,
            flags=method,
            borderMode=opencv().BORDER_CONSTANT,
            borderValue=[self.fill_value] * 4,
        )
        return output[:, :, None] if output.ndim == 2 else output

    def _scale(self, chance: np.random.Generator) -> float:
        return chance.uniform(self.min_random_scale, self.max_random_scale)

    def _aspect(self, chance: np.random.Generator) -> float:
        if self.min_aspect_ratio is None:
            return chance.uniform(1 - self.max_aspect_ratio, 1 + self.max_aspect_ratio)
        return chance.uniform(self.min_aspect_ratio, self.max_aspect_ratio)

    # -- crops -----------------------------------------------------------------------------------

    def _crop(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        _, height, width = self.data_shape
        if self.random_resized_crop:
            crop = self._random_area(pixels, chance)
            if crop is not None:
                return resized(crop, width, height, self.inter_method, chance)
        elif self.max_crop_size != -1 or self.min_crop_size != -1:
            return self._square(pixels, chance)
        pixels = self._large_enough(pixels, chance)
        if pixels.shape[:2] == (height, width):
            return pixels
        return self._crop_at(pixels, height, width, chance)

    def _large_enough(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        """Enlarge an image that is smaller than the crop."""
        _, height, width = self.data_shape
        if pixels.shape[0] < height:
            new_width = _in_proportion(height, *pixels.shape[:2])
            pixels = resized(pixels, new_width, height, self.inter_method, chance)
        if pixels.shape[1] < width:
            new_height = _in_proportion(width, *pixels.shape[1::-1])
            pixels = resized(pixels, width, new_height, self.inter_method, chance)
        return pixels

    def _crop_at(
        self, pixels: np.ndarray, height: int, width: int, chance: np.random.Generator
    ) -> np.ndarray:
        y, x = pixels.shape[0] - height, pixels.shape[1] - width
        if self.rand_crop:
            y, x = chance.integers(0, y, endpoint=True), chance.integers(0, x, endpoint=True)
        else:
            y, x = y // 2, x // 2
        return pixels[y : y + height, x : x + width]

    def _square(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        smallest, largest = self.min_crop_size, self.max_crop_size
        if not 1 <= smallest <= largest <= min(pixels.shape[:2]):
            raise MXNetError(
                f"min_crop_size {smallest} and max_crop_size {largest} do not match an image of "
                f"{pixels.shape[1]} x {pixels.shape[0]}."
            )
        size = int(chance.integers(smallest, largest, endpoint=True))
        crop = self._crop_at(pixels, size, size, chance)
        return resized(crop, self.data_shape[2], self.data_shape[1], self.inter_method, chance)

    def _random_area(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray | None:
        """Crop a rectangle of random area, aspect ratio and position; None if all attempts fail."""
        height, width = pixels.shape[:2]
        for _ in range(ATTEMPTS):
            area = chance.uniform(self.min_random_area, self.max_random_area) * height * width
            ratio = self._aspect(chance)
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if chance.random() > 0.5:
                w, h = h, w
            if 1 <= w < width and 1 <= h < height:  # MXNet excludes the whole image
                y = chance.integers(0, height - h, endpoint=True)
                x = chance.integers(0, width - w, endpoint=True)
                return pixels[y : y + h, x : x + w]
        return None

    # -- colors ---------------------------------------------------------------------------------

    @property
    def _colors(self) -> bool:
        return any(
            (
                self.brightness,
                self.contrast,
                self.saturation,
                self.pca_noise,
                self.random_h,
                self.random_s,
                self.random_l,
            )
        )

    def _change_colors(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        if pixels.shape[2] != 3:
            raise MXNetError("Color augmentation needs images of 3 channels.")
        steps = [
            step
            for step, amount in (
                (self._brighten, self.brightness),
                (self._change_contrast, self.contrast),
                (self._saturate, self.saturation),
            )
            if amount
        ]
        for number in chance.permutation(len(steps)):
            pixels = steps[number](pixels, chance)
        if self.random_h or self.random_s or self.random_l:
            pixels = self._turn_hue(pixels, chance)
        if self.pca_noise > 0:
            shift = PCA @ chance.normal(0, self.pca_noise, 3)
            pixels = _bytes(pixels + shift.astype(np.float32))
        return pixels

    def _brighten(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        factor = 1 + chance.uniform(-self.brightness, self.brightness)
        return opencv().convertScaleAbs(pixels, alpha=factor)

    def _change_contrast(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        factor = 1 + chance.uniform(-self.contrast, self.contrast)
        gray = float((pixels @ GRAY).mean())
        return _bytes(pixels * np.float32(factor) + np.float32((1 - factor) * gray))

    def _saturate(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        factor = 1 + chance.uniform(-self.saturation, self.saturation)
        gray = (pixels @ GRAY)[:, :, None]
        return _bytes(pixels * np.float32(factor) + gray * np.float32(1 - factor))

    def _turn_hue(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        cv2 = opencv()
        limits = (self.random_h, self.random_l, self.random_s)  # OpenCV's order
        shift = [int(chance.integers(-limit, limit)) if limit else 0 for limit in limits]
        hls = cv2.cvtColor(pixels, cv2.COLOR_RGB2HLS).astype(np.int16) + np.array(shift, np.int16)
        hls = np.clip(hls, 0, (180, 255, 255)).astype(np.uint8)
        return cv2.cvtColor(hls, cv2.COLOR_HLS2RGB)


def _scale_edge(edge: int, scale: float) -> float:
    """Return an edge times a scale, truncated; in float32, 100 * 0.29 is 29."""
    return float(np.float32(scale) * np.float32(edge))


def _in_proportion(new: int, old: int, other: int) -> int:
    """Scale an edge by `new` / `old`, truncated in float32."""
    return int(np.float32(new) / np.float32(old) * np.float32(other))


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def interpolation(
    method: int, pixels: np.ndarray, width: int, height: int, chance: np.random.Generator
) -> int:
    """Return OpenCV's method: 9 selects by the sizes, 10 at random."""
    if method == 9:
        old_height, old_width = pixels.shape[:2]
        if width > old_width and height > old_height:
            return 2
        return 3 if width < old_width and height < old_height else 1
    if method == 10:
        return int(chance.integers(0, 5))
    if method not in (0, 1, 2, 3, 4):
        raise MXNetError(f"inter_method is 0 to 4, 9 or 10, not {method}.")
    return method


def resized(
    pixels: np.ndarray, width: int, height: int, method: int, chance: np.random.Generator
) -> np.ndarray:
    """Return the resized image, with its channel axis."""
    method = interpolation(method, pixels, width, height, chance)
    output = opencv().resize(pixels, (width, height), interpolation=method)
    return output[:, :, None] if output.ndim == 2 else output


def resized_short(
    pixels: np.ndarray, size: int, method: int, chance: np.random.Generator
) -> np.ndarray:
    """Return the image resized to a shorter edge of ``size``."""
    height, width = pixels.shape[:2]
    if height > width:
        return resized(pixels, size, size * height // width, method, chance)
    return resized(pixels, size * width // height, size, method, chance)


def bordered(
    pixels: np.ndarray, top: int, bottom: int, left: int, right: int, value: float
) -> np.ndarray:
    """Return the image with a border of a constant color."""
    cv2 = opencv()
    kind = cv2.BORDER_CONSTANT
    output = cv2.copyMakeBorder(pixels, top, bottom, left, right, kind, value=[value] * 4)
    return output[:, :, None] if output.ndim == 2 else output


Range = tuple[float, ...]


class DetectionChanges(NamedTuple):
    """The parameters of the augmentation; `ImageDetRecordIter` documents them."""

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
        """Return the augmented image, at most of size ``data_shape``, and its boxes."""
        if self.resize > 0:
            pixels = resized_short(pixels, self.resize, self.inter_method, chance)
        pixels = self._change_colors(pixels, chance)
        if chance.random() < self.rand_mirror_prob:
            pixels, boxes = pixels[:, ::-1], boxes.copy()
            boxes[:, 1], boxes[:, 3] = 1 - boxes[:, 3], 1 - boxes[:, 1]
        if self.max_pad_scale > 1 and chance.random() < self.rand_pad_prob:
            pixels, boxes = self._pad(pixels, boxes, chance)
        if chance.random() < self.rand_crop_prob:
            pixels, boxes = self._crop(pixels, boxes, chance)
        return self._fit(pixels, chance), boxes

    # -- colors ---------------------------------------------------------------------------------

    def _change_colors(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
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

    # -- padding ---------------------------------------------------------------

    def _pad(
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

    def _crop(
        self, pixels: np.ndarray, boxes: np.ndarray, chance: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        height, width = pixels.shape[:2]
        for sampler in chance.permutation(self.num_crop_sampler):
            for _ in range(self._of(self.max_crop_trials, sampler)):
                crop = self._proposal(sampler, width / height, chance)
                if not self._acceptable(crop, boxes, sampler):
                    continue
                remaining = self._kept(crop, boxes)
                if len(remaining):
                    return _cut_rectangle(pixels, crop), remaining
        return pixels, boxes

    def _of(self, values: tuple, sampler: int) -> Any:
        """Return a sampler's value of an option, or the common value."""
        if len(values) not in (1, self.num_crop_sampler):
            raise MXNetError(
                f"{values} should have one value, or one for each of num_crop_sampler "
                f"{self.num_crop_sampler}."
            )
        return values[sampler if len(values) > 1 else 0]

    def _proposal(
        self, sampler: int, aspect: float, chance: np.random.Generator
    ) -> tuple[float, float, float, float]:
        """Draw a crop (left, top, right, bottom) as fractions of the image."""
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
        """Return whether the overlap of some object with the crop is within the limits."""
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
            for result, least, most in measures:
                good &= (result >= self._of(least, sampler)) & (result <= self._of(most, sampler))
        return bool(good.any())

    def _kept(self, crop: tuple, boxes: np.ndarray) -> np.ndarray:
        left, top, right, bottom = crop
        if self.crop_emit_mode == "center":
            x, y = (boxes[:, 1] + boxes[:, 3]) / 2, (boxes[:, 2] + boxes[:, 4]) / 2
            stays = (x >= left) & (x <= right) & (y >= top) & (y <= bottom)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                stays = _common(crop, boxes) / _sizes(boxes) >= self.emit_overlap_thresh
        remaining = boxes[stays].copy()
        remaining[:, (1, 3)] = np.clip((remaining[:, (1, 3)] - left) / (right - left), 0, 1)
        remaining[:, (2, 4)] = np.clip((remaining[:, (2, 4)] - top) / (bottom - top), 0, 1)
        return remaining

    # -- resizing to the batch -------------------------------------------------------------------

    def _fit(self, pixels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        _, height, width = self.data_shape
        pixels = np.ascontiguousarray(pixels)
        old_height, old_width = pixels.shape[:2]
        if self.resize_mode == "shrink" and old_height <= height and old_width <= width:
            return pixels
        if self.resize_mode != "force":  # the edge that exceeds its limit determines the scale
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


def _cut_rectangle(pixels: np.ndarray, crop: tuple) -> np.ndarray:
    height, width = pixels.shape[:2]
    left, right = int(crop[0] * width), max(int(crop[0] * width) + 1, int(crop[2] * width))
    top, bottom = int(crop[1] * height), max(int(crop[1] * height) + 1, int(crop[3] * height))
    return pixels[top:bottom, left:right]
