"""Docstrings of operators: a sentence for each parameter, written once and shown everywhere.

The sentence stands in the ``Parameters`` section of the operator's own docstring, under the bare
name; what means the same in many operators stands in `glossary.py`. Types, defaults and the
``Returns`` section come from the operator record.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from .attributes import Attribute, to_string
from .declare import Op
from .glossary import COMMON, FOLDERS

TYPES = {
    "any": "object",
    "boolean": "bool",
    "data type": "dtype",
    "string": "str",
    "Shape(tuple)": "tuple of int",
    "tuple of <float>": "tuple of float",
    "tuple of <Shape(tuple)>": "tuple of tuple of int",
}
ARRAY = "\0"  # stands for the array class until the namespace is known
_FLUSH = re.compile(r"\n\S")  # a line without a margin
_MARGIN = re.compile(r"(?<=\n)(\n +)\S")
_ITEM = re.compile(r"\*{0,2}\w+(, \*{0,2}\w+)*( :.*)?$")


class Entry(NamedTuple):
    """One parameter as a docstring shows it."""

    name: str
    type: str
    sentence: str


# -- reading ------------------------------------------------------------------------------------


def _dedented(text: str) -> str:
    """Do what `inspect.cleandoc` does, in a tenth of the time: the margin is the second line's."""
    margin = None if _FLUSH.search(text) else _MARGIN.search(text)
    return (text.replace(margin[1], "\n") if margin else text).strip()


def sections(text: str) -> dict[str, list[str]]:
    r"""Split a docstring at its underlined headings; what precedes them has the heading ``''``.

    A line of ``>>>`` at the margin begins the examples, with or without their heading.

    >>> sections("Sum.\n\nParameters\n----------\nx\n    An array.\n\n>>> 1 + 1\n2")
    {'': ['Sum.', ''], 'Parameters': ['x', '    An array.', ''], 'Examples': ['>>> 1 + 1', '2']}
    """
    lines = _dedented(text).split("\n")
    found: dict[str, list[str]] = {"": []}
    current = found[""]
    skip = False
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if skip:
            skip = False
        elif below.startswith("---") and set(below) == {"-"}:
            current = found.setdefault(line, [])
            skip = True
        elif line.startswith(">>>") and "Examples" not in found:
            current = found.setdefault("Examples", [])
            current.append(line)
        else:
            current.append(line)
    return found


def parameter_items(lines: Iterable[str]) -> dict[str, tuple[str, list[str]]]:
    """Return the type and the indented lines of each parameter in a ``Parameters`` section.

    >>> parameter_items(["lr, wd : float", "    Numbers."])["wd"]
    ('float', ['    Numbers.'])
    """
    found: dict[str, tuple[str, list[str]]] = {}
    body: list[str] = []
    for line in lines:
        if line.startswith(" ") or not line:
            body.append(line)
        elif _ITEM.match(line):
            names, _, kind = line.partition(" :")
            body = []
            for name in names.split(","):
                found[name.strip().lstrip("*")] = (kind.strip(), body)
    return found


def sentences_in(parts: Mapping[str, list[str]]) -> dict[str, str]:
    r"""Return the sentences of the ``Parameters`` section among `sections`, by parameter.

    >>> sentences_in(sections("Sum.\n\nParameters\n----------\nx\n    An array.\n"))
    {'x': 'An array.'}
    """
    items = parameter_items(parts.get("Parameters", ()))
    return {k: "\n".join(line.strip() for line in v[1]).strip() for k, v in items.items()}


# -- an operator --------------------------------------------------------------------------------


@cache
def _sections_of(op: Op) -> dict[str, list[str]]:
    return sections(op.function.__doc__ or op.name)


@cache
def sentences_of(op: Op) -> dict[str, str]:
    """Return the sentence of each parameter: the operator's own, its folder's, or the common one.

    >>> from mxnet.ops import registry
    >>> sentences_of(registry.get("exp"))
    {'data': 'The input array.'}
    """
    own = sentences_in(_sections_of(op))
    shared = FOLDERS.get("".join(op.function.__module__.split(".")[2:3]), {})
    found = {}
    for name in _names(op):
        key = f"*{name}" if name == op.variadic else name
        sentence = own.get(name) or shared.get(key) or COMMON.get(key)
        if sentence is not None:
            found[name] = sentence
    return found


def _names(op: Op) -> list[str]:
    first = [op.variadic] if op.variadic is not None else []
    return [*first, *(i.name for i in op.inputs), *op.attributes]


def type_of(attribute: Attribute) -> str:
    """Return how a docstring shows the type and the default of an attribute."""
    label = attribute.type.label.removesuffix(" or None")
    shown = TYPES.get(label, label)
    if attribute.required:
        return shown
    if attribute.default is None:
        return f"{shown}, optional"
    text = to_string(attribute.default)
    return (
        f"{shown}, default {text!r}"
        if isinstance(attribute.default, str)
        else (f"{shown}, default {text}")
    )


@cache
def entries_of(op: Op) -> tuple[Entry, ...]:
    """Return the parameters of an operator as docstrings show them."""
    said = sentences_of(op)
    found = []
    if op.variadic is not None:
        found.append(Entry(f"*{op.variadic}", ARRAY, said.get(op.variadic, "")))
    for i in op.inputs:
        kind = " (auxiliary state)" if i.aux else ", optional" if i.optional else ""
        found.append(Entry(i.name, ARRAY + kind, said.get(i.name, "")))
    taken = {i.name for i in op.inputs}
    for a in op.attributes.values():
        if a.name not in taken:
            found.append(Entry(a.name, type_of(a), said.get(a.name, "")))
    return tuple(found)


def _returned(op: Op) -> str:
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
    before = "\n".join(parts.pop("")).strip()
    parts.pop("Parameters", None)
    examples = parts.pop("Examples", None)
    returned = parts.pop("Returns", None)
    after = ["", "Returns", "-------", _returned(op) if returned is None else "\n".join(returned)]
    for heading, lines in parts.items():
        after += ["", heading, "-" * len(heading), "\n".join(lines).strip()]
    if examples:
        after += ["", "Examples", "--------", "\n".join(examples).strip()]
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


def complete(text: str, signature: inspect.Signature, *glossaries: Mapping[str, str]) -> str:
    """Return a docstring with a sentence for each parameter, from the first glossary that has one.

    What the docstring says itself counts most, also of keywords that ``**kwargs`` takes.

    >>> def scale(x, factor=2):
    ...     pass
    >>> text = complete("Scale.", inspect.signature(scale), {"x": "An array.", "factor": "It."})
    >>> text.splitlines()[-2:]
    ['factor : default 2', '    It.']
    """
    parts = sections(text)
    own = parameter_items(parts.pop("Parameters", ()))
    shown = [
        shown_entry(_completed(p, own, glossaries))
        for p in signature.parameters.values()
        if p.kind is not p.VAR_KEYWORD or p.name in own
    ]
    for name, (kind, body) in own.items():  # keywords that ``**kwargs`` takes
        if name not in signature.parameters:
            shown.append(shown_entry(Entry(name, kind, "\n".join(map(str.strip, body)).strip())))
    lines = ["\n".join(parts.pop("")).strip()]
    if shown:
        lines += ["", "Parameters", "----------", *shown]
    for heading, body in parts.items():
        lines += ["", heading, "-" * len(heading), "\n".join(body).strip()]
    return "\n".join(lines)


def _completed(
    p: inspect.Parameter,
    own: Mapping[str, tuple[str, list[str]]],
    glossaries: Iterable[Mapping[str, str]],
) -> Entry:
    name = {p.VAR_POSITIONAL: f"*{p.name}", p.VAR_KEYWORD: f"**{p.name}"}.get(p.kind, p.name)
    kind, body = own.get(p.name, ("", []))
    sentence = "\n".join(line.strip() for line in body).strip()
    if not sentence:
        sentence = next((g[name] for g in glossaries if name in g), "")
    if not kind and p.default is None:
        kind = "optional"
    elif not kind and isinstance(p.default, bool | int | float | str | tuple):
        kind = f"default {p.default!r}"
    return Entry(name, kind, sentence)
