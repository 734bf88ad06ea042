"""Two devices without hardware: compiles and loads `second_device.cpp`, once for all processes.

`load` makes `mx.gpu(0)` and `mx.gpu(1)` usable in this process, for good: torch starts a thread for
each device with the first backward. So only processes that test devices call it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

NAME = "twin"  # of the device type: torch.device("twin", 1)
SOURCE = Path(__file__).with_name("second_device.cpp")
BUILDS = Path(__file__).parents[2] / "build" / "second_device"
COMPILER = os.environ.get("CXX", "c++")
STANDARD = "c++20"
MAX_COMPILE_SECONDS = 600
OLDEST_TORCH = (2, 8)  # the interfaces that the source implements


def reason_to_skip() -> str | None:
    """Return why the second device cannot be built here, or None."""
    if not sys.platform.startswith("linux"):
        return "the second device is compiled on Linux only"
    if shutil.which(COMPILER) is None:
        return f"the second device needs a compiler, {COMPILER}"
    if torch_version() < OLDEST_TORCH:
        return f"the second device is written for torch {OLDEST_TORCH[0]}.{OLDEST_TORCH[1]} on"
    return None


def torch_version() -> tuple[int, ...]:
    return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def build() -> Path:
    """Compile the extension unless that was done, and return the library."""
    facts = (SOURCE.read_bytes(), torch.__version__.encode(), sys.version.encode())
    folder = BUILDS / hashlib.sha256(b"\0".join(facts)).hexdigest()[:16]
    library = folder / "second_device.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / "lock"):
        if not library.exists():
            _compile(library)
    return library


def _compile(library: Path) -> None:
    """Compile the source, about 20 s; `cpp_extension.load` would need ninja and has no limit."""
    from torch.utils import cpp_extension

    part = library.with_suffix(f".{os.getpid()}")
    flags = ["-O1", "-w", "-fPIC", "-shared", f"-std={STANDARD}"]
    flags += [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"]
    flags += [f"-isystem{path}" for path in cpp_extension.include_paths()]
    flags += [f"-L{path}" for path in cpp_extension.library_paths()]
    answer = subprocess.run(
        [COMPILER, *flags, str(SOURCE), "-o", str(part), "-ltorch_cpu", "-lc10"],
        capture_output=True,
        text=True,
        timeout=MAX_COMPILE_SECONDS,
    )
    if answer.returncode:
        raise RuntimeError(f"{SOURCE.name} does not compile:\n{answer.stderr[-4000:]}")
    part.rename(library)


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold a lock between processes; the system frees it when its holder ends."""
    import fcntl

    with path.open("w") as file:
        end = time.monotonic() + MAX_COMPILE_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise TimeoutError(f"another process holds {path}") from None
                time.sleep(0.2)
        yield


def ensure() -> None:
    """Load the second device, unless torch has an accelerator here."""
    if not hasattr(torch, "accelerator") or not torch.accelerator.is_available():
        load()


def is_loaded() -> bool:
    """Return whether the accelerator of this process is the second device."""
    return hasattr(torch, NAME)


def load() -> None:
    """Make the two devices those of `torch.accelerator` in this process."""
    if is_loaded():
        return
    torch.ops.load_library(str(build()))
    torch.ops.second_device.register_hooks()
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, _device_module())
    torch.utils.generate_methods_for_privateuse1_backend()
    _register_cells()


def _device_module() -> types.ModuleType:
    """Return `torch.twin`, which has what `torch.cuda` has."""
    calls = torch.ops.second_device
    module = types.ModuleType(f"torch.{NAME}")

    def index_of(device: Any = None) -> int:
        if device is None:
            return calls.current_device()
        index = device if isinstance(device, int) else torch.device(device).index
        return calls.current_device() if index is None else index

    class device:
        def __init__(self, device: Any) -> None:
            self.index = index_of(device)

        def __enter__(self) -> None:
            self.before = calls.current_device()
            calls.set_device(self.index)

        def __exit__(self, *exc: object) -> None:
            calls.set_device(self.before)

    def manual_seed_all(seed: int) -> None:
        for index in range(calls.device_count()):
            calls.seed(index, _signed(seed))

    def mem_get_info(device: Any = None) -> tuple[int, int]:
        live, _, total = calls.memory(index_of(device))
        return total - live, total

    members = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_is_in_bad_fork": lambda: False,
        "_lazy_init": lambda: None,
        "init": lambda: None,
        "device_count": calls.device_count,
        "current_device": calls.current_device,
        "set_device": lambda device: calls.set_device(index_of(device)),
        "device": device,
        "synchronize": lambda device=None: calls.synchronize(),
        "manual_seed": lambda seed: calls.seed(calls.current_device(), _signed(seed)),
        "manual_seed_all": manual_seed_all,
        "get_rng_state": lambda device=None: calls.get_state(index_of(device)),
        "set_rng_state": lambda state, device=None: calls.set_state(index_of(device), state),
        "empty_cache": lambda: None,
        "mem_get_info": mem_get_info,
        "memory_allocated": lambda device=None: calls.memory(index_of(device))[0],
        "memory_reserved": lambda device=None: calls.memory(index_of(device))[0],
        "max_memory_allocated": lambda device=None: calls.memory(index_of(device))[1],
        "get_device_name": lambda device=None: f"second device {index_of(device)}",
        "get_amp_supported_dtype": lambda: [torch.float16, torch.bfloat16],
    }
    for name, member in members.items():
        setattr(module, name, member)
    return module


def _signed(seed: int) -> int:
    """Return a seed of 64 bits as the signed number that torch's interface takes."""
    return seed - (1 << 64) if seed >= 1 << 63 else seed


def _register_cells() -> None:
    """Register the fused recurrent cells, which torch asks every device for."""
    library = torch.library.Library("aten", "IMPL")
    rows = {
        "_thnn_fused_lstm_cell": _lstm_cell,
        "_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
        "_thnn_fused_gru_cell": _gru_cell,
        "_thnn_fused_gru_cell_backward": _gru_cell_backward,
    }
    for name, kernel in rows.items():
        library.impl(name, kernel, "PrivateUse1")
    _libraries.append(library)  # if the library is garbage collected, its kernels are unregistered


_libraries: list[torch.library.Library] = []


def _plus(gates: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return gates if bias is None else gates + bias


def _lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    gates = _plus(input_gates, input_bias) + _plus(hidden_gates, hidden_bias)
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)


def _lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):
    i, f, g, o = workspace.chunk(4, 1)
    tanh = cy.tanh()
    grad_h = torch.zeros_like(cx) if grad_hy is None else grad_hy
    grad_c = grad_h * o * (1 - tanh * tanh)
    if grad_cy is not None:
        grad_c = grad_c + grad_cy
    grads = [
        grad_c * g * i * (1 - i),
        grad_c * cx * f * (1 - f),
        grad_c * i * (1 - g * g),
        grad_h * tanh * o * (1 - o),
    ]
    gates = torch.cat(grads, 1)
    return gates, grad_c * f, gates.sum(0) if has_bias else torch.empty_like(gates[:0])


def _gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    ir, ii, inew = _plus(input_gates, input_bias).chunk(3, 1)
    hr, hi, hnew = _plus(hidden_gates, hidden_bias).chunk(3, 1)
    reset, update = (ir + hr).sigmoid(), (ii + hi).sigmoid()
    new = (inew + reset * hnew).tanh()
    return new + update * (hx - new), torch.cat([reset, update, new, hx, hnew], 1)


def _gru_cell_backward(grad_hy, workspace, has_bias):
    reset, update, new, hx, hnew = workspace.chunk(5, 1)
    grad_new = grad_hy * (1 - update) * (1 - new * new)
    grad_update = grad_hy * (hx - new) * update * (1 - update)
    grad_reset = grad_new * hnew * reset * (1 - reset)
    grad_input = torch.cat([grad_reset, grad_update, grad_new], 1)
    grad_hidden = torch.cat([grad_reset, grad_update, grad_new * reset], 1)
    sums = (grad_input.sum(0), grad_hidden.sum(0)) if has_bias else (None, None)
    return grad_input, grad_hidden, grad_hy * update, *sums


@dataclass(frozen=True)
class Traffic:
    """What left or crossed the devices since `watch` began."""

    to_host: int  # copies from a device to the CPU
    from_host: int
    across: int  # copies from one device to the other
    scalars: int  # numbers read by Python, each of which waits for the device
    waits: int  # calls that wait for a device

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(*(getattr(self, f) - getattr(other, f) for f in self.__dataclass_fields__))


def traffic() -> Traffic:
    """Return the counts since the process began."""
    return Traffic(*torch.ops.second_device.counts())


def operators() -> set[str]:
    """Return the operators that ran on a device, such as 'aten::add.Tensor'."""
    return set(torch.ops.second_device.operators())
