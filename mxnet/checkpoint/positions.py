"""The position of a training loop in its data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..error import FormatError
from .data_order import data_order, set_data_order
from .random_states import get_random_states, set_random_states

__all__ = ["TrackedData", "track"]


class TrackedData:
    """Iterates over a loader and knows how far it is; see `track`.

    Parameters
    ----------
    data
        The loader.

    >>> isinstance(mx.checkpoint.track([1, 2, 3]), mx.checkpoint.TrackedData)
    True
    """

    def __init__(self, data: Iterable) -> None:
        self._data = data
        self._epoch = 0
        self._batches = 0
        self._start: dict[str, Any] | None = None  # random states when the epoch began
        self._resumed: Mapping[str, Any] | None = None
        # A DataIter is reset between epochs, which may shuffle what it has.
        self._is_iterator = hasattr(data, "reset") and hasattr(data, "provide_data")
        self._is_used_up = False
        self._order = data_order(data) if self._is_iterator else None
        self._resets: list[dict[str, Any]] = []  # random states before each, if orders are unknown

    @property
    def epoch(self) -> int:
        """How many epochs are complete."""
        return self._epoch

    @property
    def batches(self) -> int:
        """How many batches of this epoch were handed out."""
        return self._batches

    def __len__(self) -> int:
        return len(self._data)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also while it is unpickled
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._data, name)  # such as provide_data and batch_size

    def reset(self) -> None:
        """Reset a DataIter, as loops do between epochs; of other data, do nothing."""
        if not self._is_iterator:
            return
        if self._order is None:
            self._resets.append(get_random_states())
        self._data.reset()  # type: ignore[attr-defined]
        self._order, self._is_used_up = data_order(self._data), False

    def __iter__(self) -> Iterator[Any]:
        resumed, self._resumed = self._resumed, None
        if self._is_used_up:
            self.reset()
        if resumed is not None and resumed["start"] is not None:
            set_random_states(resumed["start"])
        self._start, self._batches = get_random_states(), 0
        batches = iter(self._data)
        if resumed is not None:
            self._skip(batches, resumed["batches"])
            if resumed["now"] is not None:
                set_random_states(resumed["now"])
        for batch in batches:
            self._batches += 1
            yield batch
        self._epoch += 1
        self._start, self._batches, self._is_used_up = None, 0, self._is_iterator

    def _skip(self, batches: Iterator, count: int) -> None:
        """Draw batches again that were handed out before."""
        for _ in range(count):
            if next(batches, None) is None:
                raise FormatError(
                    f"The checkpoint was made after {count} batches of an epoch, and the data has "
                    f"only {self._batches}: it is not the same data."
                )
            self._batches += 1

    def state_dict(self) -> dict[str, Any]:
        """Return the position, as `load_state_dict` takes it."""
        inside = self._start is not None
        return {
            "epoch": self._epoch,
            "batches": self._batches if inside else 0,
            "start": self._start,
            "now": get_random_states() if inside else None,
            "order": self._order,
            "resets": self._resets,
            "is_used_up": self._is_used_up,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Begin the next iteration where the position was taken."""
        self._epoch = int(state["epoch"])
        self._batches = 0
        self._resumed = state if state["start"] is not None or state["batches"] else None
        if self._is_iterator:
            self._restore_order(state)

    def _restore_order(self, state: Mapping[str, Any]) -> None:
        """Bring an iterator to the order of its epoch, by resets if that is all it can."""
        self._order, self._resets = state.get("order"), list(state.get("resets", ()))
        self._is_used_up = bool(state.get("is_used_up"))
        if self._order is not None:
            set_data_order(self._data, self._order)
            return
        for before in self._resets:
            set_random_states(before)
            self._data.reset()  # type: ignore[attr-defined]


def track(data: Iterable) -> TrackedData:
    """Return a loader or iterator that knows its position, to be given to `save` and `load`.

    After `load`, the next iteration goes on with the batch that would have come: the order is
    drawn again from the random states at the beginning of the epoch, and batches that were handed
    out before are left out. A `DataIter` is reset by itself when the next epoch begins.

    Parameters
    ----------
    data
        A DataLoader, a DataIter or any other iterable that starts over with each epoch.

    >>> data = mx.checkpoint.track([1, 2, 3])
    >>> batches = iter(data)
    >>> next(batches), data.batches
    (1, 1)
    >>> again = mx.checkpoint.track([1, 2, 3])
    >>> again.load_state_dict(data.state_dict())
    >>> list(again)
    [2, 3]
    """
    return TrackedData(data)
