"""Containers, dense layers, dropout, embedding and functions as layers.

The normalization layers are exported here too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ... import ndarray as nd
from ... import symbol as sym
from ...io.range_check import RangeCheck
from ...ops.documentation import inherits_parameters
from ...util import is_np_array
from ..block import Block, HybridBlock
from ..utils import _indent
from .activations import Activation
from .norm_layers import (
    BatchNorm,
    BatchNormReLU,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    _BatchNorm,  # noqa: F401 other packages build on it from here
)

__all__ = [
    "BatchNorm",
    "BatchNormReLU",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "HybridLambda",
    "HybridSequential",
    "InstanceNorm",
    "Lambda",
    "LayerNorm",
    "Sequential",
]


class _Stack:
    _children: dict[str, Block]
    _prefix: str
    name_scope: Any
    register_child: Any

    def add(self, *blocks: Block) -> None:
        """Append blocks."""
        for block in blocks:
            self.register_child(block)

    def __repr__(self) -> str:
        lines = (f"  ({key}): {_indent(repr(block), 2)}" for key, block in self._children.items())
        return "{}(\n{}\n)".format(type(self).__name__, "\n".join(lines))

    def __getitem__(self, key: int | slice) -> Block:
        layers = list(self._children.values())[key]
        if not isinstance(layers, list):
            return layers
        part: Any = type(self)(prefix=self._prefix)  # pyright: ignore[reportCallIssue]
        with part.name_scope():
            part.add(*layers)
        return part

    def __len__(self) -> int:
        return len(self._children)


@inherits_parameters
class Sequential(_Stack, Block):
    """Run blocks one after the other.

    >>> net = mx.gluon.nn.Sequential()
    >>> net.add(mx.gluon.nn.Lambda("relu"), mx.gluon.nn.Lambda("negative"))
    >>> net(nd.array([-1, 2])).asnumpy()
    array([-0., -2.], dtype=float32)
    """

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)

    def forward(self, x: Any) -> Any:
        """Pass the output of each block to the next."""
        for block in self._children.values():
            x = block(x)
        return x

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Hybridize each child separately; `HybridSequential` traces all into one graph."""
        children = self._children.values()
        if children and all(isinstance(child, HybridBlock) for child in children):
            warnings.warn(
                f"All children of this Sequential layer '{self.prefix}' are HybridBlocks. "
                "Consider using HybridSequential for the best performance.",
                stacklevel=2,
            )
        super().hybridize(active, **kwargs)


@inherits_parameters
class HybridSequential(_Stack, HybridBlock):
    """Run hybrid blocks one after the other, as one graph once hybridized.

    >>> net = mx.gluon.nn.HybridSequential()
    >>> net.add(mx.gluon.nn.Dense(3), mx.gluon.nn.Dense(2))
    >>> net.initialize()
    >>> net(nd.ones((4, 5))).shape
    (4, 2)
    """

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Pass the output of each block to the next."""
        for block in self._children.values():
            x = block(x)
        return x


class Dense(HybridBlock):
    """Apply a linear transformation, then an activation: ``activation(x W^T + b)``.

    All axes but the first are flattened; with ``flatten=False`` only the last axis is transformed.

    Parameters
    ----------
    units
        Number of output features.
    activation
        Activation function by name, such as ``'relu'``; None: no activation.
    use_bias
        Whether to add a bias.
    flatten
        Whether to flatten all axes but the first; otherwise only the last axis is transformed.
    dtype
        Data type of the parameters.
    weight_initializer
        Initializer of the weight; None: use the initializer passed to `initialize`.
    bias_initializer
        Initializer of the bias.
    in_units
        Number of input features; 0: inferred from the first input.

    >>> layer = mx.gluon.nn.Dense(1, weight_initializer="ones", in_units=3)
    >>> layer.initialize()
    >>> layer(nd.array([[1, 2, 3]])).asnumpy()
    array([[6.]], dtype=float32)
    """

    def __init__(
        self,
        units: int,
        activation: str | None = None,
        use_bias: bool = True,
        flatten: bool = True,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_units: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._flatten = flatten
        with self.name_scope():
            self._units = units
            self._in_units = in_units
            self.weight = self.params.get(
                "weight",
                shape=(units, in_units),
                init=weight_initializer,
                dtype=dtype,
                allow_deferred_init=True,
            )
            self.bias = None
            if use_bias:
                self.bias = self.params.get(
                    "bias",
                    shape=(units,),
                    init=bias_initializer,
                    dtype=dtype,
                    allow_deferred_init=True,
                )
            self.act = None
            if activation is not None:
                self.act = Activation(activation, prefix=activation + "_")

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """Transform the input."""
        out = F.FullyConnected(
            x,
            weight,
            bias,
            no_bias=bias is None,
            num_hidden=self._units,
            flatten=self._flatten,
            name="fwd",
        )
        return out if self.act is None else self.act(out)

    def __repr__(self) -> str:
        units, in_units = self.weight.shape or (0, 0)
        act = self.act if self.act else "linear"
        return f"{type(self).__name__}({in_units if in_units else None} -> {units}, {act})"


class Dropout(HybridBlock):
    """Set elements to 0 with probability `rate` while training, and scale up the others.

    The mask is broadcast along `axes`.

    Parameters
    ----------
    rate
        Probability of setting an element to 0.
    axes
        Axes along which the mask is broadcast.

    >>> mx.gluon.nn.Dropout(0.5)(nd.array([1, 2])).asnumpy()  # nothing falls outside training
    array([1., 2.], dtype=float32)
    """

    def __init__(self, rate: float, axes: tuple[int, ...] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._rate = rate
        self._axes = axes

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Drop values."""
        if self._rate > 0:
            return F.Dropout(x, p=self._rate, axes=self._axes, name="fwd", cudnn_off=False)
        return F.identity(x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"


class Embedding(HybridBlock):
    """Look up the row of a learned table for each index.

    Parameters
    ----------
    input_dim
        Size of the vocabulary.
    output_dim
        Size of each vector.
    dtype
        Data type of the parameters.
    weight_initializer
        Initializer of the weight; None: use the initializer passed to `initialize`.
    sparse_grad
        Whether the gradient of the table is row-sparse.

    >>> layer = mx.gluon.nn.Embedding(10, 3)
    >>> layer.initialize()
    >>> layer(nd.array([[1, 4]])).shape
    (1, 2, 3)
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        sparse_grad: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._kwargs = {
            "input_dim": input_dim,
            "output_dim": output_dim,
            "dtype": dtype,
            "sparse_grad": sparse_grad,
        }
        self.weight = self.params.get(
            "weight",
            shape=(input_dim, output_dim),
            init=weight_initializer,
            dtype=dtype,
            allow_deferred_init=True,
            grad_stype="row_sparse" if sparse_grad else "default",
        )
        self._range_check = RangeCheck(type(self).__name__, "indices", "rows", allow_negative=True)

    def __call__(self, x: Any, *args: Any) -> Any:
        """Look up the rows of the indices; the range of the first batches' indices is checked."""
        if self._range_check.is_active:
            self._range_check(x, self._kwargs["input_dim"])
        return super().__call__(x, *args)

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        """Look up the rows of the indices."""
        return F.Embedding(x, weight, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        return "{}({input_dim} -> {output_dim}, {dtype})".format(
            type(self).__name__, **self._kwargs
        )


class Flatten(HybridBlock):
    """Flatten all axes but the first.

    >>> mx.gluon.nn.Flatten()(nd.ones((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Flatten the input."""
        return F.Flatten(x)

    def __repr__(self) -> str:
        return type(self).__name__


class Lambda(Block):
    """A block that calls a function on arrays.

    Parameters
    ----------
    function
        A callable, or the name of a function of `mx.nd`.
    prefix
        Prefix of the parameter names; by default the class name and a number.

    >>> mx.gluon.nn.Lambda("tanh")(nd.array([0])).asnumpy()
    array([0.], dtype=float32)
    """

    def __init__(self, function: str | Callable, prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        if isinstance(function, str):
            self._func_impl: Any = _find_function(nd, function)
            assert self._func_impl, f"Function name {function} is not found in ndarray."
        elif callable(function):
            self._func_impl = function
        else:
            raise ValueError(_not_a_function(function))

    def forward(self, *args: Any) -> Any:
        """Call the function."""
        return self._func_impl(*args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_impl.__name__})"


class HybridLambda(HybridBlock):
    """A hybrid block that calls a function ``f(F, x, ...)`` or an operator.

    Parameters
    ----------
    function
        A callable whose first parameter is ``F``, or the name of an operator.
    prefix
        Prefix of the parameter names; by default the class name and a number.

    >>> mx.gluon.nn.HybridLambda(lambda F, x: F.square(x))(nd.array([3])).asnumpy()
    array([9.], dtype=float32)
    """

    def __init__(self, function: str | Callable, prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        if isinstance(function, str):
            assert _find_function(nd, function) and _find_function(sym, function), (
                f"Function name {function} is not found in symbol/ndarray."
            )
            self._func = lambda F, *args: _find_function(F, function)(*args)
            self._func_name = function
        elif callable(function):
            self._func = function
            self._func_name = function.__name__
        else:
            raise ValueError(_not_a_function(function))

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        """Call the function."""
        return self._func(F, x, *args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_name})"


def _find_function(F: Any, name: str) -> Any:
    """Return a function of `F` by name, or None; NumPy semantics try `F.np`, `F.npx` first."""
    spaces = (F.np, F.npx, F) if is_np_array() else (F,)
    return next((getattr(space, name) for space in spaces if hasattr(space, name)), None)


def _not_a_function(value: Any) -> str:
    return f"Unrecognized function in lambda: {value} of type {type(value)}"
