"""Bodies of requests as the inputs of a model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from python_multipart.multipart import Field, File, FormParser, parse_options_header

from mxnet.formats.image_codec import read_size

from ..models import Shape
from ..predict import Preparation
from .arrays import (
    NPY_START,
    ZIP_START,
    check_type,
    parse_json,
    read_json_array,
    read_npy,
    read_npz,
    read_safetensors,
)
from .limits import BodyLimits, Limits, Refused, pixel_limit

Arrays = dict[str, np.ndarray]
Content = bytes | bytearray
NPY, NPZ, JSON = "application/x-npy", "application/x-npz", "application/json"
SAFETENSORS, FORM = "application/x-safetensors", "multipart/form-data"
CURL_DATA = "application/x-www-form-urlencoded"  # what `curl -d` says of JSON
BINARY = "application/octet-stream"
KINDS = (JSON, NPY, NPZ, SAFETENSORS, FORM, "image/*")
MAX_SCANS = 16  # times that a decoder may go over the largest image that is taken
MAX_PARTS = 1024  # of a form
NOTHING = msgspec.Raw()


class Body(msgspec.Struct):
    """A JSON body: `inputs`, one array or several by name, or `instances`, one for each sample."""

    inputs: msgspec.Raw = NOTHING
    instances: msgspec.Raw = NOTHING


@contextlib.contextmanager
def reading(field: str) -> Iterator[None]:
    """Turn any error of a decoder into a refused request that names the field."""
    try:
        yield
    except Refused:
        raise
    except Exception as error:
        raise Refused(400, f"{field}: {error or type(error).__name__}") from None


def media_type(content_type: str) -> str:
    """Return a content type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


class Decoder:
    """Turns bodies into the inputs of one model.

    Parameters
    ----------
    inputs
        The names of the inputs.
    shapes
        The shapes of a sample of each, as far as they are known.
    dtypes
        The types of the inputs.
    preparation
        How images become arrays.
    limits
        The limits of the server.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        shapes: Mapping[str, Shape],
        dtypes: Mapping[str, np.dtype],
        preparation: Preparation,
        limits: Limits,
    ) -> None:
        self.inputs, self.shapes = list(inputs), dict(shapes)
        self.dtypes = {name: np.dtype(dtypes[name]) for name in self.inputs}
        self.body_limits = BodyLimits(self.inputs, self.shapes, limits)
        self.default = "data" if "data" in self.inputs else next(iter(self.inputs), "")
        self.max_pixels = pixel_limit(_target(preparation, shapes.get(self.default)), limits)
        self._preparation, self._max_rows = preparation, limits.max_rows

    def max_bytes(self, content_type: str) -> int:
        """Return the maximum size of a body of a kind; raise for other kinds."""
        kind = media_type(content_type)
        limits = self.body_limits
        if kind.startswith("image/"):
            return limits.image(self.max_pixels)
        if kind == FORM:
            return limits.form(self.max_pixels)
        if kind in (NPY, NPZ, SAFETENSORS):
            return limits.binary
        if kind in ("", CURL_DATA, BINARY):
            return max(limits.binary, limits.json)
        if kind == JSON or kind.endswith("+json"):
            return limits.json
        raise Refused(415, f"content type {kind!r} is not taken; these are: {', '.join(KINDS)}")

    @staticmethod
    def is_cheap(content_type: str) -> bool:
        """Whether decoding a small body of a kind is cheap."""
        kind = media_type(content_type)
        return not kind.startswith("image/") and kind not in (NPZ, FORM, BINARY)

    def decode(self, body: Content, content_type: str) -> Arrays:
        """Return the arrays of a body, each with a batch axis."""
        if not body:
            raise Refused(400, "the body is empty")
        return self.check(self._decode(body, content_type))

    def _decode(self, body: Content, content_type: str) -> Arrays:
        kind, name = media_type(content_type), self.default
        if kind == FORM:
            with reading("the form"):
                return self._read_form(body, content_type)
        if kind.startswith("image/") or (kind == BINARY and read_size(body) is not None):
            return {name: self.read_image(body)[None]}
        if kind == NPZ or (kind != NPY and body.startswith(ZIP_START)):
            with reading("the body is not an .npz archive"):
                return read_npz(body, self.body_limits.binary)
        if kind == NPY or body.startswith(NPY_START):
            with reading("the body is not an .npy array"):
                return {name: read_npy(body)}
        if kind == SAFETENSORS:
            with reading("the body is not a safetensors file"):
                return read_safetensors(body)
        return self._read_json(body)

    # -- JSON -----------------------------------------------------------------------------------

    def _read_json(self, body: Content) -> Arrays:
        if len(body) > (limit := self.body_limits.json):
            raise Refused(413, f"JSON bodies have at most {limit} bytes; send .npy")
        with reading("the body is neither JSON nor an .npy, .npz or image"):
            fields = parse_json(body, Body)
        if instances := bytes(fields.instances).strip():
            with reading('"instances"'):
                return self._read_instances(instances)
        inputs = bytes(fields.inputs).strip()
        if inputs.startswith(b"["):
            return {self.default: self.read_numbers(self.default, inputs)}
        if not inputs.startswith(b"{"):
            raise Refused(400, 'the JSON needs {"inputs": {"' + self.default + '": [[...], ...]}}')
        with reading('"inputs"'):
            named = parse_json(inputs, dict[str, msgspec.Raw])
        return {name: self.read_numbers(name, raw) for name, raw in named.items()}

    def _read_instances(self, raw: bytes) -> Arrays:
        if not raw.startswith(b"["):
            raise ValueError("it is not a list")
        if raw[1:].lstrip()[:1] != b"{":
            value = self.read_numbers(self.default, raw)
            shape = self.shapes.get(self.default)
            return {self.default: value[None] if shape and value.shape[1:] != shape else value}
        samples = parse_json(raw, list[dict[str, msgspec.Raw]])
        if any(set(sample) != set(samples[0]) for sample in samples):
            raise ValueError("the samples have different inputs")
        return {
            name: np.stack([self.read_numbers(name, sample[name]) for sample in samples])
            for name in sorted(samples[0])
        }

    def read_numbers(
        self, name: str, text: msgspec.Raw | bytes, dtype: np.dtype | None = None
    ) -> np.ndarray:
        """Return the array of an input from checked JSON."""
        self.check_name(name)
        with reading(f"input {name!r}"):
            return read_json_array(text, dtype or self.dtypes[name], self.body_limits.numbers)

    # -- images and forms -----------------------------------------------------------------------

    def read_image(self, content: Content) -> np.ndarray:
        """Return an encoded image as a sample; its size is read from its header first."""
        with reading("the image"):
            size = read_size(content)
            if size is None:
                raise ValueError("its format is not known, or its header is damaged")
            pixels, limit = size.width * size.height, self.max_pixels
            if pixels > limit:
                shown = f"{size.width} x {size.height} pixels, and {limit} are taken"
                raise Refused(413, f"the image: it has {shown}; send it smaller")
            if pixels * size.scans > MAX_SCANS * limit:
                raise ValueError(f"it has {size.scans} scans")
            shape = self.shapes.get(self.default)
            return self._preparation.prepare(content, "the image", shape)

    def _read_form(self, body: Content, content_type: str) -> Arrays:
        """Return the arrays of a form; images become the samples of one batch."""
        images: dict[str, list[np.ndarray]] = {}
        arrays: Arrays = {}
        for part, kind, content in read_form(body, content_type):
            name = part if part in self.inputs else self.default
            if read_size(content) is not None and kind not in (JSON, NPY, NPZ):
                images.setdefault(name, []).append(self.read_image(content))
            elif kind in ("", "text/plain", JSON) and content[:1] in (b"[", b" "):
                arrays[name] = self._read_json(b'{"inputs":' + content + b"}")[self.default]
            elif content.startswith(ZIP_START):
                arrays |= self._decode(content, NPZ)
            elif content.startswith(NPY_START):
                arrays[name] = self._decode(content, NPY)[self.default]
            else:
                raise ValueError(f"part {part!r} is neither an image nor an array")
        if any(len({image.shape for image in batch}) > 1 for batch in images.values()):
            raise ValueError("the images have different sizes, and the server does not resize them")
        return arrays | {name: np.stack(batch) for name, batch in images.items()}

    # -- what the model takes -------------------------------------------------------------------

    def check_name(self, name: str) -> None:
        """Raise for an input that the model does not have."""
        if name not in self.dtypes:
            names = ", ".join(self.inputs)
            raise Refused(400, f"the model has no input {name[:100]!r}; its inputs: {names}")

    def check(self, raw: Arrays) -> Arrays:
        """Return inputs with a batch axis, in the shapes and types of the model."""
        arrays = {}
        for name, value in raw.items():
            self.check_name(name)
            with reading(f"input {name!r}"):
                arrays[name] = self._check(name, value)
        rows = {len(value) for value in arrays.values()}
        if len(rows) != 1 or rows == {0}:
            listed = ", ".join(f"{n} {v.shape}" for n, v in arrays.items()) or "none"
            raise Refused(400, f"inputs need the same number of samples, 1 or more: {listed}")
        if max(rows) > self._max_rows:
            raise Refused(413, f"a request has at most {self._max_rows} samples")
        return arrays

    def _check(self, name: str, value: np.ndarray) -> np.ndarray:
        check_type(value.dtype)
        shape, dtype = self.shapes.get(name), self.dtypes[name]
        if value.dtype != dtype:  # another byte order, for example
            with np.errstate(all="ignore"):
                value = value.astype(dtype)
        elif not value.flags.writeable:  # of the body's own memory, which torch does not take
            value = value.copy()
        if shape is None:
            return value if value.ndim else value[None]
        if value.shape == shape:
            return value[None]
        if value.shape[1:] != shape or value.ndim != len(shape) + 1:
            several = f"(n, {', '.join(map(str, shape))})"
            raise ValueError(f"a sample has shape {shape}, and several {several}; this is "
                             f"{value.shape}")  # fmt: skip
        return value


def _target(how: Preparation, shape: Shape | None) -> tuple[int, int] | None:
    if how.resize or how.crop:
        edge = max(how.resize or 0, how.crop or 0)
        return edge, edge
    if shape is None or len(shape) != 3:
        return None
    return (shape[1], shape[2]) if how.layout == "NCHW" else (shape[0], shape[1])


def read_form(body: Content, content_type: str) -> list[tuple[str, str, bytes]]:
    """Return name, content type and content of each part of a `multipart/form-data` body."""
    _, options = parse_options_header(content_type.encode("latin-1", "replace"))
    parts: list[tuple[str, str, bytes]] = []
    ends: list[bool] = []

    def add(part: Field | File, content: bytes | None) -> None:
        if len(parts) >= MAX_PARTS:
            raise ValueError(f"it has more than {MAX_PARTS} parts")
        name = (part.field_name or b"").decode("utf-8", "replace")
        parts.append((name, media_type(part.content_type or ""), content or b""))

    def add_file(file: File) -> None:
        file.file_object.seek(0)
        add(file, file.file_object.read())
        file.close()

    parser = FormParser(
        FORM, lambda field: add(field, field.value), add_file, lambda: ends.append(True),
        boundary=options.get(b"boundary"), config={"MAX_MEMORY_FILE_SIZE": len(body) + 1},
    )  # fmt: skip
    parser.write(bytes(body))
    parser.finalize()
    if not ends:
        raise ValueError("it ends too early")
    return parts
