"""Reads ONNX files. Files are untrusted: no code in them runs, and sizes are checked first.

The ONNX library's checker and shape inference use untrusted numbers as indices. If the system
supports fork, a child process isolates the caller from crashes, endless loops and excessive memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ....error import FormatError, MXNetError
from ..library import load_onnx
from .budget import check_size

__all__ = [
    "check_model",
    "infer_shapes",
    "parse_model",
    "read_model",
    "run_isolated",
    "tensor_to_numpy",
]

MAX_FILE_BYTES = 2**31 - 1
MAX_NODES = 1_000_000
MAX_DEPTH = 16
STRING = 8  # ONNX's number of the type
# Bits of an element of types smaller than a byte.
PACKED_BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}
# Maximum seconds of CPU time: base, and for large files.
MAX_SECONDS, BYTES_PER_SECOND = 1.0, 5e6
MAX_WAIT = 60.0
# Maximum memory of a child: base, and per byte of the file.
MAX_MEMORY, MEMORY_PER_BYTE = 128 << 20, 8
ANSWER, FAILURE = b"+", b"-"
PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def read_model(source: Any) -> Any:
    """Return a checked ModelProto from a path or from bytes.

    Raises for damaged files, references to other files and unknown types.
    """
    name, data, model = parse_model(source)
    check_model(name, data, model)
    return model


def parse_model(source: Any) -> tuple[str, bytes, Any]:
    """Return the name, the bytes and the unchecked ModelProto of a path or of bytes."""
    onnx = load_onnx()
    name, data = _content(source)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # protobuf's own class, which differs between its versions
        raise FormatError(f"{name} is not an ONNX file: {error}") from None
    if not model.HasField("graph") or not model.opset_import:
        raise FormatError(f"{name} is not an ONNX file: it has no graph or no opset.")
    return name, data, model


def check_model(name: str, data: bytes, model: Any) -> None:
    """Raise an error unless a model is safe to read, and valid to the ONNX library."""
    onnx = load_onnx()
    _check_graph(model.graph, name, 0)
    for function in model.functions:
        _check_nodes(function.node, name, 0)
    check_size(model, name, len(data))

    def check() -> bytes:
        onnx.checker.check_model(data)
        return b""

    run_isolated(check, name, len(data))


def infer_shapes(model: Any) -> Any:
    """Return the model with shapes and types of its values, as far as ONNX infers them."""
    onnx = load_onnx()

    def infer() -> bytes:
        return onnx.shape_inference.infer_shapes(model, data_prop=True).SerializeToString()

    inferred = onnx.ModelProto()
    try:
        inferred.ParseFromString(run_isolated(infer, "the model", model.ByteSize()))
    except FormatError:  # failures are ignored: rows raise if they need a shape
        return model
    return inferred


def _content(source: Any) -> tuple[str, bytes]:
    if isinstance(source, bytes):
        return "<bytes>", source
    if not isinstance(source, str | os.PathLike):
        raise MXNetError(f"model_file must be a path or bytes, got {type(source)}.")
    path = Path(source)
    if not path.is_file():
        raise MXNetError(f"ONNX file {str(path)!r} does not exist.")
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise FormatError(f"{path} has {size} bytes; an ONNX file holds at most {MAX_FILE_BYTES}.")
    return str(path), path.read_bytes()


def _check_graph(graph: Any, name: str, depth: int) -> None:
    """Raise for contents that are dangerous to read, before any allocation."""
    if depth > MAX_DEPTH:
        raise FormatError(f"{name}: graphs are nested deeper than {MAX_DEPTH}.")
    if len(graph.node) > MAX_NODES:
        raise FormatError(f"{name}: more than {MAX_NODES} nodes.")
    for tensor in graph.initializer:
        _check_tensor(tensor, name)
    if graph.sparse_initializer:
        raise FormatError(f"{name}: sparse initializers are not supported.")
    _check_nodes(graph.node, name, depth)


def _check_nodes(nodes: Any, name: str, depth: int) -> None:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("sparse_tensor") or attribute.sparse_tensors:
                raise FormatError(f"{name}: sparse tensors are not supported.")
            for tensor in (attribute.t, *attribute.tensors):
                if tensor is not attribute.t or attribute.HasField("t"):
                    _check_tensor(tensor, name)
            for graph in (attribute.g, *attribute.graphs):
                if graph is not attribute.g or attribute.HasField("g"):
                    _check_graph(graph, name, depth + 1)


def _check_tensor(tensor: Any, name: str) -> None:
    """Raise unless the declared size of a tensor matches its bytes."""
    onnx = load_onnx()
    what = f"{name}: tensor {tensor.name!r}"
    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        raise FormatError(f"{what} is stored in another file; such files are not read.")
    if tensor.data_type not in set(onnx.TensorProto.DataType.values()) - {0}:
        raise FormatError(f"{what} has the unknown type {tensor.data_type}.")
    if any(n < 0 for n in tensor.dims):
        raise FormatError(f"{what} has a negative size: {list(tensor.dims)}.")
    count = math.prod(tensor.dims)
    stored = _count_stored(tensor, count)
    if stored != count:
        raise FormatError(f"{what} claims {list(tensor.dims)}, but holds {stored:g} elements.")


def _count_stored(tensor: Any, count: int) -> float:
    """Return the number of stored elements of a tensor of declared size `count`."""
    onnx = load_onnx()
    name = onnx.TensorProto.DataType.Name(tensor.data_type)
    if tensor.data_type == STRING:
        return len(tensor.string_data)
    if tensor.HasField("raw_data"):
        length = len(tensor.raw_data)
        if name not in PACKED_BITS:  # a part of an element is damage as well
            return length / onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        # Several elements share a byte; the last byte may be partly used.
        bits = PACKED_BITS[name]
        return count if -(-count * bits // 8) == length else length * 8 / bits
    lists = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data)
    total = sum(len(one) for one in (*lists, tensor.uint64_data))
    if name.startswith("COMPLEX"):
        return total // 2
    return min(count, total * 4) if name in PACKED_BITS else total


def tensor_to_numpy(tensor: Any) -> np.ndarray:
    """Return the array of a checked tensor."""
    return load_onnx().numpy_helper.to_array(tensor)


# -- isolation ------------------------------------------------------------------------------


def run_isolated(work: Callable[[], bytes], name: str, size: int = 0) -> bytes:
    """Run `work` in a child process, limited for a file of `size` bytes; return its bytes.

    An exception in it becomes a `FormatError` with its text; so do a crash and a timeout.
    """
    if not hasattr(os, "fork"):
        return _unpack(_run(work), name)
    reader, writer = os.pipe()
    seconds, parent = int(MAX_SECONDS + size / BYTES_PER_SECOND), os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child starts no threads
        child = os.fork()
    if child == 0:
        os.close(reader)
        _serve(work, writer, parent, seconds, MAX_MEMORY + MEMORY_PER_BYTE * size)
    os.close(writer)
    try:
        answer = _read_all(reader, MAX_WAIT + 10 * seconds)
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)  # harmless if it has ended already
        status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        answer = FAILURE + f"it takes more than {seconds} s of computing".encode()
    elif status and answer[:1] == ANSWER:  # the process ended while sending the result
        answer = FAILURE
    return _unpack(answer, name)


def _serve(work: Callable[[], bytes], writer: int, parent: int, seconds: int, memory: int) -> None:
    """Send the result and exit the child process immediately, even after an error."""
    try:
        _end_with(parent)
        _limit(seconds, memory)
        rest = memoryview(_run(work))
        while rest:
            rest = rest[os.write(writer, rest) :]
    finally:
        os._exit(0)


def _end_with(parent: int) -> None:
    """Ask the system to end this process when its parent ends, if supported."""
    if _prctl is not None:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent has already ended
        os._exit(0)


def _limit(seconds: int, memory: int) -> None:
    import resource

    limits = {
        resource.RLIMIT_CPU: (seconds, seconds + 1),
        resource.RLIMIT_DATA: (_data_bytes() + memory,) * 2,
        resource.RLIMIT_CORE: (0, 0),
    }
    for kind, limit in limits.items():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, limit)


def _data_bytes() -> int:
    """Return the size of the data segment, to which the limit applies, unused memory included."""
    import resource

    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmData")).split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _run(work: Callable[[], bytes]) -> bytes:
    try:
        return ANSWER + work()
    except BaseException as error:  # protobuf, checker and memory errors have classes of their own
        text = str(error).strip().split("\n")[0]
        return FAILURE + f"{text or type(error).__name__}".encode("utf-8", "replace")


def _read_all(reader: int, seconds: float) -> bytes:
    parts, deadline = [], time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return FAILURE + f"it takes more than {seconds:.0f} seconds".encode()
        part = os.read(reader, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _unpack(answer: bytes, name: str) -> bytes:
    if answer[:1] == ANSWER:
        return answer[1:]
    text = answer[1:].decode("utf-8", "replace") or "it crashes the ONNX library"
    raise FormatError(f"{name} is not a valid ONNX model: {text}")
