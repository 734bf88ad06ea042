"""MXNet's ``.params`` container: a list or a dictionary of arrays, dense or sparse.

Layout, little-endian: u64 0x112, u64 0, u64 count, the arrays, u64 number of names (0 for a list),
each name as u64 length and UTF-8 bytes. Four versions of the array record are read; the one that
MXNet 1.9.1 writes (V2, or V3 under NumPy shapes) is written, byte for byte. Files end with a record
of checksums, which MXNet ignores; see `checksums`.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ...dtypes import BY_TORCH
from ...error import DTypeError, FormatError
from ..atomic import replacing
from ..checksums import ChecksumPool, dump_trailer, read_trailer
from ..location import existing_file, local_path
from .params_reader import (
    CPU,
    CSR,
    CSR_KIND,
    DENSE,
    GPU,
    INT64,
    LIST_MAGIC,
    ROW_SPARSE,
    V2,
    V3,
    Array,
    ParamsReader,
    RowSparse,
)

Arrays = Sequence[Array] | Mapping[str, Array]


def read(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> list | dict:
    """Read a ``.params`` file, given as a path or as bytes: a list, or a dict if it has names.

    Arrays come as torch tensors on the CPU (device numbers in the file are ignored), sparse ones
    as `RowSparse` and `CSR`. A damaged file raises `FormatError`.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return loads(source)
    path = existing_file(source)
    with path.open("rb") as file, ChecksumPool() as pool:
        return ParamsReader(file, os.fstat(file.fileno()).st_size, str(path), pool).arrays()


def loads(data: bytes | bytearray | memoryview, name: str = "<bytes>") -> list | dict:
    """Read the bytes of a ``.params`` file; ``name`` stands for it in error messages.

    >>> loads(dumps({"bias": torch.tensor([1.0, 2.0])}))
    {'bias': tensor([1., 2.])}
    """
    with ChecksumPool() as pool:
        return ParamsReader(io.BytesIO(data), memoryview(data).nbytes, name, pool).arrays()


def read_info(place: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what `write` noted in a file besides the arrays; empty for files of MXNet."""
    with existing_file(place).open("rb") as file:
        trailer, _ = read_trailer(file, os.fstat(file.fileno()).st_size)
    info = (trailer or {}).get("info")
    return info if isinstance(info, dict) else {}


def write(
    place: str | os.PathLike[str],
    arrays: Arrays,
    *,
    np_shape: bool = False,
    info: Mapping[str, Any] | None = None,
) -> None:
    """Write a ``.params`` file; the old file stays whole until the new one is on the disk.

    With ``np_shape`` the arrays are written as MXNet does under NumPy shapes: then scalars can be
    read back, and sparse arrays are refused. Without it a scalar is written as MXNet writes it,
    in a form that no MXNet can load. ``info`` is JSON data that `read_info` returns.
    """
    sections = list(_sections(arrays, np_shape))  # every error comes before the file is touched
    with replacing(local_path(place)) as file, ChecksumPool() as pool:
        found = []
        for section in sections:
            pieces = [p if isinstance(p, bytes) else _bytes_of(p) for p in section]
            checksum = pool.submit(pieces)
            for piece in pieces:
                file.write(piece)
            found.append(checksum.result())
        _head, *records, names = found
        trailer = {"arrays": records, "names": names}
        file.write(dump_trailer({**trailer, "info": dict(info)} if info else trailer))


def dumps(arrays: Arrays, *, np_shape: bool = False) -> bytes:
    """Return the bytes that `write` would write, without the checksums: those of MXNet.

    >>> len(dumps([torch.zeros(3)]))
    76
    """
    return b"".join(
        piece if isinstance(piece, bytes) else _bytes_of(piece)
        for section in _sections(arrays, np_shape)
        for piece in section
    )


def dump_record(array: Array, device: tuple[int, int] = (1, 0)) -> bytes:
    """Return one array as files and pickles hold it, with the type and number of its device.

    >>> len(dump_record(torch.zeros(3)))
    44
    """
    np_shape = isinstance(array, Tensor) and 0 in (array.dim(), *array.shape)
    pieces = list(_record(array, np_shape))
    if isinstance(array, Tensor):
        head = len(pieces[0]) - struct.calcsize("<iii")  # device and data type end the header
        pieces[0] = pieces[0][:head] + struct.pack("<ii", *device) + pieces[0][head + 8 :]
    return b"".join(p if isinstance(p, bytes) else bytes(_bytes_of(p)) for p in pieces)


def load_record(
    data: bytes | bytearray | memoryview, name: str = "<bytes>"
) -> tuple[Array, tuple[int, int]]:
    """Read what `dump_record` gave: the array, on the CPU, and where it was.

    >>> load_record(dump_record(torch.ones(2), device=(2, 1)))
    (tensor([1., 1.]), (2, 1))
    """
    parser = ParamsReader(io.BytesIO(data), memoryview(data).nbytes, name)
    return parser.array(), parser.device


# Writing. An array is cut into pieces: headers as bytes, data as the tensors themselves.


def _sections(arrays: Arrays, np_shape: bool) -> Iterator[list[bytes | Tensor]]:
    """Yield the pieces of the header, of each array, and of the names."""
    named = isinstance(arrays, Mapping)
    values = list(arrays.values()) if named else list(arrays)
    yield [struct.pack("<QQQ", LIST_MAGIC, 0, len(values))]
    for value in values:
        yield list(_record(value, np_shape))
    names = [_encoded(name) for name in arrays] if named else []
    encoded = b"".join(struct.pack("<Q", len(name)) + name for name in names)
    yield [struct.pack("<Q", len(names)) + encoded]


def _encoded(name: object) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"Names of saved arrays are str, not {type(name).__name__}: {name!r}.")
    return name.encode()


def _record(array: Array, np_shape: bool) -> Iterator[bytes | Tensor]:
    if isinstance(array, Tensor):
        magic = V3 if np_shape else V2
        yield struct.pack("<Ii", magic, DENSE) + _shape(array.shape) + _device_and_type(array)
        yield array
    elif isinstance(array, RowSparse | CSR):
        if np_shape:
            raise FormatError("Sparse arrays cannot be saved under NumPy shapes.")
        kind = CSR_KIND if isinstance(array, CSR) else ROW_SPARSE
        aux = array[1:-1]  # the index tensors, in the order of the file
        yield struct.pack("<Ii", V2, kind) + _shape(array.values.shape) + _shape(array.shape)
        yield _device_and_type(array.values)
        yield b"".join(struct.pack("<i", INT64) + _shape(index.shape) for index in aux)
        yield array.values
        yield from (index.to(torch.int64) for index in aux)
    else:
        raise TypeError(
            f"Only torch tensors, RowSparse and CSR can be saved, not {type(array).__name__}."
        )


def _shape(shape: Sequence[int]) -> bytes:
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)


def _device_and_type(tensor: Tensor) -> bytes:
    if tensor.dtype not in BY_TORCH:
        known = ", ".join(row.name for row in BY_TORCH.values())
        kind = str(tensor.dtype).removeprefix("torch.")
        raise DTypeError(f"Arrays of {kind} cannot be saved; MXNet's types are {known}.")
    on_gpu = tensor.device.type == "cuda"
    device = (GPU, tensor.device.index or 0) if on_gpu else (CPU, 0)
    return struct.pack("<iii", *device, BY_TORCH[tensor.dtype].code)


def _bytes_of(tensor: Tensor) -> memoryview:
    """Return the content as bytes that share the tensor's memory where it is plain already."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return memoryview(flat.view(torch.uint8).numpy())
