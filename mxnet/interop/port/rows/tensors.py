"""Conversions of tensor operators to more readable code than that of `to_torch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...to_torch import TorchCall
from ...torch_rows import NoRow
from ..tree import Call, Const, Group, Infix, Item, Slice, Value
from .layers import COMPARISONS, row

if TYPE_CHECKING:
    from ..steps import StepWriter


def _full(name: str, function: str) -> None:
    @row(name)
    def build(w: StepWriter, call: TorchCall) -> Any:
        sizes = _sizes_with_batch(w, call)
        like: Any = Value(0)
        if function == "zeros":
            return w.add(Call(".new_zeros", (like, *sizes)))
        if function == "ones":
            return w.add(Call(".new_ones", (like, *sizes)))
        raise NoRow


def _sizes_with_batch(w: StepWriter, call: Any) -> list[Any]:
    """Return the sizes of a new array. MXNet's 0 is the batch size, that of the first input."""
    shape, codes = call.out_shape(), call.attrs["shape"]
    if not w.inputs:
        raise w.unsupported(call, "makes an array in a part of the network without inputs.")
    source = w.port.shapes[w.inputs[0].node][w.inputs[0].index]
    sizes: list[Any] = []
    for size, code in zip(shape, codes, strict=True):
        if code == 0 and size in source:
            sizes.append(w.add(Call(".shape", (Value(0), Const(source.index(size))))))
        else:
            sizes.append(Const(size, "size"))
    return sizes


_full("_zeros", "zeros")
_full("_zeros_without_dtype", "zeros")
_full("_ones", "ones")


def _reduction(name: str, method: str) -> None:
    @row(name)
    def build(w: StepWriter, call: Any, x: Any) -> Any:
        a, rank = call.attrs, len(call.rank_checked(0))
        if not call.is_float or a.get("exclude"):
            raise NoRow
        axes = a["axis"]
        axes = () if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
        if not axes and method in (".sum", ".mean"):
            full = w.add(Call(method, (x,)))
            return full if a["keepdims"] else w.add(Call(".reshape", (full, Const(1))))
        if not axes:
            raise NoRow
        dim = Const(axes[0] if len(axes) == 1 else axes)
        keep = (("keepdim", Const(True)),) if a["keepdims"] and rank else ()
        result = w.add(Call(method, (x, dim), keep))
        # MXNet has no 0-dimensional arrays: a full reduction returns a vector of one element.
        return (
            result
            if (call.out_shape() and len(axes) < rank) or a["keepdims"]
            else w.add(Call(".reshape", (result, Const(1))))
        )


_reduction("mean", ".mean")
_reduction("sum", ".sum")
_reduction("max", ".amax")
_reduction("min", ".amin")


@row("clip")
def clip(w: StepWriter, call: Any, x: Any) -> Any:
    """F.relu6, or clamp."""
    low, high = float(call.attrs["a_min"]), float(call.attrs["a_max"])
    if not call.is_float:
        raise NoRow
    if (low, high) == (0.0, 6.0):
        return w.add(Call("F.relu6", (x,)))
    return w.add(Call(".clamp", (x, Const(low), Const(high))))


@row("_maximum_scalar", "_minimum_scalar")
def limit(w: StepWriter, call: Any, x: Any) -> Any:
    """Clamp with one bound."""
    if not call.is_float:
        raise NoRow
    side = "min" if call.op.name == "_maximum_scalar" else "max"
    return w.add(Call(".clamp", (x,), ((side, Const(float(call.attrs["scalar"]))),)))


@row("SoftmaxActivation")
def softmax_activation(w: StepWriter, call: Any, x: Any) -> Any:
    """F.softmax over channels or over all axes but the first."""
    if call.attrs["mode"] == "instance" and len(call.rank_checked(0)) != 2:
        raise w.unsupported(call, "is a softmax over several axes.")
    return w.add(Call("F.softmax", (x,), (("dim", Const(1)),)))


@row("softmax", "log_softmax")
def softmax(w: StepWriter, call: Any, x: Any, length: Any = None) -> Any:
    """F.softmax or F.log_softmax."""
    a = call.attrs
    if a["dtype"] is not None or (length is not None and call.op.name != "softmax"):
        raise NoRow
    if a["temperature"] not in (None, 1.0):
        x = w.add(Infix("/", x, Const(float(a["temperature"]))))
    if length is not None:
        name = w.use_function("masked_softmax", "sequences")
        dim = (
            () if a["axis"] in (-1, len(call.rank_checked(0)) - 1) else (("dim", Const(a["axis"])),)
        )
        return w.add(Call(name, (x, length), dim))
    name = "F.softmax" if call.op.name == "softmax" else "F.log_softmax"
    return w.add(Call(name, (x,), (("dim", Const(a["axis"])),)))


@row("slice")
def slice_(w: StepWriter, call: Any, x: Any) -> Any:
    """Indexing with slices."""
    a = call.attrs
    if any(s not in (None, 1) for s in a["step"]):
        raise NoRow
    index = tuple(slice(b or None, e) for b, e in zip(a["begin"], a["end"], strict=True))
    while len(index) > 1 and index[-1] == slice(None):
        index = index[:-1]
    return w.add(Item(x, _group(w, index)))


def _group(w: StepWriter, index: tuple[Any, ...]) -> Any:
    return w.operand(index[0] if len(index) == 1 else index)


@row("slice_like")
def slice_like(w: StepWriter, call: Any, x: Any, like: Any) -> Any:
    """Indexing with slices up to the sizes of another tensor."""
    like = w.shape_source(w.operand(like))
    shapes = call.rank_checked(0), call.rank_checked(1)
    axes = [a % len(shapes[0]) for a in call.attrs["axes"] or range(len(shapes[0]))]
    axes = [a for a in axes if shapes[0][a] != shapes[1][a]]
    if not axes:
        return x
    index: list[Any] = [slice(None)] * (max(axes) + 1)
    for axis in axes:
        index[axis] = Slice(Const(None), w.add(Call(".shape", (like, Const(axis)))))
    return w.add(Item(w.operand(x), _group(w, tuple(index))))


@row("broadcast_like")
def broadcast_like(w: StepWriter, call: Any, x: Any, like: Any) -> Any:
    """expand_as."""
    if call.attrs["lhs_axes"] is not None:
        raise NoRow
    like = w.shape_source(w.operand(like))
    return w.add(Call(".expand_as", (x, like)))


@row("broadcast_axis", "broadcast_to")
def broadcast_axis(w: StepWriter, call: Any, x: Any) -> Any:
    """Expand."""
    sizes = call.rank_checked(0), call.out_shape()
    target = [Const(-1 if a == b else b) for a, b in zip(*sizes, strict=True)]
    return w.add(Call(".expand", (x, *target)))


@row("tile")
def tile(w: StepWriter, call: Any, x: Any) -> Any:
    """Tile."""
    return w.add(Call(".tile", (x, *(Const(n) for n in call.attrs["reps"]))))


@row("repeat")
def repeat(w: StepWriter, call: Any, x: Any) -> Any:
    """repeat_interleave."""
    axis = call.attrs["axis"]
    dim = () if axis is None else (("dim", Const(axis)),)
    return w.add(Call(".repeat_interleave", (x, Const(call.attrs["repeats"])), dim))


@row("reshape_like")
def reshape_like(w: StepWriter, call: Any, x: Any, like: Any) -> Any:
    """reshape_as, or the sizes of both."""
    a, like = call.attrs, w.shape_source(w.operand(like))
    if all(v is None for v in a.values()):
        return w.add(Call(".reshape_as", (x, like)))
    own, other = (range(len(call.rank_checked(i))) for i in (0, 1))
    axes = [(x, i) for i in own[: a["lhs_begin"] or 0]]
    axes += [(like, i) for i in other[a["rhs_begin"] : a["rhs_end"]]]
    axes += [(x, i) for i in (own[a["lhs_end"] :] if a["lhs_end"] is not None else ())]
    return w.add(Call(".reshape", (x, *(w.add(Call(".shape", (t, Const(i)))) for t, i in axes))))


@row("Pad")
def pad(w: StepWriter, call: Any, x: Any) -> Any:
    """F.pad."""
    a = call.attrs
    pairs = list(zip(a["pad_width"][::2], a["pad_width"][1::2], strict=True))[2:]
    widths = tuple(n for pair in reversed(pairs) for n in pair)
    options = [("mode", Const({"edge": "replicate"}.get(a["mode"], a["mode"])))]
    if a["mode"] == "constant":
        options = [("value", Const(float(a["constant_value"])))] if a["constant_value"] else []
    return w.add(Call("F.pad", (x, Const(widths)), tuple(options)))


@row("one_hot")
def one_hot(w: StepWriter, call: Any, x: Any) -> Any:
    """F.one_hot."""
    a = call.attrs
    if (a["on_value"], a["off_value"]) != (1.0, 0.0):
        raise NoRow
    index = w.add(Call(".long", (x,)))
    return w.add(
        Call(".to", (w.add(Call("F.one_hot", (index, Const(a["depth"])))), Const(a["dtype"])))
    )


@row("Cast", "amp_cast")
def cast(w: StepWriter, call: Any, x: Any) -> Any:
    """to, unless the tensor already has the type."""
    return amp_multicast(w, call, x)[0]


@row("amp_multicast")
def amp_multicast(w: StepWriter, call: Any, *xs: Any) -> Any:
    """to, for inputs that do not have the common type."""
    pairs = zip(xs, call.dtypes, call.out_dtypes, strict=True)
    return [x if a is b else w.add(Call(".to", (x, Const(b)))) for x, a, b in pairs]


@row("zeros_like", "ones_like")
def like(w: StepWriter, call: Any, x: Any) -> Any:
    """torch.zeros_like or torch.ones_like."""
    return w.add(Call(f"torch.{call.op.name}", (x,)))


@row("squeeze")
def squeeze(w: StepWriter, call: Any, x: Any) -> Any:
    """Squeeze."""
    axis = call.attrs["axis"]
    if axis is None:
        axes: Any = tuple(i for i, n in enumerate(call.rank_checked(0)) if n == 1)
    else:
        axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return w.add(Call(".squeeze", (x, Const(axes[0] if len(axes) == 1 else axes))))


@row("reverse")
def reverse(w: StepWriter, call: Any, x: Any) -> Any:
    """Flip."""
    return w.add(Call(".flip", (x, *(Const(n) for n in call.attrs["axis"]))))


@row("where")
def where(w: StepWriter, call: Any, condition: Any, x: Any, y: Any) -> Any:
    """torch.where."""
    if call.rank_checked(0) != call.rank_checked(1):
        raise NoRow
    cast = w.definition(condition)  # MXNet's comparisons return numbers
    compared = (
        w.definition(cast.args[0]) if isinstance(cast, Call) and cast.function == ".to" else None
    )
    is_test = isinstance(compared, Infix) and compared.operator in COMPARISONS.values()
    test = cast.args[0] if is_test else w.add(Infix("!=", condition, Const(0)))
    return w.add(Call("torch.where", (test, x, y)))


@row("take")
def take(w: StepWriter, call: Any, x: Any, index: Any) -> Any:
    """Indexing along an axis, with indices clipped."""
    a, rank = call.attrs, len(call.rank_checked(0))
    axis = a["axis"] % rank
    if a["mode"] == "wrap":
        raise NoRow
    index = w.add(Call(".long", (index,)))
    index = w.add(Call(".clamp", (index, Const(0), Const(call.rank_checked(0)[axis] - 1))))
    return w.add(Item(x, _group(w, (*[slice(None)] * axis, index))))


@row("pick")
def pick(w: StepWriter, call: Any, x: Any, index: Any) -> Any:
    """Gather along the last axis."""
    a, shape = call.attrs, call.rank_checked(0)
    if a["axis"] is None or len(call.rank_checked(1)) != len(shape) - 1 or a["mode"] != "clip":
        raise NoRow
    axis = a["axis"] % len(shape)
    index = w.add(
        Call(".clamp", (w.add(Call(".long", (index,))), Const(0), Const(shape[axis] - 1)))
    )
    index = w.add(Call(".unsqueeze", (index, Const(axis))))
    result = w.add(Call(".gather", (x, Const(axis), index)))
    return result if a["keepdims"] else w.add(Call(".squeeze", (result, Const(axis))))


@row("argmax")
def argmax(w: StepWriter, call: Any, x: Any) -> Any:
    """argmax, converted to MXNet's dtype."""
    a = call.attrs
    if a["axis"] is None:
        raise NoRow
    options = (("keepdim", Const(True)),) if a["keepdims"] else ()
    index = w.add(Call(".argmax", (x, Const(a["axis"])), options))
    return w.add(Call(".to", (index, Const(call.out_dtypes[0]))))


@row("topk")
def topk(w: StepWriter, call: Any, x: Any) -> Any:
    """The values or indices of topk."""
    a = call.attrs
    if a["ret_typ"] == "mask" or a["axis"] is None or a["k"] < 1:
        raise NoRow
    options = (
        [("dim", Const(a["axis"]))] if a["axis"] not in (-1, len(call.rank_checked(0)) - 1) else []
    )
    options += [("largest", Const(False))] if a["is_ascend"] else []
    values, indices = w.add(Call(".topk", (x, Const(a["k"])), tuple(options)), 2)
    if a["ret_typ"] == "value":
        return values
    indices = w.add(Call(".to", (indices, Const(a["dtype"]))))
    return [values, indices] if a["ret_typ"] == "both" else indices


@row("argsort")
def argsort(w: StepWriter, call: Any, x: Any) -> Any:
    """argsort, converted to MXNet's dtype."""
    a = call.attrs
    if a["axis"] is None:
        raise NoRow
    options = (
        ("dim", Const(a["axis"])),
        ("descending", Const(not a["is_ascend"])),
        ("stable", Const(True)),
    )
    return w.add(Call(".to", (w.add(Call(".argsort", (x,), options)), Const(a["dtype"]))))


@row("gather_nd")
def gather_nd(w: StepWriter, call: Any, x: Any, indices: Any) -> Any:
    """Indexing with one index tensor for each axis."""
    count = call.rank_checked(1)[0]
    indices = w.add(Call(".long", (indices,)))
    if count == 1:
        return w.add(Item(x, w.add(Item(indices, Const(0)))))
    return w.add(Item(x, Group(tuple(w.add(Call(".unbind", (indices,)), count)), False)))


@row("Flatten")
def flatten(w: StepWriter, call: Any, x: Any) -> Any:
    """torch.flatten, unless the data is flat."""
    rank = len(call.rank_checked(0))
    if rank == 2:
        return x
    return w.add(
        Call("torch.flatten", (x, Const(1))) if rank > 1 else Call(".unsqueeze", (x, Const(1)))
    )


@row("_contrib_div_sqrt_dim")
def div_sqrt_dim(w: StepWriter, call: Any, x: Any) -> Any:
    """Division by the root of the last size."""
    return w.add(Infix("/", x, Const(float(call.rank_checked(0)[-1]) ** 0.5)))


@row("_mul_scalar", "_div_scalar")
def scale(w: StepWriter, call: Any, x: Any) -> Any:
    """A product or quotient. Omitted for a factor of one."""
    number = float(call.attrs["scalar"])
    if not call.is_float:
        raise NoRow
    if number == 1:
        return x
    return w.add(Infix("*" if call.op.name == "_mul_scalar" else "/", x, Const(number, "scale")))


@row("shape_array")
def shape_array(w: StepWriter, call: Any, x: Any) -> Any:
    """The sizes as a tensor."""
    device = w.add(Call(".device", (x,)))
    return w.add(Call("torch.tensor", (w.add(Call(".size", (x,))),), (("device", device),)))


def _compare_scalar(name: str, sign: str) -> None:
    @row(name)
    def build(w: StepWriter, call: Any, x: Any) -> Any:
        test = w.add(Infix(sign, x, Const(float(call.attrs["scalar"]))))
        return w.add(Call(".to", (test, Const(call.out_dtypes[0]))))


for _name, _sign in COMPARISONS.items():
    _compare_scalar(f"_{_name}_scalar", _sign)


@row("_contrib_arange_like")
def arange_like(w: StepWriter, call: Any, x: Any) -> Any:
    """torch.arange of the size of an axis."""
    a = call.attrs
    if a["axis"] is None or a["repeat"] != 1 or (a["start"], a["step"]) != (0.0, 1.0):
        raise NoRow
    size = w.add(Call(".shape", (x, Const(a["axis"]))))
    device = w.add(Call(".device", (x,)))
    options = (("dtype", Const(call.out_dtypes[0])), ("device", device))
    return w.add(Call("torch.arange", (size,), options))


@row("_arange")
def arange(w: StepWriter, call: Any) -> Any:
    """torch.arange with constant arguments."""
    a = call.attrs
    if a["repeat"] != 1 or a["infer_range"]:
        raise NoRow
    device = w.add(Call(".device", (Value(0),)))
    options = (("dtype", Const(call.out_dtypes[0])), ("device", device))
    ends = (0, a["start"]) if a["stop"] is None else (a["start"], a["stop"])
    numbers = [int(n) if n == int(n) else n for n in (*ends, a["step"])]
    parts = (
        numbers[1:2] if numbers[0] == 0 and numbers[2] == 1 else numbers[: 2 + (numbers[2] != 1)]
    )
    return w.add(Call("torch.arange", tuple(Const(n) for n in parts), options))


@row("_contrib_BilinearResize2D")
def bilinear_resize(w: StepWriter, call: Any, x: Any, like: Any = None) -> Any:
    """F.interpolate."""
    a = call.attrs
    if a["mode"] == "like":
        size: Any = Item(Call(".size", (like,)), slice(2, None))
    elif a["mode"] == "size" and a["scale_height"] is None:
        size = Const(tuple(call.out_shape()[2:]))
    else:
        raise NoRow
    options = (
        ("size", w.add(size) if a["mode"] == "like" else size),
        ("mode", Const("bilinear")),
        ("align_corners", Const(bool(a["align_corners"]))),
    )
    return w.add(Call("F.interpolate", (x,), options))


@row("_contrib_AdaptiveAvgPooling2D")
def adaptive_pooling(w: StepWriter, call: Any, x: Any) -> Any:
    """F.adaptive_avg_pool2d."""
    size = tuple(call.out_shape()[2:])
    return w.add(Call("F.adaptive_avg_pool2d", (x, Const(size))))
