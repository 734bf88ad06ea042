"""The open inference protocol (KServe v2) over REST, with binary tensors as Triton has them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from .arrays import check_shape, parse_json
from .decoding import NOTHING, Arrays, Decoder, reading
from .encoding import dump, json_array
from .limits import Refused

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
        named = (output.parameters for output in self.outputs if output.name == name)
        return bool(next(named, {}).get("binary_data", default))


def datatype_of(dtype: np.dtype) -> str:
    """Return the protocol's name of a type."""
    return NAMES.get(np.dtype(dtype), "FP32")


def read_request(
    decoder: Decoder, body: bytes | bytearray, header_length: str | None
) -> tuple[InferenceRequest, Arrays]:
    """Return a request and its inputs."""
    with reading(HEADER_LENGTH):
        length = len(body) if header_length is None else int(header_length[:12])
        if not 0 <= length <= len(body):
            raise ValueError(f"it is {length}, but the body has {len(body)} bytes")
    with reading("the request is not of the open inference protocol"):
        request = parse_json(body[:length], InferenceRequest)
    rest = memoryview(body)[length:]
    arrays: Arrays = {}
    for tensor in request.inputs:
        decoder.check_name(tensor.name)
        with reading(f"input {tensor.name!r}"):
            if tensor.name in arrays:
                raise ValueError("it is there twice")
            size = tensor.parameters.get("binary_data_size", 0)
            if type(size) is not int or not 0 <= size <= len(rest):
                raise ValueError(f"there are not {size} bytes for it")
            arrays[tensor.name] = _read_tensor(decoder, tensor, rest[:size])
            rest = rest[size:]
    if len(rest):
        raise Refused(400, f"{len(rest)} bytes after the JSON belong to no input")
    return request, decoder.check(arrays)


def _read_tensor(decoder: Decoder, tensor: InputTensor, content: memoryview) -> np.ndarray:
    if tensor.datatype not in DATATYPES:
        names = ", ".join(DATATYPES)
        raise ValueError(f"datatype {tensor.datatype[:20]!r} is not taken; these are: {names}")
    dtype = np.dtype(DATATYPES[tensor.datatype])
    shape = _read_shape(tensor)
    if "binary_data_size" in tensor.parameters:
        needed = math.prod(shape) * dtype.itemsize
        if needed != len(content):
            raise ValueError(f"shape {shape} of {tensor.datatype} takes {needed} bytes; there are "
                             f"{len(content)}")  # fmt: skip
        return np.frombuffer(content, dtype.newbyteorder("<")).reshape(shape)
    if not bytes(tensor.data):
        raise ValueError("it has no data")
    values = decoder.read_numbers(tensor.name, tensor.data, dtype)
    if values.size != math.prod(shape):
        raise ValueError(f"shape {shape} does not fit {values.size} numbers")
    return values.reshape(shape)


def _read_shape(tensor: InputTensor) -> list[int]:
    try:
        shape = msgspec.json.decode(bytes(tensor.shape)[:MAX_SHAPE_TEXT], type=list[int])
    except msgspec.DecodeError:
        raise ValueError("its shape is not a list of sizes") from None
    if min(shape, default=1) < 1:
        raise ValueError(f"shape {shape[:32]} holds no samples")
    check_shape(shape)
    return shape


def choose_outputs(
    request: InferenceRequest, names: Sequence[str], outputs: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the outputs that a request asks for, or all."""
    named = dict(zip(names, outputs, strict=True))
    for output in request.outputs:
        if output.name not in named:
            choices = ", ".join(names)
            raise Refused(400, f"the model has no output {output.name[:100]!r}; its outputs: "
                               f"{choices}")  # fmt: skip
    return {o.name: named[o.name] for o in request.outputs} if request.outputs else named


def write_response(
    request: InferenceRequest, facts: Mapping[str, str], outputs: Mapping[str, np.ndarray]
) -> tuple[bytes, dict[str, str]]:
    """Return the body of an answer and its headers."""
    tensors, rest = [], []
    for name, out in outputs.items():
        if out.dtype not in NAMES:
            out = out.astype(np.float32)
        tensor = {"name": name, "shape": list(out.shape), "datatype": datatype_of(out.dtype)}
        if request.is_binary(name):
            rest.append(out.astype(out.dtype.newbyteorder("<"), copy=False).tobytes())
            tensor["parameters"] = {"binary_data_size": len(rest[-1])}
        else:
            tensor["data"] = json_array(out.reshape(-1))
        tensors.append(tensor)
    head = {**facts, **({"id": request.id} if request.id else {})}
    text = dump({**head, "outputs": tensors})
    if not rest:
        return text, {"content-type": "application/json"}
    headers = {"content-type": "application/octet-stream", HEADER_LENGTH: str(len(text))}
    return b"".join([text, *rest]), headers
