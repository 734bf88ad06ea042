"""`mx.profiler`: profiling by torch's profiler, with MXNet's operator names.

`set_state('run')` starts, `set_state('stop')` ends; `dump` writes a trace for chrome://tracing or
https://ui.perfetto.dev, `dumps` returns statistics. A stopped profiler has no overhead.
"""

from __future__ import annotations

from .base import c_str, c_str_array, check_call, py_str
from .runtime.profiling.control import (
    dump,
    dump_profile,
    dumps,
    pause,
    profiler_set_config,
    profiler_set_state,
    resume,
    set_config,
    set_kvstore_handle,
    set_state,
)
from .runtime.profiling.objects import Counter, Domain, Event, Frame, Marker, Task, scope

__all__ = [
    "Counter",
    "Domain",
    "Event",
    "Frame",
    "Marker",
    "Task",
    "dump",
    "dump_profile",
    "dumps",
    "pause",
    "profiler_set_config",
    "profiler_set_state",
    "resume",
    "scope",
    "set_config",
    "set_kvstore_handle",
    "set_state",
]
