"""The state of a training run: its objects, random generators, and position in the data."""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from ... import accelerator
from ...error import FormatError, MXNetError
from ...io import NDArrayIter
from ...lr_scheduler import LRScheduler
from ...metric import EvalMetric
from ...ndarray import NDArray
from ...optimizer import Optimizer
from ...runtime.array import plain, wrap_plain

PLAIN = (bool, int, float, str, type(None))


def tensors_of(tree: Any) -> Any:
    """Replace arrays in a tree by tensors."""
    if isinstance(tree, NDArray):
        return plain(tree)
    if isinstance(tree, Mapping):
        return {key: tensors_of(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(tensors_of(value) for value in tree)
    return tree


def arrays_from(tree: Any) -> Any:
    """Replace tensors in a tree by arrays."""
    if isinstance(tree, torch.Tensor):
        return wrap_plain(NDArray, tree)
    if isinstance(tree, dict):
        return {key: arrays_from(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(arrays_from(value) for value in tree)
    return tree


def get_fields(thing: Any) -> dict[str, Any]:
    """Return the attributes of an object that are numbers, strings, arrays, or containers of them.

    A scheduler inside an optimizer and the parts of a composite metric are included; others, such
    as functions, must be set by the program.
    """
    settle = getattr(thing, "_settle", None)
    if callable(settle):
        settle()
    results = {}
    for name, value in vars(thing).items():
        is_whole, part = _fields_in(value)
        if is_whole:
            results[name] = part
    return results


def _fields_in(value: Any) -> tuple[bool, Any]:
    if isinstance(value, (*PLAIN, np.generic, np.ndarray)):
        return not (isinstance(value, np.ndarray) and value.dtype.hasobject), value
    if isinstance(value, NDArray):
        return True, {"array": plain(value)}
    if isinstance(value, list | tuple):
        parts = [_fields_in(v) for v in value]
        return all(is_whole for is_whole, _ in parts), {type(value).__name__: [p for _, p in parts]}
    if isinstance(value, dict):
        parts = {k: _fields_in(v) for k, v in value.items() if isinstance(k, PLAIN)}
        whole = len(parts) == len(value) and all(is_whole for is_whole, _ in parts.values())
        return whole, {"dict": {k: p for k, (_, p) in parts.items()}}
    if isinstance(value, EvalMetric | LRScheduler | Optimizer):
        return True, {"object": get_fields(value)}
    return False, None


def set_fields(thing: Any, saved: Mapping[str, Any]) -> None:
    """Restore the attributes of `get_fields` on an object of the same class."""
    settle = getattr(thing, "_settle", None)
    if callable(settle):
        settle()
    for name, value in saved.items():
        own = inspect.getattr_static(type(thing), name, None)
        if not isinstance(name, str) or callable(own) or isinstance(own, property):
            raise FormatError(f"A checkpoint may not replace {type(thing).__name__}.{name!s:.80}.")
        vars(thing)[name] = _restore(vars(thing).get(name), value)


def _restore(old: Any, saved: Any) -> Any:
    if not isinstance(saved, Mapping):  # sums stay float64: NumPy adds to a Python float in float32
        return type(old)(saved) if isinstance(old, np.floating) else saved
    ((kind, content),) = saved.items()
    if kind == "array":
        output = wrap_plain(NDArray, content)
        return output.as_in_context(old.context) if isinstance(old, NDArray) else output
    if kind == "object":
        if old is not None:
            set_fields(old, content)
        return old
    if kind == "dict":
        olds = old if isinstance(old, dict) else {}
        return {k: _restore(olds.get(k), v) for k, v in content.items()}
    olds = (
        old if isinstance(old, list | tuple) and len(old) == len(content) else [None] * len(content)
    )
    parts = [_restore(o, v) for o, v in zip(olds, content, strict=True)]
    return tuple(parts) if kind == "tuple" else parts


def get_random_states() -> dict[str, Any]:
    """Return the state of every random generator: torch's on all devices, NumPy's, Python's."""
    kind, words, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002 (the global one)
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "devices": [
            accelerator.get_rng_state(d).numpy().tobytes() for d in accelerator.started_devices()
        ],
        "numpy": (str(kind), words, int(position), int(has_gauss), float(gauss)),
        "python": _python_state(),
    }


def _python_state() -> tuple:
    version, words, gauss = random.getstate()
    return version, np.array(words, np.uint64), gauss


def set_random_states(state: Mapping[str, Any]) -> None:
    """Set every random generator to a state that `get_random_states` returned."""
    torch.set_rng_state(torch.frombuffer(bytearray(state["torch"]), dtype=torch.uint8))
    for device, saved in zip(accelerator.devices(), state.get("devices", ()), strict=False):
        accelerator.set_rng_state(device, torch.frombuffer(bytearray(saved), dtype=torch.uint8))
    np.random.set_state(state["numpy"])  # noqa: NPY002
    version, words, gauss = state["python"]
    random.setstate((version, tuple(int(w) for w in words), gauss))


def data_order(data: Any) -> Any:
    """Return the order of an epoch's data at its beginning, or None if unknown."""
    if hasattr(data, "state_dict") and hasattr(data, "load_state_dict"):
        return {"own": data.state_dict()}
    if type(data) is not NDArrayIter:
        return None
    if any(x.stype != "default" for _, x in (*data.data, *data.label)):
        return None
    rolled = [data._cache_data, data._cache_label]  # samples rolled over from the last epoch
    order = {"idx": data._rows.copy(), "shuffled": data.idx.copy()}
    return {**order, "cursor": data.cursor, "rolled": rolled}


def set_data_order(data: Any, order: Mapping[str, Any]) -> None:
    """Reset an iterator to the beginning of an epoch with this order."""
    if "own" in order:
        data.load_state_dict(order["own"])
        return
    target = order["idx"]
    if not isinstance(data, NDArrayIter) or sorted(target) != sorted(data._rows):
        raise MXNetError("train_data and the training state have different numbers of samples.")
    positions = np.argsort(data._rows)[target]
    if (positions != np.arange(len(positions))).any():
        index = torch.from_numpy(positions)
        for named in (data.data, data.label):
            named[:] = [(name, _reorder_rows(x, index)) for name, x in named]
        data._rows = target.copy()
    data.idx = order.get("shuffled", target).copy()
    data.cursor = order["cursor"]
    data._cache_data, data._cache_label = order["rolled"]


def _reorder_rows(array: NDArray, places: torch.Tensor) -> NDArray:
    tensor = plain(array)
    return wrap_plain(type(array), tensor.index_select(0, places.to(tensor.device)), array._ctx)


class TrackedData:
    """Iterates over a loader and tracks its position; see `track`.

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
        # A DataIter is reset between epochs, which may shuffle it.
        self._is_iterator = hasattr(data, "reset") and hasattr(data, "provide_data")
        self._is_used_up = False
        self._order = data_order(data) if self._is_iterator else None
        # Random states before each reset, if orders are unknown.
        self._resets: list[dict[str, Any]] = []

    @property
    def epoch(self) -> int:
        """The number of complete epochs."""
        return self._epoch

    @property
    def batches(self) -> int:
        """The number of batches consumed in this epoch."""
        return self._batches

    def __len__(self) -> int:
        return len(self._data)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also during unpickling
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._data, name)  # such as provide_data and batch_size

    def reset(self) -> None:
        """Reset a DataIter between epochs; no effect on other data."""
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
        """Fetch and skip batches that were consumed before."""
        for _ in range(count):
            if next(batches, None) is None:
                raise FormatError(
                    f"The checkpoint was made after {count} batches of an epoch, and the data has "
                    f"only {self._batches}: the data has changed."
                )
            self._batches += 1

    def state_dict(self) -> dict[str, Any]:
        """Return the position, for `load_state_dict`."""
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
        """Make the next iteration start at the saved position."""
        self._epoch = int(state["epoch"])
        self._batches = 0
        self._resumed = state if state["start"] is not None or state["batches"] else None
        if self._is_iterator:
            self._restore_order(state)

    def _restore_order(self, state: Mapping[str, Any]) -> None:
        """Restore an iterator's order of the epoch, by repeated resets if necessary."""
        self._order, self._resets = state.get("order"), list(state.get("resets", ()))
        self._is_used_up = bool(state.get("is_used_up"))
        if self._order is not None:
            set_data_order(self._data, self._order)
            return
        for before in self._resets:
            set_random_states(before)
            self._data.reset()  # type: ignore[attr-defined]


def track(data: Iterable) -> TrackedData:
    """Wrap a loader or iterator to track its position, for `save` and `load`.

    After `load`, iteration continues with the next batch: the order is restored from the random
    states at the beginning of the epoch, and consumed batches are skipped. A `DataIter` is reset
    automatically at the start of the next epoch.

    Parameters
    ----------
    data
        A DataLoader, a DataIter or another iterable that starts again in each epoch.

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
