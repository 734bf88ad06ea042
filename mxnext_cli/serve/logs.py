"""Lines about requests and errors, as JSON, with a limit on how many are written."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TextIO

import orjson

from .metrics import Counter

MAX_LINE = 4096  # characters
BURST = 50  # lines that may come at once


class RateLimit:
    """At most `rate` lines a second, and some more at once."""

    def __init__(self, rate: float, burst: float = BURST) -> None:
        self._rate, self._burst = rate, max(burst, rate)
        self._left, self._since = self._burst, time.monotonic()
        self.suppressed = 0

    def allow(self) -> bool:
        """Whether a line may be written now."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._since) * self._rate)
        self._since = now
        if self._left < 1:
            self.suppressed += 1
            return False
        self._left -= 1
        return True


class Log:
    """A file of lines; what exceeds the rate is counted, and the count is in the next line."""

    def __init__(
        self, target: str | None = None, rate: float = 1000, suppressed: Counter | None = None
    ) -> None:
        is_stream = target in (None, "-")
        self._file: TextIO = sys.stderr
        if not is_stream:  # open as long as the server runs
            self._file = Path(str(target)).open("a", encoding="utf-8")  # noqa: SIM115
        self._limit = RateLimit(rate)
        self._suppressed = suppressed
        self._lock = threading.Lock()

    def write(self, fields: Mapping[str, Any]) -> None:
        """Write one line."""
        with self._lock:
            if not self._limit.allow():
                if self._suppressed is not None:
                    self._suppressed.add()
                return
            count, self._limit.suppressed = self._limit.suppressed, 0
            when = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
            line = orjson.dumps(
                {"time": when, **fields, **({"suppressed": count} if count else {})},
                default=str,
            ).decode()
            try:
                self._file.write(line[:MAX_LINE] + "\n")
                self._file.flush()
            except (OSError, ValueError):  # a full disk must not stop the server
                return


class LogHandler(logging.Handler):
    """Passes what libraries log on to a `Log`."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        fields = {"level": record.levelname.lower(), "message": record.getMessage().strip()}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"[:500]
        self._log.write(fields)


def redirect_libraries(log: Log) -> None:
    """Let Uvicorn and asyncio log through the limit."""
    for name in ("uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [LogHandler(log)]
        logger.propagate = False
        logger.setLevel(logging.WARNING)
