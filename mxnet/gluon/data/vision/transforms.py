"""Image transformations as blocks, for `Dataset.transform_first` and for networks.

Images are (height, width, channels); `ToTensor` converts them to (channels, height, width). Sizes
are (width, height).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .... import image
from ....base import numeric_types
from ....image import chance
from ....ndarray import NDArray
from ...block import Block, HybridBlock
from ...nn import HybridSequential, Sequential

Size = int | tuple[int, int]
Factors = tuple[float, float]


class Compose(Sequential):
    """Apply transformations one after the other; adjacent hybrid ones run as one graph.

    Parameters
    ----------
    transforms
        The transformations, in order.

    >>> from mxnet.gluon.data.vision import transforms
    >>> change = transforms.Compose([transforms.Resize(4), transforms.ToTensor()])
    >>> change(nd.ones((5, 7, 3), dtype="uint8")).shape
    (3, 4, 4)
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        super().__init__()
        together: list[HybridBlock] = []
        for step in [*transforms, None]:
            if isinstance(step, HybridBlock):
                together.append(step)
                continue
            self._add_graph(together)
            together = []
            if step is not None:
                self.add(step)

    def _add_graph(self, blocks: list[HybridBlock]) -> None:
        if len(blocks) < 2:
            self.add(*blocks)
            return
        graph = HybridSequential()
        graph.add(*blocks)
        graph.hybridize()
        self.add(graph)


class HybridCompose(HybridSequential):
    """Apply transformations one after the other, all as one graph; each must be hybrid.

    Parameters
    ----------
    transforms
        The transformations, in order; each a hybrid block.

    >>> from mxnet.gluon.data.vision import transforms
    >>> change = transforms.HybridCompose([transforms.Resize(4), transforms.ToTensor()])
    >>> change(nd.ones((5, 7, 3), dtype="uint8")).shape
    (3, 4, 4)
    """

    def __init__(self, transforms: Sequence[HybridBlock]) -> None:
        super().__init__()
        self.add(*transforms)
        self.hybridize()


class RandomApply(Sequential):
    """Apply a transformation with probability ``p``.

    Parameters
    ----------
    transforms
        The transformation.
    p
        Probability of the transformation.

    >>> from mxnet.gluon.data.vision import transforms
    >>> transforms.RandomApply(transforms.Cast("float16"), p=1.0)(nd.ones(2)).dtype
    <class 'numpy.float16'>
    """

    def __init__(self, transforms: Callable[[Any], Any], p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, x: Any) -> Any:
        """Apply the transformation at random."""
        return self.transforms(x) if chance.fraction() < self.p else x


class HybridRandomApply(HybridBlock):
    """Apply a hybrid transformation that keeps shape and type with probability ``p``.

    Parameters
    ----------
    transforms
        The transformation, a hybrid block.
    p
        Probability of the transformation.

    >>> from mxnet.gluon.data.vision import transforms
    >>> blur = transforms.HybridRandomApply(transforms.RandomBrightness(0.5), p=0.3)
    >>> blur(nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, transforms: HybridBlock, p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the transformation at random."""
        drawn = F.random.uniform(shape=(1,)) < self.p
        return F.contrib.cond(drawn, lambda: self.transforms(x), lambda: F.identity(x))


class Cast(HybridBlock):
    """Convert to another data type.

    Parameters
    ----------
    dtype
        The new data type.

    >>> mx.gluon.data.vision.transforms.Cast("float16")(nd.ones((2,))).dtype
    <class 'numpy.float16'>
    """

    def __init__(self, dtype: Any = "float32") -> None:
        super().__init__()
        self._dtype = dtype

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Convert."""
        return F.cast(x, self._dtype)


class ToTensor(HybridBlock):
    """Convert an image in [0, 255] to a float32 array (channels, height, width) in [0, 1].

    Batches of images are supported too.

    >>> mx.gluon.data.vision.transforms.ToTensor()(nd.ones((1, 2, 3)) * 51).asnumpy()[0]
    array([[0.2, 0.2]], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Convert."""
        return F.image.to_tensor(x)


class Normalize(HybridBlock):
    """Subtract a mean and divide by a standard deviation: one number, or one for each channel.

    Apply it after `ToTensor`.

    Parameters
    ----------
    mean
        Mean of all channels, or one for each.
    std
        Standard deviation of all channels, or one for each.

    >>> mx.gluon.data.vision.transforms.Normalize(1.0, 2.0)(nd.ones((1, 1, 1)) * 7).asscalar()
    np.float32(3.0)
    """

    def __init__(
        self, mean: float | Sequence[float] = 0.0, std: float | Sequence[float] = 1.0
    ) -> None:
        super().__init__()
        self._mean = mean
        self._std = std

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Subtract and divide."""
        return F.image.normalize(x, self._mean, self._std)


def _around_one(spread: float) -> Factors:
    return max(0, 1 - spread), 1 + spread


class RandomBrightness(HybridBlock):
    """Multiply by a factor between ``max(0, 1 - brightness)`` and ``1 + brightness``.

    Parameters
    ----------
    brightness
        Largest change, as a fraction.

    >>> mx.gluon.data.vision.transforms.RandomBrightness(0.5)(nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, brightness: float) -> None:
        super().__init__()
        self._args = _around_one(brightness)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply a random change."""
        return F.image.random_brightness(x, *self._args)


class RandomContrast(HybridBlock):
    """Change the contrast by a factor between ``max(0, 1 - contrast)`` and ``1 + contrast``.

    Parameters
    ----------
    contrast
        Largest change, as a fraction.

    >>> mx.gluon.data.vision.transforms.RandomContrast(0.5)(nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, contrast: float) -> None:
        super().__init__()
        self._args = _around_one(contrast)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply a random change."""
        return F.image.random_contrast(x, *self._args)


class RandomSaturation(HybridBlock):
    """Change the saturation by a factor between ``max(0, 1 - saturation)`` and ``1 + saturation``.

    Parameters
    ----------
    saturation
        Largest change, as a fraction.

    >>> mx.gluon.data.vision.transforms.RandomSaturation(0.5)(nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, saturation: float) -> None:
        super().__init__()
        self._args = _around_one(saturation)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply a random change."""
        return F.image.random_saturation(x, *self._args)


class RandomHue(HybridBlock):
    """Change the hue by a factor between ``max(0, 1 - hue)`` and ``1 + hue``.

    Parameters
    ----------
    hue
        Largest change, as a fraction.

    >>> mx.gluon.data.vision.transforms.RandomHue(0.1)(nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, hue: float) -> None:
        super().__init__()
        self._args = _around_one(hue)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply a random change."""
        return F.image.random_hue(x, *self._args)


class RandomColorJitter(HybridBlock):
    """Change brightness, contrast, saturation and hue in random order, each within its bound.

    Parameters
    ----------
    brightness
        Largest change of the brightness, as a fraction.
    contrast
        Largest change of the contrast, as a fraction.
    saturation
        Largest change of the saturation, as a fraction.
    hue
        Largest change of the hue, as a fraction.

    >>> jitter = mx.gluon.data.vision.transforms.RandomColorJitter(brightness=0.2, contrast=0.2)
    >>> jitter(nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(
        self, brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0
    ) -> None:
        super().__init__()
        self._args = (brightness, contrast, saturation, hue)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply a random change."""
        return F.image.random_color_jitter(x, *self._args)


class RandomLighting(HybridBlock):
    """Add PCA noise, as in AlexNet: random shifts along the principal components of RGB colors.

    Parameters
    ----------
    alpha
        Standard deviation of the noise.

    >>> mx.gluon.data.vision.transforms.RandomLighting(0.1)(nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Add random noise."""
        return F.image.random_lighting(x, self._alpha)


class RandomGray(Block):
    """Convert an image to gray with probability ``p``; channels and data type are kept.

    Parameters
    ----------
    p
        Probability that the image becomes gray.

    >>> mx.gluon.data.vision.transforms.RandomGray(1.0)(nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: NDArray) -> NDArray:
        """Convert to gray at random."""
        return image.RandomGrayAug(self.p)(x).astype(x.dtype, copy=False)


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
        Probability of a rotation.

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
        """Rotate by a random angle."""
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
    """Crop a rectangle and, if a size is given, resize it.

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
        OpenCV's number of the interpolation; by default 1, bilinear.

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
        """Crop and resize."""
        out = F.image.crop(x, self._x, self._y, self._width, self._height)
        if not self._size:
            return out
        method = 1 if self._interpolation is None else self._interpolation
        return F.image.resize(out, self._size, False, method)


class RandomCrop(Block):
    """Crop a rectangle at a random position; a smaller image is enlarged.

    Parameters
    ----------
    size : int or (width, height)
        Width and height, or one number for both.
    pad : int or (vertical, horizontal), optional
        Width of a border to add first.
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
        """Crop at a random position."""
        if self._pad is not None:
            down, across = self._pad
            x = image.copyMakeBorder(x, down, down, across, across, value=self._pad_value)
        return image.random_crop(x, *self._args)[0]


class RandomResizedCrop(Block):
    """Crop a rectangle of random area and aspect ratio, and resize it.

    Parameters
    ----------
    size : int or (width, height)
        Width and height, or one number for both.
    scale : tuple
        Smallest and largest area, as a fraction of the image's.
    ratio : tuple
        Smallest and largest aspect ratio, width / height.
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
        """Crop at random and resize."""
        return image.random_size_crop(x, *self._args)[0]


class CenterCrop(Block):
    """Crop at the center; a smaller image is enlarged.

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
        """Crop at the center."""
        return image.center_crop(x, *self._args)[0]


class Resize(HybridBlock):
    """Resize an image, or a batch of images.

    Parameters
    ----------
    size : int or (width, height)
        Size of the result. A number means a square, or with `keep_ratio` the shorter edge.
    keep_ratio : bool
        Whether to keep the aspect ratio.
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
    """Mirror an image left to right with probability 1/2.

    >>> mx.gluon.data.vision.transforms.RandomFlipLeftRight()(nd.ones((2, 3, 3))).shape
    (2, 3, 3)
    """

    def __init__(self) -> None:
        super().__init__()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Mirror at random."""
        return F.image.random_flip_left_right(x)


class RandomFlipTopBottom(HybridBlock):
    """Flip an image upside down with probability 1/2.

    >>> mx.gluon.data.vision.transforms.RandomFlipTopBottom()(nd.ones((2, 3, 3))).shape
    (2, 3, 3)
    """

    def __init__(self) -> None:
        super().__init__()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Flip at random."""
        return F.image.random_flip_top_bottom(x)


def _pair(size: Size) -> tuple[int, int]:
    return (size, size) if isinstance(size, numeric_types) else size
