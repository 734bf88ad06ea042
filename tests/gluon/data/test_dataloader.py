"""DataLoader: batches, batchify functions, samplers, pools, and failing workers.

A loader with workers never hangs, frees its resources, and reports failures. Loaders derived from
MXNet's classes run on a pool through `_MultiWorkerIter`.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import subprocess
import sys
from multiprocessing.pool import ThreadPool
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.data import ArrayDataset, DataLoader, Dataset, SimpleDataset, batchify
from mxnet.gluon.data.dataloader import (
    ForkingPickler,
    _as_in_context,
    _MultiWorkerIter,
    _worker_fn,
    _worker_initializer,
    default_batchify_fn,
    default_mp_batchify_fn,
)
from mxnet.gluon.data.dataset import batch_reader


def content(loader):
    return [[part.asnumpy().tolist() for part in batch] for batch in loader]


def test_bulk_read_batches_equal_batches_of_single_samples():
    arrays = ArrayDataset(
        mx.nd.random.uniform(shape=(7, 2, 3)),
        np.arange(7, dtype="int32"),
        mx.nd.arange(7),
        [np.float32(i) for i in range(7)],
    )
    one_by_one = arrays.transform(lambda *parts: parts)
    assert batch_reader(arrays) is not None
    assert batch_reader(one_by_one) is None
    for size in (1, 3, 7):
        for order in ([6, 0, 3, -1, -7], [2]):
            ours = DataLoader(arrays, size, sampler=order)
            theirs = DataLoader(one_by_one, size, sampler=order)
            assert content(ours) == content(theirs)
            for a, b in zip(ours, theirs, strict=True):
                assert [x.dtype for x in a] == [x.dtype for x in b]
                assert [x.shape for x in a] == [x.shape for x in b]


def test_a_batch_does_not_share_memory_with_the_data():
    data, numbers = mx.nd.ones((4, 2)), np.ones((4, 2))
    for x, y in DataLoader(ArrayDataset(data, numbers), 2):
        x[:] = 5
        y[:] = 5
    assert (data.asnumpy() == 1).all()
    assert (numbers == 1).all()


def test_overridden_getitem_of_a_dataset_is_called():
    class Doubled(ArrayDataset):
        def __getitem__(self, index):
            return super().__getitem__(index) * 2

    assert next(iter(DataLoader(Doubled(np.arange(3)), 3))).asnumpy().tolist() == [0, 2, 4]
    taken = Doubled(np.arange(3)).take(2)
    assert next(iter(DataLoader(taken, 3))).asnumpy().tolist() == [0, 2]


def test_shuffling_is_reproducible_with_a_seed():
    orders = []
    for seed in (5, 5, 6):
        mx.random.seed(seed)
        loader = DataLoader(np.arange(50), 50, shuffle=True)
        orders.append([next(iter(loader)).asnumpy().tolist() for _ in range(2)])
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert orders[0][0] != orders[0][1]
    assert sorted(orders[0][0]) == list(range(50))


def test_rollover_carries_leftover_samples_into_the_next_epoch():
    loader = DataLoader(list(range(5)), 2, last_batch="rollover")
    epochs = [[b.asnumpy().tolist() for b in loader] for _ in range(2)]
    assert epochs == [[[0, 1], [2, 3]], [[4, 0], [1, 2], [3, 4]]]


def test_batches_are_loaded_only_on_request():
    asked = []

    class Watched(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            asked.append(index)
            return index

    got = iter(DataLoader(Watched(), 2))
    assert asked == []
    next(got)
    assert asked == [0, 1]


def test_pin_memory_returns_batches_on_cpu_pinned():
    x, y = next(iter(DataLoader(ArrayDataset(np.ones((2, 2)), [1, 2]), 2, pin_memory=True)))
    assert x.context == y.context == mx.cpu_pinned(0)


@pytest.mark.parametrize("ctx", [mx.cpu(1), mx.cpu_pinned(0)], ids=str)
def test_as_in_context_moves_nested_arrays(ctx):
    first, second = _as_in_context((mx.nd.ones(2), [mx.nd.ones(3), "text"]), ctx)
    assert first.context == second[0].context == ctx
    assert second[1] == "text"
    assert isinstance(_as_in_context((1, 2), ctx), list)


def test_forking_pickler_serializes_arrays():
    text = io.BytesIO()
    ForkingPickler(text, pickle.HIGHEST_PROTOCOL).dump([mx.nd.array([1, 2]), "x"])
    array, word = pickle.loads(text.getvalue())
    assert (array.asnumpy().tolist(), word) == ([1, 2], "x")


def test_invalid_batches_raise_with_a_hint():
    with pytest.raises(mx.MXNetError, match="Pad"):
        next(iter(DataLoader([mx.nd.ones((2,)), mx.nd.ones((3,))], 2)))
    with pytest.raises(ValueError, match="Pad"):
        next(iter(DataLoader([[1], [1, 2]], 2)))
    with pytest.raises(TypeError, match="batchify_fn"):
        next(iter(DataLoader(["a", "b"], 2)))
    with pytest.raises(ValueError, match="at least 1"):
        DataLoader([1], 0)


@pytest.mark.parametrize("threads", [False, True])
def test_batches_of_workers_equal_batches_without_workers(threads):
    data = ArrayDataset(mx.nd.random.uniform(shape=(11, 200, 100)), np.arange(11))
    here = content(DataLoader(data, 4))
    ahead = DataLoader(data, 4, num_workers=2, thread_pool=threads)
    assert len(ahead) == 3
    assert content(ahead) == here
    assert content(ahead) == here


def test_networks_run_on_batches_of_workers():
    net = mx.gluon.nn.Dense(2)
    net.initialize()
    for hybrid in (False, True):
        net.hybridize(hybrid)
        for batch in DataLoader(mx.nd.ones((4, 3)), 2, num_workers=1):
            assert net(batch).shape == (2, 2)


# -- batchify -------------------------------------------------------------------------------------


def test_pad_fills_samples_to_the_longest():
    samples = [mx.nd.ones((2, 3)), np.ones((4, 3), "float32"), [[1, 1, 1]]]
    batch = batchify.Pad(val=-1)(samples)
    assert batch.shape == (3, 4, 3)
    assert (batch.asnumpy() == 1).sum() == 3 * (2 + 4 + 1)
    assert batchify.Pad(axis=-1, round_to=8)([[[1, 2]], [[3, 4]]]).shape == (2, 1, 8)
    assert batchify.Pad(dtype="float16")([[1]]).dtype is np.float16
    with pytest.raises(mx.MXNetError, match="only that axis"):
        batchify.Pad()([np.ones((2, 3)), np.ones((2, 4))])


def test_group_applies_one_batchify_function_per_field():
    data = SimpleDataset([([1] * n, n, str(n)) for n in (1, 3, 2, 5)])
    group = batchify.Group(batchify.Pad(), batchify.Stack(), batchify.AsList())
    got = list(DataLoader(data, 2, batchify_fn=group, num_workers=1))
    assert [tokens.shape for tokens, _, _ in got] == [(2, 3), (2, 5)]
    assert got[1][1].asnumpy().tolist() == [2, 5]
    assert got[1][2] == ["2", "5"]
    with pytest.raises(ValueError, match="2 functions"):
        batchify.Group(list, list)([(1, 2, 3)])
    with pytest.raises(ValueError, match="takes functions"):
        batchify.Group(3)


def test_append_returns_a_list_of_single_sample_batches():
    got = batchify.Append(batch_axis=1)([[1, 2, 3], mx.nd.ones((2,))])
    assert [a.shape for a in got] == [(3, 1), (2, 1)]
    assert batchify.Append(expand=False)([[1, 2, 3]])[0].shape == (3,)


@pytest.mark.parametrize("values", [np.arange(3.0), np.arange(6.0).reshape(3, 2)])
def test_batches_do_not_share_memory_with_samples(values):
    for make_batch in (batchify.Stack(), mx.gluon.data.dataloader.default_batchify_fn):
        batch = make_batch(values)
        before = batch.asnumpy()
        values += 1
        np.testing.assert_array_equal(batch.asnumpy(), before)
        batch[:] = -1
        assert values.min() >= 0


SCENARIOS = Path(__file__).with_name("scenarios.py")
ROOT = Path(__file__).parents[3]
ALL = [
    "pools_are_there",
    "all_arrive",
    "large_batches",
    "worker_raises",
    "worker_raises_what_cannot_be_sent",
    "worker_is_killed",
    "locks_are_lost",
    "consumer_breaks",
    "nested_loaders",
    "time_runs_out",
    "threads_share",
    "thread_pool",
    "parent_is_killed",
    "python_ends",
    "random_repeats",
    "reloads",
    "many_kept",
    "arrays_and_structures",
    "lambdas_are_sent",
    "unsendable_data",
    "opencv_has_threads",
]
# Spawned workers import everything again, so only scenarios that depend on the start method run.
SPAWNED = ["all_arrive", "large_batches", "worker_raises", "unsendable_data"]
# One process runs all scenarios: each process with a fork server imports everything again.
SERVED = ["+".join([*SPAWNED, "consumer_breaks", "lambdas_are_sent", "locks_are_lost"])]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the scenarios speak of POSIX processes")


def run_scenarios(method, limit, scenarios):
    """Return the exit status and output of each scenario."""
    finished = subprocess.run(
        [sys.executable, SCENARIOS, method, str(limit), *scenarios],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60 + limit * len(scenarios),
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    endings = dict(line.split(": ") for line in finished.stdout.splitlines() if ": " in line)
    texts = {}
    for part in finished.stderr.split("=== end of ")[:-1]:
        texts[len(texts)] = part
    return {name: (endings[name], texts[i]) for i, name in enumerate(scenarios)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "scenarios"),
    [("fork", ALL), ("spawn", SPAWNED), ("forkserver", SERVED)],
    ids=["fork", "spawn", "forkserver"],
)
def test_worker_failure_scenarios(method, scenarios):
    """All scenarios of a start method run in one process, which forks for each."""
    endings = run_scenarios(
        method, {"fork": 60, "spawn": 120, "forkserver": 300}[method], scenarios
    )
    wrong = {
        scenario: f"{ending}\n{text}"
        for scenario, (ending, text) in endings.items()
        if not ending.startswith("0 ") or (method == "fork" and "Traceback" in text)
    }
    assert not wrong, "\n".join(f"{scenario}: {text}" for scenario, text in wrong.items())


SAMPLER = [[0, 1], [2, 3], [4]]


def scaled_batch(indices, scale, batchify_fn):
    return pickle.dumps(batchify_fn([index * scale for index in indices]))


class Growing(_MultiWorkerIter):
    """A subclass that overrides `_push_next` to scale every batch differently."""

    def __init__(self, pool, prefetch, **kwargs):
        super().__init__(pool, list, SAMPLER, worker_fn=scaled_batch, **kwargs)
        self._scale = 1
        for _ in range(prefetch):
            self._push_next()

    def _push_next(self):
        indices = next(self._iter, None)
        if indices is None:
            return
        self._data_buffer[self._sent_idx] = self._worker_pool.apply_async(
            self._worker_fn, (indices, self._scale, self._batchify_fn)
        )
        self._sent_idx += 1
        self._scale *= 10


@pytest.mark.parametrize("prefetch", [0, 2, 9])
def test_multi_worker_iter_subclass_overrides_the_jobs(prefetch):
    with ThreadPool(2) as pool:
        batches = Growing(pool, prefetch)
        assert len(batches) == 3
        assert iter(batches) is batches
        assert batches.next() == [0, 1]
        assert list(batches) == [[20, 30], [400]]


def test_multi_worker_iter_prefetches_batches():
    with ThreadPool(1) as pool:
        batches = Growing(pool, 2)
        assert (batches._rcvd_idx, batches._sent_idx) == (0, 2)
        next(batches)
        assert (batches._rcvd_idx, batches._sent_idx) == (1, 3)
        assert sorted(batches._data_buffer) == [1, 2]


def test_results_of_worker_fn_with_a_dataset_are_returned_unchanged():
    def read(indices, batchify_fn, dataset):
        return batchify_fn([dataset[index] for index in indices])

    with ThreadPool(2) as pool:
        batches = _MultiWorkerIter(pool, list, SAMPLER, worker_fn=read, dataset="abcde", prefetch=1)
        assert list(batches) == [["a", "b"], ["c", "d"], ["e"]]


def test_multi_worker_iter_pin_memory():
    def read(indices, batchify_fn, dataset):
        return (batchify_fn(indices), "name")

    with ThreadPool(1) as pool:
        batches = _MultiWorkerIter(
            pool, mx.nd.array, SAMPLER, pin_memory=True, worker_fn=read, dataset=()
        )
        array, name = next(batches)
        assert array.context == mx.cpu_pinned(0)
        assert name == "name"


def test_worker_timeout_raises():
    class Never:
        def get(self, timeout):
            assert timeout == 7
            raise multiprocessing.TimeoutError

    class Pool:
        def apply_async(self, function, arguments):
            return Never()

    with pytest.raises(multiprocessing.TimeoutError):
        next(_MultiWorkerIter(Pool(), list, SAMPLER, timeout=7))


@pytest.mark.skipif(os.name != "posix", reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_process_pool_workers_return_arrays():
    data = np.arange(15, dtype="float32").reshape(5, 3)
    context = multiprocessing.get_context("fork")
    with context.Pool(2, initializer=_worker_initializer, initargs=(data, False, False)) as pool:
        batches = _MultiWorkerIter(pool, default_mp_batchify_fn, SAMPLER, prefetch=2)
        arrays = list(batches)
    assert all(type(array) is mx.nd.NDArray for array in arrays)
    np.testing.assert_array_equal(np.concatenate([a.asnumpy() for a in arrays]), data)
    assert _worker_fn.__module__.startswith("mxnet.")


def test_pinning_attributes_are_set_for_subclasses():
    loader = DataLoader([1, 2], 1, pin_memory=True, pin_device_id=0)
    assert loader._pin_memory
    assert loader._pin_device_id == 0
    assert next(iter(loader)).context == mx.cpu_pinned(0)
    assert not DataLoader([1, 2], 1)._pin_memory
    assert loader._batchify_fn is default_batchify_fn
