"""Malicious optimizer state files raise without running code or allocating much memory."""

from __future__ import annotations

import pickle
import resource
import struct

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import FormatError
from mxnet.optimizer.states_file import read_states


class Reduced:
    """An object that pickles as a given call."""

    def __init__(self, *reduced):
        self.reduced = reduced

    def __reduce__(self):
        return self.reduced


def trained():
    updater = mx.optimizer.get_updater(
        mx.optimizer.SGD(
            momentum=0.9, learning_rate=0.5, lr_scheduler=mx.lr_scheduler.FactorScheduler(3)
        )
    )
    weight = mx.nd.array([1.0, 2.0])
    updater(0, weight * 1, weight)
    return updater


def test_object_arrays_raise():
    pointers = Reduced(np.ndarray, ((4,), np.dtype("O"), b"\x41" * 32))
    with pytest.raises(FormatError, match="may not hold"):
        read_states(pickle.dumps({0: pointers}))
    state = (1, (1,), np.dtype("O"), False, b"\x41" * 8)
    rebuilt = Reduced(np.zeros(0).__reduce__()[0], (np.ndarray, (0,), b"b"), state)
    with pytest.raises(FormatError):
        read_states(pickle.dumps({0: rebuilt}))


@pytest.mark.parametrize(
    "target", [b"cmxnet.lr_scheduler\nFactorScheduler\n", b"cnumpy\nndarray\n", b"cnumpy\ndtype\n"]
)
def test_loading_states_cannot_modify_a_class(target):
    before = mx.lr_scheduler.FactorScheduler.__call__
    program = b"\x80\x02}K\x00" + target + b"}X\x08\x00\x00\x00__call__cbuiltins\nfloat\nsbs."
    with pytest.raises(FormatError):
        read_states(program)
    assert mx.lr_scheduler.FactorScheduler.__call__ is before


@pytest.mark.parametrize(
    "program",
    [
        b"\x80\x02Nr\xff\xff\xff\x07.",
        pickle.dumps({0: Reduced(bytes, (400_000_000,))}),
        b"\x80\x02" + b"cbuiltins\nbytes\nJ\x00\x84\xd7\x17\x85R" * 2 + b"\x86.",
        b"\x80\x04X\xff\xff\xff\x7f.",
        b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b".",
        b"\x80\x04" + b"\x8f" * 100_000 + b".",
        b"\x80\x04" + b"]" * 100_000 + b".",
        b"\x80\x04\x8b" + struct.pack("<i", 2**31 - 1) + b".",
    ],
)
def test_claimed_sizes_are_not_allocated(program):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FormatError):
        read_states(program)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes


def test_repeated_references_are_limited():
    held = []
    for _ in range(30):
        held = [held, held, held]
    with pytest.raises(FormatError, match="more than"):
        read_states(pickle.dumps({0: held}))
    with pytest.raises(FormatError, match="a cycle, or are nested too deeply"):
        read_states(b"\x80\x04}K\x00]\x94h\x00as.")


def test_huge_sparse_states_use_no_memory():
    from mxnet.formats import params_file

    empty = params_file.RowSparse(
        (2**40, 8), mx.nd.zeros(1).handle[:0].long(), mx.nd.zeros((1, 8)).handle[:0]
    )
    record = bytearray(params_file.dump_record(empty))
    array = Reduced(mx.nd.NDArray, (None,), {"handle": record})
    found = read_states(pickle.dumps({0: array}))[0]
    assert found.stype == "row_sparse" and found.shape == (2**40, 8)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("update", 3),
        ("learning_rate", 3.0),
        ("__class__", 3),
        ("lr", "high"),
        ("lr_mult", [1]),
        ("momentum", "most"),
        ("lr_scheduler", 3),
        ("num_update", None),
    ],
)
def test_invalid_optimizer_fields_raise(field, value):
    fields = {**vars(mx.optimizer.SGD(momentum=0.9)), field: value}
    fields = {k: v for k, v in fields.items() if k not in ("param_dict", "_plans")}
    data = pickle.dumps(({}, Reduced(mx.optimizer.SGD, (), fields)), protocol=4)
    with pytest.raises(FormatError, match="SGD"):
        read_states(data)


def test_flipped_bit_raises_with_the_position_of_the_array():
    data = bytearray(trained().get_states(dump_optimizer=True))
    record = trained().states[0].__getstate__()["handle"]
    at = data.find(record)
    data[at + len(record) - 2] ^= 4
    with pytest.raises(FormatError, match=f"checksum of the array at byte {at} is wrong"):
        read_states(bytes(data))


def test_damaged_description_raises():
    data = bytearray(trained().get_states())
    data[-40] ^= 1
    with pytest.raises(FormatError, match="checksum of their description"):
        read_states(bytes(data))
    with pytest.raises(FormatError):
        read_states(bytes(data[:-1]))


def test_shared_references_are_restored():
    _, optimizer = read_states(trained().get_states(dump_optimizer=True))
    assert optimizer._index_update_count is optimizer._all_index_update_counts[0]
    assert type(optimizer.lr_scheduler) is mx.lr_scheduler.FactorScheduler


def test_states_can_be_unpickled_by_plain_python():
    updater = trained()
    states, optimizer = pickle.loads(updater.get_states(dump_optimizer=True))  # as MXNet does
    assert states[0].asnumpy().tolist() == updater.states[0].asnumpy().tolist()
    assert optimizer.momentum == 0.9
