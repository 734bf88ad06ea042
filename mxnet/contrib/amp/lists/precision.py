"""MXNet's lists of operators by precision, derived from the facts on the operator records."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ....ops import registry
from ....ops.declare import Op

# The NumPy operators take no part in mixed precision, as in MXNet.
EXCLUDED_PREFIXES = ("_np_", "_npi_", "_npx_")


def select(condition: Callable[[Op], object], *, aliases: bool = True) -> list[str]:
    """Return the names of the operators that satisfy a condition.

    >>> select(lambda op: op.facts.scales_loss, aliases=False)[0]
    'SoftmaxOutput'
    """
    return [
        name
        for name in registry.names()
        if not name.startswith(EXCLUDED_PREFIXES)
        and condition(op := registry.get(name))
        and (aliases or name == op.name)
    ]


def names_by_precision(target: str, *precisions: str) -> list[str]:
    """Return the operators that mixed precision in `target` runs in one of these precisions."""
    return select(
        lambda op: not op.facts.full_precision_when and op.facts.precision_for(target) in precisions
    )


def conditional_rows() -> list[tuple[str, str, list[str]]]:
    """Return (operator, attribute, values) that need float32."""
    return [
        (op.name, attribute, list(values))
        for op in registry.operators()
        for attribute, values in op.facts.full_precision_when.items()
    ]


def loss_outputs() -> list[str]:
    """Return the output layers whose gradient is scaled."""
    return select(lambda op: op.facts.scales_loss, aliases=False)


def full_precision_parameters(names: Iterable[str]) -> dict[str, list[str]]:
    """Return, for 16-bit operators, the inputs that stay float32; the data itself is ``""``."""
    parameters = {name: registry.get(name).facts.full_precision_inputs for name in names}
    return {name: ["", *inputs] for name, inputs in parameters.items() if inputs}
