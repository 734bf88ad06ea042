"""The open inference protocol (KServe v2) over REST, with binary tensors as Triton has them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import orjson

from .decoding import NOTHING, Arrays, BadBody, Decoder
from .encoding import json_array, json_object
from .json_arrays import BadJSON, parse, read_array

HEADER_LENGTH = "inference-header-content-length"
DATATYPES = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64",
    "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64",
    "FP16": "float16", "FP32": "float32", "FP64": "float64",
}  # fmt: skip
NAMES = {np.dtype(name): datatype for datatype, name in DATATYPES.items()}


MAX_SHAPE_TEXT = 1024  # characters
Parameters = dict[str, bool | int | float | str]


class InputTensor(msgspec.Struct):
    """One input of a request."""

    name: str
    shape: msgspec.Raw
    datatype: str
    data: msgspec.Raw = NOTHING
    parameters: Parameters = {}


class OutputTensor(msgspec.Struct):
    """An output that is asked for."""

    name: str
    parameters: Parameters = {}


class InferenceRequest(msgspec.Struct):
    """A request of the protocol."""

    inputs: list[InputTensor]
    id: str = ""
    parameters: Parameters = {}
    outputs: list[OutputTensor] = []

    def is_binary(self, name: str) -> bool:
        """Whether an output is sent as bytes after the JSON."""
        default = bool(self.parameters.get("binary_data_output", False))
        for output in self.outputs:
            if output.name == name:
                return bool(output.parameters.get("binary_data", default))
        return default


def datatype_of(dtype: np.dtype) -> str:
    """Return the protocol's name of a type."""
    return NAMES.get(np.dtype(dtype), "FP32")


def read_request(
    decoder: Decoder, body: bytes | bytearray, header_length: str | None
) -> tuple[InferenceRequest, Arrays]:
    """Return a request and its inputs."""
    text, rest = _split(body, header_length)
    numbers = decoder.body_limits.max_numbers(len(text))
    try:
        parsed = parse(text, InferenceRequest, numbers, decoder.body_limits.lists_per_number)
    except BadJSON as error:
        raise BadBody(f"the request is not of the open inference protocol: {error}") from None
    request = parsed.parts
    arrays: Arrays = {}
    position = 0
    for tensor in request.inputs:
        decoder.check_name(tensor.name)
        if tensor.name in arrays:
            raise BadBody(f"input {tensor.name!r} is there twice")
        size = tensor.parameters.get("binary_data_size")
        dtype = _dtype(tensor)
        if size is None:
            arrays[tensor.name] = _from_json(tensor, parsed.array(tensor.data), dtype, numbers)
            continue
        if not isinstance(size, int) or not 0 <= size <= len(rest) - position:
            raise BadBody(f"input {tensor.name!r}: there are not {size} bytes for it")
        arrays[tensor.name] = _from_bytes(tensor, dtype, rest[position : position + size])
        position += size
    if position != len(rest):
        raise BadBody(f"{len(rest) - position} bytes after the JSON belong to no input")
    return request, decoder.check(arrays)


def _split(
    body: bytes | bytearray, header_length: str | None
) -> tuple[bytes | bytearray, memoryview]:
    if header_length is None:
        return body, memoryview(b"")
    if not header_length.isascii() or not header_length.isdigit():
        raise BadBody(f"{HEADER_LENGTH} is not a number")
    length = int(header_length[:12])
    if length > len(body):
        raise BadBody(f"{HEADER_LENGTH} is {length}, but the body has {len(body)} bytes")
    return body[:length], memoryview(body)[length:]


def _dtype(tensor: InputTensor) -> np.dtype:
    if tensor.datatype not in DATATYPES:
        raise BadBody(
            f"input {tensor.name!r}: datatype {tensor.datatype!r} is not taken; these are: "
            f"{', '.join(DATATYPES)}"
        )
    return np.dtype(DATATYPES[tensor.datatype])


def _read_shape(tensor: InputTensor) -> list[int]:
    raw = bytes(tensor.shape)
    try:
        shape = msgspec.json.decode(raw[:MAX_SHAPE_TEXT], type=list[int])
    except msgspec.DecodeError:
        raise BadBody(f"input {tensor.name!r}: its shape is not a list of sizes") from None
    if len(shape) > 32 or min(shape, default=1) < 1:
        raise BadBody(f"input {tensor.name!r}: shape {shape[:32]} holds no samples")
    return shape


def _from_json(tensor: InputTensor, text: bytes, dtype: np.dtype, max_numbers: int) -> np.ndarray:
    if not text:
        raise BadBody(f"input {tensor.name!r} has no data")
    shape = _read_shape(tensor)
    try:
        values = read_array(text, dtype, max_numbers)
    except BadJSON as error:
        raise BadBody(f"input {tensor.name!r}: {error}") from None
    if values.size != math.prod(shape):
        raise BadBody(f"input {tensor.name!r}: shape {shape} does not fit {values.size} numbers")
    return values.reshape(shape)


def _from_bytes(tensor: InputTensor, dtype: np.dtype, content: memoryview) -> np.ndarray:
    shape = _read_shape(tensor)
    needed = math.prod(shape) * dtype.itemsize
    if needed != len(content):
        raise BadBody(
            f"input {tensor.name!r}: shape {shape} of {tensor.datatype} takes {needed} bytes; "
            f"there are {len(content)}"
        )
    return np.frombuffer(content, dtype.newbyteorder("<")).reshape(shape)


def choose_outputs(
    request: InferenceRequest, names: Sequence[str], outputs: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the outputs that a request asks for, or all."""
    named = dict(zip(names, outputs, strict=True))
    for output in request.outputs:
        if output.name not in named:
            raise BadBody(
                f"the model has no output {output.name!r}; its outputs: {', '.join(names)}"
            )
    return {o.name: named[o.name] for o in request.outputs} if request.outputs else named


def write_response(
    request: InferenceRequest, facts: Mapping[str, str], outputs: Mapping[str, np.ndarray]
) -> tuple[bytes, dict[str, str]]:
    """Return the body of an answer and its headers."""
    tensors, rest = [], []
    for name, out in outputs.items():
        if out.dtype not in NAMES:
            out = out.astype(np.float32)
        fields = {
            "name": orjson.dumps(name),
            "shape": orjson.dumps(list(out.shape)),
            "datatype": orjson.dumps(datatype_of(out.dtype)),
        }
        if request.is_binary(name):
            content = out.astype(out.dtype.newbyteorder("<"), copy=False).tobytes()
            fields["parameters"] = orjson.dumps({"binary_data_size": len(content)})
            rest.append(content)
        else:
            fields["data"] = json_array(out.reshape(-1))
        tensors.append(json_object(fields))
    head = {name: orjson.dumps(value) for name, value in facts.items()}
    if request.id:
        head["id"] = orjson.dumps(request.id)
    text = json_object({**head, "outputs": b"[" + b",".join(tensors) + b"]"})
    if not rest:
        return text, {"content-type": "application/json"}
    headers = {"content-type": "application/octet-stream", HEADER_LENGTH: str(len(text))}
    return b"".join([text, *rest]), headers
