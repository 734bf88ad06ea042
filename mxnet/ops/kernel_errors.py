"""Conversion of torch's kernel errors to errors in MXNet's terms, with operator and inputs.

Only for errors that operators do not raise themselves as `ShapeError` or `DTypeError`: torch's
messages mention `mat1`, `Double` and `dimension`, which MXNet's users do not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ..context import context_of
from ..error import DTypeError, MXNetError, OutOfRange, ShapeError, memory_error
from .attributes import to_string

if TYPE_CHECKING:
    from .declare import Op
    from .shapes import Shapes

__all__ = ["describe_kernel_error", "operator_error", "translate"]

_ABOUT_TYPES = re.compile(r"dtype|data type|scalar type|\btype\b.*should be the same|same type")
_TYPE_NAMES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
}
_STATISTICS = {"running_mean": "moving_mean", "running_var": "moving_var"}


def _wrong_axis(match: re.Match[str]) -> str:
    ndim = int(match[2]) + 1
    if ndim == 1 and match[1] == "-1":
        ndim = 0  # torch allows 0 and -1 for a scalar
    return (
        f"axis {match[3]} is out of range for an array of {ndim} dimensions: use one from "
        f"{match[1]} to {match[2]}"
    )


def _channels(match: re.Match[str]) -> str:
    name = _STATISTICS.get(match[1], match[1])
    return f"{name} has {match[3]} elements, but data has {match[2]} channels along its axis"


def _shape(sizes: str) -> str:
    return f"({', '.join(sizes.split('x'))})"


def _type_name(name: str) -> str:
    return _TYPE_NAMES.get(name, name.lower())


_RULES: list[tuple[re.Pattern[str], Callable[[re.Match[str]], str], type[MXNetError]]] = [
    (
        re.compile(
            r"Sizes of tensors must match except in dimension (\d+)\. Expected size (\d+) but got "
            r"size (\d+) for tensor number (\d+) in the list"
        ),
        lambda m: (
            f"Incompatible shapes: input {m[4]} has size {m[3]} where input 0 has size {m[2]}; "
            f"all axes but axis {m[1]} must be equal"
        ),
        ShapeError,
    ),
    (
        re.compile(r"Tensors must have same number of dimensions: got (\d+) and (\d+)"),
        lambda m: f"Incompatible shapes: inputs of {m[1]} and of {m[2]} dimensions",
        ShapeError,
    ),
    (
        re.compile(
            r"stack expects each tensor to be equal size, but got (\[.*?\]) at entry (\d+) and "
            r"(\[.*?\]) at entry (\d+)"
        ),
        lambda m: (
            f"Incompatible shapes: all inputs must have the same shape, but input {m[2]} is {m[1]} "
            f"and input {m[4]} is {m[3]}"
        ),
        ShapeError,
    ),
    (
        re.compile(
            r"Dimension out of range \(expected to be in range of \[(-?\d+), (-?\d+)\], "
            r"but got (-?\d+)\)"
        ),
        _wrong_axis,
        OutOfRange,
    ),
    (
        re.compile(
            r"(weight|bias|running_mean|running_var) should contain (\d+) elements not (\d+)"
        ),
        _channels,
        ShapeError,
    ),
    (
        re.compile(r"mat1 and mat2 shapes cannot be multiplied \((\d+x\d+) and (\d+x\d+)\)"),
        lambda m: (
            f"matrices of shapes {_shape(m[1])} and {_shape(m[2])} cannot be multiplied: the "
            "first must have as many columns as the second has rows"
        ),
        ShapeError,
    ),
    (
        re.compile(
            r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at "
            r"non-singleton dimension (\d+)"
        ),
        lambda m: (
            f"operands could not be broadcast together: sizes {m[1]} and {m[2]} at axis {m[3]}"
        ),
        ShapeError,
    ),
    (
        re.compile(
            r".*padded input size per channel: \((.*?)\)\. Kernel size: \((.*?)\)\. Kernel size "
            r"can't be greater than actual input size"
        ),
        lambda m: f"kernel size ({m[2]}) exceeds the padded input ({m[1]})",
        ShapeError,
    ),
    (
        re.compile(r"Given input size: \((.*?)\)\. Calculated output size: .*too small"),
        lambda m: f"the kernel exceeds the input, whose channels and sizes are {_shape(m[1])}",
        ShapeError,
    ),
    (
        re.compile(
            r"The expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\) at "
            r"non-singleton dimension \d+\.  Target sizes: (\[.*?\])\.  Tensor sizes: (\[.*?\])"
        ),
        lambda m: f"Incompatible shapes: an input of {m[4]} cannot be broadcast to {m[3]}",
        ShapeError,
    ),
    (
        re.compile(r"expand\(.*?\{(\[.*?\])\}, size=(\[.*?\])\): the number of sizes provided"),
        lambda m: f"Incompatible shapes: an input of {m[1]} has more axes than {m[2]}",
        ShapeError,
    ),
    (
        re.compile(
            r"Expected size for first two dimensions of batch2 tensor to be: (\[.*?\]) but got: "
            r"(\[.*?\])"
        ),
        lambda m: (
            f"Incompatible shapes: batches of matrices cannot be multiplied: the second must have "
            f"{m[1]} matrices and rows, but has {m[2]}"
        ),
        ShapeError,
    ),
    (
        re.compile(r"batch[12] must be a 3D tensor"),
        lambda m: "Incompatible shapes: matrices to be multiplied in batches must be 3D",
        ShapeError,
    ),
    (
        re.compile(
            r"expected scalar type (\w+) but found (\w+)"
            r"|result type (\w+) can't be cast to the desired output type (\w+)"
        ),
        lambda m: (
            f"{_type_name(m[1] or m[3])} and {_type_name(m[2] or m[4])} are incompatible. Convert "
            "the inputs to the same type, for example with x.astype('float32')"
        ),
        DTypeError,
    ),
    (
        re.compile(r"\"?\w+\"? not implemented for '(\w+)'"),
        lambda m: (
            f"data type {_type_name(m[1])} is not supported. Convert the "
            "input, for example with x.astype('float32')"
        ),
        DTypeError,
    ),
]


_KERNEL_NAME = re.compile(r"^\w+: ")  # torch 2.15 puts it before some messages


def translate(error: Exception, tensors: Sequence[Tensor | None]) -> MXNetError:
    """Return a kernel's error message in MXNet's terms.

    >>> import torch
    >>> error = RuntimeError("mat1 and mat2 must have the same dtype, but got Double and Float")
    >>> str(translate(error, [torch.ones(1).double(), torch.ones(1)])).partition(". ")[0]
    'Incompatible data types: input 0 is float64, but input 1 is float32'
    """
    text = str(error)
    if "same device" in text and (devices := _device_clash(tensors)) is not None:
        return MXNetError(devices)
    clash = _type_clash(tensors) if _ABOUT_TYPES.search(text) else None
    if clash is not None:
        return DTypeError(clash)
    unnamed = _KERNEL_NAME.sub("", text, count=1)
    for pattern, sentence, kind in _RULES:
        match = pattern.match(text) or pattern.match(unnamed)
        if match is not None:
            return kind(sentence(match))
    kind = OutOfRange if isinstance(error, IndexError) else MXNetError
    text = re.sub(r"\btensor(s?)\b", r"array\1", text)
    return kind(re.sub(r"\bTensor(s?)\b", r"Array\1", text))


def _device_clash(tensors: Sequence[Tensor | None]) -> str | None:
    contexts = [(i, context_of(t)) for i, t in enumerate(tensors) if t is not None]
    other = next((row for row in contexts if row[1] != contexts[0][1]), None)
    if other is None:
        return None
    (first, ctx), (second, other_ctx) = contexts[0], other
    return (
        f"All inputs must be on one device, but input {first} is on {ctx} and input {second} on "
        f"{other_ctx}. Move arrays with as_in_context(mx.{ctx})"
        + ("" if ctx.device_type == "cpu" else f" and create them with ctx=mx.{ctx}")
        + "; parameters of a block with reset_ctx()."
    )


def _type_clash(tensors: Sequence[Tensor | None]) -> str | None:
    types = [(i, to_string(t.dtype)) for i, t in enumerate(tensors) if t is not None]
    other = next(((i, name) for i, name in types if name != types[0][1]), None)
    if other is None:
        return None
    first, target = types[0]
    cast = f", or net.cast('{target}') for the parameters of a block" if "float" in target else ""
    return (
        f"Incompatible data types: input {first} is {target}, but input {other[0]} is {other[1]}. "
        f"Convert one of them: x.astype('{other[1]}'){cast}"
    )


def describe_kernel_error(
    op: Op, tensors: Sequence[Tensor | None], attrs: Mapping[str, Any], error: Exception
) -> Exception:
    """Return a kernel's error in MXNet's terms, without the operator's name and inputs.

    Shape rules are tried first, because their errors refer to the user's arguments, while torch's
    kernels mention intermediate sizes, such as an output of -9 pixels. Errors of the rules are
    `ShapeError`s in every mode, because executors apply the rules before running kernels.
    """
    if isinstance(error, MXNetError) or memory_error(error, op.name) is not None:
        return error
    refusal = _refusal_of_shape_rules(op, tensors, attrs)
    if refusal is None:
        return translate(error, tensors)
    return ShapeError(refusal or str(translate(error, tensors)))


def _refusal_of_shape_rules(
    op: Op, tensors: Sequence[Tensor | None], attrs: Mapping[str, Any]
) -> str | None:
    """Return the error of the shape rules, "" if the kernel's is better, or None."""
    if op.input_rule is None and op.shape_rule is None and op.output_rule is None:
        return None
    shapes: Shapes = [tuple(t.shape) for t in tensors if t is not None]
    complete = op.complete({k: v for k, v in attrs.items() if k != op.context_parameter})
    try:
        op.infer_shapes(shapes, [None] * op.number_of_outputs(complete), complete)
    except ShapeError as error:
        text = str(error).removeprefix(f"{op.name}: ")
        return "" if "differ: expected" in text else text  # two shapes that do not match
    except (IndexError, ValueError, TypeError):  # a rule that needs different axes
        return ""
    except Exception:  # failures here must not hide the described error
        return None
    return None


def operator_error(name: str, tensors: Sequence[Tensor | None], error: Exception) -> MXNetError:
    """Return a kernel's error in MXNet's terms, with the operator and its inputs."""
    shapes = ", ".join(
        "None" if t is None else f"{tuple(t.shape)} {to_string(t.dtype)}" for t in tensors
    )
    inputs = f" (inputs: {shapes})" if shapes else ""
    memory = memory_error(error, f"Error in operator {name}{inputs}")
    if memory is not None:
        return memory
    described = error if isinstance(error, MXNetError) else translate(error, tensors)
    return type(described)(f"Error in operator {name}: {described}{inputs}")
