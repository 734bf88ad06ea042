"""Generates the eager function of an operator, `mx.nd.X(...)`, from one template.

A generated function has the operator's real parameters. A call with the types and attributes of an
earlier call runs the kernel directly (the call cache). All other calls and all errors go through
`apply`, so cached and uncached calls raise the same errors.

    def sum(data=None, axis=_Null, ..., out=None, name=None, **kwargs):
        kind_ = _type(data)
        if (kind_ is _cls or kind_ is _twin) and out is None and ...:
            key_ = (data._dtype, axis, _type(axis), ...)
            run_, dtype_ = _calls[key_]
            ... run the bound kernel on the tensor, wrap the result
        return _general((data,), (axis, ...), out, kwargs, key_)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .._process.caches import has_nan, store
from ..base import _Null
from ..context import CPU_0, current_context
from ..error import InvalidType, MXNetError
from ..ops import interpreters
from ..ops.declare import KERNEL_ERRORS, MAX_CACHED_ATTRS, Op, OpContext
from .apply import apply
from .array import (
    Handle,
    NoDenseOperand,
    new_object,
    operand_in,
    plain,
    wrap,
    wrap_constant,
    written_in,
)
from .recording import CONSTANT, Member, Step, call_step, node_of, record_step, state

if TYPE_CHECKING:
    from ..ndarray.ndarray import NDArray

_CPU = torch.device("cpu")
_ON_CPU = {training: OpContext(training, _CPU) for training in (False, True)}
_ERRORS = (KeyError, MXNetError, *KERNEL_ERRORS)
_compiling = threading.RLock()


def make_call_function(op: Op, cls: type[NDArray]) -> Callable:
    """Return the eager function of an operator; its code is compiled when it is first called.

    Compiling hundreds of functions takes longer than importing the package, and a program uses
    few of them. Until then the function has the code of a stub.
    """
    names = _Names(op)
    namespace: dict[str, Any] = {
        "__name__": __name__,
        "_Null": _Null,
        "_calls": {},
        "_cls": cls,
        "_context": current_context,
        "_operand": operand_in,
        "_written": written_in,
        "_default": CPU_0,
        "_errors": _ERRORS,
        "_interpreters": interpreters.eager,
        "_new": new_object,
        "_active": interpreters.active,
        "_node_of": node_of,
        "_CONSTANT": CONSTANT,
        "_Member": Member,
        "_state": state,
        "_type": type,
        "_wrap": _wrap_several,
        "_wrap_constant": wrap_constant,
    }
    namespace["_general"] = _general_path(op, cls, names, namespace["_calls"])
    function = FunctionType(_stub.__code__, namespace, op.name)

    def compile_code() -> Callable:
        with _compiling:
            # Functions of legacy arrays also accept arrays of mx.np, and then return these.
            namespace["_twin"] = cls if cls.is_numpy else Handle.numpy_class
            source = _variadic_source(op, names) if op.variadic else _fixed_source(op, names)
            scope: dict[str, Any] = {}
            exec(compile(source, f"<generated function of {op.name}>", "exec"), namespace, scope)
            call = scope["call"]
            function.__defaults__, function.__kwdefaults__ = call.__defaults__, call.__kwdefaults__
            function.__code__ = call.__code__
        return function

    namespace["_compile"] = compile_code
    return function


def _stub(*args: Any, **kwargs: Any) -> Any:
    return _compile()(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


class _Names:
    """The parameters of a generated function, in MXNet's order."""

    def __init__(self, op: Op) -> None:
        self.inputs = [] if op.variadic is not None else [i.name for i in op.inputs]
        self.attributes = [a for a in op.attributes if a not in ("out", *self.inputs)]
        self.extras = [e for e in ("out", "name") if e not in self.attributes]


# -- source code ------------------------------------------------------------------------------


def _attribute_keys(op: Op, attributes: Sequence[str]) -> list[str]:
    """Return the parts of a cache key: values and their types, zeros with their sign."""
    parts = []
    for name in attributes:
        label = op.attributes[name].type.label.removesuffix(" or None")
        if label == "float":  # 0.0 and -0.0 are equal keys, but differ as text
            absent = f"{name} is _Null or {name} is None"
            parts.append(f"{name} if {absent} else {name} or str({name})")
        elif label == "tuple of <float>":  # the text of an array omits digits and elements
            parts += [name, f"str({name})"]
        else:
            parts.append(name)
        parts.append(f"_type({name})")
    return parts


def _key(op: Op, names: _Names, first: Sequence[str]) -> str:
    """Return the expression of the cache key.

    Most calls pass at most the first attribute. Their keys omit the other attributes.
    """
    if not names.attributes:
        return first[0] if len(first) == 1 else f"({', '.join(first)},)"
    head, *rest = names.attributes
    short = f"({', '.join([*first, *_attribute_keys(op, [head])])},)"
    if not rest:
        return short
    full = f"({', '.join([*first, *_attribute_keys(op, names.attributes)])},)"
    return f"{short} if {' is '.join(rest)} is _Null else {full}"


def _key_of_arrays(op: Op, names: _Names, dtypes: Sequence[str]) -> str:
    """Return the expression of the cache key for a call on arrays.

    Without attributes it is the dtype itself, if all inputs have the same one.
    """
    key = _key(op, names, dtypes)
    if not names.attributes or len(dtypes) > 2:
        return key
    has_none = f"{' is '.join(names.attributes)} is _Null"
    if len(dtypes) == 1:
        return f"{dtypes[0]} if {has_none} else ({key})"
    first, second = dtypes
    return f"one_ if (one_ := {first}) is ({second}) and {has_none} else ({key})"


# `recording.node_of`, inlined, for members that are not constants.
_NODE = (
    "(m_.node if (m_ := {0}._member) is not None and m_.kind is not _CONSTANT else _node_of({0}))"
)
_WRAP_RECORDED = """\
            if session_ is not None:
                if not out_.requires_grad:
                    return _wrap_constant({kind}, out_, {dtype}, session_, call_, {sources})
                made_ = _new({kind})
                made_._data = made_._grad = None
                made_._member = _Member(out_, session_, (call_, {nodes}))
                made_._dtype = {dtype}
                made_._ctx = {ctx}
                return made_"""
_WRAP = """\
            made_ = _new({kind})
            made_._data = out_
            made_._dtype = {dtype}
            made_._ctx = {ctx}
            made_._grad = made_._member = None
            return made_"""


def _attribute_tuple(names: _Names) -> str:
    return f"({', '.join(names.attributes)},)" if names.attributes else "()"


def _fixed_source(op: Op, names: _Names) -> str:
    inputs, attributes = names.inputs, _attribute_tuple(names)
    parameters = [*(f"{i}=None" for i in inputs), *(f"{a}=_Null" for a in names.attributes)]
    parameters += [*(f"{e}=None" for e in names.extras), "**kwargs"]
    everything = f"({', '.join(inputs)},)" if inputs else "()"
    lines = [f"def call({', '.join(parameters)}):", "    key_ = None"]
    if not op.free_attributes:
        lines += (
            _fast_path_of_arrays(op, names, everything)
            if inputs
            else _fast_path_of_creation(op, names)
        )
    lines.append(f"    return _general({everything}, {attributes}, out, kwargs, key_)")
    return "\n".join(lines)


def _fast_path_of_arrays(op: Op, names: _Names, everything: str) -> list[str]:
    """Return the lines that run a cached call on arrays.

    The key contains the dtypes of all inputs, so the cache also stores the dtype of the result.
    """
    inputs, first = names.inputs, names.inputs[0]
    optional = {i.name for i in op.inputs if i.optional or i.name in op.optional}
    optional.discard(first)  # the class and context come from it: required
    tests = [
        f"({i} is None or _type({i}) is kind_)" if i in optional else f"_type({i}) is kind_"
        for i in inputs[1:]
    ]
    tests.insert(0, "(kind_ is _cls or kind_ is _twin)")
    absent = {i: f"None if {i} is None else " if i in optional else "" for i in inputs}
    dtypes = [f"{absent[i]}{i}._dtype" for i in inputs]
    xs = {i: f"tensor{n}_" for n, i in enumerate(inputs)}
    take = {i: "_written" if op.writes_into(i) else "_operand" for i in inputs}
    nodes = ", ".join(f"{absent[i]}{_NODE.format(i)}" for i in inputs)
    output = {"kind": "kind_", "dtype": "dtype_", "ctx": f"{first}._ctx"}
    missing = " or ".join(
        f"({x} is None and {i} is not None)" if i in optional else f"{x} is None"
        for i, x in xs.items()
    )
    return [
        f"    kind_ = _type({first})",
        f"    if {' and '.join(tests)} and out is None and not kwargs:",
        "        session_ = None",
        "        try:",
        f"            key_ = {_key_of_arrays(op, names, dtypes)}",
        "            run_, dtype_, call_ = _calls[key_]",
        *(f"            {x} = {absent[i]}{i}._data" for i, x in xs.items()),
        f"            if _active or {missing}:",
        "                if _interpreters:",
        "                    raise KeyError",
        "                session_ = _state.session",
        *(f"                {x} = {absent[i]}{take[i]}(session_, {i})" for i, x in xs.items()),
        f"            out_ = run_({', '.join(xs.values())})",
        "        except _errors:  # not cached, or the general path explains the error",
        "            pass",
        "        else:",
        "            if dtype_ is None:",
        f"                return _wrap(out_, {everything}, call_)",
        _WRAP_RECORDED.format(sources=everything, nodes=nodes, **output),
        _WRAP.format(**output),
    ]


def _fast_path_of_creation(op: Op, names: _Names) -> list[str]:
    """Return the lines that run a cached call of an operator without inputs, on ``cpu(0)``."""
    return [
        "    if out is None and not kwargs and not _interpreters and _context() is _default:",
        "        try:",
        f"            key_ = {_key(op, names, ['None'])}",
        "            run_, dtype_, _ = _calls[key_]",
        "            out_ = run_()",
        "        except _errors:",
        "            pass",
        "        else:",
        _WRAP.format(kind="_cls", dtype="dtype_", ctx="None"),
    ]


def _variadic_source(op: Op, names: _Names) -> str:
    attributes = _attribute_tuple(names)
    take = "_written" if op.writes_into(op.variadic) else "_operand"
    output = {"kind": "kind_", "dtype": "made_dtype_", "ctx": "args[0]._ctx"}
    nodes = f"*[{_NODE.format('a')} for a in args]"
    parameters = ["*args", *(f"{a}=_Null" for a in names.attributes)]
    parameters += [*(f"{e}=None" for e in names.extras), "**kwargs"]
    lines = [f"def call({', '.join(parameters)}):", "    key_ = None"]
    if not op.free_attributes:
        lines += [
            "    if len(args) == 1 and (_type(args[0]) is tuple or _type(args[0]) is list):",
            "        args = tuple(args[0])",
            "    if args and out is None and not kwargs and not _interpreters:",
            "        try:",
            "            kind_ = _type(args[0])",
            "            if kind_ is not _cls and kind_ is not _twin:",
            "                raise TypeError",
            "            dtype_ = args[0]._dtype",
            f"            key_ = {_key(op, names, ['len(args)', 'dtype_'])}",
            "            run_, made_dtype_, call_ = _calls[key_]",
            "            session_ = _state.session if _active else None",
            "            tensors_ = []",
            "            for array_ in args:",
            "                if _type(array_) is not kind_ or array_._dtype is not dtype_:",
            "                    raise TypeError",
            "                x_ = array_._data",
            "                if _active or x_ is None:",
            f"                    x_ = {take}(session_, array_)",
            "                tensors_.append(x_)",
            "            out_ = run_(*tensors_)",
            "        except _errors:",
            "            pass",
            "        else:",
            "            if made_dtype_ is None:",
            "                return _wrap(out_, args, call_)",
            _WRAP_RECORDED.format(sources="args", nodes=nodes, **output),
            _WRAP.format(**output),
        ]
    lines.append(f"    return _general(args, {attributes}, out, kwargs, key_)")
    return "\n".join(lines)


# -- the general path -------------------------------------------------------------------------


def _wrap_several(tensors: Sequence[Tensor], sources: Sequence[Any], call: Step) -> list[NDArray]:
    """Return the arrays of several results."""
    cls = type(sources[0])
    outputs = [wrap(cls, each, sources[0]._ctx) for each in tensors]
    if interpreters.active:
        record_step(outputs, call, sources)
    return outputs


def _general_path(op: Op, cls: type[NDArray], names: _Names, calls: dict) -> Callable:
    """Return a function that runs a call which is not in the cache, and caches it."""

    def general(inputs: Sequence, values: tuple, out: Any, kwargs: dict, key: Any) -> Any:
        raw = {k: v for k, v in zip(names.attributes, values, strict=True) if v is not _Null}
        raw |= kwargs
        if op.variadic is not None:
            # Only operators that name their own inputs (Custom) take arrays by keyword.
            named = {k: raw.pop(k) for k, v in kwargs.items() if isinstance(v, Handle)}
            if named:
                inputs = _merge_named(op, inputs, named, raw)
            if len(inputs) == 1 and isinstance(inputs[0], list | tuple):
                inputs = inputs[0]
        for name, array in zip(names.inputs or repeat(op.variadic), inputs, strict=False):
            if not isinstance(array, Handle) and (array is not None or op.variadic is not None):
                raise _not_an_array(name, array)
        if op.variadic is not None and op.count is not None:
            _check_count(op, raw, len(inputs))
        outputs = apply(op, inputs, raw, out, cls=cls)
        # Interpreters may change the results of a call.
        if key is not None and not interpreters.eager and _is_cacheable(op, inputs):
            _remember(op, calls, key, inputs, raw, outputs)
        return outputs

    return general


def _is_cacheable(op: Op, inputs: Sequence) -> bool:
    """Return whether the cache key describes the inputs: all have one class and dtype."""
    if op.variadic is None:
        return True
    return all(type(a) is type(inputs[0]) and a._dtype is inputs[0]._dtype for a in inputs)


def _merge_named(op: Op, args: Sequence, named: dict, raw: dict) -> list:
    names = op.names_of_inputs(op.complete(op.parse(raw)), len(args) + len(named))
    unknown = [k for k in named if k not in names[len(args) :]]
    if unknown:
        raise MXNetError(
            f"Operator {op.name} has no input {unknown[0]!r} left: its inputs are {names}."
        )
    return [*args, *(named[n] for n in names[len(args) :] if n in named)]


def _check_count(op: Op, raw: dict, count_given: int) -> None:
    count = raw.get(op.count)
    if op.count in op.attributes:
        raw.setdefault(op.count, count_given)
    else:
        raw.pop(op.count, None)
    if count is not None and str(count) != str(count_given):
        if op.count in op.attributes:
            op.parse(raw)  # raises for a count that is not a number, as in graphs
        raise MXNetError(
            f"Operator {op.name}: {op.count}={count}, but {count_given} arrays were given."
        )


def _not_an_array(key: str | None, value: Any) -> InvalidType:
    advice = "Wrap it: mx.nd.array(value)."
    if hasattr(value, "list_arguments"):
        advice = (
            "Symbols need the functions of mx.sym: in hybrid_forward call F.name(...), where F is "
            "mx.nd or mx.sym, rather than mx.nd.name(...)."
        )
    kind = type(value).__name__
    shown = f"the {kind} {value!r}"
    if _holds_arrays(value):
        shown = f"a {kind} of {len(value)} arrays"
        advice = "Give the arrays one by one: f(*arrays)."
    elif len(shown) > 80 or "\n" in shown:
        shape = (
            f" of shape {value.shape}" if hasattr(value, "shape") else f": {repr(value)[:80]}..."
        )
        shown = f"{kind}{shape}"
    return InvalidType(f"Argument {key} must have NDArray type, but got {shown}. {advice}")


def _holds_arrays(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(hasattr(each, "asnumpy") for each in value)


# -- the call cache ---------------------------------------------------------------------------


def _remember(
    op: Op, calls: dict, key: Any, inputs: Sequence, raw: dict[str, Any], outputs: Any
) -> None:
    """Cache the bound kernel of a successful call, and the dtype of its result.

    The dtype is None if there are several results.
    """
    if not inputs and (
        isinstance(outputs, list) or outputs._ctx is not None or not plain(outputs).is_cpu
    ):
        return
    attrs = op.parse(raw)
    if op.variadic is None and op.optional:
        present = [i.name for i, a in zip(op.inputs, inputs, strict=True) if a is not None]
        if present != list(op.wanted_inputs(attrs)):
            return
    try:
        fast = None
        if key not in calls:  # else the fast kernel has just failed for this key
            fast = _find_fast_kernel(op, {a._dtype for a in inputs if a is not None}, attrs)
        bound = _bind(op, attrs) if fast is None else fast
        dtype = None if isinstance(outputs, list) else outputs._dtype
        if not has_nan(key):
            store(calls, key, (bound, dtype, call_step(op, attrs)), MAX_CACHED_ATTRS)
    except TypeError:  # an attribute is a list, which cannot be a key
        return


def _find_fast_kernel(op: Op, dtypes: set, attrs: dict[str, Any]) -> Callable | None:
    """Return the kernel for fixed attributes and inputs of one dtype, or None if there is none."""
    if op.gradient_rule is not None or len(dtypes) > 1:
        return None
    return op.find_variant("call", attrs, dtypes.pop() if dtypes else None)


def _refusing_members(kernel: Callable, attrs: dict[str, Any]) -> Callable:
    """Return a cast to integers that raises for members of a graph, which `apply` handles."""

    def cast(tensor: Tensor) -> Tensor:
        if tensor.requires_grad:
            raise NoDenseOperand("A member of a graph becomes an integer.")
        return kernel(tensor, **attrs)

    return cast


def _bind(op: Op, attrs: dict[str, Any]) -> Callable:
    """Return the operator's kernel with bound attributes, as a function of tensors."""
    if op.facts.makes_integers(attrs):
        return _refusing_members(op.kernel, attrs)
    kernel, parameter = op.kernel, op.context_parameter
    if parameter is not None:

        def in_context(*tensors: Tensor) -> Any:
            if not tensors or tensors[0].is_cpu:
                context = _ON_CPU[state.training]
            else:
                context = OpContext(state.training, tensors[0].device)
            return kernel(*tensors, **attrs, **{parameter: context})

        return in_context
    return partial(kernel, **attrs) if attrs else kernel
