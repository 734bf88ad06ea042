"""The recorded data: torch's traces (one for each run of the profiler), user marks and statistics.

All times are microseconds since the epoch, so that stretches and marks fit together.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from torch.profiler import profile

from ... import accelerator
from ...ops import registry
from ...ops.declare import Op
from ...ops.interpreters import Attrs, Interpreter, Proceed, Tensors
from ...torch_private import record_function
from ..custom.running import PURE_PYTHON
from ..recording import state


class OperatorNames(Interpreter):
    """Runs each operator as one named event.

    Parameters
    ----------
    eager
        Whether operators called on arrays are recorded.
    graphs
        Whether the steps of prepared graphs are recorded.
    """

    def __init__(self, *, eager: bool, graphs: bool) -> None:
        self.covers_eager, self.covers_graphs = eager, graphs

    def run(self, op: Op, tensors: Tensors, attrs: Attrs, proceed: Proceed) -> Any:
        """Run an operator as one event, named ``MyOp::exp`` inside the custom operator MyOp."""
        caller = state.custom_operator
        with record_function(op.name if caller is None else f"{caller}::{op.name}"):
            return proceed(tensors, attrs)


Event = dict[str, Any]
CUSTOM_OPERATOR = "Custom Operator"  # category of events inside a custom operator


def now() -> float:
    """Return the time in microseconds since the epoch."""
    return time.time_ns() / 1000


class Recording:
    """All recorded events, and the active profiler, if any."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.marks: list[Event] = []
        self._running: Any = None
        self._lock = threading.Lock()

    @property
    def running(self) -> bool:
        """Whether torch's profiler is on."""
        return self._running is not None

    def start(self, memory: bool) -> None:
        """Start torch's profiler."""
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's tracer logs to stderr
        session = profile(activities=accelerator.profiler_activities(), profile_memory=memory)
        with warnings.catch_warnings():  # each run is its own session, so no cycle loses events
            warnings.filterwarnings("ignore", message=".*Profiler clears events")
            session.start()
        self._running = session

    def stop(self) -> None:
        """Stop torch's profiler and keep its events."""
        session, self._running = self._running, None
        accelerator.synchronize_all()
        session.stop()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "trace.json")
            session.export_chrome_trace(str(path))
            trace = json.loads(path.read_text(encoding="utf-8"))
        self.events += _name_operators(_with_absolute_times(trace))

    def mark(self, **event: Any) -> None:
        """Record a user's event if the profiler is running."""
        if self.running:
            with self._lock:
                self.marks.append(
                    {"pid": os.getpid(), "tid": threading.get_ident(), "ts": now(), **event}
                )

    def clear(self) -> None:
        """Remove all recorded events."""
        self.events.clear()
        self.marks.clear()


def _with_absolute_times(trace: dict[str, Any]) -> list[Event]:
    base = trace.get("baseTimeNanoseconds", 0) / 1000
    events = trace["traceEvents"]
    for event in events:
        if "ts" in event and event.get("ph") != "M":
            event["ts"] += base
    return events


def _name_operators(events: list[Event]) -> list[Event]:
    """Set the category of operator events, and add their backward events under MXNet's names.

    Torch assigns the same sequence number to a differentiable call and to its backward. So the
    backward of calls inside FullyConnected is named `_backward_FullyConnected`.
    """
    names = {*registry.names(), PURE_PYTHON}
    operators = [
        e for e in events if e.get("ph") == "X" and _operator_of(e.get("name", "")) in names
    ]
    for event in operators:
        # Names inside a custom operator have its name as prefix: `MyOp::exp`.
        event["cat"] = CUSTOM_OPERATOR if "::" in event["name"] else "operator"
    owner_of_number = _owners(operators, events)
    backward = []
    for event in events:
        if not str(event.get("name", "")).startswith("autograd::engine::evaluate_function"):
            continue
        owner = owner_of_number.get(event.get("args", {}).get("Sequence number"))
        if owner is not None and owner["cat"] == "operator":
            # An operator may have several backward events: statistics join them by `of`.
            named = {"name": f"_backward_{owner['name'].lstrip('_')}", "cat": "operator"}
            backward.append({**event, **named, "args": {**event["args"], "of": owner["ts"]}})
    return events + backward


def _operator_of(name: str) -> str:
    """Return the name without the prefix of a custom operator. Names of torch are unchanged."""
    return name if name.startswith(("aten::", "torch::", "c10::")) else name.rpartition("::")[2]


def _is_numbered_forward(event: Event) -> bool:
    args = event.get("args", {})
    return "Sequence number" in args and not args.get("Fwd thread id")


def _owners(operators: list[Event], events: list[Event]) -> dict[int, Event]:
    """Map each of torch's sequence numbers to the operator call that it belongs to."""
    by_thread: dict[Any, list[Event]] = {}
    for event in sorted(operators, key=lambda e: e["ts"]):
        by_thread.setdefault(event["tid"], []).append(event)
    starts = {tid: [e["ts"] for e in row] for tid, row in by_thread.items()}
    owners = {}
    # Calls without backward show the next number, so the last call with a number owns it.
    for event in sorted(filter(_is_numbered_forward, events), key=lambda e: e["ts"]):
        number, row = event["args"]["Sequence number"], by_thread.get(event["tid"])
        if row is None:
            continue
        position = bisect_right(starts[event["tid"]], event["ts"]) - 1
        if position >= 0 and event["ts"] <= row[position]["ts"] + row[position]["dur"]:
            owners[number] = row[position]
    return owners


SORT_KEYS = ("total", "avg", "min", "max", "count")


class Row(NamedTuple):
    """Statistics of one name, in milliseconds (or kilobytes, for memory)."""

    name: str
    count: int  # pyright: ignore[reportIncompatibleMethodOverride]  # tuple's method is not needed
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
    """Return the events of custom operators. Subtract inner operators from their Python code."""
    results = [e for e in events if e.get("cat") == CUSTOM_OPERATOR]
    called = [e for e in results if not e["name"].endswith(f"::{PURE_PYTHON}")]
    rows = list(called)
    for event in results:
        if event["name"].endswith(f"::{PURE_PYTHON}"):
            end = event["ts"] + event["dur"]
            inner = [e for e in called if e["tid"] == event["tid"] and event["ts"] <= e["ts"] < end]
            rows.append({**event, "dur": event["dur"] - sum(e["dur"] for e in inner)})
    return rows


def _memory_name(args: dict[str, Any]) -> str:
    kind = "cpu" if args.get("Device Type", 0) == 0 else "gpu"
    return f"Memory: {kind}/{max(args.get('Device Id', 0), 0)}"


def _rows(durations: dict[tuple[str, str], list[float]]) -> Groups:
    groups: Groups = {}
    for (category, name), values in durations.items():
        row = Row(name, len(values), sum(values), min(values), max(values))
        groups.setdefault(category, []).append(row)
    return dict(sorted(groups.items()))


def _sort_rows(rows: list[Row], sort_by: str, ascending: bool) -> list[Row]:
    key: Callable[[Row], float] = lambda row: getattr(row, sort_by)  # noqa: E731
    return sorted(rows, key=key, reverse=not ascending)


def table(times: Groups, memory: Groups, sort_by: str, ascending: bool) -> str:
    """Return the statistics as a text table."""
    lines = ["", "Profile Statistics:", "\tNote the difference in units for different entries."]
    for category, rows in memory.items():
        lines += _heading(category, ("Min Use  (kB)", "Max Use  (kB)", "Avg Use  (kB)"))
        for r in _sort_rows(rows, sort_by, ascending):
            lines.append(_line(r, (r.min, r.max, r.avg)))
        lines.append("")
    columns = ("Time (ms)", "Min Time (ms)", "Max Time (ms)", "Avg Time (ms)")
    for category, rows in times.items():
        lines += _heading(category, columns)
        for r in _sort_rows(rows, sort_by, ascending):
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

    def describe(groups: Groups, keys: tuple[str, ...]) -> dict[str, Any]:
        return {
            category: {
                r.name: {k.capitalize(): getattr(r, k) for k in keys}
                for r in _sort_rows(rows, sort_by, ascending)
            }
            for category, rows in groups.items()
        }

    table = {
        "Time": describe(times, ("count", "total", "min", "max", "avg")),
        "Memory": describe(memory, ("count", "min", "max", "avg")),
        "Unit": {"Time": "ms", "Memory": "kB"},
    }
    return json.dumps(table, indent=4) + "\n"
