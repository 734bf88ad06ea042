"""The accelerator of `mx.gpu(i)`: the one that torch supports on this machine.

CUDA, ROCm (which torch calls CUDA too), XPU, MPS and devices that register themselves with torch
are handled alike. Only this module distinguishes them; others call it to synchronize, seed, measure
or pin memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch

from ._process import env
from .error import DTypeError, MXNetError

__all__ = [
    "can_pin",
    "capability",
    "check_dtype",
    "count",
    "cuda",
    "describe",
    "devices",
    "distributed_backend",
    "empty_cache",
    "get_rng_state",
    "has_cuda",
    "has_cudnn",
    "is_used",
    "memory_info",
    "memory_use",
    "pin",
    "profiler_activities",
    "seed",
    "set_rng_state",
    "started_devices",
    "synchronize",
    "synchronize_all",
    "use",
    "uses_tf32",
    "widest_float",
]

_WITHOUT_FLOAT64 = {"mps"}
_devices: list[torch.device] = []  # cached
_is_used = False


def devices() -> Sequence[torch.device]:
    """Return the available devices, in order.

    >>> mx.accelerator.devices() == [] or mx.context.num_gpus() > 0
    True
    """
    if not _devices:
        kind = _kind()
        if kind is not None:
            _devices.extend(torch.device(kind, i) for i in range(_module(kind).device_count()))
    return _devices


def use(index: int) -> torch.device:
    """Prepare and return a device before its first array.

    The first call applies MXNet's environment variables to torch. `devices` does not, because
    worker processes must be started before CUDA is initialized.

    Parameters
    ----------
    index
        Number of the device.

    >>> for i in range(mx.accelerator.count()):
    ...     device = mx.accelerator.use(i)
    """
    global _is_used
    device = devices()[index]
    if not _is_used:
        _apply_settings(device.type)
        _is_used = True
    return device


def count() -> int:
    """Return the number of available devices.

    >>> mx.accelerator.count() == mx.context.num_gpus()
    True
    """
    return len(devices())


def _kind() -> str | None:
    """Return torch's name of the available type of accelerator, or None."""
    device = torch.accelerator.current_accelerator()
    if device is None:
        return None
    module = getattr(torch, device.type, None)
    if module is not None and module.is_available() and module.device_count() > 0:
        return device.type
    return None


def _module(kind: str) -> Any:
    """Return the module of a kind of device, such as `torch.cuda`."""
    return getattr(torch, kind)


def is_used() -> bool:
    """Return whether an array may have been put on a device.

    >>> mx.accelerator.is_used() <= (mx.accelerator.count() > 0)
    True
    """
    return _is_used


def started_devices() -> Sequence[torch.device]:
    """Return all devices, or none if torch has not initialized them: then nothing is pending.

    >>> len(mx.accelerator.started_devices()) <= mx.accelerator.count()
    True
    """
    if not devices():
        return []
    is_initialized = getattr(_module(devices()[0].type), "is_initialized", None)
    return devices() if is_initialized is None or is_initialized() else []


def describe(index: int) -> str:
    """Return the product name of a device.

    Parameters
    ----------
    index
        Number of the device.

    >>> for i in range(mx.accelerator.count()):
    ...     name = mx.accelerator.describe(i)
    """
    device = devices()[index]
    name = getattr(_module(device.type), "get_device_name", None)
    return name(index) if name is not None else device.type.upper()


# -- waiting ----------------------------------------------------------------------------------


def synchronize(device: torch.device) -> None:
    """Wait until all work queued on a device is done; a no-op on the CPU.

    Parameters
    ----------
    device
        The device of a tensor.

    >>> import torch
    >>> mx.accelerator.synchronize(torch.device("cpu"))
    """
    if device.type == "cpu":
        return
    module = _module(device.type)
    module.synchronize() if device.type == "mps" else module.synchronize(device)


def synchronize_all() -> None:
    """Wait until all work queued on all devices is done.

    >>> mx.accelerator.synchronize_all()
    """
    for device in started_devices():
        synchronize(device)


# -- random numbers ---------------------------------------------------------------------------


def seed(device: torch.device, number: int) -> None:
    """Restart the random stream of one device, or of the CPU.

    Parameters
    ----------
    device
        The device.
    number
        The seed.

    >>> import torch
    >>> mx.accelerator.seed(torch.device("cpu"), 7)
    """
    if device.type == "cpu":
        torch.default_generator.manual_seed(number)
        return
    module = _module(device.type)
    if device.type == "mps":
        module.manual_seed(number)
        return
    with module.device(device):
        module.manual_seed(number)


def get_rng_state(device: torch.device) -> torch.Tensor:
    """Return the state of a device's random stream, bytes in main memory.

    Parameters
    ----------
    device
        The device.

    >>> import torch
    >>> mx.accelerator.get_rng_state(torch.device("cpu")).dtype
    torch.uint8
    """
    if device.type in ("cpu", "mps"):
        return (torch if device.type == "cpu" else torch.mps).get_rng_state()
    return _module(device.type).get_rng_state(device)


def set_rng_state(device: torch.device, state: torch.Tensor) -> None:
    """Set a device's random stream to a state that `get_rng_state` returned.

    Parameters
    ----------
    device
        The device.
    state
        The state.

    >>> import torch
    >>> cpu = torch.device("cpu")
    >>> mx.accelerator.set_rng_state(cpu, mx.accelerator.get_rng_state(cpu))
    """
    if device.type in ("cpu", "mps"):
        (torch if device.type == "cpu" else torch.mps).set_rng_state(state)
    else:
        _module(device.type).set_rng_state(state, device)


# -- memory -----------------------------------------------------------------------------------


def memory_info(index: int) -> tuple[int, int]:
    """Return (free, total) bytes of a device's memory.

    Parameters
    ----------
    index
        Number of the device.

    >>> for i in range(mx.accelerator.count()):
    ...     free, total = mx.accelerator.memory_info(i)
    """
    if not 0 <= index < count():
        raise MXNetError(f"The memory of gpu({index}) is unknown: {_how_many()}.")
    device = devices()[index]
    module = _module(device.type)
    if device.type == "mps":
        total = module.recommended_max_memory()
        return max(0, total - module.driver_allocated_memory()), total
    if not hasattr(module, "mem_get_info"):
        raise MXNetError(f"torch.{device.type} does not report how much memory gpu({index}) has.")
    return module.mem_get_info(device)


def memory_use(index: int) -> tuple[int, int, int]:
    """Return the bytes in arrays of a device, those reserved for arrays, and the peak in arrays.

    Parameters
    ----------
    index
        Number of the device.

    >>> for i in range(mx.accelerator.count()):
    ...     allocated, reserved, peak = mx.accelerator.memory_use(i)
    """
    device = devices()[index]
    module = _module(device.type)
    if device.type == "mps":
        allocated = module.current_allocated_memory()
        return allocated, module.driver_allocated_memory(), allocated
    names = ("memory_allocated", "memory_reserved", "max_memory_allocated")
    allocated, reserved, peak = (getattr(module, n)(device) if hasattr(module, n) else 0
                                 for n in names)  # fmt: skip
    return allocated, reserved, peak


def empty_cache() -> None:
    """Return the unused cached memory of a device to the driver.

    >>> mx.accelerator.empty_cache()
    """
    if devices():
        _module(devices()[0].type).empty_cache()


def can_pin() -> bool:
    """Return whether main memory can be pinned, so that a device copies from it directly.

    >>> mx.accelerator.can_pin() <= (mx.accelerator.count() > 0)
    True
    """
    return bool(devices()) and devices()[0].type != "mps"


def pin(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in pinned memory, or unchanged if memory cannot be pinned.

    Parameters
    ----------
    tensor
        A tensor in main memory.

    >>> import torch
    >>> mx.accelerator.pin(torch.zeros(2))
    tensor([0., 0.])
    """
    return tensor.pin_memory() if tensor.is_cpu and can_pin() else tensor


# -- numbers ----------------------------------------------------------------------------------


def widest_float(device: torch.device) -> torch.dtype:
    """Return the widest floating-point type of a device.

    Parameters
    ----------
    device
        The device.

    >>> import torch
    >>> mx.accelerator.widest_float(torch.device("mps"))
    torch.float32
    """
    return torch.float32 if device.type in _WITHOUT_FLOAT64 else torch.float64


def check_dtype(dtype: torch.dtype, device: torch.device) -> None:
    """Raise if a device does not support a data type.

    Parameters
    ----------
    dtype
        The data type.
    device
        The device of a new array.

    >>> import torch
    >>> mx.accelerator.check_dtype(torch.float64, torch.device("mps"))
    Traceback (most recent call last):
    mxnet.error.DTypeError: MPS devices have no float64: use float32, or keep the array on mx.cpu().
    """
    if dtype is torch.float64 and device.type in _WITHOUT_FLOAT64:
        raise DTypeError(
            f"{device.type.upper()} devices have no float64: use float32, or keep the array on "
            "mx.cpu()."
        )


def uses_tf32(device: torch.device) -> bool:
    """Return whether products of float32 on a device are rounded to TF32.

    Parameters
    ----------
    device
        The device.

    >>> import torch
    >>> mx.accelerator.uses_tf32(torch.device("cpu"))
    False
    """
    return device.type == "cuda" and bool(torch.backends.cuda.matmul.allow_tf32)


# -- CUDA only --------------------------------------------------------------------------------


def has_cuda() -> bool:
    """Return whether the accelerator is a GPU of NVIDIA or, through ROCm, of AMD.

    >>> mx.accelerator.has_cuda() <= (mx.accelerator.count() > 0)
    True
    """
    return bool(devices()) and devices()[0].type == "cuda"


def has_cudnn() -> bool:
    """Return whether there is a CUDA device, and cuDNN (or MIOpen) for it.

    >>> mx.accelerator.has_cudnn() <= mx.accelerator.has_cuda()
    True
    """
    return has_cuda() and torch.backends.cudnn.is_available()


def cuda() -> ModuleType:
    """Return `torch.cuda`, for features that only CUDA has; check `has_cuda` first.

    >>> mx.accelerator.cuda().__name__
    'torch.cuda'
    """
    return torch.cuda


def capability(index: int) -> tuple[int, int]:
    """Return the compute capability of a CUDA device, (7, 0) for sm_70.

    Parameters
    ----------
    index
        Number of the device.

    >>> if mx.accelerator.has_cuda():
    ...     major, minor = mx.accelerator.capability(0)
    """
    if not has_cuda() or not 0 <= index < count():
        raise MXNetError(
            f"gpu({index}) has no compute capability: that is a number of CUDA devices, "
            f"and {_how_many()}."
        )
    return torch.cuda.get_device_capability(index)


def _how_many() -> str:
    if not devices():
        return "torch finds no GPU here"
    return f"this machine has {count()} {devices()[0].type.upper()} device(s)"


# -- profiler and communication
# ----------------------------------------------------------------------


def profiler_activities() -> list[torch.profiler.ProfilerActivity]:
    """Return the activities that torch's profiler supports here.

    >>> len(mx.accelerator.profiler_activities()) > 0
    True
    """
    kinds = torch.profiler.ProfilerActivity
    if not devices():
        return [kinds.CPU]
    return [kinds.CPU, *(torch.profiler.supported_activities() - {kinds.CPU})]


def distributed_backend() -> str:
    """Return torch's name of the communication backends, for the CPU and for devices.

    >>> mx.accelerator.distributed_backend().split(",")[0] in ("gloo", "cpu:gloo")
    True
    """
    import torch.distributed as dist

    if not devices():
        return "gloo"
    kind = devices()[0].type
    library = {"cuda": "nccl", "xpu": "xccl"}.get(kind)
    if library is None or not getattr(dist, f"is_{library}_available", bool)():
        return "gloo"
    return f"cpu:gloo,{kind}:{library}"


def _apply_settings(kind: str) -> None:
    """Apply the settings of MXNet's environment variables, before a device is first used."""
    if kind != "cuda":
        return
    determinism = env.get("MXNET_ENFORCE_DETERMINISM")
    torch.backends.cudnn.benchmark = env.get("MXNET_CUDNN_AUTOTUNE_DEFAULT") > 0 and not determinism
    if determinism:
        torch.backends.cudnn.deterministic = True
    _apply_precision()
    _apply_memory_pool()


def _apply_precision() -> None:
    names = ("MXNET_CUDA_ALLOW_TENSOR_CORE", "MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION")
    if not any(os.environ.get(name) for name in names):
        return  # torch's own settings apply
    tensor_cores, converts = map(env.get, names)
    torch.backends.cudnn.allow_tf32 = tensor_cores
    torch.backends.cuda.matmul.allow_tf32 = tensor_cores and converts


def _apply_memory_pool() -> None:
    pool = env.get("MXNET_GPU_MEM_POOL_TYPE")
    if pool not in ("Naive", "Round", "Unpooled"):
        raise MXNetError(f"MXNET_GPU_MEM_POOL_TYPE={pool!r} must be Naive, Round or Unpooled.")
    if pool == "Unpooled":
        os.environ.setdefault("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")
    elif pool == "Round":
        os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "roundup_power2_divisions:1")
    reserve = env.get("MXNET_GPU_MEM_POOL_RESERVE")
    if not 0 <= reserve < 100:
        raise MXNetError(f"MXNET_GPU_MEM_POOL_RESERVE={reserve} must be a percentage below 100.")
    if reserve:
        for index in range(torch.cuda.device_count()):
            torch.cuda.set_per_process_memory_fraction(1 - reserve / 100, index)
