"""Reading ``.states``: pickles of MXNet's and of ours, in which only known kinds may stand.

Pickle can call anything by name. Here a name is looked up in short lists, and so a file can make
arrays, numbers, containers, optimizers and learning-rate schedulers, and nothing else.
"""

from __future__ import annotations

import builtins
import collections
import io
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..error import FormatError
from ..lr_scheduler import LRScheduler
from ..ndarray import NDArray
from .base import Optimizer

try:
    from numpy._core import multiarray, numeric
except ImportError:  # before NumPy 2
    from numpy.core import multiarray, numeric

_BUILTINS = (
    *("bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset"),
    *("int", "list", "set", "slice", "str", "tuple"),
)


def _latin1(text: str, encoding: str = "latin1") -> bytes:
    """Do the one thing that pickles ask of `_codecs.encode`: old protocols spell bytes so."""
    if encoding != "latin1":
        raise FormatError(f"Optimizer states may not ask for the encoding {encoding!r}.")
    return text.encode("latin1")


def _empty_array(handle: None = None) -> NDArray:
    """Make an array for a pickled state to fill; sparse ones of MXNet come back dense."""
    return NDArray(None)


KNOWN: dict[tuple[str, str], Any] = {
    **{
        (room, name): getattr(builtins, name)
        for room in ("builtins", "__builtin__")
        for name in _BUILTINS
    },
    ("_codecs", "encode"): _latin1,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "defaultdict"): collections.defaultdict,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    **{
        (f"numpy.{core}.multiarray", name): getattr(multiarray, name)
        for core in ("core", "_core")
        for name in ("_reconstruct", "scalar")
    },
    **{(f"numpy.{core}.numeric", "_frombuffer"): numeric._frombuffer for core in ("core", "_core")},
    ("mxnet.ndarray.ndarray", "NDArray"): NDArray,
    ("mxnet.ndarray.sparse", "RowSparseNDArray"): _empty_array,
    ("mxnet.ndarray.sparse", "CSRNDArray"): _empty_array,
}  # fmt: skip


class UnreadableStates(FormatError, pickle.UnpicklingError):
    """Bytes that are no pickle, or one that is cut off."""


def read_states(data: bytes) -> dict | tuple[dict, Optimizer]:
    """Return the states by index, or a pair of them and their optimizer.

    >>> read_states(pickle.dumps({0: None}))
    {0: None}
    """
    try:
        read = _Unpickler(io.BytesIO(data)).load()
    except FormatError:
        raise
    except Exception as error:  # pickle's own errors are of many kinds
        raise UnreadableStates(
            f"These are no optimizer states: {error or type(error).__name__}."
        ) from error
    states = read
    if isinstance(read, tuple) and len(read) == 2 and isinstance(read[1], Optimizer):
        states = read[0]
    if not isinstance(states, dict):
        raise FormatError(
            "Optimizer states are a dict, or a pair of it and an optimizer; these bytes hold "
            f"{type(read).__name__}."
        )
    return read


class _Unpickler(pickle.Unpickler):
    """Brings back known kinds only."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a known class, or refuse."""
        found = KNOWN.get((module, name))
        if found is not None:
            return found
        if module == "numpy" and isinstance(kind := getattr(np, name, None), type):
            if issubclass(kind, np.generic):
                return kind
        elif module.startswith("mxnet."):
            if (kind := _house_class(module, name)) is not None:
                return kind
        else:
            for kind in (*_descendants(Optimizer), *_descendants(LRScheduler)):
                if (kind.__module__, kind.__qualname__) == (module, name):
                    return kind
        raise FormatError(
            f"Optimizer states may not hold {module}.{name}: only arrays, numbers, containers, "
            "and optimizers and schedulers that are imported already. Nothing was run."
        )


def _house_class(module: str, name: str) -> type | None:
    """Return our class of MXNet's spelling, wherever it lives here."""
    if module.startswith("mxnet.optimizer"):
        return _named(Optimizer, name)
    if module == "mxnet.lr_scheduler":
        return _named(LRScheduler, name)
    if module.startswith("mxnet.numpy"):
        return _named(NDArray, name)
    return None


def _named(base: type, name: str) -> type | None:
    ours = (k for k in (base, *_descendants(base)) if k.__module__.startswith("mxnet."))
    return next((k for k in ours if k.__qualname__ == name), None)


def _descendants(base: type) -> Iterator[type]:
    for kind in base.__subclasses__():
        yield kind
        yield from _descendants(kind)
