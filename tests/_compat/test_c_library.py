"""Functions of MXNet's C library that `mx.base._LIB` provides, called through ctypes."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd
from mxnet.base import (
    _LIB,
    MXNetError,
    NDArrayHandle,
    RecordIOHandle,
    c_handle_array,
    c_str,
    c_str_array,
    check_call,
    ctypes2buffer,
    mx_uint,
)

RECORDS = [b"abc", b"", b"\0" * 10, np.uint32(0xCED7230A).tobytes()]


def write(path, records):
    handle, offset, offsets = RecordIOHandle(), ctypes.c_size_t(), []
    check_call(_LIB.MXRecordIOWriterCreate(c_str(path), ctypes.byref(handle)))
    for record in records:
        check_call(_LIB.MXRecordIOWriterTell(handle, ctypes.byref(offset)))
        offsets.append(offset.value)
        size = ctypes.c_size_t(len(record))
        check_call(_LIB.MXRecordIOWriterWriteRecord(handle, ctypes.c_char_p(record), size))
    check_call(_LIB.MXRecordIOWriterFree(handle))
    return offsets


def read(handle):
    buffer, size = ctypes.POINTER(ctypes.c_char)(), ctypes.c_size_t()
    check_call(_LIB.MXRecordIOReaderReadRecord(handle, ctypes.byref(buffer), ctypes.byref(size)))
    return bytes(ctypes2buffer(buffer, size.value)) if buffer else None


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "a.rec")


def test_recordio_functions_match_mx_recordio(path):
    offsets = write(path, RECORDS)
    with mx.recordio.MXRecordIO(path, "r") as records:
        assert list(records) == RECORDS
    handle, offset = RecordIOHandle(), ctypes.c_size_t()
    check_call(_LIB.MXRecordIOReaderCreate(c_str(path), ctypes.byref(handle)))
    for position, record in zip(offsets, RECORDS, strict=True):
        check_call(_LIB.MXRecordIOReaderTell(handle, ctypes.byref(offset)))
        assert offset.value == position
        assert read(handle) == record
    assert read(handle) is None
    check_call(_LIB.MXRecordIOReaderSeek(handle, ctypes.c_size_t(offsets[2])))
    assert read(handle) == RECORDS[2]
    check_call(_LIB.MXRecordIOReaderFree(handle))


def test_failed_calls_return_a_code_and_check_call_raises(tmp_path):
    handle = RecordIOHandle()
    code = _LIB.MXRecordIOReaderCreate(c_str(str(tmp_path / "no.rec")), ctypes.byref(handle))
    assert code == -1
    with pytest.raises(MXNetError, match=r"no\.rec.*No such file"):
        check_call(code)
    with pytest.raises(MXNetError, match="A C function failed with code -1"):
        check_call(-1)


def test_using_a_freed_handle_raises(path):
    write(path, RECORDS)
    handle = RecordIOHandle()
    check_call(_LIB.MXRecordIOReaderCreate(c_str(path), ctypes.byref(handle)))
    assert _LIB.MXRecordIOWriterFree(handle) == -1
    check_call(_LIB.MXRecordIOReaderFree(handle))
    with pytest.raises(MXNetError, match="not the handle of an open reader"):
        check_call(_LIB.MXRecordIOReaderFree(handle))


def test_arrays_are_saved_and_loaded(tmp_path):
    path = str(tmp_path / "a.params")
    arrays = [nd.ones(3), nd.array([[1, 2]])]
    keys = c_str_array(["x", "y"])
    check_call(_LIB.MXNDArraySave(c_str(path), mx_uint(2), c_handle_array(arrays), keys))
    assert nd.load(path)["y"].asnumpy().tolist() == [[1, 2]]
    size, names_size = mx_uint(), mx_uint()
    handles, names = ctypes.POINTER(NDArrayHandle)(), ctypes.POINTER(ctypes.c_char_p)()
    out = (size, handles, names_size, names)
    check_call(_LIB.MXNDArrayLoad(c_str(path), *map(ctypes.byref, out)))
    assert [names[i] for i in range(names_size.value)] == [b"x", b"y"]
    loaded = [nd.NDArray(NDArrayHandle(handles[i])) for i in range(size.value)]
    assert [array.shape for array in loaded] == [(3,), (1, 2)]
    check_call(_LIB.MXNDArraySave(c_str(path), mx_uint(2), c_handle_array(arrays), None))
    check_call(_LIB.MXNDArrayLoad(c_str(path), *map(ctypes.byref, out)))
    assert (size.value, names_size.value) == (2, 0)


def test_get_data_shares_the_memory_of_an_array():
    array, pointer = nd.array([1, 2, 3]), ctypes.c_void_p()
    check_call(_LIB.MXNDArrayWaitToWrite(array.handle))
    check_call(_LIB.MXNDArrayWaitToRead(array.handle))
    check_call(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(pointer)))
    memory = np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), (3,))
    memory[0] = 7
    assert array.asnumpy().tolist() == memory.tolist() == [7, 2, 3]
    check_call(_LIB.MXNDArrayWaitAll())


def test_get_version_random_seed_and_list_op_names():
    version = ctypes.c_int()
    check_call(_LIB.MXGetVersion(ctypes.byref(version)))
    assert version.value == 10901
    check_call(_LIB.MXRandomSeed(ctypes.c_int(3)))
    first = nd.random.uniform(shape=3).asnumpy()
    mx.random.seed(3)
    np.testing.assert_array_equal(nd.random.uniform(shape=3).asnumpy(), first)
    count, names = mx_uint(), ctypes.POINTER(ctypes.c_char_p)()
    check_call(_LIB.MXListAllOpNames(ctypes.byref(count), ctypes.byref(names)))
    assert b"FullyConnected" in [names[i] for i in range(count.value)]
    threads = torch.get_num_threads()
    check_call(_LIB.MXSetNumOMPThreads(ctypes.c_int(threads)))
    assert torch.get_num_threads() == threads


def test_unimplemented_functions_raise():
    with pytest.raises(MXNetError, match="MXNet's C library"):
        _LIB.MXSymbolFree(None)
