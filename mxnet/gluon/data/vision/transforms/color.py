"""Random transformations of brightness and color."""

from __future__ import annotations

from typing import Any

from ..... import image
from .....ndarray import NDArray
from ....block import Block, HybridBlock

Factors = tuple[float, float]


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
        """Draw and change."""
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
        """Draw and change."""
        return F.image.random_contrast(x, *self._args)


class RandomSaturation(HybridBlock):
    """Change the colors' strength by a factor within ``saturation`` of 1, not below 0.

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
        """Draw and change."""
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
        """Draw and change."""
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
        """Draw and change."""
        return F.image.random_color_jitter(x, *self._args)


class RandomLighting(HybridBlock):
    """Add noise along the main directions of natural images' colors, of deviation ``alpha``.

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
        """Draw and add."""
        return F.image.random_lighting(x, self._alpha)


class RandomGray(Block):
    """Make an image gray with probability ``p``; it keeps its channels and its type.

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
        """Draw whether, and change."""
        return image.RandomGrayAug(self.p)(x).astype(x.dtype, copy=False)
