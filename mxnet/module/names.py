"""Checks of names: what a module was given, against what its symbol or its batches have."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from ..error import did_you_mean
from ..io import DataDesc
from ..symbol import Symbol

PARAMETER_ENDINGS = ("_weight", "_bias", "_gamma", "_beta")


def check_input_names(symbol: Symbol, names: Sequence[str], what: str, must_be: bool) -> None:
    """Raise, or only warn, if the symbol lacks some of its inputs' names."""
    known = symbol.list_arguments()
    missing = [name for name in names if name not in known]
    if not missing:
        return
    candidates = [name for name in known if not name.endswith(PARAMETER_ENDINGS)]
    if what == "fixed_param_names":
        candidates = [name for name in known if name not in candidates]
    message = (
        f"You created Module with Module(..., {what}={list(names)}) but input with name "
        f"{', '.join(map(repr, missing))} is not found in symbol.list_arguments(). "
        "Did you mean one of:\n\t" + "\n\t".join(candidates)
    )
    near = did_you_mean(missing[0], known)
    if near:
        message += f"\n{near}"
    labels = [name for name in candidates if name.endswith("label")]
    if what == "label_names" and labels:
        message += f"\n{taken_for_parameter(labels)}"
    if must_be:
        raise ValueError(message)
    warnings.warn(message, stacklevel=4)  # the caller of Module(...)


def taken_for_parameter(names: Sequence[str]) -> str:
    """Return the hint about inputs that a module does not know."""
    which = "label_names" if all(name.endswith("label") for name in names) else "data_names"
    return (
        f"An input in neither data_names nor label_names is taken for a parameter: "
        f"did you mean {which}={list(names)}?"
    )


def check_names_match(names: Sequence[str], descs: Sequence[DataDesc], what: str) -> None:
    """Raise if the described arrays are not those that the module was bound with."""
    given = [desc.name for desc in descs]
    if sorted(given) != sorted(names):
        raise ValueError(mismatch(names, descs, what))


def mismatch(names: Sequence[str], descs: Sequence[DataDesc], what: str) -> str:
    """Return the sentence that lists what was given, what is expected, and the nearest name."""
    given = [desc.name for desc in descs]
    message = (
        f"Data provided by {what}_shapes don't match names specified by {what}_names "
        f"({list(descs)} vs. {list(names)})"
    )
    for name in given:
        if name not in names and (near := did_you_mean(name, names)):
            return f"{message}. {name!r} is not among them. {near}"
    if given and names:
        message += (
            f". Make the iterator with {what}_name={names[0]!r}, or the Module with "
            f"{what}_names={given}."
        )
    return message


def not_presented(missing: Sequence[str], given: Iterable[str]) -> str:
    """Return the sentence about parameters that have no value."""
    given = sorted(given)
    near = next((n for m in missing if (n := did_you_mean(m, given))), "")
    verb = "is" if len(missing) == 1 else "are"
    return " ".join(
        filter(
            None,
            (
                f"{', '.join(missing)} {verb} not presented:",
                f"the parameters given are {', '.join(given) or 'none'}.",
                near,
                "Use allow_missing=True to initialize what is missing.",
            ),
        )
    )
