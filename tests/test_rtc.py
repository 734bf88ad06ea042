"""CUDA kernels from text: what can be checked without a GPU, and one kernel with one."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import rtc
from mxnet.error import MXNetError

HAS_CUDA = torch.cuda.is_available() and torch.version.cuda is not None
SOURCE = r"""
template<typename T> __global__ void axpy(const T *x, T *y, T alpha) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    y[i] += alpha * x[i];
}
"""


def test_signatures():
    assert rtc.parse_signature("const float *x, float *y, float alpha") == (
        [True, True, False],
        ["float", "float", "float"],
    )
    with pytest.raises(ValueError, match="Invalid function prototype"):
        rtc.parse_signature("float **x")
    with pytest.raises(TypeError, match="Unsupported kernel argument type complex"):
        rtc.parse_signature("complex x")


def test_arguments_have_the_types_of_the_signature():
    x = mx.nd.ones((2,))
    types = ["float", "double", "float", "int64_t", "__half"]
    packed = rtc.pack_arguments("f", [x, 2, 3, 4, 1.0], [True, *[False] * 4], types)
    assert packed[0].value == x.handle.data_ptr()
    assert [type(p) for p in packed[1:4]] == [ctypes.c_double, ctypes.c_float, ctypes.c_int64]
    assert packed[4].value == np.float16(1).view(np.uint16)


def test_wrong_arguments_are_told():
    with pytest.raises(MXNetError, match="expects 1 arguments but got 2"):
        rtc.pack_arguments("f", [1, 2], [False], ["int"])
    with pytest.raises(TypeError, match="must be a number"):
        rtc.pack_arguments("f", ["x"], [False], ["int"])
    with pytest.raises(TypeError, match="must be an NDArray of float64, got float32"):
        rtc.pack_arguments("f", [mx.nd.ones((2,))], [True], ["double"])


@pytest.mark.skipif(HAS_CUDA, reason="there is a GPU")
def test_without_a_gpu_it_says_so():
    with pytest.raises(MXNetError, match="needs an NVIDIA GPU"):
        rtc.CudaModule(SOURCE)


@pytest.mark.skipif(not HAS_CUDA, reason="needs a CUDA GPU")
def test_kernel_runs():
    module = rtc.CudaModule(SOURCE, exports=["axpy<float>"])
    kernel = module.get_kernel("axpy<float>", "const float *x, float *y, float alpha")
    x, y = mx.nd.ones((10,), ctx=mx.gpu()), mx.nd.zeros((10,), ctx=mx.gpu())
    kernel.launch([x, y, 3.0], mx.gpu(), (1, 1, 1), (10, 1, 1))
    assert (y.asnumpy() == 3).all()
    with pytest.raises(MXNetError, match="only be launched on GPU"):
        kernel.launch([x, y, 3.0], mx.cpu(), (1, 1, 1), (10, 1, 1))


def test_arrays_that_kernels_may_write_are_exposed():
    array = mx.nd.ones((2,))
    version = array._data._version
    rtc.pack_arguments("f", [array], [True], ["float"])
    assert mx.memory.is_exposed(array._data) and array._data._version > version
