"""Whatever a body holds, its decoder returns arrays or refuses it with the name of a field.

The decoders run in this process, without a server: a request takes longer than its decoding.
"""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile

import numpy as np
import pytest

pytest.importorskip("python_multipart")
pytest.importorskip("msgspec")

from mxnet.formats.image_codec import encode
from mxnext_cli.predict import Preparation
from mxnext_cli.serve.decoding import JSON, Decoder
from mxnext_cli.serve.limits import Limits, Refused
from mxnext_cli.serve.open_inference import read_request

from .server import NPY, NPZ, npy, npz

COUNT = 2000  # mutated bodies of each kind
SHAPE = (3, 8, 8)
ROWS = np.random.default_rng(0).standard_normal((2, *SHAPE)).astype(np.float32)
IMAGE = np.random.default_rng(1).integers(0, 255, (8, 8, 3), dtype=np.uint8)
LIMITS = Limits(max_body=1 << 20, max_json=1 << 20, max_pixels=1 << 16)
TOKENS = [b"[", b"]", b"{", b"}", b",", b'"', b"-1", b"true", b"null", b"1e999", b"9" * 30]
TOKENS += [b"NaN", b"\0", b"\xff\xfe", b"9223372036854775808", b"-9223372036854775809", b"()"]
DECODER = Decoder({"data": SHAPE}, {"data": np.dtype("f4")}, Preparation(), LIMITS)
TYPES = {"data": np.dtype("f4"), "more": np.dtype("i8")}
UNKNOWN = Decoder({}, TYPES, Preparation(), LIMITS)


def safetensors() -> bytes:
    return pytest.importorskip("safetensors.numpy").save({"data": ROWS})


def form() -> bytes:
    parts = [("image/png", encode(IMAGE, 95, ".png"))] * 2
    head = b'--b\r\nContent-Disposition: form-data; name="data"; filename="f"\r\nContent-Type: '
    return b"".join(head + k.encode() + b"\r\n\r\n" + c + b"\r\n" for k, c in parts) + b"--b--\r\n"


def tensors(**changes) -> bytes:
    tensor = {"name": "data", "shape": [1, *SHAPE], "datatype": "FP32", **changes}
    return json.dumps({"inputs": [tensor], "outputs": [{"name": "out"}]}).encode()


KINDS = {
    "npy": (lambda: npy(ROWS), NPY),
    "npz": (lambda: npz(data=ROWS), NPZ),
    "json": (lambda: json.dumps({"inputs": {"data": ROWS.round(2).tolist()}}).encode(), ""),
    "instances": (lambda: b'{"instances": [{"data": [1, 2]}, {"data": [3, 4.5]}]}', JSON),
    "safetensors": (safetensors, "application/x-safetensors"),
    "png": (lambda: encode(IMAGE, 95, ".png"), "image/png"),
    "jpeg": (lambda: encode(IMAGE, 95, ".jpg"), "application/octet-stream"),
    "form": (form, "multipart/form-data; boundary=b"),
}  # fmt: skip


def mutate(generator: random.Random, seed: bytes) -> bytes:
    """Return a body with some bytes changed, most of them near its start or its end."""
    data = bytearray(seed)
    for _ in range(generator.randint(1, 5)):
        near = min(len(data), 300)
        start = generator.choice([generator.randrange(near + 1), len(data) - near,
                                  generator.randrange(len(data) + 1)])  # fmt: skip
        choice = generator.randrange(5)
        if choice == 0:
            data[start : start + generator.randint(0, 8)] = generator.randbytes(3)
        elif choice == 1:
            data[start:start] = generator.choice(TOKENS)
        elif choice == 2:
            data[start : start + generator.randint(1, 4)] = generator.choice(TOKENS)
        elif choice == 3:
            del data[start : start + generator.choice([1, 4, 100])]
        else:
            data[start:start] = data[:near]
    return bytes(data)


def refusal_of(decode, *args) -> Refused | None:
    """Return why a decoder refuses a body; all other errors fail the test."""
    try:
        arrays = decode(*args)
    except Refused as refused:
        assert 400 <= refused.status_code < 500
        assert str(refused)
        return refused
    if isinstance(arrays, tuple):
        _, arrays = arrays
    assert all(type(value) is np.ndarray for value in arrays.values())
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_bodies_are_decoded_or_refused(kind):
    make, content_type = KINDS[kind]
    seed, generator, refusals = make(), random.Random(kind), 0
    assert any(refusal_of(d.decode, seed, content_type) is None for d in (DECODER, UNKNOWN))
    for number in range(COUNT):
        decoder = UNKNOWN if number % 2 else DECODER
        refusals += refusal_of(decoder.decode, mutate(generator, seed), content_type) is not None
    assert refusals > COUNT // 10


@pytest.mark.parametrize("is_binary", [False, True])
def test_mutated_requests_of_the_open_inference_protocol(is_binary):
    numbers = ROWS[0].round(2).ravel().tolist()
    content = ROWS[0].tobytes() if is_binary else b""
    head = tensors(**({"parameters": {"binary_data_size": len(content)}} if is_binary
                      else {"data": numbers}))  # fmt: skip
    length = str(len(head))
    assert refusal_of(read_request, DECODER, head + content, length) is None
    generator, refusals = random.Random(int(is_binary)), 0
    for _ in range(COUNT):
        changed = mutate(generator, head)
        said = generator.choice([str(len(changed)), length, "-1", "٣", "9" * 30, None])
        refusals += refusal_of(read_request, DECODER, changed + content, said) is not None
    assert refusals > COUNT // 10


SHAPES = ["(1,) * 65", "(2**63, 0)", "(2**62, 2**62, 0)", "(0, 2**64)", "(-1,)",
          "(-1, 0)", "(True, 64)", "(False,)", "(0,)", "(1.5,)", "('a',)", "(None,)", "3", "[3]",
          "{3}", "(2**31, 2**31, 2**31, 0)", "(10**400,)", "()"]  # fmt: skip


def npy_of(shape: str, data: bytes = b"") -> bytes:
    """Return an `.npy` file whose header has a shape as it is written."""
    if "*" in shape:  # a header holds values only
        shape = repr(eval(shape, {}))
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("data", [b"", bytes(4), bytes(256)])
def test_shapes_that_no_array_has(shape, data):
    for decoder in (DECODER, UNKNOWN):
        refusal_of(decoder.decode, npy_of(shape, data), NPY)
        refusal_of(decoder.decode, npz_member(npy_of(shape, data)), NPZ)


def npz_member(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("data.npy", content)
    return file.getvalue()


@pytest.mark.parametrize(
    "shape",
    [[1] * 65, [2**63, 0], [2**62, 2**62, 0], [-1], [True, 64], [0], [1.5], ["a"], 3, None, {},
     [10**400], [2**63, 2**63]],
)  # fmt: skip
def test_shapes_of_tensors_that_no_array_has(shape):
    for changes in ({"data": [1]}, {"parameters": {"binary_data_size": 0}}):
        refused = refusal_of(read_request, DECODER, tensors(shape=shape, **changes), None)
        assert refused is not None and ("'data'" in str(refused) or "[0].shape" in str(refused))


@pytest.mark.parametrize("shape", ["(1,) * 65", "(2**63, 0)", "(0, 2**64)", "(True, 64)"])
def test_a_server_answers_them_with_400(dense, shape):
    answer = dense.post(npy_of(shape), NPY)
    assert (answer.code, ".npy" in answer.error) == (400, True)
    answer = dense.post(npz_member(npy_of(shape)), NPZ)
    assert (answer.code, "data.npy" in answer.error) == (400, True)
