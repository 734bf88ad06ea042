"""Loops and branches as operators that hold graphs: `foreach`, `while_loop`, `cond`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from ..attribute import AttrScope
from ..error import InvalidType, InvalidValue, MXNetError
from ..graph import Entry, Node
from ..graph.graph import MARK, Subgraph, extract_subgraph
from ..name import NameManager
from ..ops import registry
from .codegen import make_node_symbol
from .functions import var
from .symbol import Symbol

__all__ = ["cond", "foreach", "while_loop"]


def foreach(body: Callable, data: Any, init_states: Any, name: str = "foreach") -> tuple[Any, Any]:
    """Run ``body(slice, states) -> (outputs, states)`` over axis 0 of the data.

    Outputs are stacked along a new axis 0; the states of the last step are returned with them.

    Parameters
    ----------
    body
        Function of a slice and the states that returns outputs and new states.
    data
        A symbol, or a list of symbols of equal length.
    init_states
        The states of the first step: a symbol, or a list of them.
    name
        Name of the node.

    >>> step = lambda x, s: (x + s, x + s)
    >>> out, last = mx.sym.contrib.foreach(step, mx.sym.var("data"), mx.sym.var("init"))
    >>> out.list_arguments()
    ['data', 'init']
    """
    datas, states = _flat(data, "data"), _flat(init_states, "init_states")
    if not datas:
        raise MXNetError("foreach needs at least one data symbol to go over.")
    scope = NameManager.current.get(None, name)
    with AttrScope(**{MARK: scope}):
        slices, held = _stand_ins(datas), _stand_ins(states)
        outs, new_states = _two_parts(
            body(_nested_like(data, iter(slices)), _nested_like(init_states, iter(held))),
            "foreach's body",
        )
        out_list, state_list = _flat(outs, "outputs"), _flat(new_states, "states")
        if len(state_list) != len(states):
            raise InvalidValue(
                "The input and output loop_vars have different format: foreach's body returned "
                f"{len(state_list)} states, but got {len(states)}."
            )
        if _format(new_states) != _format(init_states):
            raise InvalidValue(
                "The input and output loop_vars have different format: foreach's body got states "
                f"nested as {_format(init_states)} and returned {_format(new_states)}."
            )
        heads = _heads([*out_list, *state_list])
    subgraph = extract_subgraph(heads, scope)
    given = dict(zip(_nodes(slices + held), _entries(datas + states), strict=True))
    data_at = [_used(subgraph, n, "the data arrays have to be used") for n in _nodes(slices)]
    state_at = [_used(subgraph, n, "the state arrays have to be used") for n in _nodes(held)]
    rest_at = [i for i, n in enumerate(subgraph.graph.variables) if n not in given]
    inputs = [*given.values(), *(_source(subgraph, i) for i in rest_at)]
    attrs = {
        "num_outputs": len(heads),
        "num_out_data": len(out_list),
        "in_state_locs": state_at,
        "in_data_locs": data_at,
        "remain_locs": rest_at,
    }
    made = _node("_foreach", [subgraph], inputs, attrs)
    results = _nested_like(outs, iter(made[: len(out_list)]))
    return results, _nested_like(init_states, iter(made[len(out_list) :]))


def while_loop(
    cond: Callable,
    func: Callable,
    loop_vars: Any,
    max_iterations: int | None = None,
    name: str = "while_loop",
    *,
    pad_outputs: bool = True,
) -> tuple[Any, Any]:
    """Run ``func(*loop_vars) -> (outputs, loop_vars)`` while ``cond(*loop_vars)`` holds.

    Outputs are stacked along a new axis 0 of size `max_iterations`; without `pad_outputs`, of as
    many rows as there were steps.

    Parameters
    ----------
    cond
        Function of the loop variables that returns whether to go on.
    func
        Function of the loop variables that returns outputs and new loop variables.
    loop_vars
        The loop variables of the first step: a symbol, or a list of them.
    max_iterations
        Largest number of steps; it must be given.
    name
        Name of the node.
    pad_outputs
        Whether outputs are padded with zeros to `max_iterations` steps.

    >>> out, last = mx.sym.contrib.while_loop(
    ...     lambda i: i < 2, lambda i: (i * 10, [i + 1]), [mx.sym.var("i")], max_iterations=3)
    >>> out.eval(i=mx.nd.zeros((1,)))[0].asnumpy().ravel()
    array([ 0., 10.,  0.], dtype=float32)
    """
    if max_iterations is None:
        raise ValueError("max_iterations should be specified")
    variables = _flat(loop_vars, "loop_vars")
    if not variables:
        raise ValueError("loop_vars should contain at least one element")
    cond_scope = NameManager.current.get(None, f"{name}_cond")
    with AttrScope(**{MARK: cond_scope}):
        seen = _stand_ins(variables)
        cond_heads = _heads(_one_output(cond(*_arguments(loop_vars, seen)), "cond"))
    func_scope = NameManager.current.get(None, f"{name}_func")
    with AttrScope(**{MARK: func_scope}):
        held = _stand_ins(variables)
        outs, new_vars = _two_parts(func(*_arguments(loop_vars, held)), "while_loop's func")
        outs = [] if outs is None else outs
        out_list, var_list = _flat(outs, "outputs"), _flat(new_vars, "loop_vars")
        if len(var_list) != len(variables):
            raise InvalidValue(
                "The number of loop_vars should be consistent during the loop: while_loop's func "
                f"returned {len(var_list)}, but got {len(variables)}."
            )
        func_heads = _heads([*out_list, *var_list])
    subgraphs = [extract_subgraph(cond_heads, cond_scope), extract_subgraph(func_heads, func_scope)]
    given = dict(zip(_nodes(seen + held), list(enumerate(_entries(variables))) * 2, strict=True))
    inputs: dict[Any, Entry] = {}
    cond_at, func_at = (_join(subgraph, inputs, given, False) for subgraph in subgraphs)
    attrs = {
        "max_iterations": int(max_iterations),
        "cond_input_locs": cond_at,
        "func_input_locs": func_at,
        "func_var_locs": [
            _used(subgraphs[1], n, "loop_vars have to be used") for n in _nodes(held)
        ],
        "num_out_data": len(out_list),
        "num_outputs": len(func_heads),
    }
    if not pad_outputs:
        attrs["pad_outputs"] = False
    made = _node("_while_loop", subgraphs, list(inputs.values()), attrs)
    results = _nested_like(outs, iter(made[: len(out_list)]))
    return results, _nested_like(loop_vars, iter(made[len(out_list) :]))


def cond(pred: Symbol, then_func: Callable, else_func: Callable, name: str = "cond") -> Any:
    """Return what `then_func` gives where `pred` is true, else what `else_func` gives.

    Parameters
    ----------
    pred
        Symbol of one element.
    then_func
        Function without parameters that returns the result if the element is not 0.
    else_func
        Function without parameters that returns the result if it is 0.
    name
        Name of the node.

    >>> x = mx.sym.var("x")
    >>> y = mx.sym.contrib.cond(x > 0, lambda: x * 2, lambda: x * 3)
    >>> y.eval(x=mx.nd.array([-1]))[0].asnumpy()
    array([-3.], dtype=float32)
    """
    subgraphs, parts = [], []
    for kind, make in (("pred", lambda: pred), ("then", then_func), ("else", else_func)):
        scope = NameManager.current.get(None, f"{name}_{kind}")
        with AttrScope(**{MARK: scope}):
            parts.append(make())
            heads = _heads(_flat(parts[-1], f"{kind}'s outputs"))
            if kind == "pred" and len(heads) != 1:
                raise InvalidValue(f"cond's pred must have one output, but got {pred!r}.")
            if not heads:
                raise TypeError(f"cond needs at least one output, but {kind}_func returned none.")
        subgraphs.append(extract_subgraph(heads, scope))
    if len(subgraphs[1].graph.heads) != len(subgraphs[2].graph.heads):
        raise ValueError("Number of outputs differs between then-branch and else-branch")
    inputs: dict[Any, Entry] = {}
    cond_at, then_at, else_at = (_join(subgraph, inputs, {}, True) for subgraph in subgraphs)
    attrs = {
        "cond_input_locs": cond_at,
        "then_input_locs": then_at,
        "else_input_locs": else_at,
        "num_outputs": len(subgraphs[1].graph.heads),
    }
    return _nested_like(parts[1], iter(_node("_cond", subgraphs, list(inputs.values()), attrs)))


# -- parts ------------------------------------------------------------------------------------


def _flat(value: Any, what: str) -> list[Symbol]:
    """Return the symbols of nested lists in order."""
    if isinstance(value, list | tuple):
        return [symbol for part in value for symbol in _flat(part, what)]
    if not isinstance(value, Symbol):
        raise InvalidType(
            f"{what} must be (nested) list of Symbol, but got {value!r} of type {type(value)}."
        )
    return list(value)


def _one_output(value: Any, what: str) -> list[Symbol]:
    """Return a condition: a symbol with one output."""
    if not isinstance(value, Symbol) or len(value) != 1:
        raise InvalidValue(f"Return of {what} must be a Symbol with one output, got {value!r}.")
    return [value]


def _format(value: Any) -> str:
    """Return how symbols are nested, with a letter for each: ``[x, [x]]``."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_format, value))}]"
    return "x"


def _arguments(shape: Any, parts: list[Symbol]) -> list[Any]:
    """Return what a function of several loop variables is called with."""
    nested = _nested_like(shape, iter(parts))
    return nested if isinstance(nested, list) else [nested]


def _nested_like(shape: Any, parts: Iterator[Symbol]) -> Any:
    """Return the parts nested as the user's symbols were, and as NumPy symbols if those were.

    The parts of a symbol with several outputs are one list.
    """
    if isinstance(shape, list | tuple):
        return [_nested_like(inner, parts) for inner in shape]
    taken = list(islice(parts, len(shape)))
    if shape.is_numpy:
        taken = [part.as_np_ndarray() for part in taken]
    return taken[0] if len(taken) == 1 else taken


def _two_parts(value: Any, who: str) -> tuple[Any, Any]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"{who} must return two things: outputs and states.")
    return value[0], value[1]


def _stand_ins(symbols: list[Symbol]) -> list[Symbol]:
    return [var(f"{s._heads[0].node.name}-{s._heads[0].index}") for s in symbols]


def _nodes(symbols: Sequence[Symbol]) -> list[Node]:
    return [s._heads[0].node for s in symbols]


def _entries(symbols: Sequence[Symbol]) -> list[Entry]:
    return [s._heads[0] for s in symbols]


def _heads(symbols: list[Symbol]) -> list[Entry]:
    """Return the body's results, each as the output of a node of its own."""
    scope, seen, heads = AttrScope.current._attr[MARK], set(), []
    copy = registry.get("_copy")
    for symbol in symbols:
        entry = symbol._heads[0]
        node = entry.node
        if node.op is None or node in seen or node.extra.get(MARK) != scope:
            entry = make_node_symbol(
                Symbol, copy, "identity", {copy.inputs[0].name: entry}, {}
            )._heads[0]
        seen.add(entry.node)
        heads.append(entry)
    return heads


def _used(subgraph: Subgraph, node: Node, complaint: str) -> int:
    position = subgraph.position(node)
    if position is None:
        raise InvalidValue(f"{complaint} in the loop body: {node.name} is not.")
    return position


def _source(subgraph: Subgraph, position: int) -> Entry:
    """Return what a variable of the body is outside; its own ones appear there too."""
    source = subgraph.sources[position]
    if source is not None:
        return source
    node = subgraph.graph.variables[position]
    return Entry(node.copy(()))


def _join(
    subgraph: Subgraph,
    inputs: dict[Any, Entry],
    given: dict[Node, tuple[int, Entry]],
    share_variables: bool,
) -> list[int]:
    """Add a body's inputs to those of the operator; return where each one is.

    As in MXNet's files, bodies share the loop's variables or (branches) the graph's; anything
    else stands once for each body. What a loop variable starts from may be used in the body as
    it is, or start another one, so that it has several places.
    """
    places = []
    for position, node in enumerate(subgraph.graph.variables):
        number, entry = given.get(node) or (None, _source(subgraph, position))
        key: Any = ("input", len(inputs))
        if number is not None:
            key = ("loop variable", number)
        elif share_variables and entry.node.op is None:
            key = entry.node
        places.append(list(inputs).index(key) if key in inputs else len(inputs))
        inputs.setdefault(key, entry)
    return places


def _node(
    name: str, subgraphs: list[Subgraph], inputs: list[Entry], attrs: dict[str, Any]
) -> list[Symbol]:
    texts = {k: str(v) for k, v in attrs.items()}
    texts["num_args"] = str(len(inputs) + len(subgraphs))
    given = {f"arg{i}": e for i, e in enumerate(inputs)}
    symbol = make_node_symbol(Symbol, registry.get(name), name, given, texts, count=len(inputs))
    symbol._heads[0].node.subgraphs = tuple(subgraph.graph for subgraph in subgraphs)
    return list(symbol)
