"""Pooling layers."""

from __future__ import annotations

from typing import Any

from ...ops.documentation import inherits_parameters
from ..block import HybridBlock
from .axes import Sizes, check_pool_layout, spread

__all__ = [
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
]


class _Pooling(HybridBlock):
    """Pooling of any number of axes and any kind.

    Parameters
    ----------
    pool_size
        Size of the window: a number, or one for each spatial axis.
    strides
        Step of the window; None takes `pool_size`.
    padding
        Number of elements added at both ends: a number, or one for each spatial axis.
    layout
        Order of the axes.
    ceil_mode
        Whether output sizes round up, so that incomplete windows count.
    count_include_pad
        Whether averages count the padding.
    """

    def __init__(
        self,
        pool_size: tuple[int, ...],
        strides: Sizes | None,
        padding: Sizes,
        ceil_mode: bool,
        global_pool: bool,
        pool_type: str,
        layout: str,
        count_include_pad: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if strides is None:
            strides = pool_size
        self._kwargs = {
            "kernel": pool_size,
            "stride": spread(strides, len(pool_size)),
            "pad": spread(padding, len(pool_size)),
            "global_pool": global_pool,
            "pool_type": pool_type,
            "layout": layout,
            "pooling_convention": "full" if ceil_mode else "valid",
        }
        if count_include_pad is not None:
            self._kwargs["count_include_pad"] = count_include_pad

    def _alias(self) -> str:
        return "pool"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Pool the input."""
        return F.Pooling(x, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        text = (
            "{name}(size={kernel}, stride={stride}, padding={pad}, ceil_mode={ceil_mode}, "
            "global_pool={global_pool}, pool_type={pool_type}, layout={layout})"
        )
        ceil_mode = self._kwargs["pooling_convention"] == "full"
        return text.format(name=type(self).__name__, ceil_mode=ceil_mode, **self._kwargs)


def _window(pool_size: Sizes, layout: str, ndim: int) -> tuple[int, ...]:
    """Return the pooling window after looking at it and at the layout."""
    check_pool_layout(layout, ndim)
    return spread(pool_size, ndim, "pool_size")


@inherits_parameters
class MaxPool1D(_Pooling):
    """Take the largest value of each window along one axis.

    >>> mx.gluon.nn.MaxPool1D()(nd.array([[[1, 5, 2, 3]]])).asnumpy()
    array([[[5., 3.]]], dtype=float32)
    """

    def __init__(
        self,
        pool_size: Sizes = 2,
        strides: Sizes | None = None,
        padding: Sizes = 0,
        layout: str = "NCW",
        ceil_mode: bool = False,
        **kwargs: Any,
    ) -> None:
        window = _window(pool_size, layout, 1)
        super().__init__(window, strides, padding, ceil_mode, False, "max", layout, **kwargs)


@inherits_parameters
class MaxPool2D(_Pooling):
    """Take the largest value of each window of an image.

    >>> mx.gluon.nn.MaxPool2D()(nd.array([[[[1, 5], [2, 3]]]])).asnumpy()
    array([[[[5.]]]], dtype=float32)
    """

    def __init__(
        self,
        pool_size: Sizes = (2, 2),
        strides: Sizes | None = None,
        padding: Sizes = 0,
        layout: str = "NCHW",
        ceil_mode: bool = False,
        **kwargs: Any,
    ) -> None:
        window = _window(pool_size, layout, 2)
        super().__init__(window, strides, padding, ceil_mode, False, "max", layout, **kwargs)


@inherits_parameters
class MaxPool3D(_Pooling):
    """Take the largest value of each window of a volume.

    >>> mx.gluon.nn.MaxPool3D()(nd.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    def __init__(
        self,
        pool_size: Sizes = (2, 2, 2),
        strides: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
        **kwargs: Any,
    ) -> None:
        window = _window(pool_size, layout, 3)
        super().__init__(window, strides, padding, ceil_mode, False, "max", layout, **kwargs)


@inherits_parameters
class AvgPool1D(_Pooling):
    """Take the mean of each window along one axis.

    >>> mx.gluon.nn.AvgPool1D()(nd.array([[[1, 5, 2, 3]]])).asnumpy()
    array([[[3. , 2.5]]], dtype=float32)
    """

    def __init__(
        self,
        pool_size: Sizes = 2,
        strides: Sizes | None = None,
        padding: Sizes = 0,
        layout: str = "NCW",
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        window = _window(pool_size, layout, 1)
        super().__init__(
            window, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs
        )


@inherits_parameters
class AvgPool2D(_Pooling):
    """Take the mean of each window of an image.

    >>> mx.gluon.nn.AvgPool2D()(nd.array([[[[1, 5], [2, 4]]]])).asnumpy()
    array([[[[3.]]]], dtype=float32)
    """

    def __init__(
        self,
        pool_size: Sizes = (2, 2),
        strides: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        layout: str = "NCHW",
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        window = _window(pool_size, layout, 2)
        super().__init__(
            window, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs
        )


@inherits_parameters
class AvgPool3D(_Pooling):
    """Take the mean of each window of a volume.

    >>> mx.gluon.nn.AvgPool3D()(nd.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    def __init__(
        self,
        pool_size: Sizes = (2, 2, 2),
        strides: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        window = _window(pool_size, layout, 3)
        super().__init__(
            window, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs
        )


class _GlobalPooling(_Pooling):
    """Pooling whose one window is the whole image."""

    def __init__(self, ndim: int, pool_type: str, layout: str, **kwargs: Any) -> None:
        check_pool_layout(layout, ndim)
        super().__init__((1,) * ndim, None, 0, True, True, pool_type, layout, **kwargs)


class GlobalMaxPool1D(_GlobalPooling):
    """Take the largest value of each channel along one axis.

    Parameters
    ----------
    layout
        Order of the axes.

    >>> mx.gluon.nn.GlobalMaxPool1D()(nd.array([[[1, 5, 3]]])).asnumpy()
    array([[[5.]]], dtype=float32)
    """

    def __init__(self, layout: str = "NCW", **kwargs: Any) -> None:
        super().__init__(1, "max", layout, **kwargs)


class GlobalMaxPool2D(_GlobalPooling):
    """Take the largest value of each channel of an image.

    Parameters
    ----------
    layout
        Order of the axes.

    >>> mx.gluon.nn.GlobalMaxPool2D()(nd.ones((2, 3, 8, 8))).shape
    (2, 3, 1, 1)
    """

    def __init__(self, layout: str = "NCHW", **kwargs: Any) -> None:
        super().__init__(2, "max", layout, **kwargs)


class GlobalMaxPool3D(_GlobalPooling):
    """Take the largest value of each channel of a volume.

    Parameters
    ----------
    layout
        Order of the axes.

    >>> mx.gluon.nn.GlobalMaxPool3D()(nd.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 1, 1, 1)
    """

    def __init__(self, layout: str = "NCDHW", **kwargs: Any) -> None:
        super().__init__(3, "max", layout, **kwargs)


class GlobalAvgPool1D(_GlobalPooling):
    """Take the mean of each channel along one axis.

    Parameters
    ----------
    layout
        Order of the axes.

    >>> mx.gluon.nn.GlobalAvgPool1D()(nd.array([[[1, 5, 3]]])).asnumpy()
    array([[[3.]]], dtype=float32)
    """

    def __init__(self, layout: str = "NCW", **kwargs: Any) -> None:
        super().__init__(1, "avg", layout, **kwargs)


class GlobalAvgPool2D(_GlobalPooling):
    """Take the mean of each channel of an image.

    Parameters
    ----------
    layout
        Order of the axes.

    >>> mx.gluon.nn.GlobalAvgPool2D()(nd.ones((2, 3, 8, 8))).shape
    (2, 3, 1, 1)
    """

    def __init__(self, layout: str = "NCHW", **kwargs: Any) -> None:
        super().__init__(2, "avg", layout, **kwargs)


class GlobalAvgPool3D(_GlobalPooling):
    """Take the mean of each channel of a volume.

    Parameters
    ----------
    layout
        Order of the axes.

    >>> mx.gluon.nn.GlobalAvgPool3D()(nd.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 1, 1, 1)
    """

    def __init__(self, layout: str = "NCDHW", **kwargs: Any) -> None:
        super().__init__(3, "avg", layout, **kwargs)
