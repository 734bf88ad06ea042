"""A list of steps as one Python function without a loop.

Before: a loop that looks up slots, unpacks a tuple and spreads dictionaries for every operator.
After: ``v5 = k3(v1, v4, axis=a3_axis); del v4`` line by line, at half the cost of the loop. One
line is one step, so a traceback shows which step failed.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .schedule import Step

_UNWRAPPED = "{0}[0] if type({0}) is tuple else {0}"
FIRST_LINE = 3  # of the steps; the lines before are the signature and the inputs


def compile_steps(steps: Sequence[Step], variables: int, heads: Sequence[int]) -> Callable:
    """Return ``run(feed) -> heads`` for steps that all run on one device."""
    known: dict[str, Any] = {}
    lines = forward_lines(steps, variables, known)
    lines.append(f" return [{', '.join(_value(slot) for slot in heads)}]")
    return compile_lines(lines, known)


def forward_lines(steps: Sequence[Step], variables: int, known: dict[str, Any]) -> list[str]:
    """Return the lines of ``run(feed)`` but the last; what they name is put into `known`."""
    inputs = "".join(f"v{i}, " for i in range(1, variables + 1))
    lines = ["def run(feed):", f" [{inputs}] = feed"]
    return lines + [_line(number, step, known) for number, step in enumerate(steps)]


def compile_lines(lines: Sequence[str], known: dict[str, Any]) -> Callable:
    """Return the function ``run`` that the lines define."""
    exec(compile("\n".join(lines), "<prepared graph>", "exec"), known)
    return known["run"]


def failed_step(error: BaseException, run: Callable) -> tuple[int, dict[int, Any]]:
    """Return which step raised an error inside a compiled function, and its slots' values."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not run.__code__:
        trace = trace.tb_next
    if trace is None:
        return -1, {}
    values = {int(n[1:]): v for n, v in trace.tb_frame.f_locals.items() if n[0] == "v"}
    return trace.tb_lineno - FIRST_LINE, values


def _value(slot: int) -> str:
    return f"v{slot}" if slot else "None"


def _line(number: int, step: Step, known: dict[str, Any]) -> str:
    known[f"k{number}"] = step.kernel
    given = [_value(slot) for slot in step.inputs]
    if all(name.isidentifier() and not keyword.iskeyword(name) for name in step.attrs):
        for name, value in step.attrs.items():
            known[f"a{number}_{name}"] = value
            given.append(f"{name}=a{number}_{name}")
    else:  # attributes of users' own operators may have any name
        known[f"a{number}"] = step.attrs
        given.append(f"**a{number}")
    call = f"k{number}({', '.join(given)})"
    made = range(step.first, step.first + step.outputs)
    if step.outputs == 1:
        text = f" v{step.first} = {call}"
        if step.wraps:
            text += f"; v{step.first} = " + _UNWRAPPED.format(f"v{step.first}")
    else:
        text = f" {''.join(f'v{slot}, ' for slot in made)} = {call}"
    if step.dead:
        text += f"; del {', '.join(f'v{slot}' for slot in step.dead)}"
    return text
