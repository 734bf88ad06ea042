"""Faults: whoever fails is named by all others, within seconds; nothing hangs."""

from __future__ import annotations

import pytest

from tests.distributed import faults
from tests.distributed.forked import run_forked
from tests.distributed.jobs import succeeded

LIMIT = 100  # seconds; a few on an idle machine
QUICK = {"MXNET_KVSTORE_HEARTBEAT": 3, "MXNET_KVSTORE_TIMEOUT": 3}
EXPECTED = {
    "killed": "was killed, crashed or is frozen",
    "frozen": "was killed, crashed or is frozen",
    "raises": "raised ValueError: no such picture",
    "ends": "ended its program while others still needed it",
    "stuck": "did not take part in the sum of key w within 3 s",
}


@pytest.mark.parametrize("fault", EXPECTED)
def test_every_other_rank_names_the_one_that_fails(fault):
    workers = 3 if fault == "killed" else 2
    settings = QUICK if fault != "frozen" else {**QUICK, "MXNET_KVSTORE_TIMEOUT": 300}
    ended = run_forked(
        faults.push_forever,
        workers,
        fault,
        timeout=150,
        not_awaited=[1] if fault == "frozen" else [],
        **settings,
    )
    for process in ended[:1] + ended[2:]:
        assert process.status == 1, process.err
        assert process.seconds < LIMIT
        assert "Rank 1 on " in process.err and EXPECTED[fault] in process.err, process.err
        assert f"Rank {process.role} was in the sum of key w for" in process.err
    if fault == "stuck":
        assert "faults.py:" in ended[0].err and "in fail" in ended[0].err
        assert ended[1].status == 1  # its own monitor ends it


@pytest.mark.parametrize("fault", ["killed", "ends"])
def test_failures_are_named_also_with_sharded_states(fault):
    settings = {**QUICK, "MXNET_KVSTORE_TIMEOUT": 300, "MXNET_KVSTORE_SHARD_MB": 0}
    other, _ = run_forked(faults.push_forever, 2, fault, "adam", timeout=150, **settings)
    assert other.status == 1 and other.seconds < LIMIT
    assert "Rank 1 on " in other.err and EXPECTED[fault] in other.err, other.err


def test_a_lost_server_of_an_asynchronous_store_is_named():
    ended = run_forked(faults.push_to_a_lost_server, 2, timeout=150, **QUICK)
    assert ended[0].status == 1 and ended[0].seconds < LIMIT
    assert "Rank 1 on " in ended[0].err and EXPECTED["killed"] in ended[0].err, ended[0].err


def test_different_shapes_dtypes_keys_and_settings_are_errors_on_both():
    for process in succeeded(run_forked(faults.disagree, 2, timeout=150)):
        assert process.out == "all raised\n" and process.seconds < LIMIT


def test_a_missing_worker_is_named():
    present = run_forked(
        faults.only_arrive, 3, ranks=[0, 2], MXNET_KVSTORE_CONNECT_TIMEOUT=2, timeout=150
    )
    for process in present:
        assert process.status == 1 and process.seconds < LIMIT
        assert "missing rank 1; present rank 0 on" in process.err
