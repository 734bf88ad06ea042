"""Normalization layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops.documentation import inherits_parameters
from ..block import HybridBlock

__all__ = ["BatchNorm", "BatchNormReLU", "GroupNorm", "InstanceNorm", "LayerNorm"]


class _BatchNorm(HybridBlock):
    """Normalize over the batch, with or without a ReLU after it.

    Parameters
    ----------
    axis
        The axis of the channels.
    momentum
        Momentum of the running statistics.
    epsilon
        Small constant added to the variance to avoid division by zero.
    center
        Whether to add a learned shift (beta).
    scale
        Whether to multiply by a learned scale (gamma).
    use_global_stats
        Whether to normalize by the running statistics in training too.
    beta_initializer
        Initializer of the shift.
    gamma_initializer
        Initializer of the scale.
    running_mean_initializer
        Initializer of the running mean.
    running_variance_initializer
        Initializer of the running variance.
    in_channels
        Number of input channels; 0: inferred from the first input.
    """

    def __init__(
        self,
        axis: int = 1,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        fuse_relu: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._kwargs = {
            "axis": axis,
            "eps": epsilon,
            "momentum": momentum,
            "fix_gamma": not scale,
            "use_global_stats": use_global_stats,
        }
        self.fuse_relu = fuse_relu
        if in_channels != 0:
            self.in_channels = in_channels

        def parameter(name: str, init: Any, learned: bool, **options: Any) -> Any:
            return self.params.get(
                name,
                shape=(in_channels,),
                init=init,
                allow_deferred_init=True,
                differentiable=learned,
                **options,
            )

        def learned(flag: bool) -> dict[str, str]:
            return {"grad_req": "write" if flag else "null"}

        self.gamma = parameter("gamma", gamma_initializer, scale, **learned(scale))
        self.beta = parameter("beta", beta_initializer, center, **learned(center))
        self.running_mean = parameter(
            "running_mean", running_mean_initializer, False, grad_req="null"
        )
        self.running_var = parameter(
            "running_var", running_variance_initializer, False, grad_req="null"
        )

    def cast(self, dtype: Any) -> None:
        """Convert the parameters; in half precision the statistics stay float32."""
        if np.dtype(dtype).name == "float16":
            dtype = "float32"
        super().cast(dtype)

    def hybrid_forward(
        self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any
    ) -> Any:
        normalize = F.contrib.BatchNormWithReLU if self.fuse_relu else F.BatchNorm
        return normalize(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        in_channels = self.gamma.shape[0]
        content = [f"{key}={value!r}" for key, value in self._kwargs.items()]
        content.append(f"in_channels={in_channels if in_channels else None}")
        return "{}({})".format(type(self).__name__, ", ".join(content))


@inherits_parameters
class BatchNorm(_BatchNorm):
    """Normalize each channel over the batch, then scale by gamma and shift by beta.

    Training uses the mean and variance of the batch and updates the running statistics; inference
    uses the running statistics.

    >>> layer = mx.gluon.nn.BatchNorm(in_channels=2)
    >>> layer.initialize()
    >>> with mx.autograd.record():
    ...     y = layer(nd.array([[1, 5], [3, 9]]))
    >>> y.asnumpy().round(3)
    array([[-1., -1.],
           [ 1.,  1.]], dtype=float32)
    """

    def __init__(
        self,
        axis: int = 1,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            axis,
            momentum,
            epsilon,
            center,
            scale,
            use_global_stats,
            False,
            beta_initializer,
            gamma_initializer,
            running_mean_initializer,
            running_variance_initializer,
            in_channels,
            **kwargs,
        )


@inherits_parameters
class BatchNormReLU(_BatchNorm):
    """Batch normalization and ReLU as one operator.

    >>> layer = mx.gluon.nn.BatchNormReLU(in_channels=1, epsilon=0)
    >>> layer.initialize()
    >>> layer(nd.array([[-1], [2]])).asnumpy()
    array([[0.],
           [2.]], dtype=float32)
    """

    def __init__(
        self,
        axis: int = 1,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            axis,
            momentum,
            epsilon,
            center,
            scale,
            use_global_stats,
            True,
            beta_initializer,
            gamma_initializer,
            running_mean_initializer,
            running_variance_initializer,
            in_channels,
            **kwargs,
        )


@inherits_parameters
class _Normalization(HybridBlock):
    """A layer with a scale gamma and a shift beta, each learned or fixed.

    Parameters
    ----------
    epsilon
        Small constant added to the variance to avoid division by zero.
    center
        Whether to add a learned shift (beta).
    scale
        Whether to multiply by a learned scale (gamma).
    beta_initializer
        Initializer of the shift.
    gamma_initializer
        Initializer of the scale.
    in_channels
        Number of input channels; 0: inferred from the first input.
    """

    _kwargs: dict[str, Any]
    gamma: Any
    beta: Any

    def _scale_and_shift(
        self, size: int, center: bool, scale: bool, beta_initializer: Any, gamma_initializer: Any
    ) -> None:
        for name, learned, init in (
            ("gamma", scale, gamma_initializer),
            ("beta", center, beta_initializer),
        ):
            parameter = self.params.get(
                name,
                grad_req="write" if learned else "null",
                shape=(size,),
                init=init,
                allow_deferred_init=True,
            )
            setattr(self, name, parameter)

    def _settings(self) -> str:
        return ", ".join(f"{key}={value!r}" for key, value in self._kwargs.items())


@inherits_parameters
class InstanceNorm(_Normalization):
    """Normalize each channel of each sample over the spatial axes.

    Parameters
    ----------
    axis
        The axis of the channels.

    >>> layer = mx.gluon.nn.InstanceNorm()
    >>> layer.initialize()
    >>> layer(nd.array([[[1, 3]]])).asnumpy().round(3)
    array([[[-1.,  1.]]], dtype=float32)
    """

    def __init__(
        self,
        axis: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._axis = axis
        self._epsilon = epsilon
        self._scale_and_shift(in_channels, center, scale, beta_initializer, gamma_initializer)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        """Normalize the input."""
        if self._axis == 1:
            return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon)
        x = F.swapaxes(x, dim1=1, dim2=self._axis)
        out = F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon)
        return F.swapaxes(out, dim1=1, dim2=self._axis)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings()}, in_channels={self.gamma.shape[0]})"


@inherits_parameters
class LayerNorm(_Normalization):
    """Normalize along one axis of each sample, by default the last.

    Parameters
    ----------
    axis
        The axis to normalize along; a negative value counts from the last.

    >>> layer = mx.gluon.nn.LayerNorm()
    >>> layer.initialize()
    >>> layer(nd.array([[1, 3]])).asnumpy().round(3)
    array([[-1.,  1.]], dtype=float32)
    """

    def __init__(
        self,
        axis: int = -1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._axis = axis
        self._epsilon = epsilon
        self._center = center
        self._scale = scale
        self._scale_and_shift(in_channels, center, scale, beta_initializer, gamma_initializer)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """Normalize the input."""
        return F.LayerNorm(data, gamma=gamma, beta=beta, axis=self._axis, eps=self._epsilon)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings()}, in_channels={self.gamma.shape[0]})"


@inherits_parameters
class GroupNorm(_Normalization):
    """Normalize groups of channels of each sample; gamma and beta have one value per group.

    Parameters
    ----------
    num_groups
        Number of groups of channels.

    >>> layer = mx.gluon.nn.GroupNorm(num_groups=1)
    >>> layer.initialize()
    >>> layer(nd.array([[[1], [3]]])).asnumpy().round(3)
    array([[[-1.],
            [ 1.]]], dtype=float32)
    """

    def __init__(
        self,
        num_groups: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._kwargs = {"eps": epsilon, "num_groups": num_groups, "center": center, "scale": scale}
        self._num_groups = num_groups
        self._epsilon = epsilon
        self._center = center
        self._scale = scale
        self._scale_and_shift(num_groups, center, scale, beta_initializer, gamma_initializer)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """Normalize the input."""
        return F.GroupNorm(
            data, gamma=gamma, beta=beta, num_groups=self._num_groups, eps=self._epsilon
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings()})"
