"""Bodies of requests, none of which is trusted, as the inputs of a model.

Sizes that a file claims are compared with its bytes before memory is allocated. JSON is
read in pieces of bounded size, without Python objects for each list and number: a tree of objects
takes up to a hundred times the bytes of its text, and making it stops every other thread.

A nested list is regular if what remains of it without its numbers is what its shape writes:
``[[1,2],[3,4]]`` is ``[[,],[,]]``, as every (2, 2) array is.
"""

from __future__ import annotations

import contextlib
import functools
import io
import math
import struct
import zipfile
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec
import numpy as np
from python_multipart.multipart import Field, File, FormParser, parse_options_header

from mxnet.formats.image_codec import read_size

from ..models import Shapes
from ..predict import Preparation
from .limits import Limits, Refused, body_limits

Arrays = dict[str, np.ndarray]
Content = bytes | bytearray
NPY_START, ZIP_START = b"\x93NUMPY", b"PK\x03\x04"
MAX_NPY_HEADER = 4096
MAX_AXES = 32
MAX_DIRECTORY = 64 << 10  # bytes of the list of an archive's members
MAX_SAFETENSORS_HEADER = 64 << 10
ZIP_END = struct.Struct("<4s4H2LH")
ZIP64_LOCATOR = b"PK\x06\x07"
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
PIECE = 64 << 10  # bytes of JSON that are read at once, between which other threads run
MAX_NUMBER_LENGTH = 1024  # characters, with the brackets and spaces between two numbers
MAX_NAMES = 64 << 10  # quotes of names and texts, and objects, of a JSON text
SPACE = b" \t\r\n"
NUMBER = b"0123456789+-.eE"
NOT_STRUCTURE = bytes(set(range(256)) - set(b"[],"))
T = TypeVar("T")

_decode_numbers = msgspec.json.Decoder(list[int | float]).decode
JSON, NPY, NPZ = "application/json", "application/x-npy", "application/x-npz"
SAFETENSORS = "application/x-safetensors"
KINDS = {
    JSON: "json", NPY: "npy", NPZ: "npz", SAFETENSORS: "safetensors",
    "multipart/form-data": "form", "image/*": "image",
}  # fmt: skip
# What `curl -d` and `curl --data-binary` say, and nothing: the body itself says what it is.
OPEN_TYPES = ("", "application/x-www-form-urlencoded", "application/octet-stream")
FILES = {"npy": "an .npy array", "npz": "an .npz archive", "safetensors": "a safetensors file"}
CHEAP = ("json", "npy", "safetensors")  # to decode, if they are small
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


def find_kind(content_type: str, body: Content | None = None) -> str:
    """Return the kind of a body; '' if its type does not say it and the body is not known."""
    media = content_type.partition(";")[0].strip().lower()
    if media.startswith("image/"):
        return "image"
    if media in OPEN_TYPES:
        return "" if body is None else guess_kind(body)
    if media not in KINDS and not media.endswith("+json"):
        raise Refused(415, f"content type {media!r} is not taken; these are: {', '.join(KINDS)}")
    return KINDS.get(media, "json")


def guess_kind(content: Content) -> str:
    """Return the kind that the first bytes of a body say."""
    if content.startswith(NPY_START):
        return "npy"
    if content.startswith(ZIP_START):
        return "npz"
    return "json" if read_size(content) is None else "image"


class Decoder:
    """Turns bodies into the inputs of one model.

    Parameters
    ----------
    shapes
        The shapes of a sample of each input, as far as they are known.
    dtypes
        The types of all inputs.
    how
        How images become arrays.
    limits
        The limits of the server.
    """

    def __init__(
        self, shapes: Shapes, dtypes: Mapping[str, np.dtype], how: Preparation, limits: Limits
    ) -> None:
        self.inputs, self.shapes, self.dtypes = list(dtypes), dict(shapes), dict(dtypes)
        self.default = "data" if "data" in self.inputs else next(iter(self.inputs), "")
        self.max_bytes = body_limits(self.inputs, self.shapes, limits)
        self.max_pixels, self._max_rows = limits.max_pixels, limits.max_rows
        self._preparation = how

    def decode(self, body: Content, content_type: str) -> Arrays:
        """Return the arrays of a body, each with a batch axis."""
        if not body:
            raise Refused(400, "the body is empty")
        kind = find_kind(content_type, body)
        if kind == "form":
            with reading("the form"):
                return self.check(self._read_form(body, content_type))
        return self.check(self._read(kind, body))

    def _read(self, kind: str, content: Content) -> Arrays:
        if kind == "json":
            return self._read_json(content)
        if kind == "image":
            return {self.default: self.read_image(content)[None]}
        with reading(f"the body is not {FILES[kind]}"):
            if kind == "npz":
                return read_npz(content, self.max_bytes[kind])
            is_npy = kind == "npy"
            return {self.default: read_npy(content)} if is_npy else read_safetensors(content)

    # -- JSON -----------------------------------------------------------------------------------

    def _read_json(self, body: Content) -> Arrays:
        if len(body) > (limit := self.max_bytes["json"]):
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
        lists = {n: b",".join(bytes(sample[n]) for sample in samples) for n in sorted(samples[0])}
        return {name: self.read_numbers(name, b"[%b]" % text) for name, text in lists.items()}

    def read_numbers(
        self, name: str, text: msgspec.Raw | bytes, dtype: np.dtype | None = None
    ) -> np.ndarray:
        """Return the array of an input from checked JSON."""
        self.check_name(name)
        with reading(f"input {name!r}"):
            return read_json_array(text, dtype or self.dtypes[name], self.max_bytes["numbers"])

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
        arrays, count = Arrays(), 0
        for part, content in read_form(body, content_type):
            name, kind = part if part in self.inputs else self.default, guess_kind(content)
            if kind == "image":
                images.setdefault(name, []).append(self.read_image(content))
                count += images[name][-1].size
                if count > (limit := self.max_bytes["numbers"]):
                    raise Refused(413, f"the images have more than {limit} numbers")
            elif kind != "json":
                arrays |= self._read(kind, content) if kind == "npz" else {name: read_npy(content)}
            elif content[:1] in (b"[", b" "):
                arrays[name] = self.read_numbers(name, parse_json(content, msgspec.Raw))
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
            raise ValueError(
                f"a sample has shape {shape}, n have {('n', *shape)}, not {value.shape}"
            )
        return value


# -- files -----------------------------------------------------------------------------------------


def read_form(body: Content, content_type: str) -> list[tuple[str, bytes]]:
    """Return name and content of each part of a `multipart/form-data` body."""
    _, options = parse_options_header(content_type.encode("latin-1", "replace"))
    parts: list[tuple[str, bytes]] = []
    ends: list[bool] = []

    def add(part: Field | File) -> None:
        if len(parts) >= MAX_PARTS:
            raise ValueError(f"it has more than {MAX_PARTS} parts")
        if isinstance(part, File):
            part.file_object.seek(0)
        content = part.file_object.read() if isinstance(part, File) else part.value
        parts.append(((part.field_name or b"").decode("utf-8", "replace"), content or b""))

    parser = FormParser(
        "multipart/form-data", add, add, lambda: ends.append(True),
        boundary=options.get(b"boundary"), config={"MAX_MEMORY_FILE_SIZE": len(body) + 1},
    )  # fmt: skip
    parser.write(bytes(body))
    parser.finalize()
    if not ends:
        raise ValueError("it ends too early")
    return parts


def read_npy(content: Content) -> np.ndarray:
    """Return the array of an `.npy` file; it shares the memory of its bytes."""
    start = content.find(b"\n", 12, MAX_NPY_HEADER + 12) + 1
    shape, is_fortran, dtype = _read_npy_header(bytes(content[:start]))
    data, size = memoryview(content)[start:], dtype.itemsize * math.prod(shape)
    if size != len(data):
        raise ValueError(f"shape {shape} of {dtype} takes {size} bytes; there are {len(data)}")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if is_fortran else "C")


@functools.lru_cache(maxsize=128)
def _read_npy_header(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return shape, order and type; cached, as clients repeat the same few headers."""
    file = io.BytesIO(header)
    try:
        is_first = np.lib.format.read_magic(file) == (1, 0)
        v1, v2 = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        shape, is_fortran, dtype = (v1 if is_first else v2)(file, max_header_size=MAX_NPY_HEADER)
    except Exception as error:  # of many kinds: it is parsed as Python
        raise ValueError(f"its header is damaged: {type(error).__name__}") from None
    if file.read():
        raise ValueError("its header is damaged: it goes on after its end")
    check_type(dtype)
    return shape, is_fortran, dtype


def check_type(dtype: np.dtype) -> None:
    """Raise for types that are not numeric."""
    if dtype.kind not in "fiub" or dtype.hasobject:
        raise ValueError(f"it holds {dtype}, not numbers")


def read_npz(content: Content, max_bytes: int) -> dict[str, np.ndarray]:
    """Return the arrays of an `.npz` archive that unpacks to at most so many bytes."""
    end = content.rfind(b"PK\x05\x06", max(0, len(content) - ZIP_END.size - (1 << 16)))
    if end < 0 or end + ZIP_END.size > len(content):
        raise ValueError("it is not an .npz archive")
    is_zip64 = content[max(0, end - 20) : end].startswith(ZIP64_LOCATOR)
    if is_zip64 or ZIP_END.unpack_from(content, end)[5] > MAX_DIRECTORY:  # before it is parsed
        raise ValueError("it has too many members")
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = sum(member.file_size for member in archive.infolist())
        if size > max_bytes:
            raise ValueError(f"it unpacks to {size} bytes; {max_bytes} is the limit")
        for member in archive.infolist():
            with reading(repr(member.filename)), archive.open(member) as file:
                if member.compress_type not in COMPRESSIONS:
                    raise ValueError("it is compressed in an unusual way")
                array = read_npy(file.read(member.file_size + 1))
            arrays[member.filename.removesuffix(".npy")] = array
    return arrays


def read_safetensors(content: Content) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file."""
    from safetensors.numpy import load

    if int.from_bytes(content[:8], "little") > MAX_SAFETENSORS_HEADER or len(content) < 8:
        raise ValueError("its header is too long")
    arrays = load(bytes(content))
    for array in arrays.values():
        check_type(array.dtype)
    return arrays


# -- JSON ------------------------------------------------------------------------------------------


def parse_json(text: Content, kind: type[T]) -> T:
    """Return a JSON text as a `msgspec` type, in which arrays are `msgspec.Raw`."""
    if text.count(b'"') + text.count(b"{") > MAX_NAMES:
        raise ValueError("it has too many names")
    try:
        return msgspec.json.decode(text, type=kind)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json_array(text: msgspec.Raw | bytes, dtype: np.dtype, max_numbers: int) -> np.ndarray:
    """Return a nested list of numbers, whose JSON was checked, as an array.

    >>> read_json_array(b"[[1, 2], [3, 4.5]]", np.dtype("float32"), 4)
    array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    """
    text = bytes(text).translate(None, SPACE)
    if b"t" in text or b"f" in text:
        text = text.replace(b"true", b"1").replace(b"false", b"0")
    if text.translate(None, NUMBER + b"[],"):
        raise ValueError("it holds something that is not a number")
    if b"[]" in text:
        raise ValueError("it has an empty list")
    shape = _read_shape(text.translate(None, NOT_STRUCTURE))
    count = math.prod(shape)
    if count > max_numbers:
        raise ValueError(f"it holds {count} numbers; {max_numbers} are taken")
    values = np.empty(count, dtype)
    position = 0
    for piece in _pieces(text.translate(None, b"[]")):
        numbers = _as_type(_decode_numbers(b"[" + piece + b"]"), dtype)
        values[position : position + len(numbers)] = numbers
        position += len(numbers)
    return values.reshape(shape)


def _as_type(numbers: list[int | float], dtype: np.dtype) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):  # of float32, which becomes infinite
            return np.array(numbers, dtype)
    except OverflowError:
        raise ValueError(f"it holds a number that is not within {dtype}") from None


def _pieces(text: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(text):
        last = start + PIECE + MAX_NUMBER_LENGTH
        end = text.find(b",", start + PIECE, last)
        if end < 0:
            if last < len(text):
                raise ValueError(f"a number has more than {MAX_NUMBER_LENGTH} characters")
            end = len(text)
        yield text[start:end]
        start = end + 1


def _read_shape(structure: bytes) -> tuple[int, ...]:
    """Return the shape of a regular nested list from its brackets and commas."""
    depth = len(structure) - len(structure.lstrip(b"["))
    if depth > MAX_AXES:
        raise ValueError(f"it is nested {depth} deep; arrays have at most {MAX_AXES} axes")
    shape, block = [], b""  # of what a list of this level holds
    for level in range(depth):
        end = structure.find(b"]" * (level + 1)) + level + 1
        size, rest = divmod(end - (depth - level - 1) - 1, len(block) + 1)
        if end == level or rest or size < 1:
            break
        shape.append(size)
        block = b"[" + ((block + b",") * size)[:-1] + b"]"
    if block != structure:
        raise ValueError("its rows are of different lengths")
    return tuple(reversed(shape))
