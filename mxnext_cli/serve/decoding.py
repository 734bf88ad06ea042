"""Bodies of requests as the inputs of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from mxnet.formats.image_codec import read_size

from .. import CommandError
from ..models import Shape
from ..predict import Preparation
from .array_files import (
    NPY_START,
    ZIP_START,
    BadFile,
    check_type,
    read_npy,
    read_npz,
    read_safetensors,
)
from .forms import BadForm, read_form
from .json_arrays import BadJSON, Parsed, parse, read_array
from .limits import BodyLimits, Limits, Refused, pixel_limit

Arrays = dict[str, np.ndarray]
Content = bytes | bytearray
NPY, NPZ, JSON = "application/x-npy", "application/x-npz", "application/json"
SAFETENSORS, FORM = "application/x-safetensors", "multipart/form-data"
CURL_DATA = "application/x-www-form-urlencoded"  # what `curl -d` says of JSON
BINARY = "application/octet-stream"
KINDS = (JSON, NPY, NPZ, SAFETENSORS, FORM, "image/*")
MAX_SCANS = 16  # times that a decoder may go over the largest image that is taken


class BadBody(Refused):
    """A body that cannot become the inputs of the model; the message says why."""

    def __init__(self, message: str, code: int = 400) -> None:
        super().__init__(code, message)


NOTHING = msgspec.Raw()


class Body(msgspec.Struct):
    """A JSON body: `inputs`, one array or several by name, or `instances`, one for each sample."""

    inputs: msgspec.Raw = NOTHING
    instances: msgspec.Raw = NOTHING


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
        self.limits = limits
        self.body_limits = BodyLimits(self.inputs, self.shapes, limits)
        self.default = "data" if "data" in self.inputs else next(iter(self.inputs), "")
        self._preparation = preparation
        self.max_pixels = pixel_limit(self._target(), limits)

    def _target(self) -> tuple[int, int] | None:
        """Return the height and width that images are resized to."""
        how, shape = self._preparation, self.shapes.get(self.default)
        if how.resize or how.crop:
            edge = max(how.resize or 0, how.crop or 0)
            return edge, edge
        if shape is None or len(shape) != 3:
            return None
        return (shape[1], shape[2]) if how.layout == "NCHW" else (shape[0], shape[1])

    def max_bytes(self, content_type: str) -> int:
        """Return how large a body of a kind can be; refuse other kinds."""
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
        raise Refused(
            415, f"content type {kind!r} is not taken; these are: {', '.join(KINDS)}",
            connection="close",
        )  # fmt: skip

    def is_cheap(self, content_type: str) -> bool:
        """Whether a small body of a kind is decoded in next to no time."""
        kind = media_type(content_type)
        return not kind.startswith("image/") and kind not in (NPZ, FORM, BINARY)

    def decode(self, body: Content, content_type: str) -> Arrays:
        """Return the arrays of a body, each with a batch axis."""
        if not body:
            raise BadBody("the body is empty")
        return self.check(self._decode(body, content_type))

    def _decode(self, body: Content, content_type: str) -> Arrays:
        kind = media_type(content_type)
        if kind == FORM:
            return self._read_form(body, content_type)
        name = self.default
        if kind.startswith("image/"):
            return {name: self.read_image(body)[None]}
        if kind == NPZ or (kind != NPY and body.startswith(ZIP_START)):
            return self._read_file(read_npz, "an .npz archive", body, self.body_limits.binary)
        if kind == NPY or body.startswith(NPY_START):
            return {name: self._read_file(read_npy, "an .npy array", body)}
        if kind == SAFETENSORS:
            return self._read_file(read_safetensors, "a safetensors file", body)
        if kind == BINARY and read_size(body) is not None:
            return {name: self.read_image(body)[None]}
        if len(body) > self.body_limits.json:
            raise BadBody(
                f"JSON bodies have at most {self.body_limits.json} bytes, this has {len(body)}; "
                "send .npy", 413,
            )  # fmt: skip
        return self._read_json(body)

    @staticmethod
    def _read_file(read: Any, what: str, *args: Any) -> Any:
        try:
            return read(*args)
        except BadFile as error:
            raise BadBody(f"the body is not {what}: {error}") from None

    # -- JSON -----------------------------------------------------------------------------------

    def _read_json(self, body: Content) -> Arrays:
        limit = self.body_limits.max_numbers(len(body))
        try:
            parsed = parse(body, Body, limit, self.body_limits.lists_per_number)
        except BadJSON as error:
            raise BadBody(
                f"the body is neither JSON ({error}) nor an .npy, .npz or image"
            ) from None
        if bytes(parsed.parts.instances):
            return self._read_instances(parsed, bytes(parsed.parts.instances).strip())
        raw = bytes(parsed.parts.inputs).strip()
        if raw.startswith(b"["):
            return {self.default: self.read_numbers(self.default, parsed.array(raw))}
        if not raw.startswith(b"{"):
            raise BadBody('the JSON needs {"inputs": {"' + self.default + '": [[...], ...]}}')
        named = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        return {name: self.read_numbers(name, parsed.array(raw)) for name, raw in named.items()}

    def _read_instances(self, parsed: Parsed[Body], raw: bytes) -> Arrays:
        """Return arrays from a list of samples, each an array or arrays by name."""
        if not raw.startswith(b"["):
            raise BadBody('"instances" is not a list')
        if raw[1:].lstrip()[:1] != b"{":
            value = self.read_numbers(self.default, parsed.array(raw))
            shape = self.shapes.get(self.default)
            return {self.default: value[None] if shape and value.shape[1:] != shape else value}
        try:
            samples = msgspec.json.decode(raw, type=list[dict[str, msgspec.Raw]])
        except msgspec.ValidationError as error:
            raise BadBody(f'"instances": {error}') from None
        names = set(samples[0])
        if any(set(sample) != names for sample in samples):
            raise BadBody('the samples of "instances" have different inputs')
        try:
            return {
                name: np.stack([self.read_numbers(name, parsed.array(s[name])) for s in samples])
                for name in sorted(names)
            }
        except ValueError:
            raise BadBody('the samples of "instances" have different shapes') from None

    def read_numbers(self, name: str, text: bytes) -> np.ndarray:
        """Return the array of an input from checked JSON."""
        self.check_name(name)
        try:
            limit = self.body_limits.max_numbers(len(text))
            return read_array(text, self.dtypes[name], limit)
        except BadJSON as error:
            raise BadBody(f"input {name!r}: {error}") from None

    # -- images and forms -----------------------------------------------------------------------

    def read_image(self, content: Content) -> np.ndarray:
        """Return an encoded image as a sample; its size is read from its header first."""
        size = read_size(content)
        if size is None:
            raise BadBody("the image: its format is not known, or its header is damaged")
        pixels = size.width * size.height
        if pixels > self.max_pixels:
            raise BadBody(
                f"the image: it has {size.width} x {size.height} pixels, and {self.max_pixels} "
                "are taken; send it smaller", 413,
            )  # fmt: skip
        if pixels * size.scans > MAX_SCANS * self.max_pixels:
            raise BadBody(f"the image: it has {size.scans} scans")
        shape = self.shapes.get(self.default)
        try:
            return self._preparation.prepare(content, "the image", shape)
        except CommandError as error:
            raise BadBody(str(error)) from None

    def _read_form(self, body: Content, content_type: str) -> Arrays:
        """Return the arrays of a form; images become the samples of one batch."""
        try:
            parts = read_form(body, content_type)
        except BadForm as error:
            raise BadBody(f"the form: {error}") from None
        images: dict[str, list[np.ndarray]] = {}
        arrays: Arrays = {}
        for part in parts:
            name = part.name if part.name in self.inputs else self.default
            kind = media_type(part.kind)
            if read_size(part.content) is not None and kind not in (JSON, NPY, NPZ):
                images.setdefault(name, []).append(self.read_image(part.content))
            elif kind in ("", "text/plain", JSON) and part.content[:1] in (b"[", b" "):
                arrays[name] = self._read_json(b'{"inputs":' + part.content + b"}")[self.default]
            elif part.content.startswith((NPY_START, ZIP_START)):
                read = self._decode(part.content, "")
                arrays |= read if part.content.startswith(ZIP_START) else {name: read[self.default]}
            else:
                raise BadBody(f"the form: part {part.name!r} is neither an image nor an array")
        if any(len({image.shape for image in batch}) > 1 for batch in images.values()):
            raise BadBody("the images have different sizes, and the server does not resize them")
        return arrays | {name: np.stack(batch) for name, batch in images.items()}

    # -- what the model takes -------------------------------------------------------------------

    def check_name(self, name: str) -> None:
        """Refuse an input that the model does not have."""
        if name not in self.dtypes:
            raise BadBody(f"the model has no input {name!r}; its inputs: {', '.join(self.inputs)}")

    def check(self, raw: Arrays) -> Arrays:
        """Return inputs with a batch axis, in the shapes and types of the model."""
        arrays = {name: self._check(name, value) for name, value in raw.items()}
        rows = {len(value) for value in arrays.values()}
        if len(rows) != 1 or rows == {0}:
            listed = ", ".join(f"{n} {v.shape}" for n, v in arrays.items()) or "none"
            raise BadBody(f"inputs need the same number of samples, 1 or more: {listed}")
        if max(rows) > self.limits.max_rows:
            raise BadBody(f"a request has at most {self.limits.max_rows} samples", 413)
        return arrays

    def _check(self, name: str, value: np.ndarray) -> np.ndarray:
        self.check_name(name)
        try:
            check_type(value.dtype)
        except BadFile as error:
            raise BadBody(f"input {name!r}: {error}") from None
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
            raise BadBody(
                f"input {name!r}: a sample has shape {shape}, and several (n, "
                f"{', '.join(map(str, shape))}); this is {value.shape}"
            )
        return value
