"""Functions to start, stop and query the profiler."""

from __future__ import annotations

import atexit
import json
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...error import MXNetError, did_you_mean
from ...formats.atomic import replacing
from . import session
from .session import Event, OperatorNames, Recording

CONFIG: dict[str, Any] = {
    "filename": "profile.json",
    "profile_all": False,
    "profile_symbolic": True,
    "profile_imperative": True,
    "profile_memory": True,
    "profile_api": True,
    "continuous_dump": False,
    "dump_period": 1.0,
    "aggregate_stats": False,
}
recording = Recording()
_active: list[OperatorNames] = []
_STATES = {"run": True, "stop": False}
_store: weakref.ref[Any] | None = None  # the store whose servers can record


def set_config(**kwargs: Any) -> None:
    """Configure what to record, and the output file. Options that are not passed are unchanged.

    Parameters
    ----------
    filename : str
        Where `dump` writes the trace, 'profile.json' at first.
    profile_all : bool
        Same as setting the next three options.
    profile_symbolic, profile_imperative : bool
        Record operators in executors, and operators called on arrays.
    profile_memory : bool
        Record how much memory arrays take.
    continuous_dump : bool
        Write the file at every stop, and not only when `dump` is called.
    profile_api, dump_period, aggregate_stats
        Accepted without effect. There is no C API to record, and statistics are always collected.
    profile_process : {'worker', 'server'}
        With 'server', the servers of a `dist_async` store record the calls that they answer, each
        in a file of its own: ``rank0_profile.json`` for server 0. Any worker can make this call.
        Other stores have no servers that do any work.

    >>> mx.profiler.set_config(filename="profile.json", profile_all=True)
    """
    process = kwargs.pop("profile_process", "worker")
    if _tell_servers(process, "config", str(kwargs.get("filename", ""))):
        return
    for name, value in kwargs.items():
        if name not in CONFIG:
            raise MXNetError(
                f"Cannot find argument {name!r} of the profiler, which has: {', '.join(CONFIG)}. "
                f"{did_you_mean(name, CONFIG)}".rstrip()
            )
        CONFIG[name] = type(CONFIG[name])(value)


def _tell_servers(profile_process: str, command: str, value: str = "") -> bool:
    """Send a command to the servers of the job. Return False if it is for this worker."""
    if profile_process not in ("worker", "server"):
        raise KeyError(profile_process)
    if profile_process == "worker":
        return False
    store = None if _store is None else _store()
    if store is None:
        warnings.warn(
            "profile_process='server' has no effect: there is no 'dist_async' store, whose servers "
            "could record what they do. Every worker records itself.",
            stacklevel=3,
        )
    else:
        store.profile_servers(command, value)
    return True


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Start recording with 'run', end it with 'stop'.

    The first start takes about a second, because torch initializes its profiler.

    Parameters
    ----------
    state
        ``'run'`` or ``'stop'``.
    profile_process
        ``'worker'``, or ``'server'``; see `set_config`.

    >>> mx.profiler.set_state("stop")
    """
    if state not in _STATES:
        raise KeyError(f"{state!r} is not a state of the profiler: 'run' or 'stop'")
    if _tell_servers(profile_process, state):
        return
    if _STATES[state]:
        _start()
    else:
        _stop()


def _start() -> None:
    if recording.running:
        return
    everything = CONFIG["profile_all"]
    atexit.register(_stop)  # torch's profiler must not outlive the interpreter
    recording.start(memory=everything or CONFIG["profile_memory"])
    names = OperatorNames(
        eager=bool(everything or CONFIG["profile_imperative"]),
        graphs=bool(everything or CONFIG["profile_symbolic"]),
    )
    _active.append(names.__enter__())


def _stop() -> None:
    if not recording.running:
        return
    while _active:
        _active.pop().__exit__()
    recording.stop()
    if CONFIG["continuous_dump"]:
        _write()


def pause(profile_process: str = "worker") -> None:
    """Pause recording until `resume`.

    Parameters
    ----------
    profile_process
        ``'worker'``, or ``'server'``; see `set_config`.

    >>> mx.profiler.pause()
    >>> mx.profiler.resume()
    """
    set_state("stop", profile_process)


def resume(profile_process: str = "worker") -> None:
    """Record again after `pause`.

    Parameters
    ----------
    profile_process
        ``'worker'``, or ``'server'``; see `set_config`.

    >>> mx.profiler.pause()
    >>> mx.profiler.resume()
    """
    set_state("run", profile_process)


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write the trace to the file that `set_config` named; unless `finished`, continue recording.

    The file is JSON for chrome://tracing or https://ui.perfetto.dev.

    Parameters
    ----------
    finished
        Whether to stop recording.
    profile_process
        ``'worker'``, or ``'server'``; see `set_config`.

    >>> mx.profiler.set_config(filename="profile.json")
    >>> mx.profiler.dump()
    """
    if _tell_servers(profile_process, "dump"):
        return
    was_running = recording.running
    _stop()
    _write()
    if was_running and not finished:
        _start()


def _write() -> None:
    events = [*recording.events, *_async_marks()]
    trace = {"traceEvents": events, "displayTimeUnit": "ms"}
    path = Path(CONFIG["filename"])
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(json.dumps(trace).encode("utf-8"))


def _async_marks() -> Iterator[Event]:
    """Yield the user's marks as asynchronous events (begin, end, id), which may overlap."""
    for number, mark in enumerate(recording.marks):
        if mark["ph"] != "X":
            yield mark
            continue
        begin = {k: v for k, v in mark.items() if k != "dur"} | {"ph": "b", "id": number}
        yield begin
        yield {**begin, "ph": "e", "ts": mark["ts"] + mark["dur"]}


def dumps(
    reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False
) -> str:
    """Return statistics of what was recorded so far.

    Parameters
    ----------
    reset
        Whether to forget it all afterward.
    format : {'table', 'json'}
        ``'table'`` or ``'json'``.
    sort_by
        What to sort by: ``'total'``, ``'avg'``, ``'min'``, ``'max'`` or ``'count'``.
    ascending
        Whether the smallest comes first.

    >>> isinstance(mx.profiler.dumps(), str)
    True
    """
    if format not in ("table", "json"):
        raise AssertionError(
            f"Invalid value provided for format: {format}. Support: 'table', 'json'"
        )
    if sort_by not in session.SORT_KEYS:
        raise AssertionError(
            f"Invalid value provided for sort_by: {sort_by}. "
            "Support: 'total', 'avg', 'min', 'max', 'count'"
        )
    if ascending not in (False, True):
        raise AssertionError(
            f"Invalid value provided for ascending: {ascending}. Support: False, True"
        )
    if recording.running:  # include the current recording
        _stop()
        _start()
    times, memory = session.grouped(recording.events, recording.marks)
    if reset:
        recording.clear()
    shown = session.table if format == "table" else session.as_json
    return shown(times, memory, sort_by, ascending)


def set_kvstore_handle(handle: Any) -> None:
    """Set the store whose servers record with ``profile_process='server'``.

    A `dist_async` store calls this when it is created.

    Parameters
    ----------
    handle
        The store. There is no effect if its servers cannot record.

    >>> mx.profiler.set_kvstore_handle(None)
    """
    global _store
    _store = weakref.ref(handle) if hasattr(handle, "profile_servers") else None


# -- old spellings -----------------------------------------------------------------------------


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """Say what to record: 'symbolic' or 'all'. The old spelling of `set_config`.

    Parameters
    ----------
    mode
        What to record: ``'symbolic'`` or ``'all'``.
    filename
        Where `dump` writes the trace.

    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> mx.profiler.profiler_set_config(mode="all", filename="profile.json")
    """
    _tell_old("profiler_set_config", "set_config")
    if mode not in ("symbolic", "all"):
        raise KeyError(f"{mode!r} is no mode of the profiler: 'symbolic' or 'all'")
    set_config(
        filename=filename,
        profile_symbolic=True,
        profile_imperative=mode == "all",
        profile_all=False,
    )


def profiler_set_state(state: str = "stop") -> None:
    """Start or stop. The old spelling of `set_state`.

    Parameters
    ----------
    state
        ``'run'`` or ``'stop'``.

    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> mx.profiler.profiler_set_state("stop")
    """
    _tell_old("profiler_set_state", "set_state")
    set_state(state)


def dump_profile() -> None:
    """Write the trace and stop. The old spelling of `dump`.

    >>> mx.profiler.set_config(filename="profile.json")
    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> mx.profiler.dump_profile()
    """
    _tell_old("dump_profile", "dump")
    dump(True)


def _tell_old(old: str, new: str) -> None:
    warnings.warn(
        f"profiler.{old}() is deprecated. Please use profiler.{new}() instead.", stacklevel=3
    )
