"""Generates `mx.sym.X` and symbol methods from the operator registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from ..attribute import AttrScope
from ..base import _Null
from ..error import InvalidType, MXNetError, NotImplementedForSymbol
from ..graph import Entry
from ..graph.node import HIDDEN_KEYS, create_node, is_extra, stored_key
from ..name import NameManager
from ..ops import interpreters, registry
from ..ops.attributes import to_string
from ..ops.declare import Op
from ..ops.frontend import as_method, populate_namespaces, set_metadata
from ..runtime.composites.namespace import OperatorNamespace
from .symbol import Symbol

# -- one call ---------------------------------------------------------------------------------


def _not_a_symbol(key: str, value: Any) -> InvalidType:
    advice = ""
    if hasattr(value, "asnumpy"):
        advice = (
            " For arrays use the functions of mx.nd; in a graph use mx.sym.var(name), and pass the "
            "array when binding."
        )
    return InvalidType(f"Argument {key} must be Symbol instances, but got {value!r}.{advice}")


class NameWithoutText(NotImplementedForSymbol, TypeError):
    """Raised if a symbol is passed as name: there is one input too many."""

    def __init__(self, message: str) -> None:
        MXNetError.__init__(self, message)


def entry_of(symbol: Any, key: str) -> Entry:
    """Return the single output of an input symbol."""
    if not isinstance(symbol, Symbol):
        raise _not_a_symbol(key, symbol)
    heads = symbol._heads
    if len(heads) != 1:
        raise MXNetError(
            f"Keyword Argument {key} is a tuple, single value is required: {symbol!r} has "
            f"{len(heads)} outputs. Select one: symbol[0]."
        )
    head = heads[0]
    version = head.node.version
    return (
        head
        if version == head.version or head.node.op is not None
        else Entry(head.node, 0, version)
    )


def make_node_symbol(
    cls: type[Symbol],
    op: Op,
    hint: str,
    entries: dict[str, Entry],
    attrs: dict[str, str],
    extra: dict[str, str] | None = None,
    name: str | None = None,
    count: int = 0,
) -> Symbol:
    """Return the symbol of an operator on entries; attributes are strings."""
    scope = AttrScope._current.value._attr
    if scope:
        extra = extra or {}
        for key, value in scope.items():
            _place(op, key, value, attrs, extra)
    if name is not None and not isinstance(name, str):
        raise NameWithoutText(
            f"The name of a symbol must be text, but {name!r} was given to {op.name}."
        )
    full_name: str = NameManager._current.value.get(name, hint)
    node = create_node(op, full_name, attrs, extra or {}, entries, count)
    for interpreter in interpreters.eager:
        interpreter.build(node)
    outputs = node.signature.outputs
    return cls((Entry(node),) if outputs == 1 else [Entry(node, i) for i in range(outputs)])


def _place(op: Op, key: str, value: Any, attrs: dict, extra: dict) -> None:
    """Add an attribute to the user's or the operator's attributes, unless it exists."""
    target, key = (extra, stored_key(key)) if is_extra(key) else (attrs, key)
    if key.endswith(_ENDINGS) and target is attrs and key not in op.attributes:
        raise MXNetError(
            f"setting variable attributes with {key} is deprecated. Make the variable: "
            f"{op.name}(weight=mx.sym.Variable(name, lr_mult=...))."
        )
    if key not in target:
        target[key] = to_string(value)


_ENDINGS = tuple(f"_{key}" for key in HIDDEN_KEYS)


def call(
    cls: type[Symbol],
    op: Op,
    hint: str,
    entries: dict[str, Entry],
    kwargs: dict[str, Any],
    count: int = 0,
) -> Symbol:
    """Split keywords into inputs, attributes, name and attr, then apply the operator."""
    name = kwargs.pop("name", None)
    attr = kwargs.pop("attr", None)
    kwargs.pop("out", None)
    attributes, inputs = op.attributes, op.input_index
    attrs: dict[str, str] = {}
    extra: dict[str, str] = {}
    named: dict[str, Any] = {}
    for key, value in kwargs.items():
        if isinstance(value, Symbol):
            if key in entries:
                raise TypeError(f"{op.name} got multiple values for argument {key!r}")
            entries[key] = entry_of(value, key)
        elif value is _Null or (value is None and key in inputs):
            continue
        elif key in attributes:
            attrs[key] = to_string(value)
        elif key in inputs:
            raise _not_a_symbol(key, value)
        else:
            named[key] = value
    scope = AttrScope._current.value._attr
    if attr or scope:  # as in MXNet, they override keywords, and attr overrides the scope
        for key, value in {**scope, **(attr or {})}.items():
            (attrs if key in attrs else named)[key] = to_string(value)
    for key, value in named.items():  # the first of two spellings of a key is used
        _place(op, key, value, attrs, extra)
    if op.count is not None:
        count = _count(op, op.count, attrs, max(count, len(entries)))
    return make_node_symbol(cls, op, hint, entries, attrs, extra, name, count)


def _count(op: Op, key: str, attrs: dict[str, str], inputs: int) -> int:
    number = attrs.setdefault(key, str(inputs))
    if not number.isdecimal() or (int(number) < 1 and op.variadic is not None):
        raise MXNetError(
            f"value {number} for Parameter {key} should be greater equal to 1, in operator "
            f"{op.name}: pass at least one input."
        )
    if int(number) > MAX_INPUTS:
        raise MXNetError(f"{op.name}: {key}={number} is more than {MAX_INPUTS} inputs.")
    return int(number)


MAX_INPUTS = 1_000_000


# -- functions --------------------------------------------------------------------------------


def make_function(op: Op, name: str, cls: type[Symbol] = Symbol) -> Callable:
    """Return the function of an operator, with a real signature and docstring."""
    function = _variadic(op, name.lower(), cls) if op.variadic else _fixed(op, name.lower(), cls)
    return set_metadata(function, op, name, "mxnet.symbol.op", "Symbol")


def _fixed(op: Op, hint: str, cls: type[Symbol]) -> Callable:
    inputs = [i.name for i in op.inputs]
    n_inputs = len(inputs)
    rest = [*op.attributes, "name", "attr", "out"]

    def function(*args: Any, **kwargs: Any) -> Symbol:
        if len(args) > n_inputs:
            _by_position(op, rest, args[n_inputs:], kwargs)
        entries = {k: entry_of(v, k) for k, v in zip(inputs, args, strict=False) if v is not None}
        return call(result_class(cls, args, kwargs), op, hint, entries, kwargs)

    return function


def result_class(cls: type[Symbol], args: tuple, kwargs: Mapping[str, Any]) -> type[Symbol]:
    """Return the class of a result: `mx.sym.np` symbols if the inputs are."""
    for value in args:
        if isinstance(value, Symbol) and value.is_numpy:
            return type(value)
    for value in kwargs.values():
        if isinstance(value, Symbol) and value.is_numpy:
            return type(value)
    return cls


def _by_position(op: Op, names: list[str], values: tuple, kwargs: dict[str, Any]) -> None:
    if len(values) > len(names):
        raise TypeError(f"{op.name} got {len(values) - len(names)} arguments too many.")
    for key, value in zip(names, values, strict=False):
        if key in kwargs:
            raise TypeError(f"{op.name} got multiple values for argument {key!r}")
        kwargs[key] = value


def _variadic(op: Op, hint: str, cls: type[Symbol]) -> Callable:
    def function(*args: Any, **kwargs: Any) -> Symbol:
        if len(args) == 1 and isinstance(args[0], list | tuple):
            args = tuple(args[0])
        result = result_class(cls, args, kwargs)
        if op.count is None or op.names_inputs:
            return _by_own_names(op, hint, result, args, kwargs)
        entries = {f"arg{i}": entry_of(a, f"arg{i}") for i, a in enumerate(args)}
        return call(result, op, hint, entries, kwargs, len(args))

    return function


def _by_own_names(op: Op, hint: str, cls: type[Symbol], args: tuple, kwargs: dict) -> Symbol:
    symbols = {k: v for k, v in kwargs.items() if isinstance(v, Symbol)}
    attrs = {
        k: to_string(v)
        for k, v in kwargs.items()
        if k not in symbols and k not in ("name", "attr", "out") and not is_extra(k)
    }
    count = len(args) + len(symbols)
    if op.count is not None and count:
        attrs.setdefault(op.count, str(count))
    names = op.names_of_inputs(op.complete(op.parse(attrs)), count)
    if len(args) > len(names):
        raise InvalidType(f"{op.name} takes {len(names)} inputs ({names}), got {len(args)}.")
    entries = {k: entry_of(v, k) for k, v in zip(names, args, strict=False) if v is not None}
    return call(cls, op, hint, entries, kwargs, count)


def populate(modules: Mapping[str, ModuleType], cls: type[Symbol] = Symbol) -> None:
    """Add a function for every registered name to its namespace module."""
    populate_namespaces(modules, "symbol", lambda op, name: make_function(op, name, cls))


def add_methods(cls: type[Symbol]) -> None:
    """Add a method to the class for each operator that is declared with ``method=True``."""
    for name in registry.names():
        op = registry.get(name)
        if op.method and not name.startswith("_") and not hasattr(cls, name):
            setattr(cls, name, as_method(make_function(op, name, cls), cls.__name__))


F = OperatorNamespace(Symbol, make_function, is_symbolic=True)  # namespace of composites on symbols
