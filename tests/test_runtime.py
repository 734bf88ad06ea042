"""Features, bulking, contexts, scopes and CUDA kernels."""

from __future__ import annotations

import ctypes
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import engine, nd, rtc, runtime
from mxnet.error import MXNetError
from tests.programs import run_program


def test_features_reflect_the_torch_build():
    features = runtime.Features()
    assert features is runtime.Features()
    assert features.is_enabled("mkldnn") == torch.backends.mkldnn.is_available()
    assert features["CUDA"].enabled == torch.cuda.is_available()
    assert len(features) == 32 and next(iter(features)) == "CUDA"
    assert repr(runtime.Feature("TVM_OP", False)) == "✖ TVM_OP"
    assert [f.name for f in runtime.feature_list()] == list(features)


def test_distributed_stores_need_a_launcher(tmp_path):
    enabled = torch.distributed.is_available()
    assert runtime.Features().is_enabled("DIST_KVSTORE") == enabled
    # In a subprocess: another test may have joined a job in this process.
    program = "import mxnet as mx; mx.kv.create('dist_sync')"
    done = run_program("-c", program, cwd=tmp_path)
    assert done.returncode == 1 and "mx launch" in done.stderr


def test_unknown_feature_raises():
    with pytest.raises(RuntimeError, match="Feature 'NOPE' is unknown, known features are"):
        runtime.Features().is_enabled("NOPE")


# -- bulk sizes, and forked processes -----------------------------------------------------------


FORKS = """
import multiprocessing
import torch
import mxnet as mx

def compute(_):
    return (mx.nd.ones((256, 1024, 4)) * 2).sum().asscalar() / 2**21

torch.set_num_threads(4)
assert compute(0) == 1  # threads are there now
with multiprocessing.get_context("fork").Pool(1) as pool:
    assert pool.map_async(compute, range(2)).get(30) == [1, 1]
assert torch.get_num_threads() == 4
"""


def test_bulk_size_is_restored():
    first = engine.set_bulk_size(5)
    with engine.bulk(7):
        assert engine.set_bulk_size(9) == 7
    assert engine.set_bulk_size(first) == 5
    with pytest.raises(ZeroDivisionError), engine.bulk(3):
        1 / 0  # noqa: B018
    assert engine.set_bulk_size(first) == first


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_forked_process_does_not_wait_for_threads_of_its_parent():
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    environment.pop("OMP_NUM_THREADS", None)
    subprocess.run([sys.executable, "-c", FORKS], env=environment, timeout=100, check=True)


# -- contexts, and missing GPUs -----------------------------------------------------------------


NO_GPU = pytest.mark.skipif(mx.context.num_gpus() > 0, reason="this machine has a GPU")


def test_context_equality_hash_repr_and_pickle():
    assert mx.cpu() == mx.cpu(0) == mx.Context("cpu") and mx.cpu(1) != mx.cpu(0)
    assert mx.gpu(1) == mx.Context("gpu", 1) == mx.Context(mx.gpu(1))
    assert len({mx.cpu(), mx.cpu(0), mx.cpu(1)}) == 2
    assert repr(mx.cpu_pinned(2)) == "cpu_pinned(2)"
    assert pickle.loads(pickle.dumps(mx.gpu(3))) == mx.gpu(3)
    with pytest.raises(KeyError):
        mx.Context("tpu")


def test_context_scope_sets_the_context_of_new_arrays():
    with mx.cpu(1):
        assert mx.current_context() == mx.cpu(1) == mx.Context.default_ctx
        assert nd.zeros((2,)).context == mx.cpu(1)
        with mx.cpu(2):
            assert nd.array([1]).context == mx.cpu(2)
        assert nd.random.uniform(shape=(2,)).context == mx.cpu(1)
    assert mx.current_context() == mx.cpu(0)


def test_results_are_on_the_context_of_the_first_input():
    x, y = nd.ones((2,), ctx=mx.cpu(1)), nd.ones((2,))
    assert (x + y).context == mx.cpu(1) and (y + x).context == mx.cpu(0)
    assert nd.relu(x).context == x[0:1].context == x.reshape((2, 1)).context == mx.cpu(1)
    assert x.as_in_context(mx.cpu(1)) is x
    assert x.copyto(mx.cpu(3)).context == mx.cpu(3)


@NO_GPU
def test_missing_gpu_raises():
    with pytest.raises(mx.MXNetError, match=r"gpu\(0\) is not available.*mx\.cpu\(\)"):
        nd.zeros((2,), ctx=mx.gpu())
    with pytest.raises(mx.MXNetError, match="GPU"):
        mx.context.gpu_memory_info()
    assert mx.context.num_gpus() == 0


# -- CUDA kernels from source -------------------------------------------------------------------


HAS_CUDA = torch.cuda.is_available() and torch.version.cuda is not None
SOURCE = r"""
template<typename T> __global__ void axpy(const T *x, T *y, T alpha) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    y[i] += alpha * x[i];
}
"""


def test_parse_kernel_signature():
    assert rtc.parse_signature("const float *x, float *y, float alpha") == (
        [True, True, False],
        ["float", "float", "float"],
    )
    with pytest.raises(ValueError, match="Invalid function prototype"):
        rtc.parse_signature("float **x")
    with pytest.raises(TypeError, match="Unsupported kernel argument type complex"):
        rtc.parse_signature("complex x")


def test_kernel_arguments_have_the_types_of_the_signature():
    x = mx.nd.ones((2,))
    types = ["float", "double", "float", "int64_t", "__half"]
    packed = rtc.pack_arguments("f", [x, 2, 3, 4, 1.0], [True, *[False] * 4], types)
    assert packed[0].value == x.handle.data_ptr()
    assert [type(p) for p in packed[1:4]] == [ctypes.c_double, ctypes.c_float, ctypes.c_int64]
    assert packed[4].value == np.float16(1).view(np.uint16)


def test_wrong_kernel_arguments_raise():
    with pytest.raises(MXNetError, match="expects 1 arguments but got 2"):
        rtc.pack_arguments("f", [1, 2], [False], ["int"])
    with pytest.raises(TypeError, match="must be a number"):
        rtc.pack_arguments("f", ["x"], [False], ["int"])
    with pytest.raises(TypeError, match="must be an NDArray of float64, got float32"):
        rtc.pack_arguments("f", [mx.nd.ones((2,))], [True], ["double"])


@pytest.mark.skipif(HAS_CUDA, reason="there is a GPU")
def test_cuda_module_without_a_gpu_raises():
    with pytest.raises(MXNetError, match="needs an NVIDIA GPU"):
        rtc.CudaModule(SOURCE)


@pytest.mark.skipif(not HAS_CUDA, reason="needs a CUDA GPU")
def test_cuda_kernel_runs():
    module = rtc.CudaModule(SOURCE, exports=["axpy<float>"])
    kernel = module.get_kernel("axpy<float>", "const float *x, float *y, float alpha")
    x, y = mx.nd.ones((10,), ctx=mx.gpu()), mx.nd.zeros((10,), ctx=mx.gpu())
    kernel.launch([x, y, 3.0], mx.gpu(), (1, 1, 1), (10, 1, 1))
    assert (y.asnumpy() == 3).all()
    with pytest.raises(MXNetError, match="only be launched on GPU"):
        kernel.launch([x, y, 3.0], mx.cpu(), (1, 1, 1), (10, 1, 1))


def test_arrays_passed_to_kernels_are_marked_as_exposed():
    array = mx.nd.ones((2,))
    rtc.pack_arguments("f", [array], [True], ["float"])
    assert mx._process.memory.is_exposed(array._data)


def in_thread(function):
    """Run a function in a thread and return its result."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_default_context_assignment_is_thread_local():
    try:
        mx.Context.default_ctx = mx.cpu(2)
        assert mx.current_context() == nd.ones((1,)).context == mx.cpu(2)
        assert in_thread(mx.current_context) == mx.cpu(0)
        with mx.cpu(1):
            assert mx.Context.default_ctx == mx.cpu(1)
            mx.Context.default_ctx = mx.cpu(3)
            assert mx.current_context() == mx.cpu(3)
        assert mx.current_context() == mx.cpu(2)
        mx.test_utils.set_default_context(mx.cpu(4))
        assert mx.Context.default_ctx == mx.cpu(4)
        mx.cpu().default_ctx = mx.cpu(5)
        assert mx.current_context() == mx.cpu(5)
    finally:
        mx.Context.default_ctx = mx.cpu(0)
    assert mx.current_context() == mx.cpu(0)


def test_attr_scope_assignment_is_thread_local():
    AttrScope, outer = mx.AttrScope, mx.AttrScope.current
    attributes = lambda: mx.sym.var("v").list_attr()  # noqa: E731
    try:
        AttrScope.current = AttrScope(a="1")
        assert attributes() == {"a": "1"} and in_thread(attributes) == {}
        with AttrScope(b="2"):
            assert attributes() == AttrScope.current.get({}) == {"a": "1", "b": "2"}
        assert attributes() == {"a": "1"}
    finally:
        AttrScope.current = outer
    assert attributes() == {}


def test_name_manager_assignment_is_thread_local():
    NameManager, Prefix, outer = mx.name.NameManager, mx.name.Prefix, mx.name.NameManager.current
    name = lambda: mx.sym.relu(mx.sym.var("v")).name  # noqa: E731
    try:
        NameManager.current = Prefix("p_")
        assert name() == "p_relu0" and in_thread(name) == "relu0"
        with Prefix("q_"):
            assert name() == "q_relu0" and isinstance(NameManager.current, Prefix)
            NameManager.current = Prefix("r_")
            assert name() == "r_relu0"
        assert name() == "p_relu1"
    finally:
        NameManager.current = outer


def test_replacing_the_numpy_scope_does_not_break_later_scopes():
    scope = mx.util._NumpyArrayScope
    before = scope._current
    try:
        scope._current = scope(True)
        assert not mx.util.is_np_array()
        with mx.util.np_array(True):
            assert mx.util.is_np_array()
        assert not mx.util.is_np_array()
        mx.npx.set_np()
        assert mx.util.is_np_array()
        mx.npx.reset_np()
        assert not mx.util.is_np_array()
    finally:
        scope._current = before
