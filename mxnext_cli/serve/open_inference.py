"""The open inference protocol (KServe v2) over REST, with binary tensors as Triton has them."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec
import numpy as np

from .decoding import MAX_AXES, NOTHING, Arrays, Decoder, parse_json, reading
from .encoding import DATATYPES, HEADER_LENGTH
from .limits import Refused

Size = Annotated[int, msgspec.Meta(ge=1)]


class Parameters(msgspec.Struct):
    """The parameters of a request, an input or an output that are known."""

    binary_data_size: Annotated[int, msgspec.Meta(ge=0)] | None = None
    binary_data: bool | None = None
    binary_data_output: bool = False


class Tensor(msgspec.Struct):
    """An input or an output of a request."""

    name: str
    parameters: Parameters = msgspec.field(default_factory=Parameters)


class InputTensor(Tensor, kw_only=True):
    """One input of a request."""

    shape: Annotated[list[Size], msgspec.Meta(max_length=MAX_AXES)]
    datatype: str
    data: msgspec.Raw = NOTHING


class InferenceRequest(msgspec.Struct):
    """A request of the protocol."""

    inputs: list[InputTensor]
    id: str = ""
    parameters: Parameters = msgspec.field(default_factory=Parameters)
    outputs: list[Tensor] = []

    def binary_outputs(self, names: list[str]) -> dict[str, bool]:
        """Return which outputs are asked for, and whether as bytes after the JSON."""
        outputs = self.outputs or [Tensor(name) for name in names]
        default = self.parameters.binary_data_output
        chosen = {output.name: output.parameters.binary_data for output in outputs}
        return {name: default if binary is None else binary for name, binary in chosen.items()}


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
            size = tensor.parameters.binary_data_size or 0
            if size > len(rest):
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
    dtype, shape = np.dtype(DATATYPES[tensor.datatype]), tensor.shape
    if tensor.parameters.binary_data_size is not None:
        size, needed = len(content), math.prod(shape) * dtype.itemsize
        if needed != size:
            raise ValueError(f"shape {shape} of {tensor.datatype} takes {needed} bytes, not {size}")
        return np.frombuffer(content, dtype.newbyteorder("<")).reshape(shape)
    if not bytes(tensor.data):
        raise ValueError("it has no data")
    values = decoder.read_numbers(tensor.name, tensor.data, dtype)
    if values.size != math.prod(shape):
        raise ValueError(f"shape {shape} does not fit {values.size} numbers")
    return values.reshape(shape)
