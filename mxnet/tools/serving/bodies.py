"""Bodies of requests and answers: JSON, ``.npy``, ``.npz`` and images to and from arrays."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from mxnext_cli.errors import CommandError

from ..loading.input_files import Preparation
from ..loading.models import Shape

Arrays = dict[str, np.ndarray]

NPY, NPZ, JSON = "application/x-npy", "application/x-npz", "application/json"


class BadBody(Exception):
    """A body that cannot become the inputs of the model; the message says why."""


class Decoder:
    """Turns bodies into the inputs of one model."""

    def __init__(
        self,
        inputs: Sequence[str],
        shapes: dict[str, Shape],
        how: Preparation,
        max_bytes: int,
    ) -> None:
        self._inputs, self._shapes = list(inputs), shapes
        self._how, self._max_bytes = how, max_bytes
        self._only = "data" if "data" in self._inputs else self._inputs[0]

    def decode(self, body: bytes, content_type: str) -> Arrays:
        """Return the arrays of a body, each with a batch axis."""
        kind = content_type.partition(";")[0].strip().lower()
        if not body:
            raise BadBody("the body is empty")
        if kind.startswith("image/"):
            raw = {self._only: self._image(body)}
        elif kind == NPZ or (kind != NPY and body.startswith(b"PK\x03\x04")):
            raw = self._npz(body)
        elif kind == NPY or body.startswith(b"\x93NUMPY"):
            raw = {self._only: _load(io.BytesIO(body))}
        else:
            raw = self._json(body)
        arrays = {name: self._checked(name, value) for name, value in raw.items()}
        rows = {len(value) for value in arrays.values()}
        if not arrays or len(rows) != 1 or rows == {0}:
            shown = ", ".join(f"{n} {v.shape}" for n, v in arrays.items()) or "none"
            raise BadBody(f"inputs need the same number of samples, 1 or more: {shown}")
        return arrays

    def _image(self, body: bytes) -> np.ndarray:
        try:
            return self._how.prepare(body, "the image", self._shapes.get(self._only))[None]
        except CommandError as error:
            raise BadBody(str(error)) from None

    def _npz(self, body: bytes) -> dict[str, np.ndarray]:
        try:
            with zipfile.ZipFile(io.BytesIO(body)) as archive:
                size = sum(member.file_size for member in archive.infolist())
            if size > self._max_bytes:
                raise BadBody(
                    f"the archive unpacks to {size} bytes; {self._max_bytes} is the limit"
                )
            with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        except BadBody:
            raise
        except Exception as error:  # of many kinds
            raise BadBody(f"the body is not an .npz archive: {error}") from None

    def _json(self, body: bytes) -> dict[str, np.ndarray]:
        try:
            read = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise BadBody(
                f"the body is neither JSON ({error}) nor an .npy, .npz or image"
            ) from None
        given = read.get("inputs") if isinstance(read, dict) else None
        if isinstance(given, list):
            given = {self._only: given}
        if not isinstance(given, dict):
            raise BadBody('the JSON needs {"inputs": {"' + self._only + '": [[...], ...]}}')
        arrays = {}
        for name, values in given.items():
            try:
                arrays[name] = np.array(values)
            except (ValueError, TypeError, OverflowError, RecursionError):
                raise BadBody(f"input {name!r}: its rows are of different lengths") from None
        return arrays

    def _checked(self, name: str, value: np.ndarray) -> np.ndarray:
        """Return an input with a batch axis, in the expected shape."""
        if name not in self._inputs:
            raise BadBody(f"the model has no input {name!r}; its inputs: {', '.join(self._inputs)}")
        if value.dtype.kind not in "fiub":
            raise BadBody(f"input {name!r}: it holds {value.dtype}, not numbers")
        shape = self._shapes.get(name)
        if shape is None:
            return value if value.ndim else value[None]
        if value.shape == shape:
            return value[None]
        if value.shape[1:] != shape:
            raise BadBody(
                f"input {name!r}: a sample has shape {shape}, and several (n, "
                f"{', '.join(map(str, shape))}); this is {value.shape}"
            )
        return value


def _load(file: io.BytesIO) -> np.ndarray:
    try:
        return np.load(file, allow_pickle=False)
    except Exception as error:  # of many kinds
        raise BadBody(f"the body is not an .npy array: {error}") from None


def encode(outputs: dict[str, np.ndarray], accept: str) -> tuple[bytes, str]:
    """Return the body of an answer and its content type, as the client accepts it."""
    if NPZ in accept:
        file = io.BytesIO()
        np.savez(file, **outputs)
        return file.getvalue(), NPZ
    if NPY in accept:
        file = io.BytesIO()
        np.save(file, next(iter(outputs.values())))
        return file.getvalue(), NPY
    values = {name: _plain(out) for name, out in outputs.items()}
    return json.dumps({"outputs": values}, allow_nan=False).encode(), JSON


def _plain(values: np.ndarray) -> Any:
    """Return nested lists; what is not finite becomes null, which JSON has."""
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return values.tolist()
    marked = values.astype(object)
    marked[~np.isfinite(values)] = None
    return marked.tolist()
