"""Activation layers: functions of each element."""

from __future__ import annotations

from typing import Any

from ... import initializer
from ..block import HybridBlock

__all__ = ["ELU", "GELU", "SELU", "Activation", "LeakyReLU", "PReLU", "Swish"]


class Activation(HybridBlock):
    """Apply the named function: relu, sigmoid, tanh, softrelu or softsign.

    Parameters
    ----------
    activation
        Name of the function: ``relu``, ``sigmoid``, ``softrelu``, ``softsign`` or ``tanh``.

    >>> mx.gluon.nn.Activation("relu")(nd.array([-1, 2])).asnumpy()
    array([0., 2.], dtype=float32)
    """

    def __init__(self, activation: str, **kwargs: Any) -> None:
        self._act_type = activation  # the prefix of the block contains it
        super().__init__(**kwargs)

    def _alias(self) -> str:
        return self._act_type

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the activation."""
        return F.Activation(x, act_type=self._act_type, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._act_type})"


class LeakyReLU(HybridBlock):
    """Keep positive values and multiply negative ones by `alpha`.

    Parameters
    ----------
    alpha
        Slope of the negative side.

    >>> mx.gluon.nn.LeakyReLU(0.5)(nd.array([-2, 3])).asnumpy()
    array([-1.,  3.], dtype=float32)
    """

    def __init__(self, alpha: float, **kwargs: Any) -> None:
        assert alpha >= 0, "Slope coefficient for LeakyReLU must be no less than 0."
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the activation."""
        return F.LeakyReLU(x, act_type="leaky", slope=self._alpha, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._alpha})"


class PReLU(HybridBlock):
    """Leaky ReLU with learned slopes: one for all channels, or one per channel.

    Parameters
    ----------
    alpha_initializer
        Initializer of the slopes.
    in_channels
        Number of slopes: one for all, or one for each channel.

    >>> layer = mx.gluon.nn.PReLU()
    >>> layer.initialize()
    >>> layer(nd.array([[-4, 3]])).asnumpy()
    array([[-1.,  3.]], dtype=float32)
    """

    def __init__(
        self,
        alpha_initializer: Any = initializer.Constant(0.25),  # noqa: B008 it is never changed
        in_channels: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.alpha = self.params.get("alpha", shape=(in_channels,), init=alpha_initializer)

    def hybrid_forward(self, F: Any, x: Any, alpha: Any) -> Any:
        """Apply the activation."""
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu", name="fwd")


class ELU(HybridBlock):
    """Keep positive values, and replace negative ones by ``alpha (exp(x) - 1)``.

    Parameters
    ----------
    alpha
        Factor of ``exp(x) - 1`` on the negative side.

    >>> mx.gluon.nn.ELU()(nd.array([0, 3])).asnumpy()
    array([0., 3.], dtype=float32)
    """

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the activation."""
        return F.LeakyReLU(x, act_type="elu", slope=self._alpha)


class SELU(HybridBlock):
    """Scaled ELU: keeps mean 0 and variance 1 from layer to layer.

    >>> mx.gluon.nn.SELU()(nd.array([0, 1])).asnumpy().round(4)
    array([0.    , 1.0507], dtype=float32)
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the activation."""
        return F.LeakyReLU(x, act_type="selu", name="fwd")


class GELU(HybridBlock):
    """Gaussian error linear unit ``x Phi(x)``, exact (without the tanh approximation).

    >>> mx.gluon.nn.GELU()(nd.array([0, 1])).asnumpy().round(4)
    array([0.    , 0.8413], dtype=float32)
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the activation."""
        return F.LeakyReLU(x, act_type="gelu", name="fwd")


class Swish(HybridBlock):
    """Swish: ``x sigmoid(beta x)``.

    Parameters
    ----------
    beta
        Factor in the sigmoid: ``x * sigmoid(beta * x)``.

    >>> mx.gluon.nn.Swish()(nd.array([0, 1])).asnumpy().round(4)
    array([0.    , 0.7311], dtype=float32)
    """

    def __init__(self, beta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._beta = beta

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the activation."""
        return x * F.sigmoid(self._beta * x, name="fwd")
