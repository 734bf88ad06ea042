"""MXNet's ``.params`` container: a list or a dictionary of arrays, dense or sparse.

Layout, little-endian: u64 0x112, u64 0, u64 count, the arrays, u64 number of names (0 for a list),
each name as u64 length and UTF-8 bytes. Four versions of the array record are read; files are
written byte for byte like those of MXNet 1.9.1 (V2, or V3 with NumPy shapes), plus a trailing
record of checksums, which MXNet ignores; see `checksums`.
"""

from __future__ import annotations

import io
import math
import os
import struct
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple, NoReturn

import torch
from torch import Tensor

from ..dtypes import BY_CODE, BY_TORCH, DTypeRow, to_bytes
from ..error import DTypeError, FormatError, reporting_memory
from .atomic import replacing
from .checksums import MAGIC as TRAILER_MAGIC
from .checksums import ChecksumPool, checksum, dump_trailer, read_trailer
from .files import existing_file, local_path


def read(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> list | dict:
    """Read a ``.params`` file, given as a path or as bytes: a list, or a dict if it has names.

    Arrays are returned as torch tensors on the CPU (device numbers are ignored), sparse ones as
    `RowSparse` and `CSR`. A damaged file raises `FormatError`.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return loads(source)
    path = existing_file(source)
    with path.open("rb") as file, ChecksumPool() as pool:
        return ParamsReader(file, os.fstat(file.fileno()).st_size, str(path), pool).arrays()


def loads(data: bytes | bytearray | memoryview, name: str = "<bytes>") -> list | dict:
    """Read the bytes of a ``.params`` file; ``name`` is its name in error messages.

    >>> loads(dumps({"bias": torch.tensor([1.0, 2.0])}))
    {'bias': tensor([1., 2.])}
    """
    with ChecksumPool() as pool:
        return ParamsReader(io.BytesIO(data), memoryview(data).nbytes, name, pool).arrays()


def read_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the metadata stored by `write`; empty for files of MXNet."""
    with existing_file(path).open("rb") as file:
        trailer, _ = read_trailer(file, os.fstat(file.fileno()).st_size)
    info = (trailer or {}).get("info")
    return info if isinstance(info, dict) else {}


def write(
    path: str | os.PathLike[str],
    arrays: Arrays,
    *,
    np_shape: bool = False,
    info: Mapping[str, Any] | None = None,
) -> None:
    """Write a ``.params`` file atomically.

    With ``np_shape`` arrays are written as in MXNet with NumPy shapes: scalars can be loaded, and
    sparse arrays raise an error. Otherwise a scalar is written as in MXNet, which cannot load it.
    ``info`` is JSON data for `read_info`.
    """
    sections = list(_sections(arrays, np_shape))  # all errors are raised before writing
    with replacing(local_path(path)) as file, ChecksumPool() as pool:
        results = []
        for section in sections:
            pieces = [p if isinstance(p, bytes) else _bytes_of(p) for p in section]
            checksum = pool.submit(pieces)
            for piece in pieces:
                file.write(piece)
            results.append(checksum.result())
        _head, *records, names = results
        trailer = {"arrays": records, "names": names}
        file.write(dump_trailer({**trailer, "info": dict(info)} if info else trailer))


def dumps(arrays: Arrays, *, np_shape: bool = False) -> bytes:
    """Return the content of a file as bytes, without the checksums.

    >>> len(dumps([torch.zeros(3)]))
    76
    """
    return b"".join(
        piece if isinstance(piece, bytes) else _bytes_of(piece)
        for section in _sections(arrays, np_shape)
        for piece in section
    )


def dump_record(array: Array, device: tuple[int, int] = (1, 0)) -> bytes:
    """Return the record of an array for files and pickles, with its device's type and number.

    >>> len(dump_record(torch.zeros(3)))
    44
    """
    np_shape = isinstance(array, Tensor) and 0 in (array.dim(), *array.shape)
    pieces = list(_record(array, np_shape))
    at = 0 if isinstance(array, Tensor) else 1  # the piece that ends with device and data type
    header = pieces[at]
    if isinstance(header, bytes):
        head = len(header) - struct.calcsize("<iii")
        pieces[at] = header[:head] + struct.pack("<ii", *device) + header[head + 8 :]
    return b"".join(p if isinstance(p, bytes) else bytes(_bytes_of(p)) for p in pieces)


def load_record(
    data: bytes | bytearray | memoryview, name: str = "<bytes>"
) -> tuple[Array, tuple[int, int]]:
    """Read a record of `dump_record`: the array, on the CPU, and its original device.

    >>> load_record(dump_record(torch.ones(2), device=(2, 1)))
    (tensor([1., 1.]), (2, 1))
    """
    parser = ParamsReader(io.BytesIO(data), memoryview(data).nbytes, name)
    return parser.array(), parser.device


# Writing. An array is split into pieces: headers as bytes, data as tensors.


def _sections(arrays: Arrays, np_shape: bool) -> Iterator[list[bytes | Tensor]]:
    named = isinstance(arrays, Mapping)
    values = list(arrays.values()) if named else list(arrays)
    yield [struct.pack("<QQQ", LIST_MAGIC, 0, len(values))]
    for value in values:
        yield list(_record(value, np_shape))
    names = [_encode(name) for name in arrays] if named else []
    encoded = b"".join(struct.pack("<Q", len(name)) + name for name in names)
    yield [struct.pack("<Q", len(names)) + encoded]


def _encode(name: object) -> bytes:
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
        names = ", ".join(row.name for row in BY_TORCH.values())
        kind = str(tensor.dtype).removeprefix("torch.")
        raise DTypeError(f"Arrays of {kind} cannot be saved; MXNet's types are {names}.")
    device = (CPU, 0) if tensor.is_cpu else (GPU, tensor.device.index or 0)
    return struct.pack("<iii", *device, BY_TORCH[tensor.dtype].code)


def _bytes_of(tensor: Tensor) -> memoryview:
    """Return the content as bytes, which share the memory of a plain tensor."""
    return to_bytes(tensor).numpy().data


LIST_MAGIC = 0x112
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA  # V0 has ndim in place of a magic number
DENSE, ROW_SPARSE, CSR_KIND = 0, 1, 2
CPU, GPU = 1, 2
INT64 = BY_TORCH[torch.int64].code

MAX_NDIM = 64  # limit of torch and NumPy
MAX_ELEMENTS = 2**63 - 1
MIN_ARRAY_BYTES = 20  # bytes: a V0 record of one dimension without data


class RowSparse(NamedTuple):
    """A row_sparse array: row ``indices[i]`` is ``values[i]``, all others are zero."""

    shape: tuple[int, ...]
    indices: Tensor
    values: Tensor


class CSR(NamedTuple):
    """A csr matrix: row i has ``values`` from ``indptr[i]`` to ``indptr[i + 1]``."""

    shape: tuple[int, int]
    indptr: Tensor
    indices: Tensor
    values: Tensor


Array = Tensor | RowSparse | CSR
Arrays = Sequence[Array] | Mapping[str, Array]


class ParamsReader:
    """Reads one container from an open file of known size."""

    def __init__(
        self, file: BinaryIO, size: int, name: str, pool: ChecksumPool | None = None
    ) -> None:
        self.file: Any = file  # `BinaryIO` has no `readinto`
        self.size = size
        self.name = name
        self.at = 0  # offset of the next unread byte
        self.device = (CPU, 0)  # name of the last array
        self.pool = pool
        self.pieces: Any = None  # pieces of the current record, if it has a checksum

    def arrays(self) -> list | dict:
        """Return all arrays; raise if a checksum is wrong."""
        trailer, end = (
            (None, self.size) if self.pool is None else read_trailer(self.file, self.size)
        )
        self.size = end
        magic, _reserved, count = self.numbers("<QQQ", "the header")
        if magic != LIST_MAGIC:
            self.fail(f"the first number {LIST_MAGIC:#x} of a .params file", f"{magic:#x}", -24)
        self.check_count(count, MIN_ARRAY_BYTES, "arrays")
        arrays, sums = [], []
        for _ in range(count):
            self.pieces = None if trailer is None else []
            arrays.append(self.array())
            if trailer is not None and self.pool is not None:
                sums.append(self.pool.submit(self.pieces))
        self.pieces = None if trailer is None else []
        names = self.names(count)
        if trailer is not None:
            self.check_sums([s.result() for s in sums], checksum(self.pieces), trailer, names)
        self.check_end(trailer is not None)
        return arrays if names is None else dict(zip(names, arrays, strict=True))

    def names(self, count: int) -> list[str] | None:
        """Read the names of the arrays; None if they have none."""
        (named,) = self.numbers("<Q", "the number of names")
        if named == 0:
            return None
        if named != count:
            self.fail(f"no names, or one for each of {count} arrays", f"{named} names", -8)
        return [self.text() for _ in range(count)]

    def check_sums(
        self, sums: list[int], of_names: int, trailer: dict, names: list[str] | None
    ) -> None:
        """Raise if a checksum is wrong, and name the array."""
        written = trailer.get("arrays")
        if not isinstance(written, list) or len(written) != len(sums):
            self.fail(f"checksums of {len(sums)} arrays", "another number of them")
        if of_names != trailer.get("names"):
            self.fail("names with the checksum that was written", "others: the file is damaged")
        wrong = [i for i, pair in enumerate(zip(sums, written, strict=True)) if pair[0] != pair[1]]
        if wrong:
            shown = ", ".join(repr(names[i]) if names else f"number {i}" for i in wrong[:5])
            raise FormatError(
                f"{self.name}: the file is damaged: {len(wrong)} of {len(sums)} arrays do not "
                f"have the checksum that was written: {shown}. Use another copy of the file."
            )

    def check_end(self, is_checked: bool) -> None:
        """Warn of bytes after the names, which MXNet ignores."""
        left = self.size - self.at
        if not left:
            return
        first, last = self.file.read(len(TRAILER_MAGIC)), self.tail(len(TRAILER_MAGIC))
        # A file may be truncated inside the mark at the start of the checksums.
        if is_checked or TRAILER_MAGIC.startswith(first) or last == TRAILER_MAGIC:
            self.fail("the end of the file, or valid checksums", f"{left} damaged bytes")
        warnings.warn(
            f"{self.name}: {left} bytes after the last array are ignored. The file may be damaged, "
            "or another file was appended to it.",
            stacklevel=2,
        )

    def tail(self, count: int) -> bytes:
        """Return the last bytes of the file."""
        self.file.seek(max(0, self.size - count))
        return self.file.read(count)

    def array(self) -> Array:
        """Read one array record of any version."""
        (magic,) = self.numbers("<I", "an array")
        if magic not in (V1, V2, V3):
            return self.dense(self.dims(magic, "I"))  # V0 starts with ndim
        kind = self.numbers("<i", "the storage type")[0] if magic != V1 else DENSE
        if kind == DENSE:
            return self.dense(self.shape(), scalars=magic == V3)
        if kind not in (ROW_SPARSE, CSR_KIND) or magic == V3:
            self.fail("storage type 0 (dense), or in V2 1 (row_sparse) or 2 (csr)", str(kind), -4)
        return self.row_sparse() if kind == ROW_SPARSE else self.csr()

    def dense(self, shape: tuple[int, ...], scalars: bool = False) -> Tensor:
        """Read the rest of a dense array of this shape."""
        if not shape and not scalars:
            self.fail(
                "an array with dimensions",
                "none (outside NumPy shapes MXNet cannot read back a scalar: "
                "save it with shape (1,), or under np_shape)",
                -4,
            )
        return self.data(shape, self.device_and_type())

    def row_sparse(self) -> RowSparse:
        """Read the rest of a row_sparse array.

        The indices determine the number of rows. The storage shape may be outdated: MXNet writes it
        before waiting for pending computations.
        """
        stored, shape, row = self.shape(), self.shape(), self.device_and_type()
        index_row, index_shape = self.index_type()
        if not shape or stored[1:] != shape[1:] or len(index_shape) != 1:
            self.fail(
                f"row_sparse storage of (rows, ...) with one index a row for shape {shape}",
                f"storage {stored}, indices {index_shape}",
            )
        values = self.data((*index_shape, *shape[1:]), row)
        return RowSparse(shape, self.indices(index_shape, index_row, shape[0]), values)

    def csr(self) -> CSR:
        """Read the rest of a csr array; the indices determine the number of elements, as above."""
        stored, shape, row = self.shape(), self.shape(), self.device_and_type()
        pointer_row, pointer_shape = self.index_type()
        index_row, index_shape = self.index_type()
        fits = len(shape) == 2 and pointer_shape == (shape[0] + 1,) and len(index_shape) == 1
        if not fits or len(stored) != 1:
            self.fail(
                f"csr storage (n,), indices (n,) and indptr (rows + 1,) for shape {shape}",
                f"storage {stored}, indices {index_shape}, indptr {pointer_shape}",
            )
        (count,) = index_shape
        values = self.data(index_shape, row)
        indptr = self.indices(pointer_shape, pointer_row, count + 1)
        if indptr[0] != 0 or indptr[-1] != count or bool((indptr.diff() < 0).any()):
            self.fail(f"an indptr that rises from 0 to {count}", "one that does not")
        rows, columns = shape
        return CSR((rows, columns), indptr, self.indices(index_shape, index_row, shape[1]), values)

    def index_type(self) -> tuple[DTypeRow, tuple[int, ...]]:
        """Read the type and the shape of an index array."""
        (code,) = self.numbers("<i", "an index type")
        row = BY_CODE.get(code)
        if row is None or row.torch not in (torch.int32, torch.int64):
            self.fail("index type 4 (int32) or 6 (int64)", str(code), -4)
        return row, self.shape()

    def indices(self, shape: tuple[int, ...], row: DTypeRow, limit: int) -> Tensor:
        """Read indices; raise unless each is in [0, limit)."""
        result = self.data(shape, row).to(torch.int64)
        if result.numel() and (int(result.min()) < 0 or int(result.max()) >= limit):
            self.fail(
                f"indices from 0 to {limit - 1}", f"{int(result.min())} to {int(result.max())}"
            )
        return result

    def shape(self) -> tuple[int, ...]:
        """Read a shape of 64-bit sizes."""
        (ndim,) = self.numbers("<i", "the number of dimensions")
        return self.dims(ndim, "q")

    def dims(self, ndim: int, kind: str) -> tuple[int, ...]:
        """Read `count` sizes, and check that their product is possible."""
        if not 0 <= ndim <= MAX_NDIM:
            self.fail(f"0 to {MAX_NDIM} dimensions", str(ndim), -4)
        shape = self.numbers(f"<{ndim}{kind}", "dimensions")
        # Sizes of 0 are excluded from the product: torch multiplies the others for its strides.
        if any(d < 0 for d in shape) or math.prod(d or 1 for d in shape) > MAX_ELEMENTS:
            self.fail("sizes from 0, with a product below 2**63", str(shape))
        return shape

    def device_and_type(self) -> DTypeRow:
        """Read the device, which is stored, and the data type."""
        *device, code = self.numbers("<iii", "device and data type")
        self.device = tuple(device)
        if code not in BY_CODE:
            codes = ", ".join(f"{row.code} ({row.name})" for row in BY_CODE.values())
            self.fail(f"a data type code: {codes}", str(code), -4)
        return BY_CODE[code]

    def data(self, shape: tuple[int, ...], row: DTypeRow) -> Tensor:
        """Read the elements of an array directly into a new tensor."""
        needed = math.prod(shape) * row.size
        self.need(needed, f"{needed} bytes of {row.name} data for shape {shape}")
        raw = _allocate(needed)
        content = raw.numpy().data
        self.advance(self.file.readinto(content), needed)
        if self.pieces is not None:
            self.pieces.append(bytes(content) if row.torch is torch.bool else content)
        if row.torch is torch.bool:
            raw.clamp_(max=1)  # torch's bool is undefined for other bytes
        return raw.view(row.torch).view(shape)

    def text(self) -> str:
        """Read a string."""
        (length,) = self.numbers("<Q", "the length of a name")
        raw = self.take(length, f"a name of {length} bytes")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.fail("a name in UTF-8", repr(raw[:80]), -length)

    def check_count(self, count: int, smallest: int, what: str) -> None:
        """Raise if `count` records of minimal size would exceed the rest of the file."""
        left = self.size - self.at
        if count > left // smallest:
            self.fail(f"at most {left // smallest} {what} in {left} bytes", str(count), -8)

    def numbers(self, layout: str, what: str) -> tuple:
        """Read numbers of a `struct` layout."""
        return struct.unpack(layout, self.take(struct.calcsize(layout), what))

    def take(self, count: int, what: str) -> bytes:
        """Read the given number of bytes."""
        self.need(count, what)
        raw = self.file.read(count)
        self.advance(len(raw), count)
        if self.pieces is not None:
            self.pieces.append(raw)
        return raw

    def need(self, count: int, what: str) -> None:
        """Raise unless the given number of bytes is left."""
        left = self.size - self.at
        if count > left:
            self.fail(what, f"{left} bytes before the end of the file")

    def advance(self, count: int, needed: int) -> None:
        """Advance past bytes, or raise if some are missing."""
        if count != needed:
            self.fail(f"{needed} bytes", f"{count}: the file became shorter while it was read")
        self.at += needed

    def fail(self, expected: str, found: str, back: int = 0) -> NoReturn:
        """Raise an error about the current position in the file."""
        raise FormatError(
            f"{self.name}: not a valid .params file at byte {self.at + back}: "
            f"expected {expected}; found {found}."
        )


def _allocate(size: int) -> Tensor:
    """Allocate memory for one array; reading allocates nowhere else."""
    with reporting_memory("reading an array"):
        return torch.empty(size, dtype=torch.uint8)
