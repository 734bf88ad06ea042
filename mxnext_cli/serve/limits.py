"""Limits of a server: sizes of requests, and their total memory."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException

from ..models import Shapes

MIB = 1 << 20
HEADROOM = 64 << 10  # bytes beside the numbers: names, headers of files, the form of JSON
BYTES_PER_NUMBER = 8  # of the widest type
TEXT_PER_NUMBER = 32  # "-1.2345678901234567e-308" with a comma and spaces
MAX_HEADER_BYTES = 32 << 10
MAX_INLINE_BYTES = 32 << 10  # a larger body is decoded off the event loop
NO_ROOM = "the server holds too many bytes of requests; try again later"


class Refused(HTTPException):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str, **headers: str) -> None:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(code, message, names)

    def __str__(self) -> str:
        return self.detail


@dataclass(frozen=True)
class Limits:
    """What a server takes; sizes in bytes, times of batches in milliseconds, others in seconds."""

    max_batch: int = 32
    max_delay: float = 2.0
    target_latency_ms: float | None = None
    max_rows: int = 1024
    max_queue: int = 256
    max_body: int = 32 * MIB
    max_json: int = 8 * MIB
    max_pixels: int = 16 << 20
    max_in_flight: int = 256 * MIB
    timeout: float = 30.0


def body_limits(inputs: Sequence[str], shapes: Shapes, limits: Limits) -> dict[str, int]:
    """Return the maximum size of a body of each kind, and of its `numbers`, for one model.

    The shapes of the inputs say how many numbers a request of `max_rows` samples holds; where a
    shape is not known, only the limits of the server count.
    """
    numbers = limits.max_body
    if inputs and all(name in shapes for name in inputs):
        numbers = limits.max_rows * sum(math.prod(shapes[name]) for name in inputs)
    json = min(limits.max_json, limits.max_body, numbers * TEXT_PER_NUMBER + HEADROOM)
    arrays = min(limits.max_body, numbers * BYTES_PER_NUMBER + HEADROOM)
    sizes = dict.fromkeys(("npy", "npz", "safetensors"), arrays) | {"json": json}
    images = dict.fromkeys(("image", "form"), limits.max_body)
    return {"numbers": numbers, "": max(arrays, json), **sizes, **images}


@dataclass(eq=False)
class Budget:
    """The bytes that all requests hold together, and those whose bodies are still arriving."""

    limit: int
    in_use: int = 0
    arriving: set[Share] = field(default_factory=set)


class Share:
    """The bytes that one request holds, and the task that answers it."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._task = asyncio.current_task()
        self.bytes = 0
        self.refusal: Refused | None = None  # why the task was canceled

    def hold(self, size: int) -> None:
        """Change the reservation to this many bytes; raise if there is no room.

        The largest body that is still arriving is given up first, so that slow uploads cannot lock
        out small requests.
        """
        budget = self._budget
        while size > self.bytes and budget.in_use + size - self.bytes > budget.limit:
            others = (share for share in budget.arriving if share is not self)
            largest = max(others, key=lambda share: share.bytes, default=None)
            if largest is None or largest.bytes <= size:
                raise Refused(503, NO_ROOM, retry_after="1")
            largest.give_up(503, NO_ROOM)
        budget.in_use += size - self.bytes
        self.bytes = size

    def give_up(self, code: int, message: str) -> None:
        """Cancel the task that answers the request, which is refused."""
        self.hold(0)
        self.refusal = Refused(code, message)
        if self._task is not None:
            self._task.cancel()

    @contextlib.contextmanager
    def arriving(self, timeout: float) -> Iterator[None]:
        """Abort the body if it takes too long, or to make room for smaller ones."""
        late = (408, "the body did not arrive in time")
        timer = asyncio.get_running_loop().call_later(timeout, self.give_up, *late)
        self._budget.arriving.add(self)
        try:
            yield
        finally:
            timer.cancel()
            self._budget.arriving.discard(self)
