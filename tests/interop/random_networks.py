"""Random small networks: layers and functions with odd options, several inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import mxnet as mx

S = mx.sym
MAX_SIZE = 4096  # elements of any array


@dataclass
class Network:
    """A symbol with arrays for its parameters and inputs."""

    symbol: Any
    params: dict[str, Any]
    feed: dict[str, np.ndarray]
    layers: list[str]

    def run(self) -> list[np.ndarray]:
        """Return what it computes."""
        arrays = {n: mx.nd.array(a, dtype=a.dtype) for n, a in self.feed.items()} | self.params
        names = self.symbol.list_arguments(), self.symbol.list_auxiliary_states()
        arguments, states = ({n: arrays[n] for n in group} for group in names)
        executor = self.symbol.bind(mx.cpu(), arguments, aux_states=states, grad_req="null")
        return [o.asnumpy() for o in executor.forward(is_train=False)]


@dataclass
class Draft:
    """Values so far, each with its shape; layers add to them."""

    rng: np.random.RandomState
    dtype: str
    values: list[tuple[Any, tuple[int, ...]]] = field(default_factory=list)
    layers: list[str] = field(default_factory=list)
    weights: dict[str, tuple[int, ...]] = field(default_factory=dict)
    inputs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)

    def choose(self, *options: Any) -> Any:
        """Return one of some options."""
        return options[self.rng.randint(len(options))]

    def value(self, rank: int | None = None) -> tuple[Any, tuple[int, ...]]:
        """Return a value, optionally of a rank; later ones are likelier."""
        fitting = [v for v in self.values if rank is None or len(v[1]) == rank]
        if not fitting:
            raise Unfit
        return fitting[max(self.rng.randint(len(fitting), size=2))]

    def sizes(self, count: int, low: int, high: int) -> tuple[int, ...]:
        """Return small integers."""
        return tuple(int(n) for n in self.rng.randint(low, high + 1, count))

    def weight(self, name: str, shape: tuple[int, ...]) -> Any:
        """Return a parameter, possibly an existing one of the same shape."""
        same = [n for n, s in self.weights.items() if s == shape and n.startswith(name)]
        if same and self.rng.rand() < 0.5:
            return self.variables[same[0]]
        full = f"{name}{len(self.weights)}"
        self.weights[full] = shape
        self.variables[full] = S.var(full)
        return self.variables[full]

    def add(self, name: str, output: Any) -> None:
        """Add the outputs of a layer if they have sizes that are not too large."""
        given = {**self.inputs, **self.weights}
        known = {n: s for n, s in given.items() if n in output.list_inputs()}
        try:
            _, shapes, states = output.infer_shape(**known)
        except mx.MXNetError:
            raise Unfit from None
        for state, shape in zip(output.list_auxiliary_states(), states, strict=True):
            self.weights[state] = shape
        if any(0 in s or np.prod(s) > MAX_SIZE for s in shapes):
            raise Unfit
        arguments, _, _ = output.infer_shape(**known)
        for argument, shape in zip(output.list_arguments(), arguments, strict=True):
            if argument not in given:
                self.weights[argument] = shape
        self.values += [(output[i], tuple(s)) for i, s in enumerate(shapes)]
        self.layers.append(name)


class Unfit(Exception):
    """Raised if a layer cannot be applied to the values."""


Layer = Callable[[Draft], None]
LAYERS: list[Layer] = []


def layer(function: Layer) -> Layer:
    """Register a layer."""
    LAYERS.append(function)
    return function


@layer
def convolution(d: Draft) -> None:
    """1 to 3 dimensions, with strides, padding, dilation, groups."""
    rank = d.choose(1, 2, 2, 3)
    x, shape = d.value(rank + 2)
    groups = d.choose(1, 1, *(g for g in (2, 3, shape[1]) if shape[1] % g == 0))
    filters, kernel = groups * d.choose(1, 2), d.sizes(rank, 1, 3)
    weight = d.weight("w", (filters, shape[1] // groups, *kernel))
    options = {"stride": d.sizes(rank, 1, 2), "pad": d.sizes(rank, 0, 2)}
    options["dilate"] = d.sizes(rank, 1, 2)
    d.add(
        f"conv{options}",
        S.Convolution(
            x, weight, no_bias=True, kernel=kernel, num_filter=filters, num_group=groups, **options
        ),
    )


@layer
def deconvolution(d: Draft) -> None:
    """1 to 3 dimensions, with adj or a target shape."""
    rank = d.choose(1, 2, 2)
    x, shape = d.value(rank + 2)
    groups = d.choose(1, *(g for g in (2, shape[1]) if shape[1] % g == 0))
    kernel, stride = d.sizes(rank, 2, 4), d.sizes(rank, 1, 3)
    options: dict[str, Any] = {"stride": stride, "pad": d.sizes(rank, 0, 1)}
    kind = d.choose("plain", "adj", "target")
    if kind == "adj":
        options["adj"] = tuple(int(d.rng.randint(0, s)) for s in stride)
    elif kind == "target":
        target = tuple(n * s for n, s in zip(shape[2:], stride, strict=True))
        options = {"stride": stride, "target_shape": target}
    weight = d.weight("w", (shape[1], 2, *kernel))
    d.add(
        f"deconv{options}",
        S.Deconvolution(
            x, weight, no_bias=True, kernel=kernel, num_filter=2 * groups, num_group=groups,
            **options,
        ),
    )  # fmt: skip


@layer
def pooling(d: Draft) -> None:
    """All kinds and conventions."""
    rank = d.choose(1, 2, 2, 3)
    x, _ = d.value(rank + 2)
    kind = d.choose("max", "avg", "sum", "lp")
    options: dict[str, Any] = {"pool_type": kind, "kernel": d.sizes(rank, 1, 3)}
    if kind == "lp":
        options["p_value"] = d.choose(1, 2, 3)
    if kind == "avg":
        options["count_include_pad"] = d.choose(True, False)
    if d.rng.rand() < 0.2:
        options["global_pool"] = True
    else:
        options["stride"] = d.sizes(rank, 1, 3)
        options["pad"] = tuple(int(d.rng.randint(0, k // 2 + 1)) for k in options["kernel"])
        options["pooling_convention"] = d.choose("valid", "full", "full")
    d.add(f"pool{options}", S.Pooling(x, **options))


@layer
def normalization(d: Draft) -> None:
    """Batch, layer, instance and group normalization, and others without weights."""
    kind = d.choose("batch", "batch", "layer", "instance", "group", "l2", "lrn")
    x, shape = d.value(4 if kind in ("lrn",) else None)
    if len(shape) < 2:
        raise Unfit
    if kind == "batch" and d.dtype != "float16":  # whose statistics are float32
        axis = d.choose(1, 1, -1)
        options = {"axis": axis, "fix_gamma": d.choose(True, False), "eps": d.choose(1e-5, 1e-3)}
        names = [d.weight(n, (shape[axis],)) for n in ("gamma", "beta")]
        d.add(f"bn{options}", S.BatchNorm(x, *names, **options)[0])
    elif kind == "layer":
        axis = d.choose(-1, 1)
        names = [d.weight(n, (shape[axis],)) for n in ("gamma", "beta")]
        d.add(f"ln{axis}", S.LayerNorm(x, *names, axis=axis))
    elif kind == "instance" and len(shape) > 2:
        names = [d.weight(n, (shape[1],)) for n in ("gamma", "beta")]
        d.add("instancenorm", S.InstanceNorm(x, *names, eps=1e-3))
    elif kind == "group" and len(shape) > 2 and shape[1] % 2 == 0:
        names = [d.weight(n, (2,)) for n in ("gamma", "beta")]
        d.add("groupnorm", S.GroupNorm(x, *names, num_groups=2))
    elif kind == "l2":
        mode = d.choose("instance", "channel", "spatial") if len(shape) > 2 else "instance"
        d.add(f"l2{mode}", S.L2Normalization(x, mode=mode))
    elif kind == "lrn":
        d.add("lrn", S.LRN(x, nsize=d.choose(1, 3)))
    else:
        raise Unfit


@layer
def activation(d: Draft) -> None:
    """Activations of all kinds."""
    x, shape = d.value()
    kind = d.choose("relu", "sigmoid", "softrelu", "softsign", "tanh", "leaky", "elu", "selu",
                    "gelu", "prelu", "hard_sigmoid", "smooth_l1", "mish")  # fmt: skip
    if kind in ("leaky", "elu", "selu", "gelu"):
        d.add(kind, S.LeakyReLU(x, act_type=kind, slope=0.3))
    elif kind == "prelu":
        if len(shape) < 2:
            raise Unfit
        d.add(kind, S.LeakyReLU(x, d.weight("slope", (shape[1],)), act_type="prelu"))
    elif kind == "hard_sigmoid":
        d.add(kind, S.hard_sigmoid(x, alpha=0.3, beta=0.4))
    elif kind == "smooth_l1":
        d.add(kind, S.smooth_l1(x, scalar=d.choose(1.0, 2.0)))
    elif kind == "mish":
        d.add(kind, x * S.tanh(S.Activation(x, act_type="softrelu")))
    else:
        d.add(kind, S.Activation(x, act_type=kind))


@layer
def dense(d: Draft) -> None:
    """Dense layers, flattened or not."""
    x, shape = d.value()
    flat = d.choose(True, False)
    if len(shape) < 2:
        raise Unfit
    units = d.choose(1, 3, 4)
    inputs = int(np.prod(shape[1:])) if flat else shape[-1]
    weight = d.weight("w", (units, inputs))
    if d.choose(True, False):
        bias = d.weight("b", (units,))
        d.add(f"dense{flat}", S.FullyConnected(x, weight, bias, num_hidden=units, flatten=flat))
    else:
        output = S.FullyConnected(x, weight, no_bias=True, num_hidden=units, flatten=flat)
        d.add(f"dense{flat} no bias", output)


@layer
def pair(d: Draft) -> None:
    """Two values, broadcast."""
    (a, left), (b, right) = d.value(), d.value()
    names = ("add", "sub", "mul", "maximum", "minimum", "greater", "equal", "hypot", "power", "div")
    name = d.choose(*names)
    if name == "power":
        a, b = S.abs(a) + 0.5, S.clip(b, -2, 2)
    if name == "div":
        b = S.abs(b) + 0.5
    if len(left) != len(right):
        raise Unfit
    d.add(f"broadcast_{name}", getattr(S, f"broadcast_{name}")(a, b))


@layer
def number(d: Draft) -> None:
    """A value and a number."""
    x, _ = d.value()
    functions: tuple[Callable[[Any], Any], ...] = (
        lambda v: v * 2.5, lambda v: 1.5 - v, lambda v: v / 3, lambda v: 2 / (S.abs(v) + 1),
        lambda v: (S.abs(v) + 0.5) ** 1.5, lambda v: v > 0.25, lambda v: v == 0,
        lambda v: S._maximum_scalar(v, scalar=0.5), lambda v: v % 2,
    )  # fmt: skip
    i = d.rng.randint(len(functions))
    d.add(f"number{i}", functions[i](x))


@layer
def unary(d: Draft) -> None:
    """Functions of one value."""
    x, _ = d.value()
    name = d.choose(
        "exp", "log1p", "sqrt", "rsqrt", "square", "abs", "sign", "floor", "ceil", "round", "rint",
        "trunc", "fix", "sin", "cos", "arctan", "sinh", "erf", "sigmoid", "softsign", "expm1",
        "reciprocal", "cbrt", "gammaln", "logical_not", "zeros_like", "ones_like", "BlockGrad",
        "size_array", "shape_array",
    )  # fmt: skip
    if name in ("log1p", "sqrt", "rsqrt", "reciprocal", "gammaln"):
        x = S.abs(x) + 0.5
    if name in ("exp", "expm1", "sinh"):
        x = S.clip(x, -3, 3)
    if name in ("size_array", "shape_array"):
        d.add(name, S.cast(getattr(S, name)(x), dtype=d.dtype))
    else:
        d.add(name, getattr(S, name)(x))


@layer
def reduction(d: Draft) -> None:
    """Sums and others over axes."""
    x, shape = d.value()
    name = d.choose("sum", "mean", "max", "min", "prod", "norm", "nansum", "argmax", "argmin")
    axes = [int(a) for a in d.rng.permutation(len(shape))[: d.choose(1, 1, 2)]]
    axes = [a - len(shape) if d.choose(True, False) else a for a in axes]
    options: dict[str, Any] = {"keepdims": d.choose(True, False)}
    options["axis"] = axes[0] if len(axes) == 1 or name.startswith("arg") else tuple(axes)
    if len(shape) - len(axes) < 1:
        options["keepdims"] = True
    if name == "norm":
        options["ord"] = d.choose(1, 2)
    elif not name.startswith("arg"):
        options["exclude"] = d.choose(False, False, True)
    output = getattr(S, name)(x, **options)
    d.add(f"{name}{options}", S.cast(output, dtype=d.dtype) if name[:3] == "arg" else output)


@layer
def shape_change(d: Draft) -> None:
    """Reshape, transpose, flip and others."""
    x, shape = d.value()
    rank = len(shape)
    kind = d.choose("reshape", "codes", "transpose", "swap", "flatten", "expand", "flip", "squeeze")
    if kind == "reshape":
        d.add(kind, S.reshape(x, shape=(0, -1)))
    elif kind == "codes":
        codes = d.choose((-2,), (-3, -2), (0, -4, -1, 1, -2), (-1, 0), (-4, 1, -1, -2))
        d.add(f"reshape{codes}", S.reshape(x, shape=codes, reverse=codes == (-1, 0)))
    elif kind == "transpose":
        axes = tuple(int(a) for a in d.rng.permutation(rank))
        d.add(f"transpose{axes}", S.transpose(x, axes=axes))
    elif kind == "swap":
        d.add(kind, S.SwapAxis(x, dim1=0, dim2=rank - 1))
    elif kind == "flatten":
        d.add(kind, S.Flatten(x))
    elif kind == "expand" and rank < 5:
        d.add(kind, S.expand_dims(x, axis=d.choose(0, -1, rank)))
    elif kind == "flip":
        d.add(kind, S.reverse(x, axis=d.choose(0, rank - 1)))
    elif kind == "squeeze" and 1 in shape and rank > 1:
        d.add(kind, S.squeeze(x, axis=shape.index(1)))
    else:
        raise Unfit


@layer
def cutting(d: Draft) -> None:
    """Slices of an array."""
    x, shape = d.value()
    axis = d.rng.randint(len(shape))
    kind = d.choose("slice", "slice_axis", "split", "slice_like", "crop", "tile", "pad", "pick")
    if kind == "slice":
        begin = tuple(d.choose(None, 0, n // 2, -1) for n in shape)
        step = tuple(d.choose(None, 1, 2, -1) for _ in shape)
        begin = tuple(None if s == -1 else b for b, s in zip(begin, step, strict=True))
        output = S.slice(x, begin=begin, end=(None,) * len(shape), step=step)
        d.add(f"slice{begin}{step}", output)
    elif kind == "slice_axis":
        d.add(kind, S.slice_axis(x, axis=int(axis), begin=-1, end=None))
    elif kind == "split":
        parts = [n for n in (2, 3, shape[axis]) if shape[axis] % n == 0]
        if not parts:
            raise Unfit
        count = d.choose(*parts)
        squeeze = count == shape[axis] and len(shape) > 1 and d.choose(True, False)
        output = S.SliceChannel(x, axis=int(axis), num_outputs=count, squeeze_axis=squeeze)
        d.add(f"split{count}{squeeze}", output)
    elif kind == "slice_like":
        y, other = d.value(len(shape))
        if any(n > m for n, m in zip(other, shape, strict=True)):
            raise Unfit
        d.add(kind, S.slice_like(x, y))
    elif kind == "crop" and len(shape) == 4 and min(shape[2:]) > 1:
        size = tuple(n - 1 for n in shape[2:])
        d.add(kind, S.Crop(x, h_w=size, center_crop=d.choose(True, False), num_args=1))
    elif kind == "tile":
        d.add(kind, S.tile(x, reps=d.choose((2,), (2, 1), (1, 2, 1))))
    elif kind == "pad" and len(shape) == 4:
        mode = d.choose("constant", "edge", "reflect")
        width = (0, 0, 0, 0, *d.sizes(4, 0, 1))
        if mode == "reflect" and min(shape[2:]) < 2:
            raise Unfit
        d.add(f"pad{mode}", S.pad(x, mode=mode, pad_width=width, constant_value=0.5))
    elif kind == "pick" and len(shape) == 2:
        index = S.argmin(x, axis=1)
        d.add(kind, S.pick(x, index, axis=1, keepdims=True))
    else:
        raise Unfit


@layer
def joining(d: Draft) -> None:
    """Concatenation, stacks, sums of several, choices."""
    x, shape = d.value()
    others = [v for v in d.values if v[1] == shape]
    y = others[d.rng.randint(len(others))][0]
    kind = d.choose("concat", "stack", "add_n", "where", "max")
    axis = d.rng.randint(len(shape))
    if kind == "concat":
        d.add(f"concat{axis}", S.Concat(x, y, x, dim=int(axis)))
    elif kind == "stack" and len(shape) < 5:
        d.add(f"stack{axis}", S.stack(x, y, axis=int(axis)))
    elif kind == "add_n":
        d.add(kind, S.add_n(x, y, x))
    elif kind == "where":
        d.add(kind, S.where(x > 0, x, y))
    elif kind == "max":
        d.add(kind, S.maximum(x, y) - S.minimum(x, y))
    else:
        raise Unfit


@layer
def softmax(d: Draft) -> None:
    """Softmax of all kinds."""
    x, shape = d.value()
    axis = d.choose(-1, 0, len(shape) - 1)
    name = d.choose("softmax", "log_softmax", "softmin")
    options = {"temperature": 2.0} if d.rng.rand() < 0.3 else {}
    d.add(f"{name}{axis}{options}", getattr(S, name)(x, axis=axis, **options))


@layer
def ordering(d: Draft) -> None:
    """Sorting and the largest; numbers are made different first."""
    x, shape = d.value()
    kind = d.choose("sort", "topk", "cumsum", "argsort", "one_hot", "take")
    axis = int(d.rng.randint(len(shape)))
    if kind in ("sort", "argsort"):
        y = S.broadcast_add(x, d.weight("noise", shape))
        options = {} if kind == "sort" else {"dtype": d.dtype}
        d.add(kind, getattr(S, kind)(y, axis=axis, is_ascend=d.choose(True, False), **options))
    elif kind == "topk":
        y = S.broadcast_add(x, d.weight("noise", shape))
        kind = d.choose("indices", "value", "both", "mask")
        k = int(d.rng.randint(1, shape[axis] + 1))
        d.add(
            f"topk {kind}",
            S.topk(y, axis=axis, k=k, ret_typ=kind, is_ascend=k % 2 == 0, dtype=d.dtype),
        )
    elif kind == "cumsum":
        d.add(kind, S.cumsum(x, axis=axis))
    elif kind == "one_hot" and len(shape) < 5:
        index = S.argmax(x, axis=axis, keepdims=True)
        d.add(kind, S.one_hot(index, depth=4, on_value=2.0, dtype=d.dtype))
    elif kind == "take":
        index = S.slice_axis(S.reshape(S.argmax(x, axis=axis, keepdims=True), shape=(-1,)),
                             axis=0, begin=0, end=1)  # fmt: skip
        d.add(kind, S.take(x, index, axis=axis, mode=d.choose("clip", "wrap")))
    else:
        raise Unfit


@layer
def products(d: Draft) -> None:
    """Matrix products."""
    x, shape = d.value(d.choose(2, 3))
    if len(shape) == 2:
        left, right = d.choose((True, False), (False, True))
        d.add(f"dot{left}", S.dot(x, x, transpose_a=left, transpose_b=right))
    else:
        left, right = d.choose((True, False), (False, True))
        d.add(f"batch_dot{left}", S.batch_dot(x, x, transpose_a=left, transpose_b=right))


@layer
def spatial(d: Draft) -> None:
    """Images made larger and smaller, blocks moved between space and depth."""
    x, shape = d.value(4)
    kind = d.choose("up", "bilinear", "depth", "space", "adaptive", "shuffle")
    if kind == "up":
        d.add(kind, S.UpSampling(x, scale=2, sample_type="nearest", num_args=1))
    elif kind == "bilinear":
        size = d.sizes(2, 1, 6)
        align = d.choose(True, False)
        output = S.contrib.BilinearResize2D(x, height=size[0], width=size[1], align_corners=align)
        d.add(f"bilinear{size}{align}", output)
    elif kind == "depth" and shape[1] % 4 == 0:
        d.add(kind, S.depth_to_space(x, block_size=2))
    elif kind == "space" and shape[2] % 2 == 0 and shape[3] % 2 == 0:
        d.add(kind, S.space_to_depth(x, block_size=2))
    elif kind == "adaptive":
        size = d.sizes(2, 1, 4)
        d.add(f"adaptive{size}", S.contrib.AdaptiveAvgPooling2D(x, output_size=size))
    else:
        raise Unfit


@layer
def sequences(d: Draft) -> None:
    """Masks, reversals and the last steps of sequences."""
    x, shape = d.value(3)
    kind = d.choose("mask", "last", "reverse", "rnn")
    length = S.clip(S.abs(d.weight("length", (shape[1],))) + 1, 1, shape[0])
    if kind == "mask":
        options = {"use_sequence_length": True, "value": 0.25}
        d.add(kind, S.SequenceMask(x, S.floor(length), **options))
    elif kind == "last":
        d.add(kind, S.SequenceLast(x, S.floor(length), use_sequence_length=True))
    elif kind == "reverse":
        d.add(kind, S.SequenceReverse(x, S.floor(length), use_sequence_length=True))
    elif d.dtype != "float16":
        mode = d.choose("lstm", "gru", "rnn_tanh", "rnn_relu")
        both, layers = d.choose(True, False), d.choose(1, 2)
        state = (layers * (1 + both), shape[1], 3)
        states = [d.weight("state", state)] * (2 if mode == "lstm" else 1)
        output = S.RNN(x, S.var(f"rnn{len(d.weights)}"), *states, mode=mode, state_size=3,
                       num_layers=layers, bidirectional=both, state_outputs=True)  # fmt: skip
        d.add(f"rnn {mode}{both}{layers}", output)
    else:
        raise Unfit


INTEGER_LAYERS = [pair, number, reduction, shape_change, cutting, joining, ordering, products]
SHAPES = [(2, 3), (1, 4), (2, 3, 4), (3, 2, 4), (1, 4, 5, 6), (2, 3, 7, 5), (2, 4, 6, 6),
          (1, 2, 4, 5, 3), (2, 1, 5), (1, 6, 1, 4), (5,)]  # fmt: skip


def draw(seed: int, dtype: str = "float32", count: int = 6) -> Network:
    """Return a network of about `count` layers."""
    rng = np.random.RandomState(seed)
    d = Draft(rng, dtype)
    for i in range(d.choose(1, 1, 2, 3)):
        name, shape = f"data{i}", d.choose(*SHAPES)
        d.inputs[name] = shape
        d.values.append((S.var(name), shape))
    fitting = INTEGER_LAYERS if dtype == "int32" else LAYERS
    while len(d.layers) < count:
        before = len(d.values), dict(d.weights)
        try:
            fitting[rng.randint(len(fitting))](d)
        except Unfit:
            d.values, d.weights = d.values[: before[0]], before[1]
    late = [v for v, _ in d.values[-4:]]
    chosen = [late[i] for i in sorted(rng.permutation(len(late))[: d.choose(1, 2, 3)])]
    symbol = S.Group(chosen) if len(chosen) > 1 else chosen[0]
    inputs = symbol.list_inputs()
    feed = {n: _numbers(rng, n, s, dtype) for n, s in d.inputs.items() if n in inputs}
    params = {
        n: mx.nd.array(_numbers(rng, n, s, dtype), dtype=dtype)
        for n, s in d.weights.items()
        if n in inputs
    }
    return Network(symbol, params, feed, d.layers)


def _numbers(rng: np.random.RandomState, name: str, shape: tuple, dtype: str) -> np.ndarray:
    if name.startswith("noise"):  # all different
        return rng.permutation(int(np.prod(shape))).reshape(shape).astype(dtype)
    if dtype == "int32":
        return rng.randint(-4, 5, shape).astype(dtype)
    if name.endswith("moving_var"):
        return rng.uniform(0.5, 2, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)
