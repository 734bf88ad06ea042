"""Functions of MXNet's C library that programs call by ctypes through `mx.base._LIB`.

Arguments are those of ctypes (numbers, ``c_char_p``, ``byref`` for results). The result is 0, or -1
after an error, which `base.check_call` raises. A handle is a number of this module.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Callable
from typing import Any

import torch

from .. import accelerator, error, random
from ..context import gpu_memory_info
from ..formats.recordio_file import RecordReader, RecordWriter
from ..ndarray import NDArray, load, save
from ..ops import registry

__all__ = ["FUNCTIONS", "last_error"]

VERSION = 10901  # 1.9.1, in digits


class _Last(threading.local):
    """A thread's last error, and the objects that returned pointers refer to."""

    error: BaseException | None = None
    arrays: list[NDArray]
    names: ctypes.Array | None = None
    handles: ctypes.Array | None = None


class _Reader:
    """An open record file, the offset of the next record, and the last record."""

    def __init__(self, path: str) -> None:
        self.file = RecordReader(path)
        self.position = 0
        self.record: ctypes.Array | None = None


_last = _Last()
_numbers = itertools.count(1)
_open: dict[int, RecordWriter | _Reader] = {}
FUNCTIONS: dict[str, Callable[..., int]] = {}


def last_error() -> BaseException | None:
    """Return and clear the error of this thread's last failed call."""
    failure, _last.error = _last.error, None
    return failure


def _c_function(function: Callable[..., None]) -> Callable[..., int]:
    """Register a function that returns an error code instead of raising."""

    @functools.wraps(function)
    def call(*args: Any) -> int:
        _last.error = None
        try:
            function(*args)
        except (error.MXNetError, OSError, ValueError, TypeError) as failure:
            _last.error = failure
            return -1
        return 0

    FUNCTIONS[function.__name__] = call
    return call


def _number(value: Any) -> int:
    return getattr(value, "value", value) or 0


def _text(value: Any) -> str:
    value = getattr(value, "value", value)
    return value.decode() if isinstance(value, bytes) else value


def _target(reference: Any) -> Any:
    """Return the object that a ``byref`` or ``pointer`` refers to."""
    inner = getattr(reference, "_obj", None)
    return reference.contents if inner is None else inner


def _store(reference: Any, value: Any) -> None:
    _target(reference).value = value


def _point(reference: Any, array: ctypes.Array | None) -> None:
    """Point a pointer variable of any type to a ctypes array, which the caller keeps alive."""
    variable = ctypes.c_void_p.from_address(ctypes.addressof(_target(reference)))
    variable.value = None if array is None else ctypes.addressof(array)


def _file(handle: Any, kind: type) -> Any:
    file = _open.get(_number(handle))
    if not isinstance(file, kind):
        what = "writer" if kind is RecordWriter else "reader"
        raise error.InvalidValue(f"RecordIO: {handle!r} is not the handle of an open {what}.")
    return file


# -- record files --------------------------------------------------------------------------------


@_c_function
def MXRecordIOWriterCreate(uri: Any, out: Any) -> None:
    """Open a record file for writing; it appears when the writer is freed."""
    number = next(_numbers)
    _open[number] = RecordWriter(_text(uri))
    _store(out, number)


@_c_function
def MXRecordIOWriterFree(handle: Any) -> None:
    _file(handle, RecordWriter).close()
    del _open[_number(handle)]


@_c_function
def MXRecordIOWriterWriteRecord(handle: Any, buf: Any, size: Any) -> None:
    _file(handle, RecordWriter).write(ctypes.string_at(buf, _number(size)))


@_c_function
def MXRecordIOWriterTell(handle: Any, pos: Any) -> None:
    _store(pos, _file(handle, RecordWriter).position)


@_c_function
def MXRecordIOReaderCreate(uri: Any, out: Any) -> None:
    reader = _Reader(_text(uri))
    number = next(_numbers)
    _open[number] = reader
    _store(out, number)


@_c_function
def MXRecordIOReaderFree(handle: Any) -> None:
    _file(handle, _Reader).file.close()
    del _open[_number(handle)]


@_c_function
def MXRecordIOReaderReadRecord(handle: Any, buf: Any, size: Any) -> None:
    """Store the address and the length of the next record; NULL and 0 at the end."""
    reader = _file(handle, _Reader)
    record, reader.position = reader.file.read(reader.position)
    reader.record = None if record is None else ctypes.create_string_buffer(record)
    _point(buf, reader.record)  # valid until the next record is read
    _store(size, len(record or b""))


@_c_function
def MXRecordIOReaderSeek(handle: Any, pos: Any) -> None:
    _file(handle, _Reader).position = _number(pos)


@_c_function
def MXRecordIOReaderTell(handle: Any, pos: Any) -> None:
    _store(pos, _file(handle, _Reader).position)


# -- arrays --------------------------------------------------------------------------------------


def _tensor(handle: Any) -> torch.Tensor:
    if isinstance(handle, torch.Tensor):
        return handle
    array = handle if isinstance(handle, NDArray) else NDArray(ctypes.c_void_p(_number(handle)))
    return array.handle


@_c_function
def MXNDArrayGetData(handle: Any, out: Any) -> None:
    """Store the address of an array's data; it is valid while the array lives."""
    tensor = _tensor(handle)
    if not tensor.is_contiguous():
        raise error.InvalidValue("MXNDArrayGetData: the array is not contiguous; copy it first.")
    _store(out, tensor.data_ptr())


@_c_function
def MXNDArrayWaitToRead(handle: Any) -> None:
    accelerator.synchronize(_tensor(handle).device)


@_c_function
def MXNDArrayWaitToWrite(handle: Any) -> None:
    accelerator.synchronize(_tensor(handle).device)


@_c_function
def MXNDArrayWaitAll() -> None:
    accelerator.synchronize_all()


@_c_function
def MXNDArraySave(fname: Any, num_args: Any, args: Any, keys: Any) -> None:
    """Write arrays, with their names if there are keys, to a ``.params`` file."""
    count = _number(num_args)
    arrays = [NDArray(ctypes.c_void_p(args[i])) for i in range(count)]
    save(_text(fname), {keys[i].decode(): arrays[i] for i in range(count)} if keys else arrays)


@_c_function
def MXNDArrayLoad(fname: Any, size: Any, arrays: Any, name_size: Any, names: Any) -> None:
    """Store handles and names of the arrays of a file; they live until the thread's next load."""
    content = load(_text(fname))
    keys = list(content) if isinstance(content, dict) else []
    _last.arrays = list(content.values() if isinstance(content, dict) else content)
    addresses = [array._as_parameter_.value for array in _last.arrays]
    _last.handles = (ctypes.c_void_p * len(addresses))(*addresses)
    _last.names = (ctypes.c_char_p * len(keys))(*[key.encode() for key in keys])
    _store(size, len(addresses))
    _store(name_size, len(keys))
    _point(arrays, _last.handles)
    _point(names, _last.names)


# -- the process ---------------------------------------------------------------------------------


@_c_function
def MXGetVersion(out: Any) -> None:
    """Store the version of MXNet: 10901."""
    _store(out, VERSION)


@_c_function
def MXRandomSeed(seed: Any) -> None:
    random.seed(_number(seed))


@_c_function
def MXListAllOpNames(size: Any, names: Any) -> None:
    """Store the number of operators and an array of their names."""
    texts = [name.encode() for name in registry.names()]
    _last.names = (ctypes.c_char_p * len(texts))(*texts)
    _store(size, len(texts))
    _point(names, _last.names)


@_c_function
def MXSetNumOMPThreads(count: Any) -> None:
    torch.set_num_threads(_number(count))


@_c_function
def MXGetGPUMemoryInformation64(device: Any, free: Any, total: Any) -> None:
    for out, value in zip((free, total), gpu_memory_info(_number(device)), strict=True):
        _store(out, value)
