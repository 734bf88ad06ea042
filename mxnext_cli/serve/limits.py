"""Limits of a server: sizes of requests, and their total memory."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..models import Shape

MIB = 1 << 20
HEADROOM = 64 << 10  # bytes beside the numbers: names, headers of files, the form of JSON
BYTES_PER_NUMBER = 8  # of the widest type
TEXT_PER_NUMBER = 32  # "-1.2345678901234567e-308" with a comma and spaces
BYTES_PER_PIXEL = 4  # of an image that is not compressed
PIXEL_FACTOR = 16 * 16  # an image may have 16 times the edges that the model takes
MIN_PIXELS, MAX_PIXELS = 1 << 20, 32 << 20
MAX_HEADER_BYTES = 32 << 10
MAX_INLINE_BYTES = 32 << 10  # a larger body is decoded off the event loop
NO_ROOM = "the server holds too many bytes of requests; try again later"


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.code = code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


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
    max_pixels: int | None = None
    max_in_flight: int = 256 * MIB
    timeout: float = 30.0


class BodyLimits:
    """The maximum sizes of bodies for one model, by their kind.

    The shapes of the inputs say how many numbers a request of `max_rows` samples holds; where a
    shape is not known, only the limits of the server count.
    """

    def __init__(self, inputs: Sequence[str], shapes: Mapping[str, Shape], limits: Limits) -> None:
        self._limits = limits
        self.numbers = limits.max_body
        if inputs and all(name in shapes for name in inputs):
            self.numbers = limits.max_rows * sum(math.prod(shapes[name]) for name in inputs)
        self.json = min(limits.max_json, self.numbers * TEXT_PER_NUMBER + HEADROOM)
        self.binary = min(limits.max_body, self.numbers * BYTES_PER_NUMBER + HEADROOM)

    def image(self, pixels: int) -> int:
        """Return the limit for an image of at most so many pixels."""
        return min(self._limits.max_body, pixels * BYTES_PER_PIXEL + HEADROOM)

    def form(self, pixels: int) -> int:
        """Return the limit for a form of several images or arrays."""
        whole = max(self.binary, self.json, self._limits.max_rows * self.image(pixels))
        return min(self._limits.max_body, whole)


def pixel_limit(target: tuple[int, int] | None, limits: Limits) -> int:
    """Return how many pixels an image may have that is resized to `target` (height, width)."""
    if limits.max_pixels is not None:
        return limits.max_pixels
    if target is None:
        return MAX_PIXELS
    return min(MAX_PIXELS, max(MIN_PIXELS, target[0] * target[1] * PIXEL_FACTOR))


class Share:
    """The bytes that one request holds, and the task that answers it."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._task = asyncio.current_task()
        self.bytes = 0
        self.refusal: tuple[int, str] | None = None  # why the task was canceled

    def hold(self, size: int) -> None:
        """Change the reservation to this many bytes; raise if there is no room."""
        self._budget.make_room(self, size)
        self._budget.in_use += size - self.bytes
        self.bytes = size

    def give_up(self, code: int, message: str) -> None:
        """Cancel the task that answers the request, which is refused."""
        self.release()
        self.refusal = code, message
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

    def release(self) -> None:
        """Hold nothing."""
        self._budget.in_use -= self.bytes
        self.bytes = 0
        self._budget.arriving.discard(self)


class Budget:
    """Bytes that all requests hold together.

    If there is no room, the largest body that is still arriving is given up, so that slow uploads
    cannot lock out small requests.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.in_use = 0
        self.arriving: set[Share] = set()

    def make_room(self, share: Share, size: int) -> None:
        """Abort larger bodies until a request can hold that many bytes, or refuse the request."""
        while size > share.bytes and self.in_use + size - share.bytes > self._limit:
            largest = max(self.arriving - {share}, key=lambda s: s.bytes, default=None)
            if largest is None or largest.bytes <= size:
                raise Refused(503, NO_ROOM, retry_after="1")
            largest.give_up(503, NO_ROOM)
