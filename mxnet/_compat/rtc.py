"""CUDA kernels from source code, compiled at run time by NVRTC through torch."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

import torch

from .. import accelerator, dtypes
from ..base import MXNetError, numeric_types, string_types  # noqa: F401 (MXNet shows them here)
from ..context import Context, torch_device
from ..ndarray import NDArray
from ..runtime.array import exported

__all__ = ["CudaKernel", "CudaModule"]

# C++ type: (MXNet's type, how a number of it is passed). bool and half are passed by their bits.
_TYPES: dict[str, tuple[str, type]] = {
    "float": ("float32", ctypes.c_float),
    "double": ("float64", ctypes.c_double),
    "__half": ("float16", ctypes.c_uint16),
    "uint8_t": ("uint8", ctypes.c_uint8),
    "int": ("int32", ctypes.c_int32),
    "int32_t": ("int32", ctypes.c_int32),
    "int8_t": ("int8", ctypes.c_int8),
    "char": ("int8", ctypes.c_int8),
    "int64_t": ("int64", ctypes.c_int64),
}
_PARAMETER = re.compile(r"^\s*(const)?\s*([\w_]+)\s*(\*)?\s*([\w_]+)?\s*$")


class CudaModule:
    """A module of CUDA source code with kernels.

    Parameters
    ----------
    source : str
        Source code of kernels, ``extern "C"`` or listed in `exports`.
    options : tuple of str
        Compiler flags, such as ``-I/usr/local/cuda/include``.
    exports : tuple of str
        Names to export; instances of templates too, such as ``axpy<float>``.

    >>> if mx.context.num_gpus():
    ...     module = mx.rtc.CudaModule('extern "C" __global__ void none() {}')
    """

    def __init__(
        self, source: str, options: Sequence[str] = (), exports: Sequence[str] = ()
    ) -> None:
        if not accelerator.has_cuda() or torch.version.cuda is None:
            raise MXNetError(
                "mx.rtc compiles CUDA kernels and needs an NVIDIA GPU with a CUDA build of torch; "
                f"this torch {torch.__version__} finds none."
            )
        if not hasattr(accelerator.cuda(), "_compile_kernel"):
            raise MXNetError(
                f"mx.rtc needs torch's run-time compiler, which torch {torch.__version__} does not "
                "have; it came with torch 2.8."
            )
        self._source = source
        self._options = [options] if isinstance(options, str) else list(options)
        self._exports = [exports] if isinstance(exports, str) else list(exports)
        self._compiled: dict[tuple[str, int], Any] = {}

    def get_kernel(self, name: str, signature: str) -> CudaKernel:
        """Return a kernel by name.

        Parameters
        ----------
        name : str
        signature : str
            Its parameters, such as ``"const float *x, float *y, float alpha"``; names are optional.
            A star marks an array.
        """
        if self._exports and name not in self._exports and "<" in name:
            raise MXNetError(f"Kernel {name} is not among the exports: {', '.join(self._exports)}.")
        kernel = CudaKernel(self, name, *parse_signature(signature))
        device = accelerator.cuda().current_device()
        self._kernel_on(name, device)  # a mistake in the source shows here
        return kernel

    def _kernel_on(self, name: str, device: int) -> Any:
        """Return torch's kernel for one GPU, compiled on first use."""
        kernel = self._compiled.get((name, device))
        if kernel is None:
            with accelerator.cuda().device(device):
                try:
                    kernel = accelerator.cuda()._compile_kernel(
                        self._source, name, nvcc_options=self._options or None
                    )
                except (RuntimeError, OSError) as error:
                    raise MXNetError(f"CUDA kernel {name} cannot be made: {error}") from error
            self._compiled[name, device] = kernel
        return kernel


class CudaKernel:
    """A compiled kernel, created by `CudaModule.get_kernel`.

    Parameters
    ----------
    handle
        The module.
    name
        Name of the kernel.
    is_ndarray
        Which parameters are arrays.
    dtypes
        Data types of the parameters.

    >>> if mx.context.num_gpus():
    ...     source = 'extern "C" __global__ void none(float* x) {}'
    ...     kernel = mx.rtc.CudaModule(source).get_kernel("none", "float* x")
    """

    def __init__(
        self, handle: CudaModule, name: str, is_ndarray: Sequence[bool], dtypes: Sequence[str]
    ) -> None:
        self.handle, self._name = handle, name
        self._is_ndarray, self._types = list(is_ndarray), list(dtypes)

    def launch(
        self,
        args: Sequence[Any],
        ctx: Context,
        grid_dims: tuple[int, int, int],
        block_dims: tuple[int, int, int],
        shared_mem: int = 0,
    ) -> None:
        """Run the kernel.

        Parameters
        ----------
        args
            Arrays for pointers, numbers for the rest, in the order of the signature.
        ctx
            The GPU.
        grid_dims, block_dims : tuple of 3 int
        shared_mem
            Bytes of dynamic shared memory.
        """
        if ctx.device_type != "gpu":
            raise MXNetError(f"Cuda kernel can only be launched on GPU, not on {ctx}.")
        if len(grid_dims) != 3 or len(block_dims) != 3:
            raise MXNetError("grid_dims and block_dims must be tuples of 3 integers.")
        values = pack_arguments(self._name, args, self._is_ndarray, self._types)
        device = torch_device(ctx)
        kernel = self.handle._kernel_on(self._name, device.index)
        with accelerator.cuda().device(device):
            _launch(kernel, values, grid_dims, block_dims, shared_mem)


def parse_signature(signature: str) -> tuple[list[bool], list[str]]:
    """Return for each parameter whether it is an array, and its C++ type.

    >>> parse_signature("const float *x, double *, int n")
    ([True, True, False], ['float', 'double', 'int'])
    """
    arrays, types = [], []
    for text in re.sub(r"\s+", " ", signature).split(","):
        match = _PARAMETER.match(text)
        if not match or match.group(2) == "const":
            raise ValueError(
                f'Invalid function prototype "{text}". Must be in the form of "(const) type (*) '
                '(name)"'
            )
        _, kind, star, _ = match.groups()
        if kind not in _TYPES:
            raise TypeError(f"Unsupported kernel argument type {kind}. Known: {', '.join(_TYPES)}.")
        arrays.append(star is not None)
        types.append(kind)
    return arrays, types


def pack_arguments(
    name: str, args: Sequence[Any], is_ndarray: Sequence[bool], types: Sequence[str]
) -> list[Any]:
    """Return the arguments as the C values that CUDA's launcher reads.

    >>> pack_arguments("axpy", [3, 0.5], [False, False], ["int", "float"])
    [c_int(3), c_float(0.5)]
    """
    if len(args) != len(types):
        raise MXNetError(f"CudaKernel({name}) expects {len(types)} arguments but got {len(args)}.")
    values = []
    for i, (value, array, kind) in enumerate(zip(args, is_ndarray, types, strict=True)):
        dtype, ctype = _TYPES[kind]
        if array:
            values.append(_pointer(name, i, value, dtype))
        elif not isinstance(value, numeric_types):
            raise TypeError(f"The {i}-th argument of {name} must be a number, got {type(value)}.")
        elif kind == "__half":
            bits = torch.tensor(float(value), dtype=torch.float16).view(torch.int16).item()
            values.append(ctype(int(bits) & 0xFFFF))
        else:
            values.append(ctype(float(value) if dtype.startswith("float") else int(value)))
    return values


def _pointer(name: str, position: int, value: Any, dtype: str) -> ctypes.c_void_p:
    if not isinstance(value, NDArray):
        raise TypeError(f"The {position}-th argument of {name} must be an NDArray.")
    tensor = exported(value)  # the kernel's writes are not counted by torch
    if dtypes.to_name(tensor.dtype) != dtype:
        raise TypeError(
            f"The {position}-th argument of {name} must be an NDArray of {dtype}, "
            f"got {dtypes.to_name(tensor.dtype)}."
        )
    if not tensor.is_contiguous():
        raise MXNetError(f"The {position}-th argument of {name} must be contiguous.")
    return ctypes.c_void_p(tensor.data_ptr())


def _launch(
    kernel: Any, values: Sequence[Any], grid: Sequence[int], block: Sequence[int], shared_mem: int
) -> None:
    """Launch by the driver API: torch's function passes every float as a double."""
    driver = accelerator.cuda()._utils
    if shared_mem >= 48 * 1024:
        kernel.set_shared_memory_config(shared_mem)
    pointers = (ctypes.c_void_p * len(values))(
        *(ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values)
    )
    stream = accelerator.cuda().current_stream()._as_parameter_
    driver._check_cuda(
        driver._get_cuda_library().cuLaunchKernel(
            kernel.func, *grid, *block, shared_mem, stream, pointers, None
        )
    )
