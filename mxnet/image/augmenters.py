"""Augmenters: random transformations of images.

Each takes and returns an array (height, width, channels); the input is unchanged unless noted.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..ndarray import NDArray
from ..ops.documentation import inherits_parameters
from . import chance
from .geometry import (
    UnexpectedArguments,
    center_crop,
    color_normalize,
    imresize,
    pixels_of,
    random_crop,
    random_size_crop,
    resize_short,
)

GRAY = np.array([[[0.299, 0.587, 0.114]]], np.float32)
# Mean, standard deviation and principal components of ImageNet's colors (Krizhevsky et al., 2012).
MEAN = (123.68, 116.28, 103.53)
DEVIATION = (58.395, 57.12, 57.375)
EIGENVALUES = np.array([55.46, 4.794, 1.148])
EIGENVECTORS = np.array(
    [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]
)


class Augmenter:
    """Base of all augmenters; stores its arguments for `dumps`.

    >>> class Negative(mx.image.Augmenter):
    ...     def __call__(self, src):
    ...         return 255 - src
    >>> Negative()(mx.nd.zeros((1, 1, 3))).asnumpy().max()
    np.float32(255.0)
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = {key: _plain(value) for key, value in kwargs.items()}

    def dumps(self) -> Any:
        """Return the augmenter as JSON: its name and arguments.

        >>> mx.image.HorizontalFlipAug(0.5).dumps()
        '["horizontalflipaug", {"p": 0.5}]'
        """
        return json.dumps([self.__class__.__name__.lower(), self._kwargs])

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        raise NotImplementedError("Must override implementation.")


def _plain(value: Any) -> Any:
    if isinstance(value, NDArray):
        value = value.asnumpy()
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _near(src: NDArray, constant: Any) -> Any:
    """Move a constant to the device of an image."""
    return constant.as_in_context(src.context) if isinstance(constant, NDArray) else constant


def _float(src: NDArray) -> NDArray:
    """Convert to floating point; arithmetic on bytes would truncate."""
    return src if np.issubdtype(src.dtype, np.floating) else src.astype("float32")


class SequentialAug(Augmenter):
    """Apply augmenters one after the other.

    Parameters
    ----------
    ts
        The augmenters.

    >>> both = mx.image.SequentialAug([mx.image.CastAug(), mx.image.ResizeAug(2)])
    >>> both(mx.nd.ones((4, 6, 3))).shape
    (2, 3, 3)
    """

    def __init__(self, ts: list[Augmenter]) -> None:
        super().__init__()
        self.ts = ts

    def dumps(self) -> list:
        """Return the name and the dumps of all augmenters."""
        return [self.__class__.__name__.lower(), [member.dumps() for member in self.ts]]

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        for member in self.ts:
            src = member(src)
        return src


class RandomOrderAug(SequentialAug):
    """Apply augmenters in random order.

    Parameters
    ----------
    ts
        The augmenters.

    >>> both = mx.image.RandomOrderAug([mx.image.CastAug(), mx.image.ResizeAug(2)])
    >>> both(mx.nd.ones((4, 6, 3))).shape
    (2, 3, 3)
    """

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        ordered = [self.ts[number] for number in chance.order(len(self.ts))]
        if chance.is_seeded():
            self.ts = ordered  # MXNet shuffles its list in place
        for augmenter in ordered:
            src = augmenter(src)
        return src


class ResizeAug(Augmenter):
    """Resize the shorter edge to ``size``.

    Parameters
    ----------
    size
        New length of the shorter edge.
    interp
        OpenCV's number of the interpolation, as in `imresize`.

    >>> mx.image.ResizeAug(2)(mx.nd.ones((4, 6, 3))).shape
    (2, 3, 3)
    """

    def __init__(self, size: int, interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size = size
        self.interp = interp

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(Augmenter):
    """Resize to ``size`` (width, height), regardless of the aspect ratio.

    Parameters
    ----------
    size
        Width and height.
    interp
        OpenCV's number of the interpolation, as in `imresize`.

    >>> mx.image.ForceResizeAug((4, 3))(mx.nd.ones((9, 9, 3))).shape
    (3, 4, 3)
    """

    def __init__(self, size: tuple[int, int], interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size = size
        self.interp = interp

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        return imresize(src, *self.size, interp=self.interp)


@inherits_parameters
class RandomCropAug(ForceResizeAug):
    """Crop a rectangle of ``size`` (width, height) at a random position.

    >>> mx.image.RandomCropAug((4, 3))(mx.nd.ones((9, 9, 3))).shape
    (3, 4, 3)
    """

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        return random_crop(src, self.size, self.interp)[0]


@inherits_parameters
class CenterCropAug(ForceResizeAug):
    """Crop a rectangle of ``size`` (width, height) at the center.

    >>> mx.image.CenterCropAug((4, 3))(mx.nd.ones((9, 9, 3))).shape
    (3, 4, 3)
    """

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        return center_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """Crop a rectangle of random area and aspect ratio, and resize it; see `random_size_crop`.

    Parameters
    ----------
    size
        Width and height.
    area
        Smallest area, or smallest and largest, as fractions of the image's area.
    ratio
        Smallest and largest aspect ratio, width / height.
    interp
        OpenCV's number of the interpolation, as in `imresize`.

    >>> mx.image.RandomSizedCropAug((4, 3), 0.2, (0.75, 1.33))(mx.nd.ones((9, 9, 3))).shape
    (3, 4, 3)
    """

    def __init__(
        self,
        size: tuple[int, int],
        area: float | tuple[float, float],
        ratio: tuple[float, float],
        interp: int = 2,
        **kwargs: Any,
    ) -> None:
        area = kwargs.pop("min_area", area)
        if kwargs:
            raise UnexpectedArguments(
                f"unexpected keyword arguments for `RandomSizedCropAug`: {sorted(kwargs)}"
            )
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        self.size = size
        self.area = area
        self.ratio = ratio
        self.interp = interp

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class BrightnessJitterAug(Augmenter):
    """Multiply the image in place by a factor from ``1 - brightness`` to ``1 + brightness``.

    The data type is kept; an integer image is multiplied by the integer part of the factor, so cast
    it first, as `CreateAugmenter` does.

    Parameters
    ----------
    brightness
        Largest change of the brightness, as a fraction.

    >>> mx.image.BrightnessJitterAug(0.5)(mx.nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, brightness: float) -> None:
        super().__init__(brightness=brightness)
        self.brightness = brightness

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        src *= 1.0 + chance.between(-self.brightness, self.brightness)
        return src


class ContrastJitterAug(Augmenter):
    """Change the contrast in place by blending with the image's mean gray.

    Parameters
    ----------
    contrast
        Largest change of the contrast, as a fraction.

    >>> mx.image.ContrastJitterAug(0.5)(mx.nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, contrast: float) -> None:
        super().__init__(contrast=contrast)
        self.contrast = contrast
        self.coef = nd.array(GRAY)

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        alpha = 1.0 + chance.between(-self.contrast, self.contrast)
        src = _float(src)
        gray = (src * _near(src, self.coef)).sum() * (3.0 * (1.0 - alpha) / src.size)
        src *= alpha
        src += gray
        return src


class SaturationJitterAug(Augmenter):
    """Change the saturation in place by blending each pixel with its gray value.

    Parameters
    ----------
    saturation
        Largest change of the saturation, as a fraction.

    >>> mx.image.SaturationJitterAug(0.5)(mx.nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, saturation: float) -> None:
        super().__init__(saturation=saturation)
        self.saturation = saturation
        self.coef = nd.array(GRAY)

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        alpha = 1.0 + chance.between(-self.saturation, self.saturation)
        src = _float(src)
        gray = (src * _near(src, self.coef)).sum(axis=2, keepdims=True)
        src *= alpha
        src += gray * (1.0 - alpha)
        return src


class HueJitterAug(Augmenter):
    """Rotate the hue in YIQ by up to ``hue`` half turns.

    Parameters
    ----------
    hue
        Largest change of the hue, as a fraction of half a turn.

    >>> mx.image.HueJitterAug(0.1)(mx.nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, hue: float) -> None:
        super().__init__(hue=hue)
        self.hue = hue
        self.tyiq = np.array(
            [[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]]
        )
        self.ityiq = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        angle = chance.between(-self.hue, self.hue) * math.pi
        u, w = math.cos(angle), math.sin(angle)
        turn = np.array([[1.0, 0.0, 0.0], [0.0, u, -w], [0.0, w, u]])
        matrix = (self.ityiq @ turn @ self.tyiq).T
        return nd.dot(_float(src), nd.array(matrix, ctx=src.context))


class ColorJitterAug(RandomOrderAug):
    """Change brightness, contrast and saturation, in random order.

    Parameters
    ----------
    brightness
        Largest change of the brightness, as a fraction.
    contrast
        Largest change of the contrast, as a fraction.
    saturation
        Largest change of the saturation, as a fraction.

    >>> mx.image.ColorJitterAug(0.2, 0.2, 0.2)(mx.nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, brightness: float, contrast: float, saturation: float) -> None:
        members: list[Augmenter] = []
        if brightness > 0:
            members.append(BrightnessJitterAug(brightness))
        if contrast > 0:
            members.append(ContrastJitterAug(contrast))
        if saturation > 0:
            members.append(SaturationJitterAug(saturation))
        super().__init__(members)


class LightingAug(Augmenter):
    """Add noise along the principal components of color, in place.

    Parameters
    ----------
    alphastd
        Standard deviation of the noise.
    eigval
        Eigenvalues of the colors' covariance.
    eigvec
        Eigenvectors of the colors' covariance.

    >>> aug = mx.image.LightingAug(0.1, np.ones(3), np.eye(3))
    >>> aug(mx.nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, alphastd: float, eigval: np.ndarray, eigvec: np.ndarray) -> None:
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd = alphastd
        self.eigval = eigval
        self.eigvec = eigvec

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        alpha = chance.normal(self.alphastd, 3)
        shift = np.dot(pixels_of(self.eigvec) * alpha, pixels_of(self.eigval))
        src = _float(src)
        src += nd.array(shift, ctx=src.context)
        return src


class ColorNormalizeAug(Augmenter):
    """Subtract the mean and divide by the deviation of each channel, in place.

    Parameters
    ----------
    mean
        Mean of each channel.
    std
        Standard deviation of each channel.

    >>> aug = mx.image.ColorNormalizeAug(mx.nd.array([1, 1, 1]), mx.nd.array([2, 2, 2]))
    >>> aug(mx.nd.ones((1, 1, 3)) * 5).asnumpy().ravel()
    array([2., 2., 2.], dtype=float32)
    """

    def __init__(self, mean: Any, std: Any) -> None:
        super().__init__(mean=mean, std=std)
        self.mean = mean if mean is None or isinstance(mean, NDArray) else nd.array(mean)
        self.std = std if std is None or isinstance(std, NDArray) else nd.array(std)

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        return color_normalize(_float(src), _near(src, self.mean), _near(src, self.std))


class RandomGrayAug(Augmenter):
    """Convert the image to gray, in all channels, with probability ``p``.

    Parameters
    ----------
    p
        Probability of the change.

    >>> mx.image.RandomGrayAug(0.5)(mx.nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p
        self.mat = nd.array([[0.21] * 3, [0.72] * 3, [0.07] * 3])

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        return nd.dot(_float(src), _near(src, self.mat)) if chance.fraction() < self.p else src


class HorizontalFlipAug(Augmenter):
    """Mirror left and right with probability ``p``.

    Parameters
    ----------
    p
        Probability of the change.

    >>> mx.image.HorizontalFlipAug(0.5)(mx.nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        return nd.flip(src, axis=1) if chance.fraction() < self.p else src


class CastAug(Augmenter):
    """Change the data type, by default to float32.

    Parameters
    ----------
    typ
        The new data type.

    >>> mx.image.CastAug("float32")(mx.nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, typ: str = "float32") -> None:
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src: NDArray) -> NDArray:
        """Return the augmented image."""
        return src.astype(self.typ)


def CreateAugmenter(
    data_shape: tuple[int, int, int],
    resize: int = 0,
    rand_crop: bool = False,
    rand_resize: bool = False,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    hue: float = 0,
    pca_noise: float = 0,
    rand_gray: float = 0,
    inter_method: int = 2,
) -> list[Augmenter]:
    """Return a list of augmenters that ends in images of ``data_shape``.

    Parameters
    ----------
    data_shape : tuple of int
        Channels, height and width of the result.
    resize : int
        Resize the shorter edge to this length first, if above 0.
    rand_crop, rand_resize : bool
        Whether to crop at a random position, and with random area and aspect ratio.
    rand_mirror : bool
        Whether to mirror images with probability 1/2.
    mean : array of 3, or True for ImageNet's
        Mean of each channel, or True for ImageNet's.
    std : array of 3, or True for ImageNet's
        Standard deviation of each channel, or True for ImageNet's.
    brightness, contrast, saturation, hue, pca_noise : float
        Largest change of the colors.
    rand_gray : float
        Probability of converting the image to gray.
    inter_method : int
        See `imresize`.

    >>> [type(a).__name__ for a in mx.image.CreateAugmenter((3, 224, 224), resize=256)]
    ['ResizeAug', 'CenterCropAug', 'CastAug']
    """
    auglist: list[Augmenter] = [ResizeAug(resize, inter_method)] if resize > 0 else []
    crop_size = (data_shape[2], data_shape[1])
    if rand_resize:
        if not rand_crop:
            raise AssertionError("rand_resize needs rand_crop")
        auglist.append(RandomSizedCropAug(crop_size, 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    else:
        auglist.append((RandomCropAug if rand_crop else CenterCropAug)(crop_size, inter_method))
    if rand_mirror:
        auglist.append(HorizontalFlipAug(0.5))
    auglist.append(CastAug())
    auglist += color_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray)
    if mean is True:
        mean = nd.array(MEAN)
    if std is True:
        std = nd.array(DEVIATION)
    return auglist + normalizers(mean, std)


def color_augmenters(
    brightness: float,
    contrast: float,
    saturation: float,
    hue: float,
    pca_noise: float,
    rand_gray: float,
) -> list[Augmenter]:
    """Return the selected color augmenters."""
    items: list[Augmenter] = []
    if brightness or contrast or saturation:
        items.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        items.append(HueJitterAug(hue))
    if pca_noise > 0:
        items.append(LightingAug(pca_noise, EIGENVALUES, EIGENVECTORS))
    if rand_gray > 0:
        items.append(RandomGrayAug(rand_gray))
    return items


def normalizers(mean: Any, std: Any) -> list[Augmenter]:
    """Return the augmenter that normalizes colors, if a mean or standard deviation is given."""
    for name, value in (("mean", mean), ("std", std)):
        if value is not None and tuple(np.shape(pixels_of(value)))[:1] not in ((1,), (3,)):
            raise AssertionError(
                f"{name} must have one number for each of 1 or 3 channels, not {value}"
            )
    return [ColorNormalizeAug(mean, std)] if mean is not None or std is not None else []
