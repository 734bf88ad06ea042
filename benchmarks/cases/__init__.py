"""Groups of cases; each module has `CASES`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """The same work as an MXNet program and as a torch program.

    `mx` and `torch` are (set-up, statement) as text; `number` is how often the statement runs in
    one measurement. `goals` are the ratios that MXNext should reach. A side that needs more than
    `limit` seconds for a measurement is given up.
    """

    name: str
    mx: tuple[str, str]
    torch: tuple[str, str] | None
    number: int = 2000
    goals: str = ""
    limit: float = 600.0
