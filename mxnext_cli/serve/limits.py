"""Limits of a server: what a request may hold, and how many bytes requests hold together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..models import Shape

MIB = 1 << 20
BACKLOG = 4096  # connections that the system holds until they are accepted; more wait a second
HEADROOM = 64 << 10  # bytes beside the numbers: names, headers of files, the form of JSON
BYTES_PER_NUMBER = 8  # of the widest type
TEXT_PER_NUMBER = 32  # "-1.2345678901234567e-308" with a comma and spaces
BYTES_PER_PIXEL = 4  # of an image that is not compressed
PIXEL_FACTOR = 16 * 16  # an image may have 16 times the edges that the model takes
MIN_PIXELS, MAX_PIXELS = 1 << 20, 32 << 20
MAX_INLINE_BYTES = 32 << 10  # a larger body is decoded off the event loop


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.code = code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass(frozen=True)
class Limits:
    """What a server takes; sizes in bytes, times in seconds."""

    max_batch: int = 32
    max_delay: float = 0.002
    target_latency: float | None = None
    max_rows: int = 1024
    max_queue: int = 256
    max_body: int = 32 * MIB
    max_json: int = 8 * MIB
    max_pixels: int | None = None
    max_in_flight: int = 256 * MIB
    max_connections: int = 2000
    max_header_bytes: int = 32 << 10
    header_timeout: float = 10.0
    idle_timeout: float = 60.0
    timeout: float = 30.0


class BodyLimits:
    """How large the bodies for one model can be, by their kind.

    The shapes of the inputs say how many numbers a request of `max_rows` samples holds; where a
    shape is not known, only the limits of the server count.
    """

    def __init__(self, inputs: Sequence[str], shapes: Mapping[str, Shape], limits: Limits) -> None:
        self._limits = limits
        self.numbers: int | None = None
        if inputs and all(name in shapes for name in inputs):
            self.numbers = limits.max_rows * sum(math.prod(shapes[name]) for name in inputs)
        lists = sum(1 + sum(_prefix_products(shapes.get(name, ()))) for name in inputs)
        per_row = sum(math.prod(shapes.get(name, ())) for name in inputs)
        self.lists_per_number = 1.0 if self.numbers is None else lists / max(1, per_row)
        self.json = self._bound(limits.max_json, TEXT_PER_NUMBER)
        self.binary = self._bound(limits.max_body, BYTES_PER_NUMBER)

    def _bound(self, limit: int, size: int) -> int:
        return limit if self.numbers is None else min(limit, self.numbers * size + HEADROOM)

    def max_numbers(self, size: int) -> int:
        """Return how many numbers a JSON body of some bytes may hold."""
        return size if self.numbers is None else self.numbers

    def image(self, pixels: int) -> int:
        """Return the limit for an image of at most so many pixels."""
        return min(self._limits.max_body, pixels * BYTES_PER_PIXEL + HEADROOM)

    def form(self, pixels: int) -> int:
        """Return the limit for a form of several images or arrays."""
        whole = max(self.binary, self.json, self._limits.max_rows * self.image(pixels))
        return min(self._limits.max_body, whole)


def _prefix_products(shape: Shape) -> list[int]:
    """Return how many lists a nested list has at each depth but the first.

    >>> _prefix_products((3, 4, 5))
    [3, 12]
    """
    return [math.prod(shape[:i]) for i in range(1, len(shape))]


def pixel_limit(target: tuple[int, int] | None, limits: Limits) -> int:
    """Return how many pixels an image may have that is resized to `target` (height, width)."""
    if limits.max_pixels is not None:
        return limits.max_pixels
    if target is None:
        return MAX_PIXELS
    return min(MAX_PIXELS, max(MIN_PIXELS, target[0] * target[1] * PIXEL_FACTOR))


class Share:
    """The bytes that one request holds."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.bytes = 0
        self.is_arriving = True
        self.evict: Callable[[], None] | None = None
        self.is_evicted = False

    def hold(self, size: int) -> None:
        """Hold so many bytes in place of those before; refuse if there is no room."""
        self._budget.change(self, size)

    def settle(self) -> None:
        """Say that the request arrived whole: it is not given up for others any more."""
        self.is_arriving = False
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
        self.limit = limit
        self.in_use = 0
        self.arriving: set[Share] = set()

    def share(self) -> Share:
        """Return the share of a new request."""
        share = Share(self)
        self.arriving.add(share)
        return share

    def change(self, share: Share, size: int) -> None:
        """Let a request hold so many bytes."""
        if share.is_evicted:
            raise _no_room()
        growth = size - share.bytes
        while growth > 0 and self.in_use + growth > self.limit:
            largest = max(self.arriving - {share}, key=lambda s: s.bytes, default=None)
            if largest is None or largest.bytes <= size:
                raise _no_room()
            self._evict(largest)
        self.in_use += growth
        share.bytes = size

    @staticmethod
    def _evict(share: Share) -> None:
        share.release()
        share.is_evicted = True
        if share.evict is not None:
            share.evict()


def _no_room() -> Refused:
    return Refused(
        503,
        "the server holds too many bytes of requests; try again later",
        retry_after="1",
        connection="close",
    )
