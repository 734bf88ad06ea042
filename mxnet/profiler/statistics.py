"""Statistics of what was recorded, as a table or as JSON in MXNet's form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..operator.running import PURE_PYTHON
from .session import CUSTOM_OPERATOR, Event

SORT_KEYS = ("total", "avg", "min", "max", "count")


class Row(NamedTuple):
    """What one name came to, in milliseconds (or kilobytes, for memory)."""

    name: str
    count: int
    total: float
    min: float
    max: float

    @property
    def avg(self) -> float:
        """The mean."""
        return self.total / self.count


Groups = dict[str, list[Row]]


def grouped(events: Iterable[Event], marks: Iterable[Event]) -> tuple[Groups, Groups]:
    """Return statistics of times and of memory, by category."""
    times: dict[tuple[str, str], list[float]] = {}
    memory: dict[tuple[str, str], list[float]] = {}
    backward: dict[tuple[str, float], float] = {}
    events = list(events)
    for event in _without_inner_operators(events):
        times.setdefault((CUSTOM_OPERATOR, event["name"]), []).append(event["dur"] / 1000)
    for event in events:
        if event.get("cat") == "operator" and "of" in event.get("args", {}):
            call = (event["name"], event["args"]["of"])
            backward[call] = backward.get(call, 0.0) + event["dur"] / 1000
        elif event.get("cat") == "operator":
            times.setdefault(("operator", event["name"]), []).append(event["dur"] / 1000)
        elif event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            times.setdefault(("gpu", event["name"]), []).append(event["dur"] / 1000)
        elif event.get("name") == "[memory]":
            used = event["args"].get("Total Allocated", 0) / 1000
            memory.setdefault(("Device Storage", _memory_name(event["args"])), []).append(used)
    for (name, _), spent in backward.items():
        times.setdefault(("operator", name), []).append(spent)
    for mark in marks:
        key = (mark["cat"], mark["name"])
        if mark["ph"] == "X":
            times.setdefault(key, []).append(mark["dur"] / 1000)
        elif mark["ph"] == "C":
            times.setdefault(key, []).append(next(iter(mark["args"].values())) / 1000)
    return _rows(times), _rows(memory)


def _without_inner_operators(events: list[Event]) -> list[Event]:
    """Return the events of custom operators, those of their Python code without what they call."""
    found = [e for e in events if e.get("cat") == CUSTOM_OPERATOR]
    called = [e for e in found if not e["name"].endswith(f"::{PURE_PYTHON}")]
    rows = list(called)
    for event in found:
        if event["name"].endswith(f"::{PURE_PYTHON}"):
            end = event["ts"] + event["dur"]
            inner = [e for e in called if e["tid"] == event["tid"] and event["ts"] <= e["ts"] < end]
            rows.append({**event, "dur": event["dur"] - sum(e["dur"] for e in inner)})
    return rows


def _memory_name(args: dict[str, Any]) -> str:
    kind = "cpu" if args.get("Device Type", 0) == 0 else "gpu"
    return f"Memory: {kind}/{max(args.get('Device Id', 0), 0)}"


def _rows(found: dict[tuple[str, str], list[float]]) -> Groups:
    groups: Groups = {}
    for (category, name), values in found.items():
        row = Row(name, len(values), sum(values), min(values), max(values))
        groups.setdefault(category, []).append(row)
    return dict(sorted(groups.items()))


def _sorted(rows: list[Row], sort_by: str, ascending: bool) -> list[Row]:
    key: Callable[[Row], float] = lambda row: getattr(row, sort_by)  # noqa: E731
    return sorted(rows, key=key, reverse=not ascending)


def table(times: Groups, memory: Groups, sort_by: str, ascending: bool) -> str:
    """Return the statistics as text for people."""
    lines = ["", "Profile Statistics:", "\tNote the difference in units for different entries."]
    for category, rows in memory.items():
        lines += _heading(category, ("Min Use  (kB)", "Max Use  (kB)", "Avg Use  (kB)"))
        for r in _sorted(rows, sort_by, ascending):
            lines.append(_line(r, (r.min, r.max, r.avg)))
        lines.append("")
    columns = ("Time (ms)", "Min Time (ms)", "Max Time (ms)", "Avg Time (ms)")
    for category, rows in times.items():
        lines += _heading(category, columns)
        for r in _sorted(rows, sort_by, ascending):
            lines.append(_line(r, (r.total, r.min, r.max, r.avg)))
        lines.append("")
    return "\n".join(lines) + "\n"


def _heading(category: str, columns: tuple[str, ...]) -> list[str]:
    names = f"{'Name':<25} {'Total Count':>15}" + "".join(f" {c:>16}" for c in columns)
    rule = f"{'----':<25} {'-----------':>15}" + "".join(f" {'-' * len(c):>16}" for c in columns)
    return [category, "=" * 17, names, rule]


def _line(row: Row, values: tuple[float, ...]) -> str:
    return f"{row.name:<25} {row.count:>15}" + "".join(f" {v:>16.4f}" for v in values)


def as_json(times: Groups, memory: Groups, sort_by: str, ascending: bool) -> str:
    """Return the statistics as JSON."""

    def described(groups: Groups, keys: tuple[str, ...]) -> dict[str, Any]:
        return {
            category: {
                r.name: {k.capitalize(): getattr(r, k) for k in keys}
                for r in _sorted(rows, sort_by, ascending)
            }
            for category, rows in groups.items()
        }

    table = {
        "Time": described(times, ("count", "total", "min", "max", "avg")),
        "Memory": described(memory, ("count", "min", "max", "avg")),
        "Unit": {"Time": "ms", "Memory": "kB"},
    }
    return json.dumps(table, indent=4) + "\n"
