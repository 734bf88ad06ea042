"""Docstrings of operators, with descriptions of parameters that are written once.

A description is in the ``Parameters`` section of the operator's docstring, under the bare name, or
in the glossary (`COMMON`, `FOLDERS`) if it applies to many operators. Types, defaults and the
``Returns`` section are generated from the operator record.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple, TypeVar

from .attributes import Attribute, to_string
from .declare import Op

TYPES = {
    "any": "object",
    "boolean": "bool",
    "data type": "dtype",
    "string": "str",
    "Shape(tuple)": "tuple of int",
    "tuple of <float>": "tuple of float",
    "tuple of <Shape(tuple)>": "tuple of tuple of int",
}
C = TypeVar("C", bound=type)
ARRAY = "\0"  # placeholder of the array class
_FLUSH = re.compile(r"\n\S")  # an unindented line
_MARGIN = re.compile(r"(?<=\n)(\n +)\S")
_HEADING = re.compile(r"^([A-Z].*)\n---+\n", re.MULTILINE)
_ITEM = re.compile(
    r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : ?(.*))?((?:\n+ .*)*)", re.MULTILINE
)  # names, type, indented lines
_NOTHING = ("", "")  # no type, no sentence


class Entry(NamedTuple):
    """A parameter in a docstring."""

    name: str
    type: str
    sentence: str


# -- reading ------------------------------------------------------------------------------------


def _dedent(text: str) -> str:
    """Dedent by the margin of the second line; ten times as fast as `inspect.cleandoc`."""
    margin = None if _FLUSH.search(text) else _MARGIN.search(text)
    return (text.replace(margin[1], "\n") if margin else text).strip()


def sections(text: str) -> dict[str, str]:
    r"""Split a docstring at its underlined headings; the first part has the heading ``''``.

    A line of ``>>>`` at the margin starts the examples, with or without a heading.

    >>> sections("Sum.\n\nParameters\n----------\nx\n    An array.\n\n>>> 1 + 1\n2")
    {'': 'Sum.', 'Parameters': 'x\n    An array.', 'Examples': '>>> 1 + 1\n2'}
    """
    text = _dedent(text)
    first, *others = _HEADING.split(text) if "\n---" in text else [text]
    results = {"": first, **dict(zip(others[::2], others[1::2], strict=True))}
    if "Examples" not in results:
        for heading, body in results.items():
            at = 0 if body.startswith(">>> ") else body.find("\n>>> ")
            if at >= 0:
                results[heading], results["Examples"] = body[:at], body[at:]
                break
    return {heading: body.strip() for heading, body in results.items()}


def parameter_items(text: str) -> dict[str, tuple[str, str]]:
    r"""Return the type and description of each parameter in a ``Parameters`` section.

    >>> parameter_items("lr, wd : float\n    Numbers.")["wd"]
    ('float', 'Numbers.')
    """
    results = {}
    for names, kind, body in _ITEM.findall(text):
        item = (kind, body.replace("\n    ", "\n").strip())
        for name in names.split(", "):
            results[name.lstrip("*")] = item
    return results


# -- an operator --------------------------------------------------------------------------------


@cache
def _sections_of(op: Op) -> dict[str, str]:
    return sections(op.function.__doc__ or op.name)


def type_of(attribute: Attribute) -> str:
    """Format the type and the default of an attribute."""
    label = attribute.type.label.removesuffix(" or None")
    shown = TYPES.get(label, label)
    default = attribute.default
    if attribute.required:
        return shown
    if default is None:
        return f"{shown}, optional"
    is_plain = isinstance(default, bool | int | float | str | tuple)
    return f"{shown}, default {repr(default) if is_plain else to_string(default)}"


def _typed_names(op: Op) -> Iterator[tuple[str, str]]:
    if op.variadic is not None:
        yield f"*{op.variadic}", ARRAY
    for i in op.inputs:
        yield i.name, ARRAY + (" (auxiliary state)" if i.aux else ", optional" * i.optional)
    for a in op.attributes.values():
        if a.name not in op.input_index:
            yield a.name, type_of(a)


def _own_sentences(op: Op) -> dict[str, str]:
    """Return the descriptions in the docstring, including those of inherited attributes."""
    items = parameter_items(_sections_of(op).get("Parameters", ""))
    own = {name: sentence for name, (_, sentence) in items.items()}
    if op.attributes_of is None:
        return own
    shared = _own_sentences(op.attributes_of)
    return {n: s for n, s in shared.items() if n in op.attributes_of.attributes} | own


@cache
def entries_of(op: Op) -> tuple[Entry, ...]:
    """Return the docstring entries of an operator's parameters.

    A description is the operator's own, or inherited from another operator, the folder's or the
    common glossary.

    >>> from mxnet.ops import registry
    >>> entries_of(registry.get("exp"))[0].sentence
    'The input array.'
    """
    own = _own_sentences(op)
    folder = FOLDERS.get("".join(op.function.__module__.split(".")[2:3]), COMMON)
    return tuple(
        Entry(
            name,
            kind,
            own.get(name.lstrip("*")) or folder.get(name) or COMMON.get(name, ""),
        )
        for name, kind in _typed_names(op)
    )


def _describe_result(op: Op) -> str:
    outputs = op._outputs
    if callable(outputs):
        return f"{ARRAY} or list of {ARRAY}"
    if isinstance(outputs, tuple) and len(outputs) > 1:
        return f"list of {ARRAY}\n    In this order: {', '.join(outputs)}."
    return ARRAY if isinstance(outputs, tuple) or outputs == 1 else f"list of {outputs} {ARRAY}"


def shown_entry(entry: Entry) -> str:
    """Format the lines of a parameter."""
    head = f"{entry.name} : {entry.type}" if entry.type else entry.name
    return head + "\n    " + entry.sentence.replace("\n", "\n    ") if entry.sentence else head


@cache
def _parts(op: Op) -> tuple[str, tuple[str, ...], str]:
    """Split a docstring: text before the parameters, the parameters, and text after them."""
    parts = dict(_sections_of(op))
    before = parts.pop("")
    parts.pop("Parameters", None)
    examples = parts.pop("Examples", None)
    after = ["", "Returns", "-------", parts.pop("Returns", None) or _describe_result(op)]
    for heading, body in parts.items():
        after += ["", heading, "-" * len(heading), body]
    if examples:
        after += ["", "Examples", "--------", examples]
    return before, tuple(map(shown_entry, entries_of(op))), "\n".join(after)


@cache
def docstring(op: Op, array: str, extras: tuple[Entry, ...], skip: int = 0) -> str:
    """Return the docstring of a function derived from an operator.

    Parameters
    ----------
    op
        The operator.
    array
        Class of the arrays.
    extras
        Parameters of all functions of the namespace.
    skip
        Number of leading parameters to skip; 1 for methods.
    """
    before, entries, after = _parts(op)
    names = {e.name for e in entries_of(op)}
    more = [shown_entry(e) for e in extras if e.name not in names]
    lines = [before, "", "Parameters", "----------", *entries[skip:], *more]
    return ("\n".join(lines) + "\n" + after).replace(ARRAY, array)


# -- handwritten functions of several namespaces -------------------------------------------


def complete(
    text: str, parameters: Iterable[inspect.Parameter], *glossaries: Mapping[str, str]
) -> str:
    """Add missing parameter descriptions to a docstring, from the first glossary that has one.

    Descriptions in the docstring take precedence, also for keywords of ``**kwargs``.

    >>> def scale(x, factor=2):
    ...     pass
    >>> named = inspect.signature(scale).parameters.values()
    >>> complete("Scale.", named, {"x": "An array.", "factor": "It."}).splitlines()[-2:]
    ['factor : default 2', '    It.']
    """
    parts = sections(text)
    own = parameter_items(parts.pop("Parameters", ""))
    named = {p.name: p for p in parameters}
    shown = [
        shown_entry(_complete_entry(p, own.get(p.name, _NOTHING), glossaries))
        for p in named.values()
        if p.kind is not p.VAR_KEYWORD or p.name in own
    ]
    # Keywords of ``**kwargs``.
    shown += [shown_entry(Entry(name, *item)) for name, item in own.items() if name not in named]
    lines = [parts.pop("")]
    if shown:
        lines += ["", "Parameters", "----------", *shown]
    for heading, body in parts.items():
        lines += ["", heading, "-" * len(heading), body]
    return "\n".join(lines)


class _InheritedDocstring:
    """The docstring of a class, completed lazily to keep the import fast."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __get__(self, instance: object, owner: type) -> str:
        bases = [sections(base.__doc__ or "").get("Parameters", "") for base in owner.__mro__[1:]]
        glossaries = [{n: item[1] for n, item in parameter_items(text).items()} for text in bases]
        return complete(self._text, inspect.signature(owner).parameters.values(), *glossaries)


def inherits_parameters(cls: C) -> C:
    r"""Decorate a class to inherit missing parameter descriptions from its bases.

    >>> class Shape:
    ...     '''A shape.
    ...
    ...     Parameters
    ...     ----------
    ...     size
    ...         Length of a side.
    ...     '''
    >>> @inherits_parameters
    ... class Square(Shape):
    ...     '''A square.'''
    ...     def __init__(self, size): ...
    >>> Square.__doc__.splitlines()[-2:]
    ['size', '    Length of a side.']
    """
    type.__setattr__(cls, "__doc__", _InheritedDocstring(cls.__doc__ or ""))
    return cls


def _complete_entry(
    p: inspect.Parameter, own: tuple[str, str], glossaries: Iterable[Mapping[str, str]]
) -> Entry:
    name = {p.VAR_POSITIONAL: f"*{p.name}", p.VAR_KEYWORD: f"**{p.name}"}.get(p.kind, p.name)
    kind, sentence = own
    if not sentence:
        sentence = next((g[name] for g in glossaries if name in g), "")
    if not kind and p.default is None:
        kind = "optional"
    elif not kind and isinstance(p.default, bool | int | float | str | tuple):
        kind = f"default {p.default!r}"
    return Entry(name, kind, sentence)


# -- the glossary of parameters that occur in many operators ----------------------------

COMMON = {
    # arrays
    "data": "The input array.",
    "*data": "The input arrays.",
    "*args": "The input arrays.",
    "x": "The input array.",
    "a": "The input array.",
    "lhs": "The left operand.",
    "rhs": "The right operand.",
    "x1": "The left operand.",
    "x2": "The right operand.",
    "weight": "The weights.",
    "bias": "The bias, one element per output channel; absent with ``no_bias=True``.",
    "label": "The labels; they get no gradient.",
    "indices": "The indices, of any dtype; fractions are truncated.",
    # which axes
    "axis": "Axis; a negative value counts from the last.",
    "axes": "Axes; negative values count from the last.",
    "axis1": "First axis of the matrices; a negative value counts from the last.",
    "axis2": "Second axis of the matrices.",
    "keepdims": "Whether to keep reduced axes, with size 1.",
    "exclude": "Whether to reduce all axes but those in `axis`.",
    "squeeze_axis": "Whether to remove the split axis from the parts, of size 1 there.",
    # numbers
    "scalar": "The second operand, a number.",
    "is_int": "Whether the number is an integer; otherwise integer arrays become float64.",
    "eps": "Small constant added to the variance to avoid division by zero.",
    "epsilon": "Small constant in the denominator to avoid division by zero.",
    # shapes and types
    "shape": "Shape of the result.",
    "size": "Shape of the result.",
    "dtype": "Data type of the result.",
    "ctx": "Device of the result, such as ``'gpu(0)'``; by default the current one.",
    "out_type": "The 8-bit type of the result; ``'auto'``: uint8 if possible, else int8.",
    # windows
    "kernel": "Size of the window along each spatial axis, such as ``(3, 3)``.",
    "stride": "Step of the window along each spatial axis; 1 by default.",
    "dilate": "Distance between neighboring points of the window along each axis; 1 by default.",
    "pad": "Zero padding added to both sides of each spatial axis; 0 by default.",
    "num_filter": "Number of output channels.",
    "num_group": "Number of groups of channels that are convolved separately.",
    "layout": "Order of the axes, such as ``'NHWC'``; by default channels come first.",
    "no_bias": "Whether to omit the bias.",
    "workspace": "Accepted for compatibility; has no effect.",
    "cudnn_off": "Accepted for compatibility; has no effect.",
    "cudnn_tune": "Accepted for compatibility; has no effect.",
    # ranges
    "start": "First number.",
    "stop": "End of the interval, excluded.",
    "step": "Distance between neighboring values; may be negative.",
    "repeat": "Number of repetitions of each value.",
    "num": "Number of values.",
    "endpoint": "Whether to include `stop`.",
    "infer_range": "Whether to infer `stop` from the shape required by the graph.",
    "begin": "First index of each axis; None: the first element, or the last for a negative step.",
    "end": "Index to stop before, for each axis; None: through the end.",
    "N": "Number of rows.",
    "M": "Number of columns; by default as many as rows.",
    "k": "Index of the diagonal: 0 is the main one, positive ones above it, negative ones below.",
    "offset": "Index of the diagonal: 0 is the main one, positive ones are above it.",
    # products
    "transpose_a": "Whether to transpose the first matrix.",
    "transpose_b": "Whether to transpose the second matrix.",
    "forward_stype": "Storage type of the result; by default inferred from the inputs.",
    # counts that are filled in automatically
    "num_args": "Number of inputs; filled in automatically.",
    "num_arrays": "Number of arrays; filled in automatically.",
    "num_outputs": "Number of outputs.",
    # quantization
    "min_calib_range": "Minimum in calibration; by default that of the data.",
    "max_calib_range": "Maximum in calibration; by default that of the data.",
}

_QUANTIZED = {
    "lhs_min": "Lower end of the range of `lhs`.",
    "lhs_max": "Upper end of the range of `lhs`.",
    "rhs_min": "Lower end of the range of `rhs`.",
    "rhs_max": "Upper end of the range of `rhs`.",
    "min_data": "Lower end of the range of the data.",
    "max_data": "Upper end of the range of the data.",
    "min_weight": "Lower end of the range of the weight.",
    "max_weight": "Upper end of the range of the weight.",
    "min_bias": "Lower end of the range of the bias.",
    "max_bias": "Upper end of the range of the bias.",
    "min_range": "Lower end of the range of the quantized values, of shape ``(1,)``.",
    "max_range": "Upper end of the range of the quantized values, of shape ``(1,)``.",
    "flatten": "Whether to flatten all axes but the first.",
    "num_hidden": "Number of output features.",
}

_INT8 = {
    "step": "Step of the result: the real value of one integer step.",
    "zero": "Zero point: the integer that represents 0, 128 for signed arrays.",
    "end": "Upper end of the range.",
    "low": "Lower end of the range of an unsigned array.",
    "steps": "Step of each array.",
    "zeros": "Zero point of each array.",
    "data_step": "Step of the data.",
    "data_zero": "Zero point of the data.",
    "lhs_step": "Step of `lhs`.",
    "lhs_zero": "Zero point of `lhs`.",
    "rhs_step": "Step of `rhs`.",
    "rhs_zero": "Zero point of `rhs`.",
    "out_step": "Step of the result: the real value of one integer step.",
    "out_zero": "Zero point of the result.",
    "adds": "Whether `other` is added to the result.",
    "other_step": "Step of `other`.",
    "other_zero": "Zero point of `other`.",
    "owns_other": "Whether `other` may be overwritten, because it has no later consumers.",
    "relu": "Whether to apply ReLU to the result.",
    "stored": "Whether the weights are integers with a range; otherwise they are float32.",
    "channel_wise": "Whether to quantize each row of float32 weights by its own range.",
    "pool_type": "Type of pooling: ``'max'`` or ``'avg'``.",
    "global_pool": "Whether to pool over the whole image.",
    "pooling_convention": "Rounding of the output size: ``'valid'`` drops incomplete windows.",
    "count_include_pad": "Whether averages include the padding.",
    "dim": "Axis to concatenate along.",
}

_ATTENTION = {
    "heads": "Number of attention heads.",
    "queries_keys_values": (
        "Projections of shape ``(length, batch, heads * 3 * size)``: each head's query, key "
        "and value\nside by side."
    ),
    "keys_values": (
        "Projections of the encoder of shape ``(length, batch, heads * 2 * size)``: each "
        "head's key\nand value side by side."
    ),
}

_FOLDED = {
    "other": "Array to add to the result.",
    "gamma": "Scale of each channel.",
    "beta": "Shift of each channel.",
    "moving_mean": "Mean of each channel.",
    "moving_var": "Variance of each channel.",
    "normalized": "Whether to normalize the result by the running statistics.",
    "fix_gamma": "Whether gamma is fixed at 1.",
    "addition": "Addition of `other`: none, broadcast, or same shape.",
    "epilogue": "Elementwise function applied to the result.",
    "constants": "Arguments of this function.",
    "check_data": "Whether to check the data for NaN and infinity.",
    "check_other": "Whether to check `other` for NaN and infinity.",
}

FOLDERS = {
    "control_flow": {
        "*data": "All inputs of the condition and the bodies.",
        "num_out_data": "Number of outputs stacked over the steps.",
        "in_state_locs": "Positions of the states among the inputs of the body.",
        "in_data_locs": "Positions of the sliced arrays among the inputs of the body.",
        "remain_locs": "Positions of the arrays that every step uses completely.",
        "max_iterations": "Maximum number of steps; outputs are padded to it.",
        "pad_outputs": "Whether outputs are padded with zeros to `max_iterations` steps.",
        "cond_input_locs": "Positions of the condition's inputs among all inputs.",
        "func_input_locs": "Positions of the body's inputs among all inputs.",
        "func_var_locs": "Positions of the loop variables among the body's inputs.",
        "then_input_locs": "Positions of the first body's inputs among all inputs.",
        "else_input_locs": "Positions of the second body's inputs among all inputs.",
    },
    "custom": {
        "*data": "The inputs, in the order of the operator's ``list_arguments()``.",
        "op_type": "Name under which the operator was registered.",
    },
    "fused": {
        **_QUANTIZED,
        **_ATTENTION,
        "queries": "Queries of shape ``(batch, queries, size)``.",
        "keys": "Keys of shape ``(batch, keys, size)``.",
        "values": "Values of shape ``(batch, keys, size)``.",
        **_INT8,
        **_FOLDED,
        "axis": "Axis of the slices to transform.",
        "num_states": "Number of initial states among the inputs, 1 or 2.",
        "use_sequence_length": "Whether the lengths of the sequences are among the inputs.",
    },
    "linalg": {
        "A": "A matrix, or a batch of matrices on the last two axes.",
        "B": "A matrix, or a batch of matrices on the last two axes.",
        "alpha": "Factor of the product.",
        "axis": "The axis of the matrix rows; columns are always the last axis.",
        "lower": "Whether the triangular matrix is lower triangular.",
        "transpose": "Whether to transpose A.",
        "rightside": "Whether A is the right factor of the product.",
    },
    "nn": {
        "gamma": "Scale of each channel.",
        "beta": "Shift of each channel.",
        "moving_mean": "Running mean of each channel, updated in place while training.",
        "moving_var": "Running variance of each channel, updated in place while training.",
        "momentum": "Momentum of the running statistics.",
        "fix_gamma": "Whether gamma is fixed at 1, without a gradient.",
        "use_global_stats": "Whether to normalize by the running statistics in training too.",
        "output_mean_var": "Whether to also return mean and variance.",
        "min_calib_range": "Accepted for compatibility; has no effect.",
        "max_calib_range": "Accepted for compatibility; has no effect.",
        "grad_scale": "Factor of the gradient.",
        **_ATTENTION,
        "attention": "Attention weights of shape ``(batch * heads, queries, keys)``.",
        "sequence_length": "Length of each sequence, of shape ``(batch,)``.",
        "use_sequence_length": "Whether `sequence_length` is given; else all have full length.",
        "temperature": "Divisor of the data before the softmax; by default 1.",
        "use_length": "Whether `length` is given.",
        "compute_size": "Accepted for compatibility; has no effect.",
    },
    "quantization": {**_QUANTIZED, **_INT8, **_FOLDED},
    "numpy": {
        "*arys": "The arrays.",
        "A": "A matrix, or a batch of matrices on the last two axes.",
        "size": "Shape of the result; by default that of the parameters.",
        "ctx": "Device of the result; by default the current one.",
        "UPLO": "Triangle to use: ``'L'`` for the lower, ``'U'`` for the upper one.",
        "hermitian": "Whether A is symmetric, which is faster.",
        "axis": "Axis or axes; negative values count from the last, None means all.",
        "initial": "Initial value of the reduction.",
        "ddof": "Delta degrees of freedom: the divisor is the number of elements minus it.",
        "condition": "Condition; nonzero elements are true.",
        "mask": "Array of bool for the axes of `data` from `start_axis` on.",
        "start_axis": "First axis of `data` for the mask.",
        "newshape": "The new shape.",
        "order": "Memory order; only ``'C'`` (row-major).",
        "input1": "First parameter that is an array.",
        "input2": "Second parameter that is an array.",
        "loc": "Location of the distribution; None if passed as an array.",
        "scale": "Scale of the distribution; None if passed as an array.",
        "low": "Lower bound; None if passed as an array.",
        "high": "Upper bound, excluded; None if passed as an array.",
        "arr": "The array to edit.",
        "obj": "Indices along the axis.",
        "values": "Values to insert; they broadcast.",
        "val": "A single value to insert, instead of `values`.",
        "int_ind": "A single index, instead of an array or a slice.",
        "start": "First number; start of a slice.",
        "stop": "End of the interval; stop of a slice.",
        "M": "Number of points, or of columns.",
        "sections": "Number of equal parts; 0 splits at the indices.",
    },
    "random": {
        "ctx": "Device of the samples, such as ``'cpu(0)'``; by default the current one.",
        "dtype": "Data type of the samples; float32 by default.",
        "loc": "Mean of the distribution.",
        "scale": "Standard deviation of the distribution.",
        "mu": "Mean of the distribution.",
        "sigma": "Standard deviation of the distribution.",
        "low": "Lower bound.",
        "high": "Upper bound, excluded.",
        "k": "Number of successes to wait for.",
        "p": "Probability of a success.",
        "lam": "Rate of an exponential distribution, or mean of a Poisson distribution.",
        "alpha": "Shape parameter of a gamma (or Dirichlet) distribution, or dispersion of counts.",
        "beta": "Scale of the gamma distribution, but the rate in its density.",
        "is_log": "Whether to return the logarithm of the density.",
        "sample": "Points to evaluate at; the leading axes are those of the parameters.",
    },
    "tensor": {
        "sections": "Number of equal parts; 0 splits at `indices`.",
        "block_size": "Height and width of the blocks.",
        "init_output": "Accepted for compatibility; has no effect.",
        "is_ascend": "Whether to sort in ascending order.",
        "input_dim": "Number of rows of the weight: the size of the vocabulary.",
        "output_dim": "Number of columns of the weight: the size of each vector.",
        "sparse_grad": "Whether the gradient of the weight is row-sparse.",
    },
    "training": {
        "weight": "The weight ``w``.",
        "grad": "The gradient ``g``.",
        "mom": "The momentum ``m``, updated in place.",
        "mean": "The running mean ``m`` of the gradient, updated in place.",
        "var": "The running mean ``v`` of the squared gradient, updated in place.",
        "weight32": "The 32-bit copy of the weight, updated in place.",
        "history": "The sum ``h`` of squared gradients, updated in place.",
        "*data": "The arrays of all weights, weight by weight.",
        "lr": "The learning rate ``lr``.",
        "lrs": "The learning rate of each weight.",
        "learning_rates": "The learning rate of each weight.",
        "wd": "The weight decay ``wd``.",
        "wds": "The weight decay of each weight.",
        "rescale_grad": "Factor of the gradient, such as 1 / batch size.",
        "clip_gradient": "Limit of the rescaled gradient's absolute value; negative: no limit.",
        "clip_grad": "Limit of the rescaled gradient's absolute value; negative: no limit.",
        "clip_weights": "Limit of the weights' absolute value; negative: no limit.",
        "momentum": "Momentum ``mu``.",
        "beta1": "Decay rate ``b1`` of the running mean.",
        "beta2": "Decay rate ``b2`` of the running mean of squares.",
        "epsilon": "Small constant ``eps`` in the denominator to avoid division by zero.",
        "eta": "Schedule factor ``eta`` of the whole step, including decay.",
        "etas": "Factor of the whole step of each weight, including decay.",
        "t": "Step count, from 1.",
        "lazy_update": "Whether to update only the rows of a row_sparse gradient.",
        "num_weights": "Number of weights.",
        "num_tensors": "Number of weights.",
        "step_count": "Step count of each weight, from 1.",
        "bias_correction": "Whether to correct the bias of the running means.",
        "lower_bound": "Lower bound of the norm of a weight; negative: none.",
        "upper_bound": "Upper bound of the norm of a weight; negative: none.",
        "r1": "Norm of the weight, of shape ``(1,)``.",
        "r2": "Norm of the direction, of shape ``(1,)``.",
        "g": "Direction of the step, the result of phase 1.",
        "gamma1": "Decay rate of the running mean of squares.",
    },
    "vision": {
        "rois": ("Regions of shape ``(regions, 5)``: index of the image, then x1, y1, x2, y2."),
        "pooled_size": "Height and width of the result.",
        "spatial_scale": "Size of the feature map divided by the size of the image.",
        "output_dim": "Number of output channels.",
        "group_size": "Number of channel groups along each side of the grid.",
        "num_deformable_group": "Number of groups of channels that share offsets.",
        "offset": (
            "Offsets ``(y, x)`` of each kernel point at each position, of shape "
            "\n``(batch, groups * 2 * kernel points, height, width)``."
        ),
        "anchor": "Anchors as corners, of shape ``(1, anchors, 4)``, relative to the image.",
        "anchors": "Anchor boxes of shape ``(1 or batch, anchors, 4)``.",
        "variances": "Factors of the offsets of x, y, width and height.",
        "background_id": "Background class, or -1 for none.",
        "force_suppress": "Whether to suppress overlapping boxes of different classes too.",
        "cls_prob": "Class probabilities.",
        "min_factor": "Least factor.",
        "max_factor": "Largest factor.",
        "width": "Width in pixels.",
        "height": "Height in pixels.",
        "topk": "Number of best candidates to consider; -1 means all.",
        "ratios": "Ratios of height to width of the anchors.",
        "scales": "Sizes of the anchors, in steps of the feature map.",
        "feature_stride": "Stride of the feature map in image pixels.",
        "bbox_pred": "Predicted offsets of shape ``(batch, 4 * anchors, height, width)``.",
        "im_info": "Rows of height, width and scale of each image.",
        "rpn_pre_nms_top_n": "Number of best boxes to keep before suppression.",
        "rpn_post_nms_top_n": "Number of boxes to return; shorter lists are repeated.",
        "rpn_min_size": "Minimum height and width of a box, in pixels before scaling.",
        "output_score": "Whether to also return the scores.",
        "iou_loss": "Whether offsets are those of corners.",
        "cudnn_off": "Accepted for compatibility; has no effect.",
        "workspace": "Accepted for compatibility; has no effect.",
        "transform_type": "``'affine'`` for 2x3 matrices, ``'warp'`` for a flow in pixels.",
        "target_shape": "Height and width of the result.",
    },
}
