"""Outputs of a model as the bodies of answers."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from ..predict import describe, softmax
from .decoding import JSON, NPY, NPZ, SAFETENSORS

PIECE = 32 << 10  # numbers that are written at once, between which other threads run
Outputs = Mapping[str, np.ndarray]
dump = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Postprocessing:
    """Postprocessing of the outputs."""

    softmax: bool = False
    top: int = 0
    labels: tuple[str, ...] = ()

    def apply(self, outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs, as probabilities if asked for."""
        return [softmax(out) for out in outputs] if self.softmax else list(outputs)

    def best(self, outputs: Outputs, top: int) -> dict[str, Any]:
        """Return the best classes of each sample, of the outputs that are scores."""
        labels = list(self.labels) or None
        return {
            name: [_best(row, labels, top) for row in out]
            for name, out in outputs.items()
            if out.ndim == 2 and out.shape[1] > 1
        }


def _best(row: np.ndarray, labels: list[str] | None, top: int) -> list[dict[str, Any]]:
    facts = describe(row, labels, top)["top"]
    return [{k: v for k, v in fact.items() if v is not None} for fact in facts]


def json_array(values: np.ndarray) -> msgspec.Raw:
    """Return an array as JSON; NaN and infinities become null.

    >>> bytes(json_array(np.array([[1.5, np.nan, 0.1]], np.float32)))
    b'[[1.5,null,0.1]]'
    """
    if values.size > PIECE and values.ndim > 1:
        return msgspec.Raw(b"[" + b",".join(bytes(json_array(row)) for row in values) + b"]")
    if values.size > PIECE:
        pieces = (values[i : i + PIECE] for i in range(0, len(values), PIECE))
        return msgspec.Raw(b"[" + b",".join(bytes(json_array(p))[1:-1] for p in pieces) + b"]")
    return msgspec.Raw(dump((shorten(values) if values.dtype == np.float32 else values).tolist()))


def shorten(values: np.ndarray) -> np.ndarray:
    """Return float64 with few digits that round to the same float32: 0.1, not 0.10000000149."""
    exact = values.astype(np.float64)
    with np.errstate(all="ignore"):
        scale = 10.0 ** (7 - np.floor(np.log10(np.abs(exact))))
        short = np.rint(exact * scale) / scale
        return np.where(short.astype(np.float32) == values, short, exact)


def _npy(outputs: Outputs) -> bytes:
    array = next(iter(outputs.values()))
    return _npy_header(array.dtype, array.shape) + array.tobytes()


@functools.lru_cache(maxsize=128)
def _npy_header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(dtype)
    fields = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, fields)
    return file.getvalue()


def _npz(outputs: Outputs) -> bytes:
    file = io.BytesIO()
    arrays: dict[str, Any] = dict(outputs)
    np.savez(file, **arrays)
    return file.getvalue()


def _safetensors(outputs: Outputs) -> bytes:
    from safetensors.numpy import save

    return save({name: np.ascontiguousarray(out) for name, out in outputs.items()})


BINARY: dict[str, Callable[[Outputs], bytes]] = {NPZ: _npz, SAFETENSORS: _safetensors, NPY: _npy}


def encode(
    outputs: Outputs, accept: str, extra: Mapping[str, Any] | None = None
) -> tuple[bytes, str]:
    """Return the body of an answer and its content type, as the client accepts it."""
    for kind, write in BINARY.items():
        if kind in accept:
            return write(outputs), kind
    return dump({"outputs": _json_arrays(outputs), **(extra or {})}), JSON


def encode_predictions(outputs: Outputs, rows: int) -> bytes:
    """Return the answer to `instances`: one prediction for each sample."""
    if any(out.ndim == 0 or len(out) != rows for out in outputs.values()):
        return dump({"predictions": _json_arrays(outputs)})
    if len(outputs) == 1:
        return dump({"predictions": json_array(next(iter(outputs.values())))})
    samples = [_json_arrays({n: out[i] for n, out in outputs.items()}) for i in range(rows)]
    return dump({"predictions": samples})


def _json_arrays(outputs: Outputs) -> dict[str, msgspec.Raw]:
    return {name: json_array(out) for name, out in outputs.items()}
