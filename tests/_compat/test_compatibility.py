"""Names of MXNet that programs use: removed modules, star imports and private names."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet._compat.module_names import INSTEAD
from mxnet.error import MXNetError
from tests.golden import HERE
from tests.golden.record import record_star_names as recorder


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_import_of_a_removed_module_raises_with_the_reason(name: str) -> None:
    with pytest.raises(ImportError, match=r"is not in MXNext\. .+\.$"):
        importlib.import_module(f"mxnet.{name}")


def test_from_import_of_a_removed_module_raises() -> None:
    with pytest.raises(ImportError, match="is not in MXNext"):
        from mxnet import notebook  # noqa: F401
    assert not hasattr(mx, "notebook")


def test_from_import_of_an_unknown_name_raises() -> None:
    with pytest.raises(ImportError, match="cannot import name"):
        from mxnet import no_such_thing  # noqa: F401


# -- names of ``from mxnet.X import *``, including imported modules -----------------------------


GOLDEN = json.loads((HERE / "star_names.json").read_text())
# Absent: OpenCV and requests are imported lazily; handles of C objects do not exist.
ABSENT = {
    "image": {"cv2"},
    "image.image": {"cv2"},
    "initializer": {"random"},
    "io": {"io", "utils"},
    "kvstore": {"base", "kvstore", "kvstore_server"},
    "model": {"SKLEARN_INSTALLED"},
    "operator": {"c_int_p"},
    "profiler": {"profiler_kvstore_handle"},
    "recordio": {"cv2"},
    "rtc": {"CudaKernelHandle", "CudaModuleHandle"},
    "test_utils": {"requests"},
}


@pytest.mark.parametrize("module", sorted(GOLDEN))
def test_star_imports_provide_the_names_of_mxnet(module):
    missing = set(GOLDEN[module].split()) - set(recorder.names(module))
    assert missing <= ABSENT.get(module, set())


def test_star_imported_names_refer_to_the_same_objects():
    found: dict = {}
    exec("from mxnet.metric import *\nfrom mxnet.autograd import *", found)
    assert found["numpy"] is np
    assert found["NDArray"] is mx.nd.NDArray
    assert found["Accuracy"] is mx.metric.Accuracy
    assert mx.callback.save_checkpoint is mx.model.save_checkpoint


# -- private names that packages use ------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ((slice(0, 2, 1), slice(0, 3, 1)), True),
        ((slice(0, 2, 1), slice(0, 2, 1)), False),
        ((slice(0, 1, 1), slice(0, 2, 1)), True),
        ((slice(2, 0, -1), slice(0, 3, 1)), False),
        ((slice(0, 2, 2), slice(0, 3, 1)), True),
    ],
)
def test_basic_indexing_slice_is_contiguous(key, expected):
    assert nd.NDArray._basic_indexing_slice_is_contiguous(key, (4, 3)) is expected


def test_basic_indexing_contiguous_flat_begin_end():
    key = slice(1, 2, 1), slice(0, 3, 1)
    assert nd.NDArray._basic_indexing_contiguous_flat_begin_end(key, (4, 3)) == (3, 6)


def test_aux_types_of_sparse_arrays():
    rows, csr = nd.ones((2, 2)).tostype("row_sparse"), nd.ones((2, 2)).tostype("csr")
    assert (rows._num_aux, csr._num_aux) == (1, 2)
    assert csr._aux_types == [np.int64, np.int64]


def test_get_activation_of_rnn_cells():
    cell, x = mx.rnn.RNNCell(4), mx.sym.Variable("x")
    assert cell._get_activation(x, "relu", name="n").attr("act_type") == "relu"
    assert cell._get_activation(x, mx.sym.tanh, name="t").name == "t"


def test_private_helper_functions_exist():
    assert mx.optimizer.optimizer._flatten_list([[1, 2], [3]]) == [1, 2, 3]
    assert mx.io.io._init_data(np.ones((2, 2)), False, "data")[0][0] == "data"
    assert mx.io.io._init_data(None, True, "data") == []
    assert (mx.base.py_str(b"a"), mx.base.py_str("a")) == ("a", "a")
    cells = [mx.gluon.rnn.LSTMCell(2), mx.gluon.rnn.GRUCell(2)]
    assert len(mx.gluon.rnn.rnn_cell._cells_state_info(cells, 1)) == 3
    states = mx.gluon.rnn.rnn_cell._cells_begin_state(cells, batch_size=4)
    assert [state.shape for state in states] == [(4, 2)] * 3
    assert mx.optimizer.optimizer.adam_update is nd.adam_update
    assert not hasattr(mx.optimizer.optimizer, "no_update")


def test_labels_of_an_iterator_can_be_renamed():
    batches = mx.io.NDArrayIter(np.zeros((4, 2)), np.zeros(4), 2)
    batches.label = mx.io._init_data(np.arange(4), allow_empty=True, default_name="svm_label")
    assert [desc.name for desc in batches.provide_label] == ["svm_label"]
    assert [batch.label[0].asnumpy().tolist() for batch in batches] == [[0, 1], [2, 3]]


def test_functions_imported_by_copies_of_module_exist():
    group, parse = mx.mod.executor_group, mx.mod.base_module._parse_data_desc
    data, labels = parse(["data"], ["l"], [("data", (2, 3))], [("l", (2,))])
    assert (data[0].shape, labels[0].name) == ((2, 3), "l")
    with pytest.warns(UserWarning, match="don't match names specified by label_names"):
        assert parse(["data"], ["l"], [("data", (2, 3))], None)[1] is None
    with pytest.raises(ValueError, match="don't match names specified by data_names"):
        parse(["data"], ["l"], [("x", (2, 3))], None)
    batch = mx.io.DataBatch([nd.ones((4, 1))], [nd.arange(4)])
    parts = [(slice(0, 2), nd.zeros((2,))), (slice(2, 4), nd.zeros((2,)))]
    group._load_label(batch, [parts], [0])
    assert [part.asnumpy().tolist() for _, part in parts] == [[0, 1], [2, 3]]
    target = nd.zeros((4, 1))
    group._load_data(batch, [[(slice(0, 4), target)]], [0])
    assert target.sum().asscalar() == 4


def test_create_sparse_kvstore():
    store = mx.kv.create("local")
    assert mx.model._create_sparse_kvstore(store) == (store, True)
    assert mx.model._create_sparse_kvstore("device")[0].type == "device"
    with pytest.raises(TypeError, match="Cannot create 'None' KVStore with row_sparse"):
        mx.model._create_sparse_kvstore(None)


def test_image_functions_under_their_operator_names(tmp_path):
    pixels = nd.arange(18).reshape((2, 3, 3)).astype("uint8")
    internal = mx.nd._internal
    assert internal._cvimresize(pixels, 6, 4).shape == (4, 6, 3)
    assert internal._cvcopyMakeBorder(pixels, 1, 1, 2, 2).shape == (4, 7, 3)
    header = mx.recordio.IRHeader(0, 0.0, 0, 0)
    png = mx.recordio.pack_img(header, pixels.asnumpy()[:, :, ::-1], 3, ".png")[24:]
    decoded = internal._cvimdecode(nd.array(np.frombuffer(png, np.uint8), dtype=np.uint8))
    np.testing.assert_array_equal(decoded.asnumpy(), pixels.asnumpy())
    (tmp_path / "a.png").write_bytes(png)
    assert internal._cvimread(str(tmp_path / "a.png"), flag=0).shape == (2, 3, 1)
    assert not hasattr(internal, "_cvnothing")


def test_doc_modules_of_ndarray_and_symbol():
    from mxnet.ndarray_doc import NDArrayDoc
    from mxnet.symbol_doc import SymbolDoc

    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    assert SymbolDoc.get_output_shape(net, data=(2, 5)) == {"fc_output": (2, 3)}
    assert isinstance(NDArrayDoc, type)


def test_simple_bind_ignores_shapes_of_unknown_names():
    net = mx.sym.FullyConnected(mx.sym.Variable("d"), num_hidden=2, name="fc")
    executor = net.simple_bind(mx.cpu(), d=(1, 2), other=(3,))
    assert sorted(executor.arg_dict) == ["d", "fc_bias", "fc_weight"]


def test_a_block_with_different_prefixes_loads(tmp_path):
    def build(prefix):
        net = mx.gluon.nn.HybridSequential(prefix=prefix)
        with net.name_scope():
            net.add(mx.gluon.nn.Dense(3, in_units=2), mx.gluon.nn.Dense(1, in_units=3))
        return net

    first = build("a_")
    first.initialize(mx.init.Constant(0.5))
    first.hybridize()
    first(nd.ones((1, 2)))
    first.save(str(tmp_path / "net"))
    second = build("c_")
    second.load(str(tmp_path / "net"))
    assert second(nd.ones((1, 2))).asscalar() == 1.5


def test_smooth_distribution_fills_empty_bins():
    smooth = mx.contrib.quantization._smooth_distribution
    np.testing.assert_allclose(smooth(np.array([0, 0, 2]), eps=1e-3), [1e-3, 1e-3, 1.998])
    with pytest.raises(ValueError, match="malformed"):
        smooth(np.zeros(2), eps=1e-3)


def test_storage_type_codes():
    from mxnet.ndarray.ndarray import (
        _STORAGE_TYPE_CSR,
        _STORAGE_TYPE_DEFAULT,
        _STORAGE_TYPE_ROW_SPARSE,
        _STORAGE_TYPE_STR_TO_ID,
        _STORAGE_TYPE_UNDEFINED,
    )

    names = ("undefined", "default", "row_sparse", "csr")
    codes = _STORAGE_TYPE_UNDEFINED, _STORAGE_TYPE_DEFAULT
    codes += _STORAGE_TYPE_ROW_SPARSE, _STORAGE_TYPE_CSR
    assert dict(zip(names, codes, strict=True)) == _STORAGE_TYPE_STR_TO_ID


# -- operator libraries in C++ ------------------------------------------------------------------


def test_loading_operator_libraries_raises(tmp_path):
    with pytest.raises(MXNetError, match="does NOT exist"):
        mx.library.load(str(tmp_path / "ops.so"))
    (tmp_path / "ops.txt").touch()
    with pytest.raises(MXNetError, match="is NOT a library file"):
        mx.library.load(str(tmp_path / "ops.txt"))
    (tmp_path / "ops.so").touch()
    with pytest.raises(MXNetError, match=r"mx\.operator\.CustomOp"):
        mx.library.load(str(tmp_path / "ops.so"))


# -- extreme attributes and sizes ---------------------------------------------------------------


def altered(symbol, operator, **attrs):
    """Return a symbol from JSON in which an operator has other attributes."""
    described = json.loads(symbol.tojson())
    for node in described["nodes"]:
        if node["op"] == operator:
            node["attrs"].update(attrs)
    return mx.sym.load_json(json.dumps(described))


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"stride": "(-1, -1)"}, r"stride \(-1, -1\) at least 1"),
        ({"stride": "(0, 0)"}, r"stride \(0, 0\) at least 1"),
        ({"kernel": "(0, 2)"}, r"kernel size: \(0, 2\) must be at least 1"),
        ({"pad": "(-1, 0)"}, r"pad \(-1, 0\) not negative"),
    ],
)
def test_pooling_with_an_empty_window_raises(attrs, message):
    pooled = mx.sym.Pooling(mx.sym.var("x"), kernel=(2, 2), stride=(2, 2))
    with pytest.raises(mx.MXNetError, match=message):
        altered(pooled, "Pooling", **attrs).eval(x=nd.ones((1, 1, 8, 8)))


@pytest.mark.parametrize("count", ["1e30", "1000000000", "1" + "0" * 30])
def test_num_outputs_is_limited(count):
    split = mx.sym.SliceChannel(mx.sym.var("x"), num_outputs=2)
    with pytest.raises(mx.MXNetError, match=r"num_outputs should"):
        altered(split, "SliceChannel", num_outputs=count)
    with pytest.raises(mx.MXNetError, match=r"num_outputs should"):
        nd.SliceChannel(nd.ones((4, 4)), num_outputs=count)


def test_deeply_nested_control_flow_is_loaded():
    def body(level):
        if level == 0:
            return lambda data, total: (data + total, total)
        inner = body(level - 1)

        def step(data, total):
            positive = mx.sym.sum(data) > 0
            return mx.sym.contrib.cond(positive, lambda: inner(data, total)[0], lambda: data), total

        return step

    out, _ = mx.sym.contrib.foreach(body(20), mx.sym.var("d"), mx.sym.var("s"))
    again = mx.sym.load_json(out.tojson())
    found = again.eval(d=nd.ones((2, 2)), s=nd.ones((2,)))[0]
    assert found.asnumpy().tolist() == [[2, 2], [2, 2]]


def test_norm_of_huge_and_tiny_values_does_not_overflow():
    assert nd.norm(nd.array([3e30, 4e30])).asscalar() == pytest.approx(5e30, rel=1e-6)
    assert nd.norm(nd.array([3e-30, 4e-30])).asscalar() == pytest.approx(5e-30, rel=1e-6)
    rows = nd.array([[3e30, 4e30], [0, 0], [3, 4]])
    rows.attach_grad()
    with mx.autograd.record():
        norms = nd.norm(rows, axis=1)
    norms.backward()
    np.testing.assert_allclose(norms.asnumpy(), [5e30, 0, 5], rtol=1e-6)
    np.testing.assert_allclose(rows.grad.asnumpy(), [[0.6, 0.8], [0, 0], [0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize(
    "allocate",
    [
        lambda shape: nd.full(shape, 1.0),
        nd.empty,
        nd.zeros,
        lambda shape: nd.broadcast_to(nd.ones((1, 1)), shape=shape),
        lambda shape: mx.sym.var("x").simple_bind(mx.cpu(), x=shape),
        lambda shape: mx.gluon.Parameter("w", shape=shape).initialize(),
        lambda shape: nd.sparse.zeros("row_sparse", shape).tostype("default"),
    ],
)
def test_out_of_memory_error_names_the_size(allocate):
    with pytest.raises(MemoryError, match=r"out of memory: \d+\.\d GiB \(\d+ bytes\)") as error:
        allocate((1 << 30, 1 << 20))
    assert isinstance(error.value, mx.MXNetError)
    assert nd.ones(2).sum().asscalar() == 2
