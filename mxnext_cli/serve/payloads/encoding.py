"""Outputs of a model as the bodies of answers."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from ...predict import describe, softmax
from .decoding import JSON, NPY, NPZ, SAFETENSORS

PIECE = 128 << 10  # numbers that are written at once, between which other threads run
Outputs = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Postprocessing:
    """What happens to the outputs before they are sent."""

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


def json_array(values: np.ndarray) -> bytes:
    """Return an array as JSON; what is not finite becomes null.

    >>> json_array(np.array([[1.5, np.nan]], np.float32))
    b'[[1.5,null]]'
    """
    if values.size <= PIECE or values.ndim == 0:
        return _json_piece(values)
    if values.ndim == 1:
        pieces = (values[i : i + PIECE] for i in range(0, len(values), PIECE))
        return b"[" + b",".join(_json_piece(piece)[1:-1] for piece in pieces) + b"]"
    return b"[" + b",".join(json_array(row) for row in values) + b"]"


def _json_piece(values: np.ndarray) -> bytes:
    if values.ndim == 0 or values.dtype.kind not in "fiub":
        return orjson.dumps(values.tolist())
    return orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY)


def json_object(fields: Mapping[str, bytes]) -> bytes:
    """Return an object whose values are JSON already."""
    return b"{" + b",".join(orjson.dumps(k) + b":" + v for k, v in fields.items()) + b"}"


def _npy(outputs: Outputs) -> bytes:
    array = next(iter(outputs.values()))
    return _npy_header(array.dtype, array.shape) + array.tobytes()


@functools.lru_cache(maxsize=128)
def _npy_header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """Return how an `.npy` file begins; a model gives the same few shapes again and again."""
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


BINARY: dict[str, Callable[[Outputs], bytes]] = {
    NPZ: _npz,
    SAFETENSORS: _safetensors,
    NPY: _npy,
}


def encode(
    outputs: Outputs, accept: str, extra: Mapping[str, Any] | None = None
) -> tuple[bytes, str]:
    """Return the body of an answer and its content type, as the client accepts it."""
    for kind, write in BINARY.items():
        if kind in accept:
            return write(outputs), kind
    fields = {"outputs": json_object({name: json_array(out) for name, out in outputs.items()})}
    fields |= {name: orjson.dumps(value) for name, value in (extra or {}).items()}
    return json_object(fields), JSON


def encode_predictions(outputs: Outputs, rows: int) -> bytes:
    """Return the answer to `instances`: one prediction for each sample."""
    arrays = list(outputs.items())
    if any(out.ndim == 0 or len(out) != rows for _, out in arrays):
        return json_object({"predictions": json_object({n: json_array(out) for n, out in arrays})})
    if len(arrays) == 1:
        return json_object({"predictions": json_array(arrays[0][1])})
    samples = (json_object({n: json_array(out[i]) for n, out in arrays}) for i in range(rows))
    return json_object({"predictions": b"[" + b",".join(samples) + b"]"})
