"""`IntervalSampler`: indices at fixed intervals."""

from __future__ import annotations

from collections.abc import Iterator

from ...data import sampler

__all__ = ["IntervalSampler"]


class IntervalSampler(sampler.Sampler):
    """Yield the indices below ``length`` at fixed intervals.

    Parameters
    ----------
    length : int
        Number of indices.
    interval : int
        Distance between two indices.
    rollover : bool
        Start again at the first index that was left out, until all indices are yielded.

    >>> list(mx.gluon.contrib.data.IntervalSampler(7, interval=3))
    [0, 3, 6, 1, 4, 2, 5]
    >>> list(mx.gluon.contrib.data.IntervalSampler(7, interval=3, rollover=False))
    [0, 3, 6]
    """

    def __init__(self, length: int, interval: int, rollover: bool = True) -> None:
        if interval > length:
            raise AssertionError(
                f"Interval {interval} must be smaller than or equal to length {length}"
            )
        self._length = length
        self._interval = interval
        self._rollover = rollover

    def __iter__(self) -> Iterator[int]:
        for start in range(self._interval if self._rollover else 1):
            yield from range(start, self._length, self._interval)

    def __len__(self) -> int:
        return self._length  # MXNet's length is the same without rollover
