"""Initializers with random, constant or structured values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from .. import ndarray as nd
from ..ndarray import NDArray
from ..ops import interpreters
from ..runtime.array import writable
from .base import InitDesc, Initializer, alias, bilinear_kernel, create, register


def _place(arr: NDArray) -> Tensor | None:
    """Return the tensor to draw into, or None if numbers must be drawn elsewhere and copied."""
    if arr.stype != "default" or arr._ctx is not None or interpreters.eager:
        return None
    tensor = writable(arr)
    return tensor if tensor.dtype is torch.float32 and tensor.is_contiguous() else None


def _fill_uniform(arr: NDArray, scale: float) -> None:
    tensor = _place(arr)
    if tensor is not None and scale >= 0:
        tensor.uniform_(-scale, scale)  # the same numbers, without a temporary array
    else:
        arr[:] = nd.random.uniform(-scale, scale, arr.shape, ctx=arr.ctx)


def _fill_normal(arr: NDArray, sigma: float) -> None:
    tensor = _place(arr)
    if tensor is not None and sigma >= 0:
        tensor.normal_(0.0, sigma)
    else:
        arr[:] = nd.random.normal(0.0, sigma, arr.shape, ctx=arr.ctx)


@register
class Uniform(Initializer):
    """Draw from the uniform distribution on ``[-scale, scale)``.

    Parameters
    ----------
    scale
        Largest absolute value.

    >>> w = mx.nd.array([[9, 9]])
    >>> mx.init.Uniform(0.1)(mx.init.InitDesc("fc_weight"), w)
    >>> bool(abs(w.asnumpy()).max() <= 0.1)
    True
    """

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _fill_uniform(arr, self.scale)


@register
class Normal(Initializer):
    """Draw from a normal distribution with mean 0 and standard deviation ``sigma``.

    Parameters
    ----------
    sigma
        Standard deviation.

    >>> w = mx.nd.zeros((100,))
    >>> mx.init.Normal(0.1)(mx.init.InitDesc("fc_weight"), w)
    >>> bool(0 < w.norm().asscalar() < 3)
    True
    """

    def __init__(self, sigma: float = 0.01) -> None:
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _fill_normal(arr, self.sigma)


@register
class Orthogonal(Initializer):
    """Fill with orthogonal rows (or columns, if there are fewer) of length ``scale``.

    Parameters
    ----------
    scale
        The length of each row or column.
    rand_type
        Distribution of the matrix before orthogonalization: ``'uniform'`` or ``'normal'``.

    >>> w = mx.nd.zeros((2, 3))
    >>> mx.init.Orthogonal(scale=1.0)(mx.init.InitDesc("fc_weight"), w)
    >>> (mx.nd.dot(w, w.T).asnumpy().round(3) + 0).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(
        self, scale: float = 1.414, rand_type: Literal["uniform", "normal"] = "uniform"
    ) -> None:
        super().__init__(scale=scale, rand_type=rand_type)
        self.scale = scale
        self.rand_type = rand_type

    def _init_weight(self, name: str, arr: NDArray) -> None:
        shape = (arr.shape[0], math.prod(arr.shape[1:]))
        if self.rand_type == "uniform":
            drawn = nd.random.uniform(-1.0, 1.0, shape).asnumpy()
        elif self.rand_type == "normal":
            drawn = nd.random.normal(0.0, 1.0, shape).asnumpy()
        else:
            raise ValueError(f"Unknown random type {self.rand_type!r}: use uniform or normal")
        left, _, right = np.linalg.svd(drawn, full_matrices=False)
        basis = left if left.shape == shape else right
        arr[:] = (self.scale * basis).reshape(arr.shape).astype(np.float32)


@register
class Xavier(Initializer):
    """Xavier (Glorot) initialization, which keeps the variance of activations about constant.

    Draws from ±``sqrt(magnitude / n)``, where ``n`` depends on `factor_type`.

    Parameters
    ----------
    rnd_type
        ``'uniform'`` (that number is the bound) or ``'gaussian'`` (it is the standard deviation).
    factor_type
        ``n``: number of inputs (``'in'``), of outputs (``'out'``) or their mean (``'avg'``).
    magnitude
        Factor of the variance: 3 for Glorot's ``'uniform'``, 2 with ``'in'`` for He's
        ``'gaussian'``.

    >>> w = mx.nd.zeros((2, 4))
    >>> mx.init.Xavier()(mx.init.InitDesc("fc_weight"), w)
    >>> bool(abs(w.asnumpy()).max() <= 1)
    True
    """

    def __init__(
        self,
        rnd_type: Literal["uniform", "gaussian"] = "uniform",
        factor_type: Literal["avg", "in", "out"] = "avg",
        magnitude: float = 3,
    ) -> None:
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _bound(self, name: str, shape: tuple[int, ...]) -> float:
        if len(shape) < 2:
            raise ValueError(
                f"Xavier initializer cannot be applied to vector {name}. It requires at least 2D."
            )
        window = math.prod(shape[2:])
        fan_in, fan_out = shape[1] * window, shape[0] * window
        factors = {"avg": (fan_in + fan_out) / 2.0, "in": fan_in, "out": fan_out}
        if self.factor_type not in factors:
            raise ValueError(f"Incorrect factor type {self.factor_type!r}: use avg, in or out")
        return math.sqrt(self.magnitude / factors[self.factor_type])

    def _init_weight(self, name: str, arr: NDArray) -> None:
        bound = self._bound(name, arr.shape)
        if self.rnd_type == "uniform":
            _fill_uniform(arr, bound)
        elif self.rnd_type == "gaussian":
            _fill_normal(arr, bound)
        else:
            raise ValueError(f"Unknown random type {self.rnd_type!r}: use uniform or gaussian")


@register
class MSRAPrelu(Xavier):
    """He initialization for (leaky) ReLU: `Xavier` with ``magnitude = 2 / (1 + slope^2)``.

    Parameters
    ----------
    factor_type
        ``n``: number of inputs (``'in'``), of outputs (``'out'``) or their mean (``'avg'``).
    slope
        Slope of the leaky ReLU.

    >>> mx.init.MSRAPrelu(slope=0).magnitude
    2.0
    """

    def __init__(
        self, factor_type: Literal["avg", "in", "out"] = "avg", slope: float = 0.25
    ) -> None:
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


GATES = {"lstm": "ifco", "gru": "rzo", "rnn_relu": None, "rnn_tanh": None}


@alias("zeros")
@register
class Zero(Initializer):
    """Fill weights with 0.

    >>> w = mx.nd.ones(2)
    >>> mx.init.Zero()(mx.init.InitDesc("fc_weight"), w)
    >>> w.asnumpy()
    array([0., 0.], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 0


@alias("ones")
@register
class One(Initializer):
    """Fill weights with 1.

    >>> w = mx.nd.zeros(2)
    >>> mx.init.One()(mx.init.InitDesc("fc_weight"), w)
    >>> w.asnumpy()
    array([1., 1.], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 1


@register
class Constant(Initializer):
    """Fill weights with a number or a broadcast array.

    Parameters
    ----------
    value
        The number, or the array.

    >>> w = mx.nd.array([[9, 9]])
    >>> mx.init.Constant(2)(mx.init.InitDesc("fc_weight"), w)
    >>> w.asnumpy()
    array([[2., 2.]], dtype=float32)
    """

    def __init__(self, value: Any) -> None:
        super().__init__(value=value.asnumpy().tolist() if isinstance(value, NDArray) else value)
        self.value = value

    def _init_weight(self, name: str, arr: NDArray) -> None:
        value = self.value
        arr[:] = np.asarray(value) if isinstance(value, list | tuple) else value

    def dumps(self) -> str:
        """Return JSON from which `create` restores the initializer."""
        value = self.value
        if isinstance(value, NDArray):
            value = value.asnumpy()
        if isinstance(value, np.ndarray | np.generic):
            value = value.tolist()
        self._kwargs["value"] = value  # as in MXNet
        return json.dumps([type(self).__name__.lower(), {"value": value}])

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self.dumps() == other.dumps()

    __hash__ = None  # type: ignore[assignment]


@register
class Bilinear(Initializer):
    """Fill a deconvolution's weight with a bilinear kernel, for upsampling.

    >>> w = mx.nd.zeros((1, 1, 4, 4))
    >>> mx.init.Bilinear()(mx.init.InitDesc("up_weight"), w)
    >>> w[0, 0, 1].asnumpy()
    array([0.1875, 0.5625, 0.5625, 0.1875], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = bilinear_kernel(arr.shape)


@register
class LSTMBias(Initializer):
    """Fill an LSTM's bias with 0, and the forget gate's part with ``forget_bias``.

    Pass it as the initializer of the bias: ``mx.sym.Variable("b", init=mx.init.LSTMBias(1.0))``.

    Parameters
    ----------
    forget_bias
        Initial bias of the forget gates.

    >>> b = mx.nd.zeros(4)
    >>> init = mx.init.LSTMBias(1.0)
    >>> init(mx.init.InitDesc("lstm_i2h_bias", {"__init__": init.dumps()}), b)
    >>> b.asnumpy()
    array([0., 1., 0., 0.], dtype=float32)
    """

    def __init__(self, forget_bias: float = 1.0) -> None:
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name: str, arr: NDArray) -> None:
        hidden = arr.shape[0] // 4
        arr[:] = 0.0
        arr[hidden : 2 * hidden] = self.forget_bias


@register
class FusedRNN(Initializer):
    """Fill the packed parameter of the operator `RNN`.

    Each gate's weight and bias is filled separately, by ``init`` or the model's initializer; the
    bias of forget gates is ``forget_bias``.

    Parameters
    ----------
    init
        An initializer, its JSON or name, or None.
    num_hidden
        Number of features of the hidden state.
    num_layers
        Number of stacked layers.
    mode
        Type of cell: ``rnn_relu``, ``rnn_tanh``, ``lstm`` or ``gru``.
    bidirectional
        Whether the layers are bidirectional.
    forget_bias
        Bias of an LSTM's forget gates.

    >>> w = mx.nd.zeros(112)
    >>> init = mx.init.FusedRNN(mx.init.One(), num_hidden=4, num_layers=1, mode="lstm")
    >>> init(mx.init.InitDesc("lstm_parameters", {"__init__": init.dumps()}), w)
    >>> w.asnumpy()[:3]
    array([1., 1., 1.], dtype=float32)
    """

    def __init__(
        self,
        init: Initializer | str | None,
        num_hidden: int,
        num_layers: int,
        mode: str,
        bidirectional: bool = False,
        forget_bias: float = 1.0,
    ) -> None:
        if mode not in GATES:
            raise ValueError(f"Unknown mode {mode!r}: use one of {', '.join(GATES)}")
        init = create(init) if isinstance(init, str) else init
        super().__init__(
            init=None if init is None else init.dumps(),
            num_hidden=num_hidden,
            num_layers=num_layers,
            mode=mode,
            bidirectional=bidirectional,
            forget_bias=forget_bias,
        )
        self._init = init
        self._num_hidden = num_hidden
        self._num_layers = num_layers
        self._mode = mode
        self._bidirectional = bidirectional
        self._forget_bias = forget_bias

    def _input_size(self, total: int) -> int:
        """Return the width of the first layer's input, computed from the packed size."""
        hidden, directions = self._num_hidden, 2 if self._bidirectional else 1
        rows = directions * hidden * len(GATES[self._mode] or " ")
        deeper = (self._num_layers - 1) * (directions * hidden + hidden + 2)
        width, rest = divmod(total, rows)
        size = width - deeper - hidden - 2
        if rest or size < 1:
            raise ValueError(
                f"{total} parameters do not match an RNN of mode={self._mode}, "
                f"num_hidden={hidden}, num_layers={self._num_layers}, "
                f"bidirectional={self._bidirectional}"
            )
        return size

    def _parts(self, total: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield (name, shape) of each gate in packed order: all weights, then all biases."""
        hidden = self._num_hidden
        sides = "lr" if self._bidirectional else "l"
        gates = [f"_{g}" for g in GATES[self._mode] or ""] or [""]
        widths = [self._input_size(total)] + [hidden * len(sides)] * (self._num_layers - 1)
        cells = [(f"{side}{i}", w) for i, w in enumerate(widths) for side in sides]
        for cell, width in cells:
            for kind, columns in (("i2h", width), ("h2h", hidden)):
                for gate in gates:
                    yield f"{cell}_{kind}{gate}_weight", (hidden, columns)
        for cell, _ in cells:
            for kind in ("i2h", "h2h"):
                for gate in gates:
                    yield f"{cell}_{kind}{gate}_bias", (hidden,)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        overall = getattr(name, "global_init", None)
        init = overall if self._init is None else self._init
        if init is None or init is self:
            raise ValueError("FusedRNN(init=None) needs the model's initializer.")
        start = 0
        for name, shape in self._parts(arr.size):
            part = arr[start : start + int(np.prod(shape))]
            start += part.size
            if self._mode == "lstm" and name.endswith("_f_bias"):
                part[:] = self._forget_bias
                continue
            # A slice of a vector shares its memory, also after reshape.
            init(InitDesc(name, global_init=overall), part.reshape(shape))
