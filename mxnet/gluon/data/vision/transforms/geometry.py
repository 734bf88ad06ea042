"""Transformations that move pixels: rotations, crops, sizes and flips."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..... import image
from .....base import numeric_types
from .....image import chance
from .....ndarray import NDArray
from ....block import Block, HybridBlock

Size = int | tuple[int, int]
Factors = tuple[float, float]


class Rotate(Block):
    """Rotate float32 images (channels, height, width) by an angle in degrees.

    Parameters
    ----------
    rotation_degrees : float
        The angle, counterclockwise.
    zoom_in : bool
        Enlarge until no empty corner shows.
    zoom_out : bool
        Shrink until the whole image shows.

    >>> mx.gluon.data.vision.transforms.Rotate(90.0)(nd.ones((3, 4, 4))).shape
    (3, 4, 4)
    """

    def __init__(
        self, rotation_degrees: float, zoom_in: bool = False, zoom_out: bool = False
    ) -> None:
        super().__init__()
        self._args = (rotation_degrees, zoom_in, zoom_out)

    def forward(self, x: NDArray) -> NDArray:
        """Rotate."""
        _check_float(x)
        return image.imrotate(x, *self._args)


class RandomRotation(Block):
    """Rotate by an angle between two limits in degrees; see `Rotate`.

    Parameters
    ----------
    angle_limits : tuple
        Smallest and largest angle.
    zoom_in : bool
        Enlarge until no empty corner shows.
    zoom_out : bool
        Shrink until the whole image shows.
    rotate_with_proba : float
        How probable it is that the image is rotated at all.

    >>> mx.gluon.data.vision.transforms.RandomRotation((-10, 10))(nd.ones((3, 4, 4))).shape
    (3, 4, 4)
    """

    def __init__(
        self,
        angle_limits: tuple[float, float],
        zoom_in: bool = False,
        zoom_out: bool = False,
        rotate_with_proba: float = 1.0,
    ) -> None:
        super().__init__()
        lower, upper = angle_limits
        if lower >= upper:
            raise ValueError("`angle_limits` must be an ordered tuple")
        if not 0 <= rotate_with_proba <= 1:
            raise ValueError("Probability of rotating the image should be between 0 and 1")
        self._args = (angle_limits, zoom_in, zoom_out)
        self._rotate_with_proba = rotate_with_proba

    def forward(self, x: NDArray) -> NDArray:
        """Draw whether and how far, and rotate."""
        if chance.fraction() >= self._rotate_with_proba:
            return x
        _check_float(x)
        return image.random_rotate(x, *self._args)


def _check_float(x: NDArray) -> None:
    if x.dtype is not np.float32:
        raise TypeError(
            "This transformation only supports float32. Consider calling it after ToTensor"
        )


class CropResize(HybridBlock):
    """Cut out a rectangle and, if a size is given, resize it.

    Parameters
    ----------
    x : int
        Column of the left edge.
    y : int
        Row of the upper edge.
    width : int
        Width of the rectangle.
    height : int
        Height of the rectangle.
    size : int or (width, height), optional
        Width and height after resizing, or one number for both; None keeps the size.
    interpolation : int, optional
        The method of resizing; 1 (bilinear) if nothing is said.

    >>> mx.gluon.data.vision.transforms.CropResize(1, 0, 3, 2)(nd.ones((4, 5, 3))).shape
    (2, 3, 3)
    """

    def __init__(
        self,
        x: int,
        y: int,
        width: int,
        height: int,
        size: Size | None = None,
        interpolation: int | None = None,
    ) -> None:
        super().__init__()
        self._x, self._y = x, y
        self._width, self._height = width, height
        self._size = size
        self._interpolation = interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Cut and resize."""
        out = F.image.crop(x, self._x, self._y, self._width, self._height)
        if not self._size:
            return out
        method = 1 if self._interpolation is None else self._interpolation
        return F.image.resize(out, self._size, False, method)


class RandomCrop(Block):
    """Cut out a rectangle of a size anywhere; a smaller image is enlarged.

    Parameters
    ----------
    size : int or (width, height)
        Width and height, or one number for both.
    pad : int or (vertical, horizontal), optional
        Add a border of so many pixels first.
    pad_value : int
        The color of the border.
    interpolation : int
        OpenCV's number of the interpolation; 1 is bilinear.

    >>> mx.gluon.data.vision.transforms.RandomCrop((4, 3), pad=1)(nd.ones((9, 9, 3))).shape
    (3, 4, 3)
    """

    def __init__(
        self,
        size: Size,
        pad: int | tuple[int, int] | None = None,
        pad_value: float = 0,
        interpolation: int = 1,
    ) -> None:
        super().__init__()
        self._args = (_pair(size), interpolation)
        self._pad = None if pad is None else _pair(pad)
        self._pad_value = pad_value

    def forward(self, x: NDArray) -> NDArray:
        """Draw where, and cut."""
        if self._pad is not None:
            down, across = self._pad
            x = image.copyMakeBorder(x, down, down, across, across, value=self._pad_value)
        return image.random_crop(x, *self._args)[0]


class RandomResizedCrop(Block):
    """Cut out a rectangle of random area and form, and resize it.

    Parameters
    ----------
    size : int or (width, height)
        Width and height, or one number for both.
    scale : tuple
        The least and most part of the image's area.
    ratio : tuple
        The least and most width / height.
    interpolation : int
        OpenCV's number of the interpolation; 1 is bilinear.

    >>> crop = mx.gluon.data.vision.transforms.RandomResizedCrop((4, 3))
    >>> crop(nd.ones((9, 9, 3))).shape
    (3, 4, 3)
    """

    def __init__(
        self,
        size: Size,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: int = 1,
    ) -> None:
        super().__init__()
        self._args = (_pair(size), scale, ratio, interpolation)

    def forward(self, x: NDArray) -> NDArray:
        """Draw, cut and resize."""
        return image.random_size_crop(x, *self._args)[0]


class CenterCrop(Block):
    """Cut out the middle; a smaller image is enlarged.

    Parameters
    ----------
    size
        Width and height, or one number for both.
    interpolation
        OpenCV's number of the interpolation; 1 is bilinear.

    >>> mx.gluon.data.vision.transforms.CenterCrop((4, 3))(nd.ones((9, 9, 3))).shape
    (3, 4, 3)
    """

    def __init__(self, size: Size, interpolation: int = 1) -> None:
        super().__init__()
        self._args = (_pair(size), interpolation)

    def forward(self, x: NDArray) -> NDArray:
        """Cut."""
        return image.center_crop(x, *self._args)[0]


class Resize(HybridBlock):
    """Resize an image, or a batch of images.

    Parameters
    ----------
    size : int or (width, height)
        A number means a square, or with `keep_ratio` the shorter edge.
    keep_ratio : bool
        Keep the form.
    interpolation : int
        OpenCV's number of the interpolation; 1 is bilinear.

    >>> mx.gluon.data.vision.transforms.Resize(4, keep_ratio=True)(nd.ones((8, 16, 3))).shape
    (4, 8, 3)
    """

    def __init__(self, size: Size, keep_ratio: bool = False, interpolation: int = 1) -> None:
        super().__init__()
        self._keep = keep_ratio
        self._size = size
        self._interpolation = interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Resize."""
        return F.image.resize(x, self._size, self._keep, self._interpolation)


class RandomFlipLeftRight(HybridBlock):
    """Mirror an image left to right, every second time.

    >>> mx.gluon.data.vision.transforms.RandomFlipLeftRight()(nd.ones((2, 3, 3))).shape
    (2, 3, 3)
    """

    def __init__(self) -> None:
        super().__init__()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Draw whether, and mirror."""
        return F.image.random_flip_left_right(x)


class RandomFlipTopBottom(HybridBlock):
    """Turn an image upside down, every second time.

    >>> mx.gluon.data.vision.transforms.RandomFlipTopBottom()(nd.ones((2, 3, 3))).shape
    (2, 3, 3)
    """

    def __init__(self) -> None:
        super().__init__()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Draw whether, and turn."""
        return F.image.random_flip_top_bottom(x)


def _pair(size: Size) -> tuple[int, int]:
    return (size, size) if isinstance(size, numeric_types) else size
