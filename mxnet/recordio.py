"""Reading and writing RecordIO files, and the header of image records."""

from __future__ import annotations

import math
import numbers
import os
import struct
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Literal

import numpy as np

from .error import FormatError, MXNetError
from .formats import image_codec
from .formats.atomic import AtomicFile, one_commit
from .formats.files import local_path
from .formats.image_codec import find_damage
from .formats.recordio_file import Damage, RecordReader, RecordWriter, read_index

__all__ = [
    "IRHeader",
    "MXIndexedRecordIO",
    "MXRecordIO",
    "pack",
    "pack_img",
    "unpack",
    "unpack_img",
]

OnError = Literal["raise", "skip"]

IRHeader = namedtuple("HEADER", ["flag", "label", "id", "id2"])
IRHeader.__doc__ = """The header of an image record.

Pickles know it as ``HEADER``.

Parameters
----------
flag
    The number of labels if there is an array of them, else 0.
label
    A number, or an array.
id
    Id of the record.
id2
    Second id, by default 0.

>>> IRHeader(0, 4.0, 7, 0).label
4.0
"""
HEADER = IRHeader
LINES_AT_ONCE = 4096
_IR_FORMAT = "IfQQ"
_IR_HEAD = struct.Struct("<IfQQ")
_IR_SIZE = _IR_HEAD.size
_LARGEST = float(np.finfo(np.float32).max)


class ShortRecord(FormatError, struct.error):
    """Raised if an image record is shorter than its header."""


class MXRecordIO:
    """Reads or writes the records of a file sequentially.

    Parameters
    ----------
    uri : str
        The path of the record file.
    flag : 'r' or 'w'
        ``'r'`` to read, ``'w'`` to write.
    on_error : 'raise' or 'skip'
        What to do with damage in a file: raise `FormatError`, or skip to the next whole record.
        `damage` then lists the skipped ranges, and `skipped` is their number.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.rec")
    >>> with mx.recordio.MXRecordIO(path, "w") as file:
    ...     file.write(b"first")
    ...     file.write(b"second")
    >>> list(mx.recordio.MXRecordIO(path, "r"))
    [b'first', b'second']
    """

    def __init__(
        self, uri: str | os.PathLike[str], flag: str, *, on_error: OnError = "raise"
    ) -> None:
        if on_error not in ("raise", "skip"):
            raise ValueError(f"on_error must be 'raise' or 'skip', not {on_error!r}")
        self.uri = os.fspath(uri)
        self.flag = flag
        self.on_error = on_error
        self.handle: Any = None  # a RecordReader or a RecordWriter
        self.is_open = False
        self.open()

    def open(self) -> None:
        """Open the file at its beginning; a written file is created when it is closed."""
        if self.flag not in ("r", "w"):
            raise ValueError(f"Invalid flag {self.flag}: use 'r' to read or 'w' to write")
        self.writable = self.flag == "w"
        self.handle = (RecordWriter if self.writable else RecordReader)(self.uri)
        self.pid = os.getpid()
        self.is_open = True
        self.damage: list[Damage] = []
        self._go_to(0)

    def close(self) -> None:
        """Close the file; a written file is then complete."""
        if not self.is_open:
            return
        self.is_open, self.pid = False, None
        self._whole = None
        self.handle.close()

    def discard(self) -> None:
        """Close a file without writing; an older file is unchanged."""
        if not self.is_open or not self.writable:
            self.close()
            return
        self.is_open, self.pid = False, None
        self.handle.discard()

    def reset(self) -> None:
        """Start again: reading at the first record, writing with an empty file."""
        if self.is_open and not self.writable:
            self.damage = []
            self._go_to(0)
            return
        self.close()
        self.open()

    def write(self, buf: bytes | bytearray | memoryview) -> None:
        """Add a record.

        Parameters
        ----------
        buf
            Bytes of the record.
        """
        if isinstance(buf, str) or not isinstance(buf, bytes | bytearray | memoryview):
            raise TypeError(f"A record must be bytes, not {type(buf).__name__}")
        self._opened(True).write(buf)

    def read(self) -> bytes | None:
        """Return the next record, or None after the last one."""
        reader = self._opened(False)
        if self.on_error == "skip":
            return self._next_whole(reader)
        record, self._at = reader.read(self._at)
        return record

    @property
    def skipped(self) -> int:
        """Number of damaged ranges skipped since the file was opened or reset."""
        return len(self.damage)

    def __iter__(self) -> Iterator[bytes]:
        while (record := self.read()) is not None:
            yield record

    def __enter__(self) -> MXRecordIO:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        if getattr(self, "is_open", False):
            self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.is_open and self.writable:
            raise MXNetError(
                f"{self.uri!r} is open for writing and cannot be pickled: opening it again "
                "elsewhere would empty it. Close it first."
            )
        left_out = ("handle", "pid", "_whole", "_at", "damage")
        return {k: v for k, v in self.__dict__.items() if k not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.handle, self.pid, self.damage = None, None, []
        was_open, self.is_open = self.is_open, False
        if was_open:
            self.open()

    def _opened(self, to_write: bool) -> Any:
        if not self.is_open:
            raise MXNetError(f"{self.uri!r} is closed: call open() first.")
        if self.writable != to_write:
            done, attempted = ("writing", "read") if self.writable else ("reading", "write to")
            raise WrongDirection(f"{self.uri!r} was opened for {done}: cannot {attempted} it.")
        return self.handle

    def _go_to(self, offset: int) -> None:
        self._at = offset
        self._whole = None

    def _next_whole(self, reader: RecordReader) -> bytes | None:
        if self._whole is None:
            self._whole = reader.whole_records(self._at)
        for _, record in self._whole:
            if not isinstance(record, Damage):
                return record
            self.damage.append(record)
        return None


class WrongDirection(MXNetError, AssertionError):
    """Raised if a file opened for reading is written, or vice versa."""


class MXIndexedRecordIO(MXRecordIO):
    """Reads or writes records by key; an index file (`.idx`) has their offsets.

    Parameters
    ----------
    idx_path : str
        The path of the index file.
    uri : str
        The path of the record file.
    flag : 'r' or 'w'
        ``'r'`` to read, ``'w'`` to write.
    key_type : type
        Type of the keys in the index file.
    on_error : 'raise' or 'skip'
        See `MXRecordIO`; invalid lines of the index are skipped too. `read_idx` always raises for
        damage.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.rec")
    >>> with mx.recordio.MXIndexedRecordIO(path.with_suffix(".idx"), path, "w") as file:
    ...     file.write_idx(3, b"third")
    ...     file.write_idx(4, b"fourth")
    >>> mx.recordio.MXIndexedRecordIO(path.with_suffix(".idx"), path, "r").read_idx(4)
    b'fourth'
    """

    def __init__(
        self,
        idx_path: str | os.PathLike[str],
        uri: str | os.PathLike[str],
        flag: str,
        key_type: Callable[[str], Any] = int,
        *,
        on_error: OnError = "raise",
    ) -> None:
        self.idx_path = os.fspath(idx_path)
        self.idx: dict[Any, int] = {}
        self.keys: list[Any] = []
        self.key_type = key_type
        self.fidx: BinaryIO | None = None
        self._index_file: Any = None  # an AtomicFile while the index is written
        super().__init__(uri, flag, on_error=on_error)

    def open(self) -> None:
        """Open both files."""
        super().open()
        self.idx, self.keys, self.skipped_lines = {}, [], 0
        self._lines: list[str] = []  # buffered here, so that a forked child does not write them
        try:
            if self.writable:
                self._index_file = AtomicFile(local_path(self.idx_path))
                self.fidx = self._index_file.stream
                return
            lines = read_index(self.idx_path, self.key_type, self.on_error)
        except BaseException:
            super().discard()
            raise
        self.skipped_lines = lines.skipped
        self.keys = [key for key, _ in lines]
        self.idx = dict(lines)

    def close(self) -> None:
        """Close both files; they are replaced together."""
        if self.fidx is None:
            super().close()
            return
        self.fidx = None
        if self.pid != os.getpid():
            self._index_file.abandon()
            super().close()
            return
        try:
            with one_commit():
                super().close()
                self._write_lines()
                self._index_file.commit()
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Close both files without writing; older files are unchanged."""
        if self._index_file is not None:
            self.fidx = None
            if self.pid in (None, os.getpid()):
                self._index_file.discard()
            else:
                self._index_file.abandon()
        super().discard()

    def seek(self, idx: Any) -> None:
        """Seek the record of a key, which the next `read` returns.

        Parameters
        ----------
        idx
            The key.
        """
        if not self.is_open and not self.writable:
            self.open()
        self._opened(False)
        if idx not in self.idx:
            raise MissingKey(f"{self.idx_path!r} has no record {idx!r}")
        self._go_to(self.idx[idx])

    def tell(self) -> int:
        """Return the offset at which the next record will be written."""
        return self._opened(True).position

    def read_idx(self, idx: Any) -> bytes:
        """Return the record of a key.

        Parameters
        ----------
        idx
            The key.
        """
        self.seek(idx)
        record, self._at = self.handle.read(self._at)
        if record is None:
            raise FormatError(
                f"{self.uri}: at byte {self._at} expected record {idx!r} (so says "
                f"{self.idx_path}), found the end of the file."
            )
        return record

    def write_idx(self, idx: Any, buf: bytes) -> None:
        """Add a record with a key.

        Parameters
        ----------
        idx
            The key.
        buf
            Bytes of the record.
        """
        key, at = self.key_type(idx), self.tell()
        self.write(buf)
        self._lines.append(f"{key}\t{at}\n")
        if len(self._lines) >= LINES_AT_ONCE:
            self._write_lines()
        self.idx[key] = at
        self.keys.append(key)

    def _write_lines(self) -> None:
        self._index_file.stream.write("".join(self._lines).encode())
        self._index_file.stream.flush()  # a forked child must not have them in a buffer
        self._lines = []

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"fidx": None, "_index_file": None}


class MissingKey(MXNetError, KeyError):
    """Raised if the index does not have a key."""

    __str__ = MXNetError.__str__  # KeyError's would quote the message


def pack(header: IRHeader, s: bytes) -> bytes:
    """Pack a header, optional labels and the bytes of an image into a record.

    Parameters
    ----------
    header
        The header, an `IRHeader`.
    s
        Bytes of the image.

    >>> mx.recordio.pack(mx.recordio.IRHeader(0, [1, 2], 7, 0), b"x").hex(" ", 4)
    '02 00000000 00000007 00000000 00000000 00000000 00000000 00803f00 00004078'
    """
    header = IRHeader(*header)
    if isinstance(header.label, numbers.Number):
        label = header.label
        if isinstance(label, float) and math.isfinite(label) and abs(label) > _LARGEST:
            label = math.copysign(math.inf, label)  # rounded to float32
        return _IR_HEAD.pack(0, label, header.id, header.id2) + s
    labels = np.asarray(header.label, dtype="<f4")
    head = _IR_HEAD.pack(labels.size, 0, header.id, header.id2)
    return head + labels.tobytes() + s


def unpack(s: bytes) -> tuple[IRHeader, bytes]:
    """Unpack a record into its header and the bytes of the image.

    Parameters
    ----------
    s
        Bytes of the record.

    >>> mx.recordio.unpack(mx.recordio.pack(mx.recordio.IRHeader(0, 4.0, 7, 0), b"x"))
    (HEADER(flag=0, label=4.0, id=7, id2=0), b'x')
    """
    if len(s) < _IR_SIZE:
        raise ShortRecord(f"An image record begins with {_IR_SIZE} bytes, this has {len(s)}.")
    header = IRHeader(*_IR_HEAD.unpack_from(s))
    content = s[_IR_SIZE:]
    if header.flag == 0:
        return header, content
    if 4 * header.flag > len(content):
        raise FormatError(
            f"Image record {header.id} should have {header.flag} labels of 4 bytes, but only "
            f"{len(content)} bytes follow its header."
        )
    labels = np.frombuffer(content, "<f4", header.flag).astype(np.float32, copy=False)
    return header._replace(label=labels), content[4 * header.flag :]


def unpack_img(s: bytes, iscolor: int = -1) -> tuple[IRHeader, np.ndarray | None]:
    """Unpack a record into its header and the decoded image (BGR), or None without an image.

    ``iscolor`` is OpenCV's flag: 1 color, 0 gray, -1 as stored.

    Parameters
    ----------
    s
        Bytes of the record.
    iscolor
        OpenCV's flag: 1 for color, 0 for gray, -1 as stored.

    >>> header = mx.recordio.IRHeader(0, 4.0, 7, 0)
    >>> record = mx.recordio.pack_img(header, np.zeros((2, 3, 3), "uint8"))
    >>> mx.recordio.unpack_img(record)[1].shape
    (2, 3, 3)
    """
    header, content = unpack(s)
    cv2 = image_codec.opencv()
    image_codec.check_size(content, f"the image of record {header.id}")
    if find_damage(content):
        return header, None
    return header, cv2.imdecode(np.frombuffer(content, np.uint8), iscolor) if content else None


def pack_img(header: IRHeader, img: np.ndarray, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """Encode an image (BGR) and pack it with a header into a record.

    Values of ``quality`` out of range are clamped.

    Parameters
    ----------
    header
        The header, an `IRHeader`.
    img
        The image, of shape ``(height, width, channels)``, in BGR order.
    quality
        Quality of JPEG, 0 to 100, or compression of PNG, 0 to 9.
    img_fmt
        Format as a file extension: ``'.jpg'`` or ``'.png'``.

    >>> header = mx.recordio.IRHeader(0, 4.0, 7, 0)
    >>> record = mx.recordio.pack_img(header, np.zeros((2, 3, 3), "uint8"), img_fmt=".png")
    >>> mx.recordio.unpack(record)[1][1:4]
    b'PNG'
    """
    return pack(header, image_codec.encode(img, quality, img_fmt))
