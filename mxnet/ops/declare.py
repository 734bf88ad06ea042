"""`@op`: declare an operator once, as a plain function on torch tensors.

Positional parameters are tensors, keyword-only parameters are attributes, annotations carry the
rest, and every fact about the operator is on its record. `README.md` beside this file shows how.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NoReturn,
    TypeVar,
    Union,
    overload,
)

import torch
from torch import Tensor

from .._process.caches import has_nan, store
from ..error import (
    AttributeConversionError,
    MXNetError,
    UnknownAttribute,
    did_you_mean,
)
from . import registry
from .attributes import MAX_ARRAYS, Attribute, attribute_type, is_hidden, to_string
from .facts import Attrs, Facts
from .gradients import with_gradient_rule
from .shapes import KnownShapes, Shapes, TypePattern, infer_by_rules

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .facts import Options

Variant = Literal["view", "in_place", "out", "call", "node", "hidden_outputs"]
MAX_CACHED_ATTRS = 4096
# Errors of kernels for invalid arguments, such as a stride of 0.
KERNEL_ERRORS = (RuntimeError, IndexError, TypeError, ValueError, ArithmeticError, MemoryError)
# Keywords of PyTorch and NumPy, and their equivalents in MXNet.
ELSEWHERE = {
    "dim": "axis",
    "axes": "axis",
    "keepdim": "keepdims",
    "kernel_size": "kernel",
    "padding": "pad",
    "dilation": "dilate",
    "groups": "num_group",
    "out_channels": "num_filter",
    "out_features": "num_hidden",
    "units": "num_hidden",
}


class Aux(NamedTuple):
    """Marks an input as auxiliary state: mutated in place, without a gradient."""

    init: str


ZeroAux = Annotated[Tensor, Aux("zero")]
OneAux = Annotated[Tensor, Aux("one")]


class OpContext(NamedTuple):
    """The context of a running operator."""

    training: bool
    device: torch.device


class Epilogue(NamedTuple):
    """An elementwise function that fused operators apply to their results (`ops/fused`)."""

    name: str
    constants: tuple[float, ...] = ()


class Input(NamedTuple):
    """An input tensor of an operator."""

    name: str
    optional: bool
    aux: Aux | None


class Op:
    """An operator record: its function and all facts about it.

    Calling an `Op` runs it on torch tensors; attributes must be parsed (see `parse`).
    """

    def __init__(
        self, function: Callable, names: tuple[str, ...], **options: Unpack[Options]
    ) -> None:
        self.variants: dict[Variant, Callable] = {}
        self.epilogue_rule: Callable[[Attrs], Epilogue | None] | None = None
        self.subgraph_rule: Callable | None = None  # infers through the graphs of its node
        self.auxiliary_rule: Callable | None = None  # inputs that are states of those graphs
        self.work_rule: Callable[[KnownShapes, KnownShapes, Attrs], int] | None = None
        self.decomposition_rule: Callable | None = None
        self.function = function
        self.kernel = function
        self.name, self.aliases = names[0], names[1:]
        self._take(options)
        self.gradient_rule: Callable | None = None
        self.raw: Callable | None = None  # the bare torch kernel of a family's member
        self.swapped = False  # whether that kernel takes the number first
        self.input_rule: Callable | None = None
        self.output_rule: Callable | None = None
        self.parsed_attributes: dict[tuple, Attrs] = {}
        self.storage_rule: Callable | None = None  # see sparse.py
        self.gradient_storage_rule: Callable | None = None
        self._read_signature(function)
        update_wrapper(self, function)

    def _take(self, options: Options) -> None:
        """Apply the options of the declaration; see `Options`."""
        self.optional = dict(options.pop("optional", {}))
        self._outputs = options.pop("outputs", 1)
        self._total = options.pop("total", None)
        self.attributes_of = options.pop("attributes_of", None)
        self.count = options.pop("count", None)
        self.type_pattern = TypePattern(options.pop("types", None))
        self.shape_rule = options.pop("shape", None)
        self.method = options.pop("method", False)
        self.auto_inputs = options.pop("auto_inputs", True)
        self.mutates = options.pop("mutates", ())
        self._input_names = options.pop("input_names", None)
        self.names_inputs = self._input_names is not None  # names depend on attributes
        self.value_dependent = options.pop("value_dependent", False)
        facts: dict[str, Any] = {**options}  # remaining options
        if self.mutates or not self.auto_inputs:
            facts.setdefault("precision", "own")  # weights and states keep their types
        self.facts = Facts(**facts)

    def _read_signature(self, function: Callable) -> None:
        hints = {k: _evaluate(v, function) for k, v in function.__annotations__.items()}
        shared = self.attributes_of
        inputs, attributes = [], {} if shared is None else dict(shared.attributes)
        self.variadic: str | None = None
        self.context_parameter: str | None = None
        self.free_attributes = False  # keeps unknown attributes as strings
        for parameter in inspect.signature(function).parameters.values():
            hint = hints.get(parameter.name, Tensor)
            if parameter.kind is parameter.VAR_POSITIONAL:
                self.variadic = parameter.name
            elif parameter.kind is parameter.VAR_KEYWORD:
                self.free_attributes = shared is None
            elif parameter.kind is not parameter.KEYWORD_ONLY:
                inputs.append(_input(parameter.name, hint))
            elif hint is OpContext:
                self.context_parameter = parameter.name
            else:
                attributes[parameter.name] = _attribute(parameter, hint)
        self.inputs: tuple[Input, ...] = tuple(inputs)
        self.input_index = {i.name: n for n, i in enumerate(inputs)}
        self.attributes: dict[str, Attribute] = attributes
        self.defaults = {a.name: a.default for a in attributes.values() if not a.required}
        self.required = [a.name for a in attributes.values() if a.required]
        self.has_aux = any(i.aux for i in inputs)
        # As in MXNet, operators without attributes ignore unknown ones.
        self.takes_attributes = bool(attributes) or self.count is not None

    def __call__(self, *tensors: Tensor | None, **attrs: Any) -> Any:
        """Run the operator on tensors."""
        return self.kernel(*tensors, **attrs)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    # -- companion rules ----------------------------------------------------------------------

    def gradient(self, rule: Callable) -> Callable:
        """Register a gradient rule instead of torch's: ``rule(grad, out, *inputs, **attrs)``.

        It returns one gradient for each input (None where there is none). With several outputs
        `grad` and `out` are tuples.
        """
        self.gradient_rule = rule
        self.kernel = with_gradient_rule(self)
        return rule

    def infer_inputs(self, rule: Callable) -> Callable:
        """Register the inference of input shapes: ``rule(*shapes, **attrs) -> {name: shape}``.

        Shapes come in the order of the inputs, None where unknown, -1 for an unknown size.
        """
        self.input_rule = rule
        return rule

    def infer_outputs(self, rule: Callable) -> Callable:
        """Register the rule of output shapes, ``rule(*shapes, **attrs)``; else torch infers."""
        self.output_rule = rule
        return rule

    def variant(self, kind: Variant) -> Callable[[Callable], Callable]:
        """Register other forms of the kernel: ``rule(attrs, ...)`` returns one, or None.

        Attributes are complete, except for ``"call"``, which gets only the given ones. Kernels take
        only the tensors.

        ``"view"``, ``rule(attrs)``: returns the result as a view of the input, for steps inside a
        graph, whose results are not written.

        ``"in_place"``, ``rule(attrs)``: overwrites the first input. Autograd must need only the
        result for the gradient.

        ``"out"``, ``rule(attrs, dtype)``: ``kernel(*tensors, out=tensor)`` writes into `out`. All
        tensors have the same shape and the floating-point `dtype`; `out` may be one of them.

        ``"call"``, ``rule(attrs, dtype)``: for the call cache, created once for fixed attributes
        and the common dtype of all inputs (None for an operator without inputs, with result on the
        CPU). If it raises, the operator's own kernel runs instead.

        ``"node"``, ``rule(attrs, differentiable)``: a specialized kernel for a node of a graph.
        With `differentiable`, torch must be able to differentiate it. It may raise `Fallback` for
        values for which its result would differ from the operator's.

        ``"hidden_outputs"``, ``rule(attrs)``: also returns the hidden outputs, for monitors;
        `Facts.hidden_outputs` has their names.
        """

        def register(rule: Callable) -> Callable:
            self.variants[kind] = rule
            return rule

        return register

    def find_variant(self, kind: Variant, attrs: Attrs, *facts: Any) -> Callable | None:
        """Return another form of the kernel, if there is one for these attributes."""
        rule = self.variants.get(kind)
        return None if rule is None else rule(attrs, *facts)

    def epilogue(self, rule: Callable[[Attrs], Epilogue | None]) -> Callable:
        """Register the operator's form as the last step of a fused operator."""
        self.epilogue_rule = rule
        return rule

    def work(self, rule: Callable[[KnownShapes, KnownShapes, Attrs], int]) -> Callable:
        """Register the number of multiply-adds of a call: ``rule(ins, outs, attrs)`` on shapes."""
        self.work_rule = rule
        return rule

    def decomposition(self, rule: Callable) -> Callable:
        """Register equivalent operators of MXNet: ``rule(apply, *inputs, **attrs)``.

        Attributes are complete; ``apply(op, *inputs, **attrs)`` returns the output of an operator.
        """
        self.decomposition_rule = rule
        return rule

    # -- attributes ---------------------------------------------------------------------------

    def parse(self, raw: Mapping[str, Any]) -> Attrs:
        """Parse the given attributes; raise for unknown, missing and invalid ones."""
        if self.free_attributes:  # values of any kind, whose text may change
            return self._parse(raw)
        try:
            key = typed_key(raw)
            cached = self.parsed_attributes.get(key)
            if cached is not None:
                return cached
        except TypeError:  # a list or an array is among the values
            key = None
        typed = self._parse(raw)
        if key is not None and not has_nan(key[1]):
            store(self.parsed_attributes, key, typed, MAX_CACHED_ATTRS)
        return typed

    def _parse(self, raw: Mapping[str, Any]) -> Attrs:
        typed = {}
        for name, value in raw.items():
            attribute = self.attributes.get(name)
            if attribute is not None:
                typed[name] = attribute.parse(value, self.name)
            elif self.free_attributes:
                typed[name] = to_string(value)
            elif name != self.count and self.takes_attributes and not is_hidden(name):
                raise self._unknown(name)
        for name in self.required:
            if name not in typed:
                raise AttributeConversionError(
                    f"Required parameter {name} of {self.attributes[name].type.label} is not "
                    f"presented, in operator {self.name}. Give {name}=..."
                )
        return typed

    def _unknown(self, name: str) -> UnknownAttribute:
        possible = "\n".join(
            f"{a.name} : {a.type.label}, "
            + ("required" if a.required else f"optional, default={to_string(a.default)}")
            for a in self.attributes.values()
        )
        names = [*self.attributes, *self.input_index]
        other = ELSEWHERE.get(name)
        hint = f"Did you mean {other!r}?" if other in names else did_you_mean(name, names)
        return UnknownAttribute(
            f"Cannot find argument '{name}', Possible Arguments:\n----------------\n{possible}\n"
            f", in operator {self.name}. {hint}".rstrip()
        )

    def complete(self, typed: Mapping[str, Any]) -> Attrs:
        """Return the given attributes and the defaults of the others."""
        return {**self.defaults, **typed}

    # -- inputs and outputs -------------------------------------------------------------------

    def writes_into(self, name: str | None) -> bool:
        """Return whether a call mutates an input, such as an auxiliary state or a momentum."""
        return name in self.mutates or any(i.aux for i in self.inputs if i.name == name)

    @property
    def has_written_inputs(self) -> bool:
        """Whether a call mutates any input."""
        return self.has_aux or bool(self.mutates)

    def names_of_inputs(self, attrs: Attrs, given: int = 0) -> list[str]:
        """Return the inputs for complete attributes.

        Variadic operators name them ``arg0, arg1, ...``; `given` is their number.
        """
        if self._input_names is not None:
            return self._input_names(attrs)
        if self.variadic is not None:
            return [f"arg{i}" for i in range(given)]
        optional = self.optional
        return [i.name for i in self.inputs if i.name not in optional or optional[i.name](attrs)]

    def wanted_inputs(self, typed: Attrs) -> tuple[str, ...]:
        """Return the inputs for parsed attributes."""
        return tuple(self.names_of_inputs(self.complete(typed)))

    def aux_names(self, attrs: Attrs | None = None) -> list[str]:
        """Return the auxiliary states for these attributes."""
        return [i.name for i in self.inputs if i.aux]

    def names_of_outputs(self, attrs: Attrs) -> tuple[str, ...] | None:
        """Return the names of the visible outputs, if the operator has any."""
        declared = self._outputs(attrs) if callable(self._outputs) else self._outputs
        return declared if isinstance(declared, tuple) else None

    def number_of_outputs(self, attrs: Attrs) -> int:
        """Return the number of visible outputs for complete attributes."""
        result = self._outputs(attrs) if callable(self._outputs) else self._outputs
        count = len(result) if isinstance(result, tuple) else result
        if not 0 <= count <= MAX_ARRAYS:
            raise MXNetError(f"{self.name}: {count} outputs; there can be up to {MAX_ARRAYS}.")
        return count

    def total_outputs(self, attrs: Attrs) -> int:
        """Return the number of outputs in model files, including hidden ones."""
        if self._total is None:
            return self.number_of_outputs(attrs)
        return self._total if isinstance(self._total, int) else self._total(attrs)

    # -- inference ----------------------------------------------------------------------------

    def infer_shapes(self, ins: Shapes, outs: Shapes, attrs: Attrs) -> tuple[Shapes, Shapes]:
        """Infer the shapes of present inputs and visible outputs."""
        return infer_by_rules(self, ins, outs, attrs)

    def infer_types(self, ins: list, outs: list, attrs: Attrs) -> tuple[list, list]:
        """Infer the dtypes of present inputs and visible outputs."""
        return self.type_pattern.infer(self, ins, outs, attrs)

    def needs_head_gradient(self, attrs: Attrs) -> bool:
        """Return whether backward uses the gradients of the outputs."""
        return self.facts.needs_head_gradient

    def instantiate(self, attrs: Attrs, subgraphs: Sequence = ()) -> Callable:
        """Return the kernel for a node; operators with memory create one per node."""
        return self.kernel

    @property
    def has_memory(self) -> bool:
        """Whether each node in a graph has its own kernel."""
        return type(self).instantiate is not Op.instantiate

    def context_for(self, training: bool, device: torch.device) -> Attrs:
        """Return the keyword argument with an `OpContext`, if the function has one."""
        if self.context_parameter is None:
            return {}
        return {self.context_parameter: OpContext(training, device)}


def typed_key(raw: Mapping[str, Any]) -> tuple:
    """Return a key of attribute values that distinguishes ``True``, ``1``, ``1.0`` and ``-0.0``.

    >>> len({typed_key({"x": v}) for v in (True, 1, 1.0, 0.0, -0.0)})
    5
    """
    values = tuple(raw.values())
    kinds = tuple(map(type, values))
    if float in kinds or tuple in kinds:
        return tuple(raw), values, kinds, tuple(map(str, values))
    return tuple(raw), values, kinds


_annotations: dict[tuple[str, str], Any] = {}


def _evaluate(annotation: Any, function: Callable) -> Any:
    """Evaluate an annotation; cached per module."""
    if not isinstance(annotation, str):
        return annotation
    key = (function.__module__, annotation)
    if key not in _annotations:
        _annotations[key] = eval(annotation, function.__globals__)
    return _annotations[key]


def _input(name: str, hint: Any) -> Input:
    optional = typing.get_origin(hint) in (Union, types.UnionType)
    aux = None
    for part in typing.get_args(hint) if optional else (hint,):
        if typing.get_origin(part) is Annotated:
            aux = next((m for m in typing.get_args(part) if isinstance(m, Aux)), aux)
    return Input(name, optional, aux)


def _attribute(parameter: inspect.Parameter, hint: Any) -> Attribute:
    kind = attribute_type(hint)
    required = parameter.default is parameter.empty
    return Attribute(parameter.name, kind, None if required else parameter.default, required)


Record = TypeVar("Record", bound=Op)


@overload
def op(
    *names: str, cls: type[Record], **options: Unpack[Options]
) -> Callable[[Callable], Record]: ...


@overload
def op(*names: str, **options: Unpack[Options]) -> Callable[[Callable], Op]: ...


def op(*names: str, cls: type[Op] = Op, **options: Unpack[Options]) -> Callable[[Callable], Op]:
    """Declare an operator under its MXNet name and aliases.

    Parameters
    ----------
    names : the registry name first, then its aliases.
    cls : the class of the record, for operators whose facts come from user code.
    options : see `Options`; all others are fields of `Facts`, such as ``precision="full"``.
    """

    def declare(function: Callable) -> Op:
        record = cls(function, names, **options)
        registry.register(record, *names)
        return record

    return declare


class FunctionCall(Op):
    """The record of a call of an `autograd.Function`.

    It is not registered, because the object of the call cannot be restored from a name and
    attributes.
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]]) -> None:
        def infer(ins: KnownShapes, outs: KnownShapes, attrs: Attrs) -> tuple[KnownShapes, list]:
            return ins, list(shapes)

        super().__init__(
            _refuse, ("_CustomFunction",), outputs=len(shapes), shape=infer, auto_inputs=False
        )


def _refuse(*data: Tensor) -> NoReturn:
    raise MXNetError(
        "_CustomFunction: graphs of autograd.get_symbol show calls of an autograd.Function but "
        "cannot run them. Write it as mx.operator.CustomOp to run it in graphs."
    )
