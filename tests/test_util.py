"""NumPy semantics for shapes and arrays, thread-local."""

from __future__ import annotations

import os
import threading

import pytest

import mxnet as mx
from mxnet import base, util
from mxnet.error import MXNetError


@pytest.fixture(autouse=True)
def classic():
    yield
    util.reset_np()


def test_np_shape_applies_to_arrays():
    for shape in ((), (0, 2)):
        with pytest.raises(MXNetError, match="unknown size"):
            mx.nd.zeros(shape)
        with mx.np_shape():
            assert mx.nd.zeros(shape).shape == mx.nd.ones(shape, dtype="int32").shape == shape
            assert mx.nd.full(shape, 2).shape == shape
    with mx.np_shape():
        assert mx.nd.ones(()).asnumpy() == 1


def test_np_shape_applies_to_symbols():
    x = mx.sym.Variable("x", shape=(0, 2))
    assert mx.sym.sin(x).infer_shape_partial()[1] == [(0, 2)]
    with util.np_shape():
        assert base.is_np_shape() and mx.is_np_shape()
        assert mx.sym.sin(x).infer_shape()[1] == [(0, 2)]
        assert mx.sym.sin(mx.sym.Variable("y")).infer_shape_partial()[1] == [None]


def test_set_np_shape_returns_the_previous_value():
    assert [mx.set_np_shape(v) for v in (True, True, False, False)] == [False, True, True, False]


def test_np_shape_scopes_nest_and_restore_after_errors():
    with util.np_shape(True):
        with util.np_shape(False):
            assert not util.is_np_shape()
        assert util.is_np_shape()
        with pytest.raises(ZeroDivisionError), util.np_shape(False):
            1 / 0  # noqa: B018
        assert util.is_np_shape()
    assert not util.is_np_shape()


def test_np_shape_is_thread_local():
    seen = []
    with util.np_shape():
        thread = threading.Thread(target=lambda: seen.append(util.is_np_shape()))
        thread.start()
        thread.join(120)
    assert seen == [False]


def test_set_np_shape_2_applies_to_all_threads():
    seen = []
    util.set_np_shape(2)
    for active in (True, False):
        thread = threading.Thread(target=lambda: seen.append(util.is_np_shape()))
        thread.start()
        thread.join(10)
        util.set_np_shape(not active)
    assert seen == [True, False]


def test_np_array_scope_is_thread_local():
    scope = util._NumpyArrayScope(True)
    with scope as entered:
        assert entered is scope is util._NumpyArrayScope._current.value and util.is_np_array()
        seen = []
        thread = threading.Thread(target=lambda: seen.append(util.is_np_array()))
        thread.start()
        thread.join(10)
    assert seen == [False] and not util.is_np_array()


def test_invalid_set_np_combinations_raise():
    with pytest.raises(ValueError, match="Shape semantics is required"):
        util.set_np(shape=False, array=True)
    util.set_np(shape=True, array=False)
    assert util.is_np_shape() and not util.is_np_array()
    util.set_np()
    assert util.is_np_array()
    with pytest.raises(ValueError, match="still active is not allowed"):
        util.set_np_shape(False)
    util.reset_np()
    assert not util.is_np_shape() and not util.is_np_array()


def switches():
    """Tell both."""
    return util.is_np_shape(), util.is_np_array()


def test_use_np_decorators_on_functions():
    assert util.use_np_shape(switches)() == (True, False)
    assert util.use_np_array(switches)() == (False, True)
    both = util.use_np(switches)
    assert both() == (True, True) and both.__name__ == "switches" and both.__doc__ == "Tell both."
    assert switches() == (False, False)


def test_use_np_on_classes():
    @util.use_np
    class Thing:
        number = 3

        def __init__(self):
            self.made = switches()

        @property
        def seen(self):
            return switches()

        @staticmethod
        def static():
            return switches()

        @classmethod
        def by_class(cls):
            return cls.number, switches()

    thing, both = Thing(), (True, True)
    assert thing.made == thing.seen == Thing.static() == both
    assert Thing.by_class() == (3, both) and Thing.number == 3


def test_use_np_decorates_inherited_methods():
    @util.use_np
    class Product(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.w = self.params.get("w", shape=(2, 3))

        def hybrid_forward(self, F, x, w):
            return F.np.dot(x, w)

    net = Product()
    net.initialize()  # outside of any scope
    assert type(net(mx.np.ones((4, 2)))) is type(net.w.data()) is mx.np.ndarray
    assert not util.is_np_array()
    assert mx.gluon.HybridBlock.initialize is not Product.initialize

    @util.use_np
    class Slow(mx.optimizer.SGD):
        pass

    weight = mx.np.ones(2)
    Slow(learning_rate=0.5).update_multi_precision([0], [weight], [mx.np.ones(2)], [None])
    assert weight.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("name", ["use_np_shape", "use_np_array", "use_np"])
def test_decorating_non_callables_raises(name):
    with pytest.raises(TypeError, match="can only decorate classes and callable objects"):
        getattr(util, name)(3)


def test_ufunc_options():
    legal = util.np_ufunc_legal_option
    assert legal("where", False) and legal("casting", "no") and legal("order", "A")
    assert legal("dtype", "float32") and not legal("dtype", None) and not legal("zz", 1)

    @util.wrap_np_binary_func
    def add(x, y, out=None):
        return x + y, out

    assert add(1, 2, out=5, subok=True, casting="same_kind", order="K", dtype=None) == (3, 5)
    with pytest.raises(NotImplementedError, match="casting=no"):
        add(1, 2, casting="no")
    with pytest.raises(TypeError, match="zz is an invalid keyword"):
        add(1, 2, zz=1)


def test_setenv_and_getenv():
    util.setenv("MXNEXT_TRIAL", "3")
    assert util.getenv("MXNEXT_TRIAL") == os.environ["MXNEXT_TRIAL"] == "3"
    util.setenv("MXNEXT_TRIAL", None)
    assert util.getenv("MXNEXT_TRIAL") is None


def test_gpu_count_and_memory():
    assert util.get_gpu_count() == mx.context.num_gpus()
    with pytest.raises(ValueError, match="Expecting a gpu context"):
        util.get_cuda_compute_capability(mx.cpu())
    with pytest.raises(MXNetError, match="GPU"):
        util.get_gpu_memory(99)
