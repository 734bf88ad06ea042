"""What was recorded: torch's traces, one for each stretch of running, and the user's own marks.

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
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from ..operator.running import PURE_PYTHON
from ..ops import registry

Event = dict[str, Any]
CUSTOM_OPERATOR = "Custom Operator"  # the category of what runs inside one


def now() -> float:
    """Return the time in microseconds since the epoch."""
    return time.time_ns() / 1000


class Recording:
    """All events so far, and the stretch that is running, if any."""

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
        """Begin a stretch."""
        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(ProfilerActivity.CUDA)
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's tracer chats on stderr
        session = profile(activities=activities, profile_memory=memory)
        with warnings.catch_warnings():  # each stretch is a session, so no cycle loses events
            warnings.filterwarnings("ignore", message=".*Profiler clears events")
            session.start()
        self._running = session

    def stop(self) -> None:
        """End the stretch and keep what it saw."""
        session, self._running = self._running, None
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        session.stop()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "trace.json")
            session.export_chrome_trace(str(path))
            trace = json.loads(path.read_text(encoding="utf-8"))
        self.events += _named(_with_absolute_times(trace))

    def mark(self, **event: Any) -> None:
        """Keep an event of the user's, if anything is being recorded."""
        if self.running:
            with self._lock:
                self.marks.append(
                    {"pid": os.getpid(), "tid": threading.get_ident(), "ts": now(), **event}
                )

    def clear(self) -> None:
        """Forget everything that was recorded."""
        self.events.clear()
        self.marks.clear()


def _with_absolute_times(trace: dict[str, Any]) -> list[Event]:
    base = trace.get("baseTimeNanoseconds", 0) / 1000
    events = trace["traceEvents"]
    for event in events:
        if "ts" in event and event.get("ph") != "M":
            event["ts"] += base
    return events


def _named(events: list[Event]) -> list[Event]:
    """Return the events with operators marked as such, backward ones under MXNet's names.

    torch gives a number to each step that it will differentiate, and the same number to the step
    of backward: so the backward of what ran inside FullyConnected is `_backward_FullyConnected`.
    """
    names = {*registry.names(), PURE_PYTHON}
    operators = [
        e for e in events if e.get("ph") == "X" and _operator_of(e.get("name", "")) in names
    ]
    for event in operators:
        # Inside a custom operator names have its own in front: `MyOp::exp`.
        event["cat"] = CUSTOM_OPERATOR if "::" in event["name"] else "operator"
    owner_of_number = _owners(operators, events)
    backward = []
    for event in events:
        if not str(event.get("name", "")).startswith("autograd::engine::evaluate_function"):
            continue
        owner = owner_of_number.get(event.get("args", {}).get("Sequence number"))
        if owner is not None and owner["cat"] == "operator":
            # One operator may be several steps of backward: statistics join them by `of`.
            named = {"name": f"_backward_{owner['name'].lstrip('_')}", "cat": "operator"}
            backward.append({**event, **named, "args": {**event["args"], "of": owner["ts"]}})
    return events + backward


def _operator_of(name: str) -> str:
    """Return the name behind that of a custom operator; those of torch stay whole."""
    return name if name.startswith(("aten::", "torch::", "c10::")) else name.rpartition("::")[2]


def _is_numbered_forward(event: Event) -> bool:
    args = event.get("args", {})
    return "Sequence number" in args and not args.get("Fwd thread id")


def _owners(operators: list[Event], events: list[Event]) -> dict[int, Event]:
    """Return which call of an operator each of torch's numbers belongs to."""
    by_thread: dict[Any, list[Event]] = {}
    for event in sorted(operators, key=lambda e: e["ts"]):
        by_thread.setdefault(event["tid"], []).append(event)
    starts = {tid: [e["ts"] for e in row] for tid, row in by_thread.items()}
    owners = {}
    # Steps that are not differentiated show the next number; so the last to show it owns it.
    for event in sorted(filter(_is_numbered_forward, events), key=lambda e: e["ts"]):
        number, row = event["args"]["Sequence number"], by_thread.get(event["tid"])
        if row is None:
            continue
        place = bisect_right(starts[event["tid"]], event["ts"]) - 1
        if place >= 0 and event["ts"] <= row[place]["ts"] + row[place]["dur"]:
            owners[number] = row[place]
    return owners
