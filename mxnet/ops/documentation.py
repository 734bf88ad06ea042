"""Docstrings of operators: a sentence for each parameter, written once and shown everywhere.

The sentence stands in the ``Parameters`` section of the operator's own docstring, under the bare
name; what means the same in many operators stands in `glossary.py`. Types, defaults and the
``Returns`` section come from the operator record.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple, TypeVar

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
C = TypeVar("C", bound=type)
ARRAY = "\0"  # stands for the array class until the namespace is known
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


def _dedented(text: str) -> str:
    """Do what `inspect.cleandoc` does, in a tenth of the time: the margin is the second line's."""
    margin = None if _FLUSH.search(text) else _MARGIN.search(text)
    return (text.replace(margin[1], "\n") if margin else text).strip()


def sections(text: str) -> dict[str, str]:
    r"""Split a docstring at its underlined headings; what precedes them has the heading ``''``.

    A line of ``>>>`` at the margin begins the examples, with or without their heading.

    >>> sections("Sum.\n\nParameters\n----------\nx\n    An array.\n\n>>> 1 + 1\n2")
    {'': 'Sum.', 'Parameters': 'x\n    An array.', 'Examples': '>>> 1 + 1\n2'}
    """
    text = _dedented(text)
    first, *others = _HEADING.split(text) if "\n---" in text else [text]
    found = {"": first, **dict(zip(others[::2], others[1::2], strict=True))}
    if "Examples" not in found:
        for heading, body in found.items():
            at = 0 if body.startswith(">>> ") else body.find("\n>>> ")
            if at >= 0:
                found[heading], found["Examples"] = body[:at], body[at:]
                break
    return {heading: body.strip() for heading, body in found.items()}


def parameter_items(text: str) -> dict[str, tuple[str, str]]:
    r"""Return the type and the sentence of each parameter in a ``Parameters`` section.

    >>> parameter_items("lr, wd : float\n    Numbers.")["wd"]
    ('float', 'Numbers.')
    """
    found = {}
    for names, kind, body in _ITEM.findall(text):
        item = (kind, body.replace("\n    ", "\n").strip())
        for name in names.split(", "):
            found[name.lstrip("*")] = item
    return found


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
    before = parts.pop("")
    parts.pop("Parameters", None)
    examples = parts.pop("Examples", None)
    after = ["", "Returns", "-------", parts.pop("Returns", None) or _returned(op)]
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
        shown_entry(_completed(p, own.get(p.name, _NOTHING), glossaries))
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


def _completed(
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
