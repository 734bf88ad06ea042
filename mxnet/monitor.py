"""`Monitor`: statistics of the arrays in executors, every few batches."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable
from typing import Any

from .base import py_str
from .error import InvalidType
from .ndarray import NDArray, norm

__all__ = ["Monitor"]

Stat = Callable[[NDArray], "NDArray | list[NDArray]"]


def root_mean_square(x: NDArray) -> NDArray:
    """Return ``|x| / sqrt(size)``, the default statistic."""
    return norm(x) / math.sqrt(x.size or 1)


class Monitor:
    """Monitors the outputs and arguments of executors.

    Parameters
    ----------
    interval : int
        Number of batches between monitored batches.
    stat_func : callable, optional
        Function from an array to a statistic (an NDArray or a list); by default ``|x| /
        sqrt(size)``.
    pattern : str
        Regular expression that the beginning of names must match.
    sort : bool
        Whether to sort the result of `toc` by name.
    monitor_all : bool
        Whether to monitor the inputs of operators too.

    >>> x = mx.sym.var("x")
    >>> executor = mx.sym.relu(x, name="r").bind(mx.cpu(), {"x": mx.nd.array([-1.0, 2.0])})
    >>> monitor = mx.mon.Monitor(1, stat_func=lambda x: x.max())
    >>> monitor.install(executor)
    >>> monitor.tic()
    >>> _ = executor.forward()
    >>> [name for _, name, _ in monitor.toc()]
    ['r_output', 'x']
    """

    def __init__(
        self,
        interval: int,
        stat_func: Stat | None = None,
        pattern: str = ".*",
        sort: bool = False,
        monitor_all: bool = False,
    ) -> None:
        self.stat_func = stat_func or root_mean_square
        self.interval = interval
        self.activated = False
        self.queue: list[tuple[int, str, Any]] = []
        self.step = 0
        self.exes: list[Any] = []
        self.re_prog = re.compile(pattern)
        self.sort = sort
        self.monitor_all = monitor_all

    def stat_helper(self, name: bytes | str, array: NDArray) -> None:
        """Record the statistic of an array, if this batch is monitored and the name matches.

        Parameters
        ----------
        name
            Name of the array.
        array
            The array.
        """
        name = py_str(name)
        if self.activated and self.re_prog.match(name):
            self.queue.append((self.step, name, self.stat_func(array)))

    def install(self, exe: Any) -> None:
        """Install the monitor on an executor.

        Parameters
        ----------
        exe
            The executor.
        """
        exe.set_monitor_callback(self.stat_helper, self.monitor_all)
        self.exes.append(exe)

    def tic(self) -> None:
        """Start a batch; call it before forward."""
        if self.step % self.interval == 0:
            self.queue = []
            self.activated = True
        self.step += 1

    def toc(self) -> list[tuple[int, str, str]]:
        """End a batch; return (batch, name, statistic as str) of all recorded statistics."""
        if not self.activated:
            return []
        for exe in self.exes:
            for name, array in [*exe.arg_dict.items(), *exe.aux_dict.items()]:
                self.stat_helper(name, array)
        self.activated = False
        rows = sorted(self.queue, key=lambda row: row[1]) if self.sort else self.queue
        self.queue = []
        return [(step, name, _text(name, stat)) for step, name, stat in rows]

    def toc_print(self) -> None:
        """End a batch, and log the recorded statistics."""
        for step, name, stat in self.toc():
            logging.info("Batch: %7d %30s %s", step, name.ljust(30), stat)


def _text(name: str, stat: Any) -> str:
    stats = stat if isinstance(stat, list) else [stat]
    if not all(isinstance(part, NDArray) for part in stats):
        raise InvalidType(
            f"stat_func must return an NDArray or a list of them; for {name!r} it returned "
            f"{type(stat).__name__}."
        )
    values = [part.asscalar() if part.shape == (1,) else part.asnumpy() for part in stats]
    return "".join(str(value) + "\t" for value in values)
