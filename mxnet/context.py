"""Devices: `cpu(i)`, `gpu(i)`, and `Context` as a value and as a scope."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from . import accelerator
from ._process.memory import return_freed_memory
from .base import AssignableClass, MXNetError, classproperty

__all__ = [
    "Context",
    "cpu",
    "cpu_pinned",
    "current_context",
    "gpu",
    "gpu_memory_info",
    "num_gpus",
]


class _Scopes(threading.local):
    """The stack of contexts entered by ``with``, for each thread."""

    def __init__(self) -> None:
        self.stack: list[Context] = []

    @property
    def value(self) -> Context:
        """The current context; an assignment is valid until the innermost ``with`` ends."""
        return self.stack[-1] if self.stack else CPU_0

    @value.setter
    def value(self, ctx: Context) -> None:
        self.stack[-1:] = [ctx]


_scopes = _Scopes()


class Context(metaclass=AssignableClass):
    """A device of arrays and operators.

    Parameters
    ----------
    device_type : {'cpu', 'gpu', 'cpu_pinned', 'cpu_shared'} or Context
        Type of the device, or a context to copy.
    device_id : int, default 0
        Index of the device; ``cpu(0)`` and ``cpu(1)`` are different contexts with the same memory.

    >>> with Context("cpu", 1):
    ...     print(current_context())
    cpu(1)
    """

    __slots__ = ("device_id", "device_typeid")

    _default_ctx: ClassVar[_Scopes] = _scopes
    devtype2str: ClassVar[dict[int, str]] = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
    devstr2type: ClassVar[dict[str, int]] = {"cpu": 1, "gpu": 2, "cpu_pinned": 3, "cpu_shared": 5}

    def __init__(self, device_type: str | Context, device_id: int = 0) -> None:
        if isinstance(device_type, Context):
            self.device_typeid = device_type.device_typeid
            self.device_id = device_type.device_id
        else:
            self.device_typeid = self.devstr2type[device_type]
            self.device_id = int(device_id)

    @property
    def device_type(self) -> str:
        """The type of device: 'cpu', 'gpu', 'cpu_pinned' or 'cpu_shared'."""
        return self.devtype2str[self.device_typeid]

    @classproperty
    def default_ctx(cls) -> Context:  # pyright: ignore[reportRedeclaration] (its setter)
        """The context of new arrays."""
        return current_context()

    @default_ctx.setter
    def default_ctx(cls, ctx: Context) -> None:
        _scopes.value = ctx

    def __hash__(self) -> int:
        return hash((self.device_typeid, self.device_id))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Context)
            and self.device_typeid == other.device_typeid
            and self.device_id == other.device_id
        )

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Context, (self.device_type, self.device_id)

    def __enter__(self) -> Context:
        _scopes.stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _scopes.stack.pop()

    def empty_cache(self) -> None:
        """Return the unused cached memory of this device to the system."""
        if self.device_typeid != 2:
            return_freed_memory()
            return
        if not accelerator.count():
            raise MXNetError(f"{self} holds no cache: there is no such GPU here.")
        accelerator.empty_cache()


def torch_device(ctx: Context) -> torch.device:
    """Return torch's device of a context; raise for a missing GPU.

    >>> torch_device(cpu(1))
    device(type='cpu')
    """
    if ctx.device_typeid != 2:
        return _CPU_DEVICE
    count = accelerator.count()
    if not count:
        raise MXNetError(
            f"{ctx} is not available: this torch {torch.__version__} finds "
            "neither CUDA/ROCm nor XPU, MPS or another accelerator. Use mx.cpu(), or install a "
            "torch build for your GPU. mx.context.num_gpus() returns the number of GPUs."
        )
    if not 0 <= ctx.device_id < count:
        raise MXNetError(f"{ctx} does not exist: this machine has {count} GPU(s).")
    return accelerator.use(ctx.device_id)


def context_of(tensor: torch.Tensor) -> Context:
    """Return the default context of a tensor's device."""
    return CPU_0 if tensor.is_cpu else Context("gpu", tensor.device.index or 0)


def cpu(device_id: int = 0) -> Context:
    """Return a CPU context.

    Parameters
    ----------
    device_id
        Index of the context; all share the same memory.

    >>> cpu()
    cpu(0)
    """
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Return a context for pinned CPU memory.

    Parameters
    ----------
    device_id
        Index of the context.

    >>> mx.cpu_pinned()
    cpu_pinned(0)
    """
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """Return a GPU context; a missing GPU raises an error on first use.

    Parameters
    ----------
    device_id
        Number of the GPU.

    >>> mx.gpu(1)
    gpu(1)
    """
    return Context("gpu", device_id)


def num_gpus() -> int:
    """Return the number of available GPUs.

    >>> mx.context.num_gpus() >= 0
    True
    """
    return accelerator.count()


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Return (free, total) bytes of a GPU's memory.

    Parameters
    ----------
    device_id
        Number of the GPU.

    >>> if mx.context.num_gpus():
    ...     free, total = mx.context.gpu_memory_info(0)
    """
    return accelerator.memory_info(device_id)


def current_context() -> Context:
    """Return the context of the innermost ``with`` scope, else ``cpu(0)``.

    >>> current_context()
    cpu(0)
    """
    stack = _scopes.stack
    return stack[-1] if stack else CPU_0


def listed_contexts(ctx: Context | Sequence[Context] | None) -> list[Context]:
    """Convert a context, several, or None (the current context) to a list.

    >>> listed_contexts(cpu(1))
    [cpu(1)]
    """
    if ctx is None:
        return [current_context()]
    return [ctx] if isinstance(ctx, Context) else list(ctx)


CPU_0 = Context("cpu", 0)
_CPU_DEVICE = torch.device("cpu")
