"""Surroundings: ways of running an operator that must not change what it computes.

A surrounding is a function that takes a `Call` (one sample row) and returns its `Results`, computed
in another way than the plain eager call. `@surrounding` registers it; `@in_every_form` registers it
for eager, bound and hybridized calls. `test_surroundings.py` runs every row in every surrounding
and compares outputs, gradients and auxiliary states with those of the plain call.

>>> @surrounding
... def static_block(call):
...     return hybridized(call, static_alloc=True, static_shape=True)
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.grammar.surroundings.calls import FORMS, Call, Form, Results


@dataclass(frozen=True)
class Surrounding:
    """One way of running a call.

    Parameters
    ----------
    name : what reports call it.
    run : returns the results of a call.
    applies : whether a call can be run in this way.
    roundings : the tolerance, in roundings of the largest value.
    """

    name: str
    run: Callable[[Call], Results]
    applies: Callable[[Call], bool]
    roundings: float

    def check(self, call: Call) -> None:
        """Raise if the results differ from those of the plain call."""
        self.run(call).compare(call.expected, self.roundings)


SURROUNDINGS: dict[str, Surrounding] = {}
DEFAULT_ROUNDINGS = 64


def _add(
    name: str, run: Callable, applies: Callable[[Call], bool] | None, roundings: float
) -> None:
    assert name not in SURROUNDINGS, name
    every = applies or (lambda call: True)
    SURROUNDINGS[name] = Surrounding(name, run, every, roundings)


def surrounding(
    run: Callable[[Call], Results] | None = None,
    *,
    name: str | None = None,
    applies: Callable[[Call], bool] | None = None,
    roundings: float = DEFAULT_ROUNDINGS,
) -> Callable:
    """Register a function of a call, by default under its own name."""

    def register(function: Callable[[Call], Results]) -> Callable[[Call], Results]:
        _add(name or function.__name__, function, applies, roundings)
        return function

    return register if run is None else register(run)


def in_every_form(
    run: Callable[[Form, Call], Results] | None = None,
    *,
    applies: Callable[[Call], bool] | None = None,
    roundings: float = DEFAULT_ROUNDINGS,
    forms: Sequence[Form] = FORMS,
) -> Callable:
    """Register a function of a form and a call once for each form that can run the call."""

    def register(function: Callable[[Form, Call], Results]) -> Callable[[Form, Call], Results]:
        for form in forms:
            _add(
                f"{function.__name__} ({form.name})",
                lambda call, form=form: function(form, call),
                lambda call, form=form: form.applies(call) and (applies is None or applies(call)),
                roundings,
            )
        return function

    return register if run is None else register(run)


def load_all() -> dict[str, Surrounding]:
    """Import every module of this package and return all surroundings by name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return SURROUNDINGS
