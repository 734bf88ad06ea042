"""Local and distributed stores match MXNet 1.9.1, and raise for invalid calls."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mxnet as mx
from tests.golden import HERE
from tests.golden.record import record_dist_kvstore
from tests.golden.record import record_kvstore as recorder
from tests.parallel.workers import run_forked, run_forked_roles, succeeded

FOLDER = HERE
GOLDEN = json.loads((FOLDER / "kvstore.json").read_text())
GOLDEN_OF_WORKERS = json.loads((FOLDER / "dist_kvstore.json").read_text())


def ones(*values, n=2):
    return [mx.nd.ones(n) * v for v in values]


def pulled(store, key, n=2):
    out = mx.nd.zeros(n)
    store.pull(key, out=out)
    return out.asnumpy().tolist()


def test_operation_sequences_match_mxnet():
    results = dict(recorder.stories(mx))
    assert results.keys() == GOLDEN.keys()
    for name, held in results.items():
        np.testing.assert_allclose(held, GOLDEN[name], rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "name",
    [
        *("local", "device", "local_update_cpu", "local_allreduce_cpu"),
        *("local_allreduce_device", "nccl", "Local"),
    ],
)
def test_attributes_of_store_types(name):
    store = mx.kvstore.create(name)
    assert isinstance(store, mx.kvstore.KVStore)
    assert (store.type, store.rank, store.num_workers) == (name.lower(), 0, 1)
    assert store.is_capable("optimizer")
    store.barrier()
    store._barrier()
    with pytest.raises(ValueError, match="Unknown capability: x"):
        store.is_capable("x")


def test_push_sums_and_replaces():
    store = mx.kvstore.create()
    store.init(3, mx.nd.ones(2) * 7)
    assert pulled(store, 3) == [7, 7]
    store.push(3, ones(1, 4))
    assert pulled(store, 3) == [5, 5]
    store.push(3, mx.nd.ones(2), priority=-3)
    assert pulled(store, 3) == [1, 1]


def test_stored_values_do_not_share_memory_with_arguments():
    store = mx.kvstore.create()
    value = mx.nd.ones(2)
    store.init(3, value)
    value[:] = 9
    assert pulled(store, 3) == [1, 1]
    pushed = mx.nd.ones(2) * 2
    store.push(3, pushed)
    pushed[:] = 9
    assert pulled(store, 3) == [2, 2]


def test_push_and_pull_lists_of_keys_and_devices():
    store = mx.kvstore.create("device")
    store.init([5, 7], [mx.nd.ones(2), mx.nd.ones(3)])
    store.push([5, 7], [ones(1, 1), ones(1, 1, 1, n=3)])
    a, b, c = mx.nd.zeros(2), mx.nd.zeros(2, ctx=mx.cpu(1)), mx.nd.zeros(3)
    store.pull([5, 7], out=[[a, b], c])
    assert [x.asnumpy().tolist() for x in (a, b, c)] == [[2, 2], [2, 2], [3, 3, 3]]
    assert b.context == mx.cpu(1)
    store.push([5, 5], ones(3, 4))
    assert pulled(store, 5) == [7, 7]


def test_pushpull_and_broadcast():
    store = mx.kvstore.create()
    out = [mx.nd.zeros(2), mx.nd.zeros(2)]
    store.broadcast("k", mx.nd.ones(2) * 6, out=out)
    assert [o.asnumpy().tolist() for o in out] == [[6, 6], [6, 6]]
    values = ones(1, 2)
    store.pushpull("k", values)
    assert [v.asnumpy().tolist() for v in values] == [[3, 3], [3, 3]]
    store.pushpull("k", mx.nd.ones(2) * 9, out=out[0])
    assert out[0].asnumpy().tolist() == [9, 9]


def test_push_and_pull_with_different_dtypes():
    store = mx.kvstore.create()
    store.init("k", mx.nd.ones(2))
    out = mx.nd.zeros(2, dtype="float16")
    store.push("k", mx.nd.ones(2, dtype="float16") * 3)
    store.pull("k", out=out)
    assert out.asnumpy().tolist() == [3, 3]
    assert pulled(store, "k") == [3, 3]


def test_custom_updater():
    seen = []

    def update(key, value, stored):
        seen.append(key)
        stored += value * 2

    store = mx.kvstore.create()
    store.init(["a", "b"], ones(1, 1))
    store._set_updater(update)
    assert store.updater is update
    store.push(["a", "b"], [ones(1, 1), mx.nd.ones(2)])
    assert seen == ["a", "b"]
    assert (pulled(store, "a"), pulled(store, "b")) == ([5, 5], [3, 3])
    out = mx.nd.zeros(2)
    store.pushpull("b", mx.nd.ones(2), out=out)
    assert out.asnumpy().tolist() == [5, 5]


def test_set_optimizer_and_save_optimizer_states(tmp_path):
    store = mx.kvstore.create("device")
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0, momentum=0.5))
    store.init(["a", "b"], ones(0, 0))
    store.push(["a", "b"], ones(1, 2))
    assert list(store.updater.states) == ["a", "b"]
    path = tmp_path / "kv.states"
    for with_optimizer in (False, True):
        store.save_optimizer_states(path, dump_optimizer=with_optimizer)
        again = mx.kvstore.create("local")
        again.init(["a", "b"], ones(0, 0))
        again.set_optimizer(mx.optimizer.SGD(learning_rate=1.0, momentum=0.5))
        again.load_optimizer_states(str(path))
        again.push(["a", "b"], ones(1, 2))
        assert (pulled(again, "a"), pulled(again, "b")) == ([-1.5, -1.5], [-3, -3])
    with pytest.raises(mx.MXNetError, match="Cannot save states"):
        mx.kvstore.create().save_optimizer_states(path)
    with pytest.raises(mx.MXNetError, match="Cannot load states"):
        mx.kvstore.create().load_optimizer_states(path)


def test_row_sparse_pull():
    store = mx.kvstore.create()
    store.init("e", mx.nd.array(np.arange(8).reshape(4, 2)).tostype("row_sparse"))
    out = mx.nd.sparse.zeros("row_sparse", (4, 2))
    with pytest.warns(UserWarning, match="row_sparse_pull"):
        store.pull("e", out=out)  # ignored
    assert out.indices.shape == (0,)
    store.row_sparse_pull("e", out=out, row_ids=mx.nd.array([3, 1, 1]))
    assert out.indices.asnumpy().tolist() == [1, 3]
    assert out.data.asnumpy().tolist() == [[2, 3], [6, 7]]
    both = [mx.nd.sparse.zeros("row_sparse", (4, 2)) for _ in range(2)]
    store.row_sparse_pull("e", out=both, row_ids=[mx.nd.array([0]), mx.nd.array([2])])
    assert [b.indices.asnumpy().tolist() for b in both] == [[0], [2]]
    store.row_sparse_pull("e", out=both, row_ids=mx.nd.array([1]))
    assert [b.indices.asnumpy().tolist() for b in both] == [[1], [1]]
    rows = [([1], 1), ([1, 3], 2)]
    grads = [
        mx.nd.sparse.row_sparse_array((np.ones((n, 2), "float32"), i), shape=(4, 2))
        for i, n in rows
    ]
    store.push("e", grads)
    store.row_sparse_pull("e", out=out, row_ids=mx.nd.array([0, 1, 2, 3]))
    assert out.asnumpy()[:, 0].tolist() == [0, 2, 0, 1]
    dense = mx.nd.zeros((4, 2))
    with pytest.raises(mx.MXNetError, match="Expected row_sparse storage type"):
        store.row_sparse_pull("e", out=dense, row_ids=mx.nd.array([1]))
    with pytest.raises(mx.MXNetError, match="row_ids="):
        store.row_sparse_pull("e", out=out)
    store.init("f", dense)
    with pytest.raises(mx.MXNetError, match="but key f is default"):
        store.row_sparse_pull("f", out=out, row_ids=mx.nd.array([1]))


def test_row_sparse_weights_are_trained():
    store = mx.kvstore.create()
    store.init("e", mx.nd.ones((4, 2)).tostype("row_sparse"))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0, momentum=0.9, wd=0.5))
    grad = mx.nd.sparse.row_sparse_array((np.ones((1, 2), "float32"), [2]), shape=(4, 2))
    store.push("e", grad)
    out = mx.nd.sparse.zeros("row_sparse", (4, 2))
    store.row_sparse_pull("e", out=out, row_ids=mx.nd.arange(4))
    assert out.asnumpy()[:, 0].tolist() == [1, 1, -0.5, 1]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s: s.pull("x", out=mx.nd.ones(2)), "key x has not been inited"),
        (lambda s: s.push("x", mx.nd.ones(2)), "key x has not been inited"),
        (lambda s: s.init("a", mx.nd.ones(2)), "duplicate init of key a"),
        (lambda s: s.init("b", [mx.nd.ones(2)] * 2), "duplicate init of key b"),
        (lambda s: s.init(3, mx.nd.ones(2)), "Mixed key types"),
        (lambda s: s.push(3, mx.nd.ones(2)), "Mixed key types"),
        (lambda s: s.push(["a", 3], [mx.nd.ones(2)] * 2), "inconsistent types of keys"),
        (lambda s: s.push("a", mx.nd.ones(3)), r"shape \(2,\), got an array of shape \(3,\)"),
        (lambda s: s.pull("a", out=mx.nd.ones(3)), r"shape \(2,\), got an array of shape \(3,\)"),
        (lambda s: s.push(["a", "b"], [mx.nd.ones(2)]), "2 keys but 1 values"),
        (lambda s: s.push(["a", "b"], mx.nd.ones(2)), "2 keys but 1 values"),
        (lambda s: s.push("a", []), "got no arrays"),
        (lambda s: s.push("a", [np.ones(2)]), "takes an NDArray"),
        (lambda s: s.init(1.5, mx.nd.ones(2)), "unexpected type for keys: float"),
        (lambda s: s.pull("a"), "needs out="),
        (lambda s: s.set_gradient_compression({"type": "2bit"}), "not supported for this type"),
    ],
)
def test_invalid_calls_raise(act, message):
    store = mx.kvstore.create()
    store.init(["a", "b"], ones(1, 1))
    with pytest.raises(mx.MXNetError, match=message):
        act(store)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"type": "3bit"}, "Unknown type for gradient compression 3bit"),
        ({"threshold": 1.0}, "Required parameter type"),
        ({"type": "2bit", "threshold": -1}, "greater than 0"),
        ({"type": "2bit", "threshold": "x"}, "must be a number"),
        ({"type": "2bit", "treshold": 1}, "Did you mean 'threshold'"),
        ("2bit", "unexpected type"),
    ],
)
def test_invalid_gradient_compression_raises(params, message):
    with pytest.raises(mx.MXNetError, match=message):
        mx.kvstore.create("device").set_gradient_compression(params)


def test_unknown_or_distributed_store_without_launcher_raises():
    with pytest.raises(mx.MXNetError, match="Did you mean 'local'"):
        mx.kvstore.create("locl")
    for name in ("dist_sync", "dist_async", "dist_device_sync", "p3"):
        with pytest.raises(mx.MXNetError, match="mx launch -n 4"):
            mx.kvstore.create(name)
    with pytest.raises(TypeError, match="name must be a string"):
        mx.kvstore.create(3)
    with pytest.raises(mx.MXNetError, match="has no servers"):
        mx.kvstore.KVStoreServer(mx.kvstore.create()).run()


def test_registered_custom_store():
    assert mx.kvstore.KVStoreBase.kv_registry["teststore"] is mx.kvstore.base.TestStore
    store = mx.kvstore.create("teststore")
    assert (store.type, store.rank, store.num_workers) == ("teststore", 0, 1)
    assert store.is_capable("optimizer") is False
    out = mx.nd.zeros(2)
    store.broadcast("k", mx.nd.ones(2), out=out)
    assert out.asnumpy().tolist() == [1, 1]
    values = ones(1, 1)
    store.pushpull("k", values)
    assert [v.asnumpy().tolist() for v in values] == [[2, 2], [2, 2]]
    store.pushpull("k", values, out=[out])
    assert out.asnumpy().tolist() == [4, 4]
    with pytest.raises(NotImplementedError, match="set_optimizer"):
        store.set_optimizer(None)
    base = mx.kvstore.KVStoreBase()
    for ask in (lambda: base.rank, lambda: base.type, lambda: base.is_capable("optimizer")):
        with pytest.raises(NotImplementedError):
            ask()


@pytest.mark.filterwarnings("ignore:Storage fallback")
@pytest.mark.parametrize("pushed", ["default", "row_sparse"])
@pytest.mark.parametrize("stored", ["default", "row_sparse"])
def test_pull_of_row_sparse_values_into_dense_outputs(stored, pushed):
    kv = mx.kv.create("local")
    kv.init("a", mx.nd.ones((3, 2)).tostype(stored))
    rows = mx.nd.sparse.row_sparse_array(([[5.0, 5.0]], [1]), shape=(3, 2))
    kv.push("a", rows.tostype(pushed))
    out = mx.nd.full((3, 2), 7.0)
    kv.pull("a", out=out)
    assert out.asnumpy().tolist() == [[0, 0], [5, 5], [0, 0]]


@pytest.mark.filterwarnings("ignore:Storage fallback")
@pytest.mark.parametrize("stored", ["default", "row_sparse"])
def test_pull_into_row_sparse_outputs_warns_and_is_ignored(stored):
    kv = mx.kv.create("local")
    kv.init("a", mx.nd.ones((3, 2)).tostype(stored))
    out = mx.nd.full((3, 2), 7.0).tostype("row_sparse")
    with pytest.warns(UserWarning, match="kv.row_sparse_pull"):
        kv.pull("a", out=out)
    assert out.asnumpy().tolist() == [[7, 7]] * 3
    kv.pull("a", out=out, ignore_sparse=False)
    assert out.asnumpy().tolist() == [[1, 1]] * 3


# -- stores of several workers ---------------------------------------------------------------------


def run_sequences(names):
    # Our processes can have several stores, so all sequences share one; MXNet needs one for each.
    for name in names:
        print(json.dumps(record_dist_kvstore.stories(mx, name)))


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_values_of_several_workers_match_mxnet(workers):
    names = [which for which, count, _ in record_dist_kvstore.JOBS if count == workers]
    for process in succeeded(run_forked(run_sequences, workers, names)):
        for name, line in zip(names, process.out.splitlines(), strict=True):
            expected = GOLDEN_OF_WORKERS[f"{name} {workers}"]
            record_dist_kvstore.assert_close(json.loads(line), expected, name)


def push_to_servers():
    store = mx.kvstore.create("dist_async")
    store.init(["w", "v"], [mx.nd.zeros(2) + store.rank] * 2)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
    store.push(["w", "v"], [mx.nd.ones(2)] * 2)
    store.barrier()
    out = mx.nd.zeros(2)
    store.pull("w", out=out)
    print(*(peer.name for peer in store._client.peers), *out.asnumpy())


def test_scheduler_and_server_roles_serve_and_exit():
    ended = succeeded(run_forked_roles(push_to_servers, 2, 2))
    assert [e.role for e in ended] == ["scheduler", "server", "server", "worker", "worker"]
    assert [e.out for e in ended] == [*[""] * 3, *["server0 server1 -2.0 -2.0\n"] * 2]


def test_servers_of_a_synchronous_job_wait_for_the_workers():
    ended = succeeded(run_forked_roles(run_sequences, 2, 1, ["dist_sync:module"]))
    assert [e.out != "" for e in ended] == [False, False, True, True]
