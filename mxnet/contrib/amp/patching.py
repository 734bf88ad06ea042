"""Lets the functions of `mx.nd` and `mx.sym` cast their inputs, as `amp.init` asks.

An array is cast at once. A symbol's casts become nodes of the graph, also before the variables
that its function made.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from ... import dtypes, ndarray, symbol
from ...graph import Entry
from ...graph.node import Node, auxiliary_positions
from ...name import NameManager
from ...ndarray import NDArray
from ...ndarray.operator_overloads import ARITHMETIC, COMPARISONS
from ...ops import registry
from ...ops.frontend import namespace_of
from ...symbol import Symbol
from ...symbol.operator_overloads import BINARY, REVERSED

WIDEST = "widest"
MIXED = ("bfloat16", "float16", "float32")


class Patch:
    """The wrappers of one 16-bit type.

    Parameters
    ----------
    target : str, the 16-bit type.
    kinds : dict, from operator names to the type their inputs shall have, or "widest".
    conditional : dict, from operator names to (attribute, values) that ask for 32 bits.
    """

    def __init__(
        self, target: str, kinds: Mapping[str, str], conditional: Mapping[str, tuple[str, list]]
    ) -> None:
        self.target = target
        self.kinds = kinds
        self.conditional = conditional

    def apply(self) -> None:
        """Wrap functions, methods and signs."""
        for module, wrap in ((ndarray, self.eager), (symbol, self.symbolic)):
            for name in (*self.kinds, *self.conditional):
                self._wrap_function(module, name, wrap)
        self._wrap_methods(NDArray, self.eager)
        self._wrap_methods(Symbol, self.symbolic)
        self._wrap_signs()

    # -- where --------------------------------------------------------------------------------

    def _wrap_function(self, root: ModuleType, name: str, wrap: Callable) -> None:
        home, short = namespace_of(name)
        module = getattr(root, home, None) if home is not None else None
        function = None if module is None else getattr(module, short, None)
        if getattr(function, "op", None) is None:
            return  # written by hand, it has types of its own
        if not hasattr(function, "amp_original"):
            setattr(module, short, wrap(name, function))
        if home == "op" and getattr(vars(root).get(short), "op", None) is not None:
            setattr(root, short, getattr(module, short))

    def _wrap_methods(self, cls: type, wrap: Callable) -> None:
        for name, method in list(vars(cls).items()):
            listed = name in self.kinds or name in self.conditional
            if listed and getattr(method, "op", None) is not None:
                setattr(cls, name, wrap(name, method))

    def _wrap_signs(self) -> None:
        for sign, (array_op, scalar_op, reversed_op) in ARITHMETIC.items():
            self._wrap_sign(NDArray, f"__{sign}__", array_op, scalar_op)
            self._wrap_sign(NDArray, f"__r{sign}__", array_op, reversed_op)
        for sign, (array_op, scalar_op) in COMPARISONS.items():
            self._wrap_sign(NDArray, f"__{sign}__", array_op, scalar_op)
        for sign, (array_op, _, scalar_op, _) in BINARY.items():
            self._wrap_sign(Symbol, f"__{sign}__", array_op, scalar_op)
        for sign, (scalar_op, _) in REVERSED.items():
            self._wrap_sign(Symbol, f"__r{sign}__", scalar_op, scalar_op)

    def _wrap_sign(self, cls: type, method: str, array_op: str, scalar_op: str) -> None:
        original = vars(cls).get(method)
        if original is None:
            return
        wrap = self.eager if cls is NDArray else self.symbolic
        with_array, with_number = wrap(array_op, original), wrap(scalar_op, original)

        def sign(self: Any, other: Any) -> Any:
            return (with_array if isinstance(other, cls) else with_number)(self, other)

        setattr(cls, method, functools.wraps(original)(sign))

    # -- how ----------------------------------------------------------------------------------

    def _wanted(self, name: str, attrs: Mapping[str, Any]) -> str | None:
        row = self.conditional.get(name)
        if row is not None and attrs.get(row[0]) in row[1]:
            return "float32"
        return self.kinds.get(name)

    def eager(self, name: str, function: Callable) -> Callable:
        """Return the function of arrays with casts before it."""
        op = getattr(function, "op", None)
        slots = [] if op is None else [*(i.name for i in op.inputs), *op.attributes]

        @functools.wraps(function)
        def cast_first(*args: Any, **kwargs: Any) -> Any:
            told = kwargs
            if name in self.conditional:
                told = {**dict(zip(slots, args, strict=False)), **kwargs}
            wanted = self._wanted(name, told)
            dtype = _widest((args, kwargs)) if wanted == WIDEST else wanted
            if dtype is None:
                return function(*args, **kwargs)
            always = wanted == WIDEST
            args = tuple(self._cast(value, dtype, always) for value in args)
            for key, value in kwargs.items():
                if key != "out":
                    kwargs[key] = self._cast(value, dtype, always)
            return function(*args, **kwargs)

        cast_first.amp_original = function
        return cast_first

    def _cast(self, value: Any, dtype: str, always: bool) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(self._cast(each, dtype, always) for each in value)
        if not isinstance(value, NDArray) or value.stype != "default":
            return value
        given = dtypes.to_name(value.dtype)
        if given == dtype or given not in MIXED:
            return value
        # As in MXNet, float16 is for GPUs: on a CPU, arrays keep their type.
        if not always and self.target == "float16" and value.context.device_type != "gpu":
            return value
        return ndarray.amp_cast(value, dtype=dtype)

    def symbolic(self, name: str, function: Callable) -> Callable:
        """Return the function of symbols whose node gets casts before its inputs."""

        @functools.wraps(function)
        def cast_inputs(*args: Any, **kwargs: Any) -> Symbol:
            made = function(*args, **kwargs)
            node = made._heads[0].node
            wanted = self._wanted(name, node.attrs)
            if wanted is not None:
                put_casts(node, wanted)
            return made

        cast_inputs.amp_original = function
        return cast_inputs


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for key, each in value.items() if key != "out" for leaf in _leaves(each)]
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in _leaves(each)]
    return [value]


def _widest(values: Any) -> str | None:
    """Return the type that arrays of different floating types shall have in common."""
    arrays = (leaf for leaf in _leaves(values) if isinstance(leaf, NDArray))
    names = {dtypes.to_name(array.dtype) for array in arrays}
    if len(names) < 2 or not names <= set(MIXED):
        return None
    return max(names, key=MIXED.index)


def put_casts(node: Node, wanted: str) -> None:
    """Put casts between a node and its inputs."""
    kept = auxiliary_positions(node)
    places = [i for i in range(len(node.inputs)) if i not in kept]
    if wanted == WIDEST:
        if len(places) < 2:
            return
        count = str(len(places))
        cast = _node("amp_multicast", {"num_outputs": count}, [node.inputs[i] for i in places])
        made = {place: Entry(cast, k) for k, place in enumerate(places)}
    else:
        made = {i: Entry(_node("amp_cast", {"dtype": wanted}, [node.inputs[i]])) for i in places}
    node.inputs = [made.get(i, entry) for i, entry in enumerate(node.inputs)]


def _node(op: str, attrs: dict[str, str], inputs: list[Entry]) -> Node:
    return Node(registry.get(op), NameManager._current.value.get(None, op), attrs, inputs)


def wrap_loss_outputs(names: list[str], factor: Callable[[], float | None]) -> None:
    """Let operators that make their own gradient scale it by a factor."""
    for name in names:
        for root, scale in ((ndarray, True), (symbol, False)):
            function = getattr(root.op, name)
            wrapped = _scaled(function, factor) if scale else _warned(function, name, factor)
            setattr(root.op, name, wrapped)
            setattr(root, name, wrapped)


def _scaled(function: Callable, factor: Callable[[], float | None]) -> Callable:
    @functools.wraps(function)
    def scaled(*args: Any, **kwargs: Any) -> Any:
        scale = factor()
        if scale is not None:
            kwargs["grad_scale"] = float(kwargs.get("grad_scale", 1.0)) * scale
        return function(*args, **kwargs)

    return scaled


def _warned(function: Callable, name: str, factor: Callable[[], float | None]) -> Callable:
    @functools.wraps(function)
    def warned(*args: Any, **kwargs: Any) -> Any:
        logging.warning(
            "%s does not support dynamic loss scaling in symbolic and hybridized execution.", name
        )
        return function(*args, **kwargs)

    return warned
