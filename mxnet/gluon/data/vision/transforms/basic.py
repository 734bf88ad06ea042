"""Lists of transformations, and images to numbers for networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .....image import chance
from ....block import HybridBlock
from ....nn import HybridSequential, Sequential


class Compose(Sequential):
    """Apply transformations one after the other; neighbors that can run as one graph do.

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
    """Apply a transformation with probability ``p``, else leave the image as it is.

    Parameters
    ----------
    transforms
        The transformation.
    p
        Probability that it is applied.

    >>> from mxnet.gluon.data.vision import transforms
    >>> transforms.RandomApply(transforms.Cast("float16"), p=1.0)(nd.ones(2)).dtype
    <class 'numpy.float16'>
    """

    def __init__(self, transforms: Callable[[Any], Any], p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, x: Any) -> Any:
        """Draw whether, and do."""
        return self.transforms(x) if chance.fraction() < self.p else x


class HybridRandomApply(HybridBlock):
    """Apply a hybrid transformation that keeps shape and type with probability ``p``.

    Parameters
    ----------
    transforms
        The transformation, a hybrid block.
    p
        Probability that it is applied.

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
        """Draw whether, and do."""
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
    """Make a float32 array (channels, height, width) in [0, 1] of an image in 0 to 255.

    A batch of images is understood too.

    >>> mx.gluon.data.vision.transforms.ToTensor()(nd.ones((1, 2, 3)) * 51).asnumpy()[0]
    array([[0.2, 0.2]], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Convert."""
        return F.image.to_tensor(x)


class Normalize(HybridBlock):
    """Subtract a mean and divide by a deviation: one number, or one for each channel.

    It takes what `ToTensor` makes.

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
