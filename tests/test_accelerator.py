"""`mxnet.accelerator` with torch's functions replaced by fakes."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import mxnet as mx
from mxnet import accelerator

SWITCHES: list[tuple[Any, str]] = [
    (torch.backends.cudnn, "benchmark"),
    (torch.backends.cudnn, "deterministic"),
    (torch.backends.cudnn, "allow_tf32"),
    (torch.backends.cuda.matmul, "allow_tf32"),
]


@pytest.fixture
def switches(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict]:
    """Restore torch's settings, and record memory fractions."""
    before = [(owner, name, getattr(owner, name)) for owner, name in SWITCHES]
    asked: dict = {}
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(
        torch.cuda,
        "set_per_process_memory_fraction",
        lambda part, index: asked.__setitem__(index, part),
    )
    for name in ("PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    yield asked
    for owner, name, value in before:
        setattr(owner, name, value)


@pytest.mark.parametrize(("value", "benchmark"), [(None, True), ("0", False), ("2", True)])
def test_cudnn_autotune_setting(value, benchmark, switches, monkeypatch):
    if value is not None:
        monkeypatch.setenv("MXNET_CUDNN_AUTOTUNE_DEFAULT", value)
    accelerator._apply_settings("cuda")
    assert torch.backends.cudnn.benchmark is benchmark


def test_cudnn_settings_are_not_applied_to_other_accelerators(switches):
    before = torch.backends.cudnn.benchmark
    accelerator._apply_settings("xpu")
    assert torch.backends.cudnn.benchmark is before


def test_enforce_determinism_disables_autotuning(switches, monkeypatch):
    monkeypatch.setenv("MXNET_ENFORCE_DETERMINISM", "1")
    accelerator._apply_settings("cuda")
    assert torch.backends.cudnn.deterministic and not torch.backends.cudnn.benchmark


@pytest.mark.parametrize(
    ("cores", "converts", "convolutions", "products"),
    [("0", "0", False, False), ("0", "1", False, False), ("1", "", True, False),
     ("1", "1", True, True)],
)  # fmt: skip
def test_tensor_core_settings(cores, converts, convolutions, products, switches, monkeypatch):
    monkeypatch.setenv("MXNET_CUDA_ALLOW_TENSOR_CORE", cores)
    monkeypatch.setenv("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION", converts)
    accelerator._apply_settings("cuda")
    assert torch.backends.cudnn.allow_tf32 is convolutions
    assert torch.backends.cuda.matmul.allow_tf32 is products
    assert accelerator.uses_tf32(torch.device("cuda")) is products


def test_matmul_precision_of_torch_is_kept_by_default(switches):
    torch.backends.cuda.matmul.allow_tf32 = True
    accelerator._apply_settings("cuda")
    assert torch.backends.cuda.matmul.allow_tf32


def test_memory_pool_settings(switches, monkeypatch):
    accelerator._apply_settings("cuda")
    assert switches == {}
    monkeypatch.setenv("MXNET_GPU_MEM_POOL_RESERVE", "10")
    monkeypatch.setenv("MXNET_GPU_MEM_POOL_TYPE", "Round")
    accelerator._apply_settings("cuda")
    assert switches == {0: 0.9, 1: 0.9}
    import os

    assert "roundup_power2" in os.environ["PYTORCH_CUDA_ALLOC_CONF"]
    monkeypatch.setenv("MXNET_GPU_MEM_POOL_TYPE", "Unpooled")
    accelerator._apply_settings("cuda")
    assert os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1"


@pytest.mark.parametrize(
    ("name", "value"), [("MXNET_GPU_MEM_POOL_TYPE", "Big"), ("MXNET_GPU_MEM_POOL_RESERVE", "100")]
)
def test_invalid_settings_raise(name, value, switches, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(mx.MXNetError, match=name):
        accelerator._apply_settings("cuda")


@pytest.fixture
def mps(monkeypatch: pytest.MonkeyPatch) -> list:
    """Fake a Mac; return the calls of `torch.mps`."""
    calls: list = []

    def record(name, answer=None):
        def call(*args):
            calls.append((name, *args))
            return answer

        return call

    answers = {
        "is_available": True, "device_count": 1, "synchronize": None, "manual_seed": None,
        "empty_cache": None, "recommended_max_memory": 100, "driver_allocated_memory": 30,
        "current_allocated_memory": 20, "get_rng_state": torch.zeros(2, dtype=torch.uint8),
        "set_rng_state": None,
    }  # fmt: skip
    module = types.SimpleNamespace(**{n: record(n, a) for n, a in answers.items()})
    monkeypatch.setattr(torch, "mps", module)
    monkeypatch.setattr(accelerator, "_devices", [])
    monkeypatch.setattr(accelerator, "_is_used", False)
    if hasattr(torch, "accelerator"):
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("mps"))
    else:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    return calls


def test_mps_device(mps):
    assert mx.context.num_gpus() == 1
    device = mx.context.torch_device(mx.gpu(0))
    assert device == torch.device("mps", 0)
    assert mx.context.gpu_memory_info(0) == (70, 100)
    assert accelerator.memory_use(0) == (20, 30, 20)
    assert accelerator.describe(0) == "MPS"
    assert not accelerator.can_pin() and not accelerator.has_cuda()
    assert accelerator.pin(torch.zeros(1)).is_pinned() is False
    mps.clear()
    mx.nd.waitall()
    mx.random.seed(3, ctx=mx.gpu(0))
    accelerator.set_rng_state(device, accelerator.get_rng_state(device))
    names = [call[:1] if call[0] == "set_rng_state" else call for call in mps]
    assert names == [
        ("synchronize",), ("manual_seed", 3), ("get_rng_state",), ("set_rng_state",)
    ]  # fmt: skip
    assert accelerator.distributed_backend() == "gloo"


def test_float64_on_mps_raises(mps):
    with pytest.raises(mx.MXNetError, match=r"MPS devices have no float64: use float32"):
        mx.nd.array([1.0], ctx=mx.gpu(0), dtype="float64")
    with pytest.raises(mx.MXNetError, match="MPS devices have no float64"):
        mx.nd.ones(2, dtype="float64").as_in_context(mx.gpu(0))


def test_missing_devices_raise(mps):
    with pytest.raises(mx.MXNetError, match=r"gpu\(1\) does not exist: this machine has 1"):
        mx.nd.zeros(2, ctx=mx.gpu(1))
    with pytest.raises(mx.MXNetError, match="compute capability"):
        mx.util.get_cuda_compute_capability(mx.gpu(0))
