"""Outputs of a model as the bodies of answers."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from ..predict import describe, softmax
from .decoding import JSON, NPY, NPZ, SAFETENSORS

HEADER_LENGTH = "inference-header-content-length"  # of the JSON before binary tensors
DATATYPES = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64",
    "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64",
    "FP16": "float16", "FP32": "float32", "FP64": "float64",
}  # fmt: skip
NAMES = {np.dtype(name): datatype for datatype, name in DATATYPES.items()}
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
        scores = {n: out for n, out in outputs.items() if out.ndim == 2 and out.shape[1] > 1}
        return {name: [self._best(row, top) for row in out] for name, out in scores.items()}

    def _best(self, row: np.ndarray, top: int) -> list[dict[str, Any]]:
        facts = describe(row, list(self.labels) or None, top)["top"]
        return [{k: v for k, v in fact.items() if v is not None} for fact in facts]


def json_array(values: np.ndarray) -> msgspec.Raw:
    """Return an array as JSON; NaN and infinities become null.

    >>> bytes(json_array(np.array([[1.5, np.nan, 0.1]], np.float32)))
    b'[[1.5,null,0.1]]'
    """
    if values.size <= PIECE:
        return msgspec.Raw(
            dump((shorten(values) if values.dtype == np.float32 else values).tolist())
        )
    if values.ndim > 1:
        parts = [bytes(json_array(row)) for row in values]
    else:
        parts = [
            bytes(json_array(values[i : i + PIECE]))[1:-1] for i in range(0, len(values), PIECE)
        ]
    return msgspec.Raw(b"[" + b",".join(parts) + b"]")


def shorten(values: np.ndarray) -> np.ndarray:
    """Return float64 with few digits that round to the same float32: 0.1, not 0.10000000149."""
    exact = values.astype(np.float64)
    with np.errstate(all="ignore"):
        scale = 10.0 ** (7 - np.floor(np.log10(np.abs(exact))))
        short = np.rint(exact * scale) / scale
        return np.where(short.astype(np.float32) == values, short, exact)


def _write(write: Callable[..., None], *args: Any, **arrays: Any) -> bytes:
    file = io.BytesIO()
    write(file, *args, **arrays)
    return file.getvalue()


def _safetensors(outputs: Outputs) -> bytes:
    from safetensors.numpy import save

    return save({name: np.ascontiguousarray(out) for name, out in outputs.items()})


BINARY: dict[str, Callable[[Outputs], bytes]] = {
    NPZ: lambda outputs: _write(np.savez, **outputs),
    SAFETENSORS: _safetensors,
    NPY: lambda outputs: _write(np.save, next(iter(outputs.values()))),
}


def encode(outputs: Outputs, accept: str, extra: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the body of an answer and its content type, as the client accepts it."""
    for kind, write in BINARY.items():
        if kind in accept:
            return write(outputs), kind
    return dump({"outputs": _json_arrays(outputs), **extra}), JSON


def encode_predictions(outputs: Outputs, rows: int) -> tuple[bytes, str]:
    """Return the answer to `instances`, one prediction for each sample, and its content type."""
    if any(out.ndim == 0 or len(out) != rows for out in outputs.values()):
        predictions: Any = _json_arrays(outputs)
    elif len(outputs) == 1:
        predictions = json_array(next(iter(outputs.values())))
    else:
        predictions = [_json_arrays({n: o[i] for n, o in outputs.items()}) for i in range(rows)]
    return dump({"predictions": predictions}), JSON


def _json_arrays(outputs: Outputs) -> dict[str, msgspec.Raw]:
    return {name: json_array(out) for name, out in outputs.items()}


def describe_array(name: str, dtype: np.dtype, shape: Sequence[int]) -> dict[str, Any]:
    """Return the description of an array in the open inference protocol."""
    return {"name": name, "datatype": NAMES.get(np.dtype(dtype), "FP32"), "shape": list(shape)}


def encode_tensors(
    facts: Mapping[str, str], outputs: Outputs, binary: Mapping[str, bool]
) -> tuple[bytes, dict[str, str]]:
    """Return the answer of the open inference protocol and its headers.

    Those outputs that `binary` names are sent as bytes after the JSON.
    """
    tensors, rest = [], []
    for name, output in outputs.items():
        out = output if output.dtype in NAMES else output.astype(np.float32)
        tensor = describe_array(name, out.dtype, out.shape)
        if binary[name]:
            rest.append(out.astype(out.dtype.newbyteorder("<"), copy=False).tobytes())
            tensor["parameters"] = {"binary_data_size": len(rest[-1])}
        else:
            tensor["data"] = json_array(out.reshape(-1))
        tensors.append(tensor)
    text = dump({**facts, "outputs": tensors})
    if not rest:
        return text, {"content-type": JSON}
    headers = {"content-type": "application/octet-stream", HEADER_LENGTH: str(len(text))}
    return b"".join([text, *rest]), headers
