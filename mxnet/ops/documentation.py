"""Docstrings of operators: a sentence for each parameter, written once and shown everywhere.

The sentence is in the ``Parameters`` section of the operator's own docstring, under the bare
name; what means the same in many operators is in the glossary, `COMMON` and `FOLDERS`.
Types, defaults and the ``Returns`` section come from the operator record.
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
ARRAY = "\0"  # represents the array class until the namespace is known
_FLUSH = re.compile(r"\n\S")  # a line without a margin
_MARGIN = re.compile(r"(?<=\n)(\n +)\S")
_HEADING = re.compile(r"^([A-Z].*)\n---+\n", re.MULTILINE)
_ITEM = re.compile(
    r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : ?(.*))?((?:\n+ .*)*)", re.MULTILINE
)  # names, type, indented lines
_NOTHING = ("", "")  # no type, no sentence


class Entry(NamedTuple):
    """One parameter as a docstring shows it."""

    name: str
    type: str
    sentence: str


# -- reading ------------------------------------------------------------------------------------


def _dedent(text: str) -> str:
    """Do what `inspect.cleandoc` does, in a tenth of the time: the margin is the second line's."""
    margin = None if _FLUSH.search(text) else _MARGIN.search(text)
    return (text.replace(margin[1], "\n") if margin else text).strip()


def sections(text: str) -> dict[str, str]:
    r"""Split a docstring at its underlined headings; what precedes them has the heading ``''``.

    A line of ``>>>`` at the margin begins the examples, with or without their heading.

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
    r"""Return the type and the sentence of each parameter in a ``Parameters`` section.

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
    """Return how a docstring shows the type and the default of an attribute."""
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
    """Return what the docstring says of each parameter, and of attributes that are another's."""
    items = parameter_items(_sections_of(op).get("Parameters", ""))
    own = {name: sentence for name, (_, sentence) in items.items()}
    if op.attributes_of is None:
        return own
    shared = _own_sentences(op.attributes_of)
    return {n: s for n, s in shared.items() if n in op.attributes_of.attributes} | own


@cache
def entries_of(op: Op) -> tuple[Entry, ...]:
    """Return the parameters of an operator as docstrings show them.

    A sentence is the operator's own, that of the operator whose attributes it has, its folder's,
    or the common one.

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
    """Return the lines of a parameter."""
    head = f"{entry.name} : {entry.type}" if entry.type else entry.name
    return head + "\n    " + entry.sentence.replace("\n", "\n    ") if entry.sentence else head


@cache
def _parts(op: Op) -> tuple[str, tuple[str, ...], str]:
    """Return what stands before the parameters, the parameters, and what stands after them."""
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
        The class of the arrays that the function takes.
    extras
        Parameters that every function of the namespace has.
    skip
        How many of the first parameters to leave out; methods have one fewer.
    """
    before, entries, after = _parts(op)
    names = {e.name for e in entries_of(op)}
    more = [shown_entry(e) for e in extras if e.name not in names]
    lines = [before, "", "Parameters", "----------", *entries[skip:], *more]
    return ("\n".join(lines) + "\n" + after).replace(ARRAY, array)


# -- functions written by hand for several namespaces -------------------------------------------


def complete(
    text: str, parameters: Iterable[inspect.Parameter], *glossaries: Mapping[str, str]
) -> str:
    """Return a docstring with a sentence for each parameter, from the first glossary that has one.

    What the docstring says itself counts most, also of keywords that ``**kwargs`` takes.

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
    # Keywords that ``**kwargs`` takes.
    shown += [shown_entry(Entry(name, *item)) for name, item in own.items() if name not in named]
    lines = [parts.pop("")]
    if shown:
        lines += ["", "Parameters", "----------", *shown]
    for heading, body in parts.items():
        lines += ["", heading, "-" * len(heading), body]
    return "\n".join(lines)


class _InheritedDocstring:
    """The docstring of a class, completed when it is read: importing need not pay for it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __get__(self, instance: object, owner: type) -> str:
        bases = [sections(base.__doc__ or "").get("Parameters", "") for base in owner.__mro__[1:]]
        glossaries = [{n: item[1] for n, item in parameter_items(text).items()} for text in bases]
        return complete(self._text, inspect.signature(owner).parameters.values(), *glossaries)


def inherits_parameters(cls: C) -> C:
    r"""Let a class take the sentences of parameters that it does not explain from its bases.

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


# -- the glossary: what parameters mean that occur in many operators ----------------------------

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
    "bias": "The bias, one number for each output channel; absent with ``no_bias=True``.",
    "label": "The true labels; no gradient flows to them.",
    "indices": "The indices, numbers of any dtype; fractions are cut off.",
    # which axes
    "axis": "The axis to work along; a negative one counts from the last.",
    "axes": "The axes to work along; negative ones count from the last.",
    "axis1": "First of the two axes that the matrices lie on; a negative one counts from the last.",
    "axis2": "Second of the two axes that the matrices lie on.",
    "keepdims": "Whether reduced axes stay, with size 1, so that the result broadcasts again.",
    "exclude": "Whether to reduce all axes but those in `axis`.",
    "squeeze_axis": "Whether to remove the split axis from the parts, of size 1 there.",
    # numbers
    "scalar": "The number that each element meets.",
    "is_int": "Whether the number was an integer; with a fraction, integer arrays become float64.",
    "eps": "Small number added to the variance, against division by zero.",
    "epsilon": "Small number in the denominator, against division by zero.",
    # shapes and types
    "shape": "Shape of the result.",
    "size": "Shape of the result.",
    "dtype": "Data type of the result.",
    "ctx": "Device of the result, such as ``'gpu(0)'``; by default the current one.",
    "out_type": "The 8-bit type of the result; ``'auto'`` takes uint8 if no number is negative.",
    # windows
    "kernel": "Size of the window along each spatial axis, such as ``(3, 3)``.",
    "stride": "Step of the window along each spatial axis; 1 by default.",
    "dilate": "Distance between neighboring points of the window along each axis; 1 by default.",
    "pad": "Number of zeros added at both ends of each spatial axis; 0 by default.",
    "num_filter": "Number of output channels.",
    "num_group": "Number of groups of channels that are convolved separately.",
    "layout": "Order of the axes, such as ``'NHWC'``; by default channels come first.",
    "no_bias": "Whether there is no bias.",
    "workspace": "Accepted for compatibility; has no effect.",
    "cudnn_off": "Accepted for compatibility; has no effect.",
    "cudnn_tune": "Accepted for compatibility; has no effect.",
    # ranges
    "start": "First number.",
    "stop": "Where to stop; this number itself is left out.",
    "step": "Distance between neighboring numbers; it may be negative.",
    "repeat": "How many times each number is repeated.",
    "num": "How many numbers to make.",
    "endpoint": "Whether `stop` is the last number; if not, it is left out.",
    "infer_range": "Whether the stop follows from the shape that the graph needs.",
    "begin": "First index for each axis; None begins at the end where the step starts.",
    "end": "Index to stop before, for each axis; None goes all the way.",
    "N": "Number of rows.",
    "M": "Number of columns; by default as many as rows.",
    "k": "Index of the diagonal: 0 is the main one, positive ones above it, negative ones below.",
    "offset": "Index of the diagonal: 0 is the main one, positive ones are above it.",
    # products
    "transpose_a": "Whether to transpose the first matrix.",
    "transpose_b": "Whether to transpose the second matrix.",
    "forward_stype": "Storage type of the result; by default it follows from the inputs.",
    # counts that callers need not give
    "num_args": "Number of inputs; filled in by the call.",
    "num_arrays": "Number of arrays; filled in by the call if left out.",
    "num_outputs": "Number of outputs.",
    # quantization
    "min_calib_range": "Smallest number seen in calibration; by default that of the data.",
    "max_calib_range": "Largest number seen in calibration; by default that of the data.",
}

_QUANTIZED = {
    "lhs_min": "Smallest number that `lhs` represents.",
    "lhs_max": "Largest number that `lhs` represents.",
    "rhs_min": "Smallest number that `rhs` represents.",
    "rhs_max": "Largest number that `rhs` represents.",
    "min_data": "Smallest number that the 8-bit data represents.",
    "max_data": "Largest number that the 8-bit data represents.",
    "min_weight": "Smallest number that the 8-bit weight represents.",
    "max_weight": "Largest number that the 8-bit weight represents.",
    "min_bias": "Smallest number that the 8-bit bias represents.",
    "max_bias": "Largest number that the 8-bit bias represents.",
    "min_range": "Smallest number that the quantized values represent, of shape ``(1,)``.",
    "max_range": "Largest number that the quantized values represent, of shape ``(1,)``.",
    "flatten": "Whether all axes but the first are joined into one.",
    "num_hidden": "Number of output features.",
}

_INT8 = {
    "step": "Real number that one step of the result represents.",
    "zero": "Integer that represents 0, as 128 in signed arrays.",
    "end": "Largest number that the array represents.",
    "low": "Smallest number that an unsigned array represents.",
    "steps": "Real number that one step of each array represents.",
    "zeros": "Integer that represents 0 in each array.",
    "data_step": "Real number that one step of data represents.",
    "data_zero": "Integer that represents 0 in data.",
    "lhs_step": "Real number that one step of `lhs` represents.",
    "lhs_zero": "Integer that represents 0 in `lhs`.",
    "rhs_step": "Real number that one step of `rhs` represents.",
    "rhs_zero": "Integer that represents 0 in `rhs`.",
    "out_step": "Real number that one step of the result represents.",
    "out_zero": "Integer that represents 0 in the result.",
    "adds": "Whether `other` is added to the result.",
    "other_step": "Real number that one step of `other` represents.",
    "other_zero": "Integer that represents 0 in `other`.",
    "owns_other": "Whether `other` may be written over, because nothing reads it afterward.",
    "relu": "Whether negative results become 0.",
    "stored": "Whether the weights are integers with a range; else they are float32.",
    "channel_wise": "Whether float32 weights get a range for each row.",
    "pool_type": "What is taken of each window: ``'max'`` or ``'avg'``.",
    "global_pool": "Whether the window is the whole image.",
    "pooling_convention": "How windows at the end count: ``'valid'`` drops what is not full.",
    "count_include_pad": "Whether padding counts in means.",
    "dim": "The axis to join along.",
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
    "other": "Array that is added to the result.",
    "gamma": "Scale of each channel.",
    "beta": "Shift of each channel.",
    "moving_mean": "Mean of each channel.",
    "moving_var": "Variance of each channel.",
    "normalized": "Whether the result is normalized by the moving statistics.",
    "fix_gamma": "Whether gamma counts as 1.",
    "addition": "How `other` is added: not at all, broadcast, or of the same shape.",
    "epilogue": "Function of each element that ends the operator.",
    "constants": "Numbers that this function takes.",
    "check_data": "Whether data may hold values that are not finite.",
    "check_other": "Whether `other` may hold values that are not finite.",
}

FOLDERS = {
    "control_flow": {
        "*data": "All arrays that the condition and the bodies read.",
        "num_out_data": "How many of the outputs are stacked over the steps.",
        "in_state_locs": "Positions of the states among the inputs of the body.",
        "in_data_locs": "Positions of the sliced arrays among the inputs of the body.",
        "remain_locs": "Positions of the arrays that every step reads whole.",
        "max_iterations": "Largest number of steps; outputs are padded to it.",
        "pad_outputs": "Whether outputs are padded with zeros to `max_iterations` steps.",
        "cond_input_locs": "Positions, among the inputs, of what the condition reads.",
        "func_input_locs": "Positions, among the inputs, of what the body reads.",
        "func_var_locs": "Positions, among the body's inputs, of the loop variables.",
        "then_input_locs": "Positions, among the inputs, of what the first body reads.",
        "else_input_locs": "Positions, among the inputs, of what the second body reads.",
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
        "axis": "The axis whose slices are transformed one by one.",
        "num_states": "Number of initial states among the inputs, 1 or 2.",
        "use_sequence_length": "Whether the lengths of the sequences are among the inputs.",
    },
    "linalg": {
        "A": "A matrix, or a batch of matrices on the last two axes.",
        "B": "A matrix, or a batch of matrices on the last two axes.",
        "alpha": "Factor of the product.",
        "axis": "The axis of the matrix rows; columns are always the last axis.",
        "lower": "Whether the triangular matrix is a lower one.",
        "transpose": "Whether to transpose A.",
        "rightside": "Whether A stands on the right side of the product.",
    },
    "nn": {
        "gamma": "Scale of each channel.",
        "beta": "Shift of each channel.",
        "moving_mean": "Running mean of each channel, updated in place while training.",
        "moving_var": "Running variance of each channel, updated in place while training.",
        "momentum": "Share that running averages keep at each step of training.",
        "fix_gamma": "Whether gamma counts as 1 and gets no gradient.",
        "use_global_stats": "Whether training, too, normalizes by the running statistics.",
        "output_mean_var": "Whether mean and variance are further outputs.",
        "min_calib_range": "Accepted for compatibility; has no effect.",
        "max_calib_range": "Accepted for compatibility; has no effect.",
        "grad_scale": "Factor of the gradient.",
        **_ATTENTION,
        "attention": "Attention weights of shape ``(batch * heads, queries, keys)``.",
        "sequence_length": "Length of each sequence, of shape ``(batch,)``.",
        "use_sequence_length": "Whether `sequence_length` is given; else all have full length.",
        "temperature": "Divisor of the numbers before exponentials are taken; by default 1.",
        "use_length": "Whether `length` is given.",
        "compute_size": "Accepted for compatibility; has no effect.",
    },
    "quantization": {**_QUANTIZED, **_INT8, **_FOLDED},
    "numpy": {
        "*arys": "The arrays.",
        "A": "A matrix, or a batch of matrices on the last two axes.",
        "size": "Shape of the result; by default that of the parameters.",
        "ctx": "Device of the result; by default the current one.",
        "UPLO": "Triangle that is read: ``'L'`` for the lower one, ``'U'`` for the upper one.",
        "hermitian": "Whether A is symmetric, which is faster.",
        "axis": "Axis or axes; negative ones count from the last, None means all elements.",
        "initial": "Number that the reduction starts with.",
        "ddof": "How much the divisor is less than the number of elements.",
        "condition": "Where to take which: elements that are not 0 are true.",
        "mask": "Array of bool that covers axes of `data` from `start_axis`.",
        "start_axis": "First axis of `data` that the mask covers.",
        "newshape": "The new shape.",
        "order": "Order in which elements are read; only ``'C'``, the last axis fastest.",
        "input1": "Array of the first parameter that is not a number.",
        "input2": "Array of the second parameter that is not a number.",
        "loc": "Location of the distribution; None takes an array.",
        "scale": "Scale of the distribution; None takes an array.",
        "low": "Lower bound; None takes an array.",
        "high": "Upper bound, which is left out; None takes an array.",
        "arr": "The array to edit.",
        "obj": "Indices along the axis.",
        "values": "Values to insert; they broadcast.",
        "val": "One value to insert in place of `values`.",
        "int_ind": "One index, in place of an array or a slice.",
        "start": "First number; of a slice, its start.",
        "stop": "Where to stop; of a slice, its stop.",
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
        "high": "Upper bound, which is left out.",
        "k": "Number of successes to wait for.",
        "p": "Probability of a success.",
        "lam": "Rate of an exponential distribution, or mean of a Poisson distribution.",
        "alpha": "Shape of a gamma (or Dirichlet) distribution, or dispersion of counts.",
        "beta": "Scale of the gamma distribution; its density takes the rate.",
        "is_log": "Whether to return the logarithm of the density.",
        "sample": "Where to evaluate the density; its leading axes are those of the parameters.",
    },
    "tensor": {
        "sections": "Number of equal parts; 0 splits at `indices`.",
        "block_size": "Height and width of the blocks.",
        "init_output": "Accepted for compatibility; has no effect.",
        "is_ascend": "Whether the smallest come first.",
        "input_dim": "Number of rows of the weight: the size of the vocabulary.",
        "output_dim": "Number of columns of the weight: the size of a vector.",
        "sparse_grad": "Whether the gradient of the weight is row_sparse.",
    },
    "training": {
        "weight": "The weight ``w``.",
        "grad": "The gradient ``g``.",
        "mom": "The momentum ``m``, updated in place.",
        "mean": "The running mean ``m`` of the gradient, updated in place.",
        "var": "The running mean ``v`` of the squared gradient, updated in place.",
        "weight32": "The 32-bit copy of the weight, updated in place.",
        "history": "The sum ``h`` of squared gradients, updated in place.",
        "*data": "The arrays of all weights, one weight after the other.",
        "lr": "The learning rate ``lr``.",
        "lrs": "The learning rate of each weight.",
        "learning_rates": "The learning rate of each weight.",
        "wd": "The weight decay ``wd``.",
        "wds": "The weight decay of each weight.",
        "rescale_grad": "Factor of the gradient, such as 1 / batch size.",
        "clip_gradient": "Limit of the rescaled gradient's absolute value; below 0 there is none.",
        "clip_grad": "Limit of the rescaled gradient's absolute value; below 0 there is none.",
        "clip_weights": "Limit of the weights' absolute value; below 0 there is none.",
        "momentum": "Share ``mu`` of the momentum that each step keeps.",
        "beta1": "Share ``b1`` of the running mean that each step keeps.",
        "beta2": "Share ``b2`` of the running square that each step keeps.",
        "epsilon": "Small number ``eps`` in the denominator, against division by zero.",
        "eta": "Factor ``eta`` of the whole step, decay included: the schedule.",
        "etas": "Factor of the whole step of each weight, decay included.",
        "t": "Number of the step, from 1 on.",
        "lazy_update": "Whether a row_sparse gradient leaves the rows alone that it does not have.",
        "num_weights": "Number of weights.",
        "num_tensors": "Number of weights.",
        "step_count": "Number of the step of each weight, from 1 on.",
        "bias_correction": "Whether running means are corrected for starting at 0.",
        "lower_bound": "Least norm of a weight that counts; below 0 there is none.",
        "upper_bound": "Largest norm of a weight that counts; below 0 there is none.",
        "r1": "Norm of the weight, of shape ``(1,)``.",
        "r2": "Norm of the direction, of shape ``(1,)``.",
        "g": "Direction of the step, as phase 1 returns it.",
        "gamma1": "Fraction of the running square that each step keeps.",
    },
    "vision": {
        "rois": (
            "Regions of shape ``(regions, 5)``: the number of the image, then x1, y1, x2, y2."
        ),
        "pooled_size": "Height and width of the result.",
        "spatial_scale": "Size of the feature map divided by the size of the image.",
        "output_dim": "Number of output channels.",
        "group_size": "Number of bins along each side of the grid of channel groups.",
        "num_deformable_group": "Number of groups of channels that share offsets.",
        "offset": (
            "Displacements ``(y, x)`` of each point of the window at each place, of shape "
            "\n``(batch, groups * 2 * kernel points, height, width)``."
        ),
        "anchor": "Anchors as corners, of shape ``(1, anchors, 4)``, relative to the image.",
        "anchors": "Anchor boxes of shape ``(1 or batch, anchors, 4)``.",
        "variances": "Factors of the offsets of x, y, width and height.",
        "background_id": "The class that is background, or -1 for none.",
        "force_suppress": "Whether overlapping boxes of other classes are suppressed too.",
        "cls_prob": "Class probabilities.",
        "min_factor": "Least factor.",
        "max_factor": "Largest factor.",
        "width": "Width in pixels.",
        "height": "Height in pixels.",
        "topk": "How many of the best to look at; -1 means all.",
        "ratios": "Ratios of height to width of the anchors.",
        "scales": "Sizes of the anchors, in steps of the feature map.",
        "feature_stride": "Distance in image pixels between neighboring places of the map.",
        "bbox_pred": "Predicted offsets of shape ``(batch, 4 * anchors, height, width)``.",
        "im_info": "Rows of height, width and scale of each image.",
        "rpn_pre_nms_top_n": "How many of the best boxes to keep before suppression.",
        "rpn_post_nms_top_n": "How many boxes to return; short lists repeat theirs.",
        "rpn_min_size": "Least height and width of a box, in pixels before scaling.",
        "output_score": "Whether scores are a second output.",
        "iou_loss": "Whether offsets are those of the corners themselves.",
        "cudnn_off": "Accepted for compatibility; has no effect.",
        "workspace": "Accepted for compatibility; has no effect.",
        "transform_type": "``'affine'`` for 2x3 matrices, ``'warp'`` for a flow in pixels.",
        "target_shape": "Height and width of the result.",
    },
}
