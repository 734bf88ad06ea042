"""Augmenters that change an image together with its boxes.

A label has a row for each object: class, left, top, right, bottom (fractions of width and height),
and optional values.
"""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..error import MXNetError
from ..ndarray import NDArray
from . import chance
from .augmenters import (
    DEVIATION,
    MEAN,
    Augmenter,
    CastAug,
    ForceResizeAug,
    ResizeAug,
    _plain,
    color_augmenters,
    normalizers,
)
from .geometry import copyMakeBorder, fixed_crop

Rectangle = tuple[int, int, int, int]  # x, y, width, height
ALMOST_HALF = 0.4999999  # largest number added to a width without rounding up
MIN_PIXELS = 2  # minimum area of boxes and borders, in pixels


class DetAugmenter:
    """Base of detection augmenters; stores its arguments for `dumps`.

    >>> issubclass(mx.image.DetHorizontalFlipAug, mx.image.DetAugmenter)
    True
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = {key: _plain(value) for key, value in kwargs.items()}

    def dumps(self) -> Any:
        """Return the augmenter as JSON: its name and arguments."""
        return json.dumps([self.__class__.__name__.lower(), self._kwargs])

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        """Return the augmented image and label."""
        raise NotImplementedError("Must override implementation.")


class DetBorrowAug(DetAugmenter):
    """Apply an `Augmenter` that does not move boxes.

    Parameters
    ----------
    augmenter
        The augmenter.

    >>> aug = mx.image.DetBorrowAug(mx.image.CastAug())
    >>> image, label = aug(mx.nd.ones((4, 6, 3)), np.array([[0, 0.1, 0.1, 0.5, 0.5]]))
    >>> image.shape
    (4, 6, 3)
    """

    def __init__(self, augmenter: Augmenter) -> None:
        if not isinstance(augmenter, Augmenter):
            raise TypeError(f"Borrowing from invalid Augmenter: {type(augmenter).__name__}")
        super().__init__(augmenter=augmenter.dumps())
        self.augmenter = augmenter

    def dumps(self) -> list:
        """Return the name and the dump of the wrapped augmenter."""
        return [self.__class__.__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        """Return the augmented image and label."""
        return self.augmenter(src), label


class DetRandomSelectAug(DetAugmenter):
    """Apply one of several augmenters, or none with probability ``skip_prob``.

    Parameters
    ----------
    aug_list
        The augmenters; by default selected by `kwargs`.
    skip_prob
        Probability of leaving the image unchanged.

    >>> aug = mx.image.DetRandomSelectAug([mx.image.DetHorizontalFlipAug(1.0)])
    >>> image, label = aug(mx.nd.ones((4, 6, 3)), np.array([[0, 0.1, 0.1, 0.5, 0.5]]))
    >>> label.shape
    (1, 5)
    """

    def __init__(self, aug_list: list[DetAugmenter], skip_prob: float = 0) -> None:
        super().__init__(skip_prob=skip_prob)
        aug_list = list(aug_list) if isinstance(aug_list, list | tuple) else [aug_list]
        if not all(isinstance(member, DetAugmenter) for member in aug_list):
            raise ValueError("Allow DetAugmenter in list only")
        self.aug_list = aug_list
        self.skip_prob = skip_prob if aug_list else 1

    def dumps(self) -> list:
        """Return the name and the dumps of all augmenters."""
        return [self.__class__.__name__.lower(), [member.dumps() for member in self.aug_list]]

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        """Return the augmented image and label."""
        if chance.fraction() < self.skip_prob:
            return src, label
        return self.aug_list[chance.order(len(self.aug_list))[0]](src, label)


class DetHorizontalFlipAug(DetAugmenter):
    """Mirror left and right with probability ``p``.

    Parameters
    ----------
    p
        Probability of the change.

    >>> aug = mx.image.DetHorizontalFlipAug(1.0)
    >>> image, label = aug(mx.nd.ones((4, 6, 3)), np.array([[0, 0.1, 0.1, 0.5, 0.5]]))
    >>> label.tolist()
    [[0.0, 0.5, 0.1, 0.9, 0.5]]
    """

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        """Return the augmented image and label."""
        if chance.fraction() >= self.p:
            return src, label
        flipped = label.copy()
        flipped[:, 1], flipped[:, 3] = 1.0 - label[:, 3], 1.0 - label[:, 1]
        return nd.flip(src, axis=1), flipped


class DetRandomCropAug(DetAugmenter):
    """Crop a random rectangle that covers enough of each object it overlaps.

    Parameters
    ----------
    min_object_covered : float
        Minimum fraction of each overlapping object inside the crop.
    aspect_ratio_range : (float, float)
        Range of the aspect ratio of the crop, width / height.
    area_range : (float, float)
        Range of the area of the crop, as a fraction of the image's.
    min_eject_coverage : float
        Objects with a smaller remaining fraction are dropped.
    max_attempts : int
        Maximum number of attempts; after that the image is unchanged.

    >>> aug = mx.image.DetRandomCropAug(min_object_covered=0.5)
    >>> image, label = aug(mx.nd.ones((40, 60, 3)), np.array([[0, 0.1, 0.1, 0.5, 0.5]]))
    >>> label.shape
    (1, 5)
    """

    def __init__(
        self,
        min_object_covered: float = 0.1,
        aspect_ratio_range: tuple[float, float] = (0.75, 1.33),
        area_range: tuple[float, float] = (0.05, 1.0),
        min_eject_coverage: float = 0.3,
        max_attempts: int = 50,
    ) -> None:
        aspect_ratio_range, area_range = _pair(aspect_ratio_range), _pair(area_range)
        super().__init__(
            min_object_covered=min_object_covered,
            aspect_ratio_range=aspect_ratio_range,
            area_range=area_range,
            min_eject_coverage=min_eject_coverage,
            max_attempts=max_attempts,
        )
        self.min_object_covered = min_object_covered
        self.min_eject_coverage = min_eject_coverage
        self.max_attempts = max_attempts
        self.aspect_ratio_range = aspect_ratio_range
        self.area_range = area_range
        self.enabled = _makes_sense(self, aspect_ratio_range, area_range, above=0.0)

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        """Return the augmented image and label."""
        result = self._proposal(label, *src.shape[:2]) if self.enabled else None
        if result is None:
            return src, label
        crop, label = result
        return fixed_crop(src, *crop), label

    def _proposal(
        self, label: np.ndarray, height: int, width: int
    ) -> tuple[Rectangle, np.ndarray] | None:
        least, most = (part * height * width for part in self.area_range)
        for _ in range(self.max_attempts):
            ratio = chance.between(*self.aspect_ratio_range)
            size = self._size(ratio, least, most, height, width)
            if size is None:
                continue
            w, h = size
            y, x = chance.whole(0, max(0, height - h)), chance.whole(0, max(0, width - w))
            if not self._covers(label, (x, y, w, h), height, width):
                continue
            moved = self._move_boxes(label, (x, y, w, h), height, width)
            if moved is not None:
                return (x, y, w, h), moved
        return None

    def _size(
        self, ratio: float, least: float, most: float, height: int, width: int
    ) -> tuple[int, int] | None:
        if ratio <= 0:
            return None
        h, tallest = round(math.sqrt(least / ratio)), round(math.sqrt(most / ratio))
        if round(tallest * ratio) > width:
            tallest = int((width + ALMOST_HALF) / ratio)
        tallest = min(tallest, height)
        h = min(h, tallest)
        if h < tallest:
            h = chance.whole(h, tallest)
        w = round(h * ratio)
        # By rounding, the area may be out of range by one row.
        if w * h < least:
            h += 1
            w = round(h * ratio)
        if w * h > most:
            h -= 1
            w = round(h * ratio)
        fits = least <= w * h <= most and 0 <= w <= width and 0 <= h <= height
        return (w, h) if fits else None

    def _covers(self, label: np.ndarray, crop: Rectangle, height: int, width: int) -> bool:
        """Return whether enough of each object that the crop overlaps is inside."""
        x, y, w, h = crop
        if w * h < MIN_PIXELS:
            return False
        left, top, right, bottom = x / width, y / height, (x + w) / width, (y + h) / height
        areas = _areas(label)
        large = areas * width * height > MIN_PIXELS
        if not large.any():
            return False
        inside = _intersections(label[large], left, top, right, bottom) / areas[large]
        touched = inside[inside > 0]
        return touched.size > 0 and float(touched.min()) > self.min_object_covered

    def _move_boxes(
        self, label: np.ndarray, crop: Rectangle, height: int, width: int
    ) -> np.ndarray | None:
        """Return the label of the crop, without objects that are mostly outside."""
        x, y, w, h = crop
        moved = label.copy()
        moved[:, (1, 3)] = np.clip((label[:, (1, 3)] * width - x) / w, 0, 1)
        moved[:, (2, 4)] = np.clip((label[:, (2, 4)] * height - y) / h, 0, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            left = _areas(moved) * w * h / width / height / _areas(label)
        real = (moved[:, 3] > moved[:, 1]) & (moved[:, 4] > moved[:, 2])
        boxes = moved[real & (left > self.min_eject_coverage)]
        return boxes if len(boxes) else None


class DetRandomPadAug(DetAugmenter):
    """Place the image at a random position on a larger background.

    Parameters
    ----------
    aspect_ratio_range : (float, float)
        Range of the aspect ratio of the background, width / height.
    area_range : (float, float)
        Range of the area of the background, relative to the image's.
    max_attempts : int
        Maximum number of attempts; after that the image is unchanged.
    pad_val : float, or one for each channel
        The color of the background.

    >>> aug = mx.image.DetRandomPadAug()
    >>> image, label = aug(mx.nd.ones((40, 60, 3)), np.array([[0, 0.1, 0.1, 0.5, 0.5]]))
    >>> label.shape
    (1, 5)
    """

    def __init__(
        self,
        aspect_ratio_range: tuple[float, float] = (0.75, 1.33),
        area_range: tuple[float, float] = (1.0, 3.0),
        max_attempts: int = 50,
        pad_val: Any = (128, 128, 128),
    ) -> None:
        aspect_ratio_range, area_range = _pair(aspect_ratio_range), _pair(area_range)
        super().__init__(
            aspect_ratio_range=aspect_ratio_range,
            area_range=area_range,
            max_attempts=max_attempts,
            pad_val=pad_val,
        )
        self.pad_val = pad_val
        self.aspect_ratio_range = aspect_ratio_range
        self.area_range = area_range
        self.max_attempts = max_attempts
        self.enabled = _makes_sense(self, aspect_ratio_range, area_range, above=1.0)

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        """Return the augmented image and label."""
        height, width = src.shape[:2]
        result = self._proposal(height, width) if self.enabled else None
        if result is None:
            return src, label
        x, y, w, h = result
        color = self.pad_val if isinstance(self.pad_val, list | tuple) else [self.pad_val] * 4
        src = copyMakeBorder(src, y, h - y - height, x, w - x - width, values=tuple(color))
        moved = label.copy()
        moved[:, (1, 3)] = (label[:, (1, 3)] * width + x) / w
        moved[:, (2, 4)] = (label[:, (2, 4)] * height + y) / h
        return src, moved

    def _proposal(self, height: int, width: int) -> Rectangle | None:
        least, most = (part * height * width for part in self.area_range)
        for _ in range(self.max_attempts):
            ratio = chance.between(*self.aspect_ratio_range)
            if ratio <= 0:
                continue
            h, tallest = round(math.sqrt(least / ratio)), round(math.sqrt(most / ratio))
            if round(h * ratio) < width:
                h = int((width + ALMOST_HALF) / ratio)
            h = min(max(h, height), tallest)
            if h < tallest:
                h = chance.whole(h, tallest)
            w = round(h * ratio)
            if h - height < MIN_PIXELS or w - width < MIN_PIXELS:
                continue
            y, x = chance.whole(0, max(0, h - height)), chance.whole(0, max(0, w - width))
            return x, y, w, h
        return None


def _pair(value: Any) -> tuple[float, float]:
    is_number = isinstance(value, int | float | np.number)
    pair: Any = (value, value) if is_number else tuple(value)
    return pair


def _makes_sense(augmenter: DetAugmenter, ratios: tuple, areas: tuple, above: float) -> bool:
    if areas[1] <= above or areas[0] > areas[1]:
        problem = f"area_range {areas}"
    elif ratios[0] > ratios[1] or ratios[0] <= 0:
        problem = f"aspect_ratio_range {ratios}"
    else:
        return True
    name = type(augmenter).__name__
    warnings.warn(f"Skip {name} due to invalid {problem}", UserWarning, stacklevel=3)
    return False


def _areas(label: np.ndarray) -> np.ndarray:
    return np.maximum(0, label[:, 3] - label[:, 1]) * np.maximum(0, label[:, 4] - label[:, 2])


def _intersections(
    label: np.ndarray, left: float, top: float, right: float, bottom: float
) -> np.ndarray:
    across = np.minimum(right, label[:, 3]) - np.maximum(left, label[:, 1])
    down = np.minimum(bottom, label[:, 4]) - np.maximum(top, label[:, 2])
    return np.maximum(0, across) * np.maximum(0, down)


def CreateMultiRandCropAugmenter(
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 1.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: Any = 50,
    skip_prob: float = 0,
) -> DetRandomSelectAug:
    """Return an augmenter that selects one of several `DetRandomCropAug` for each image.

    Each argument is one value for all crops, or a list with one value for each.

    Parameters
    ----------
    min_object_covered
        Minimum fraction of each overlapping object inside a crop.
    aspect_ratio_range
        Smallest and largest aspect ratio, width / height.
    area_range
        Smallest and largest area, as fractions of the image's.
    min_eject_coverage
        Objects with a smaller remaining fraction are dropped.
    max_attempts
        Maximum number of attempts; after that the image is unchanged.
    skip_prob
        Probability of leaving the image unchanged.

    >>> mx.image.CreateMultiRandCropAugmenter([0.1, 0.5]).aug_list[1].min_object_covered
    0.5
    """
    columns = [
        value if isinstance(value, list) else [value]
        for value in (
            min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts,
        )
    ]  # fmt: skip
    count = max(map(len, columns))
    if any(len(column) not in (1, count) for column in columns):
        raise WrongLengths(f"Each list has 1 or {count} members, not {[len(c) for c in columns]}.")
    rows = zip(*(c * count if len(c) == 1 else c for c in columns), strict=True)
    return DetRandomSelectAug([DetRandomCropAug(*row) for row in rows], skip_prob=skip_prob)


class WrongLengths(MXNetError, ValueError, AssertionError):
    """Raised if lists of arguments differ in length."""


def CreateDetAugmenter(
    data_shape: tuple[int, int, int],
    resize: int = 0,
    rand_crop: float = 0,
    rand_pad: float = 0,
    rand_gray: float = 0,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    pca_noise: float = 0,
    hue: float = 0,
    inter_method: int = 2,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 3.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: Any = 50,
    pad_val: Any = (127, 127, 127),
) -> list[DetAugmenter]:
    """Return a list of detection augmenters that ends in images of ``data_shape``.

    ``rand_crop``, ``rand_pad`` and ``rand_gray`` are probabilities. See `CreateAugmenter`,
    `DetRandomCropAug` and `DetRandomPadAug` for the other parameters.

    Parameters
    ----------
    data_shape
        Channels, height and width of the result.
    resize
        Resize the shorter edge to this length first, if above 0.
    rand_crop
        Probability of a crop.
    rand_pad
        Probability of padding.
    rand_gray
        Probability of converting the image to gray.
    rand_mirror
        Whether to mirror images with probability 1/2.
    mean
        Mean of each channel.
    std
        Standard deviation of each channel.
    brightness
        Largest change of the brightness, as a fraction.
    contrast
        Largest change of the contrast, as a fraction.
    saturation
        Largest change of the saturation, as a fraction.
    pca_noise
        Standard deviation of the noise along the principal components of color.
    hue
        Largest change of the hue, as a fraction of half a turn.
    inter_method
        OpenCV's number of the interpolation, as in `imresize`.
    min_object_covered
        Minimum fraction of each overlapping object inside a crop.
    aspect_ratio_range
        Smallest and largest aspect ratio, width / height.
    area_range
        Smallest and largest area, as fractions of the image's.
    min_eject_coverage
        Objects with a smaller remaining fraction are dropped.
    max_attempts
        Maximum number of attempts; after that the image is unchanged.
    pad_val
        Color of the padding, for all channels or for each.

    >>> augs = mx.image.CreateDetAugmenter((3, 32, 32), rand_mirror=True)
    >>> len(augs) > 1
    True
    """
    auglist: list[DetAugmenter] = []
    if resize > 0:
        auglist.append(DetBorrowAug(ResizeAug(resize, inter_method)))
    if rand_crop > 0:
        crop = CreateMultiRandCropAugmenter(
            min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts,
            skip_prob=1 - rand_crop,
        )  # fmt: skip
        auglist.append(crop)
    if rand_mirror:
        auglist.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:
        pad = DetRandomPadAug(aspect_ratio_range, (1.0, area_range[1]), max_attempts, pad_val)
        auglist.append(DetRandomSelectAug([pad], 1 - rand_pad))
    mean = np.array(MEAN) if mean is True else mean
    std = np.array(DEVIATION) if std is True else std
    borrowed = [
        ForceResizeAug((data_shape[2], data_shape[1]), inter_method),
        CastAug(),
        *color_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray),
        *normalizers(mean, std),
    ]
    return auglist + [DetBorrowAug(augmenter) for augmenter in borrowed]
