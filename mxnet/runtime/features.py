"""MXNet's list of features, with their availability in this installation."""

from __future__ import annotations

import collections
import importlib.util
import platform

import torch

from .. import accelerator

__all__ = ["Feature", "Features", "feature_list"]


class Feature:
    """A feature, and whether it is available.

    Parameters
    ----------
    name
        Name of the feature.
    enabled
        Whether it is available.

    >>> Feature("LAPACK", True)
    ✔ LAPACK
    """

    __slots__ = ("_enabled", "_name")

    def __init__(self, name: str, enabled: bool) -> None:
        self._name, self._enabled = name, bool(enabled)

    @property
    def name(self) -> str:
        """MXNet's name of the feature."""
        return self._name

    @property
    def enabled(self) -> bool:
        """Whether the feature is available."""
        return self._enabled

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


def _processor() -> dict[str, bool]:
    """Return the vector instructions that torch's kernels use on this machine."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    best = torch.backends.cpu.get_cpu_capability()
    avx2 = best in ("AVX2", "AVX512")
    return {
        "CPU_SSE": x86,
        "CPU_SSE2": x86,
        "CPU_SSE3": x86,
        "CPU_SSE4_1": avx2,
        "CPU_SSE4_2": avx2,
        "CPU_SSE4A": False,
        "CPU_AVX": avx2,
        "CPU_AVX2": avx2,
        "OPENMP": torch.backends.openmp.is_available(),
        "SSE": x86,
        "F16C": avx2,
    }


def _libraries() -> dict[str, bool]:
    """Return the numerical libraries of the torch build, and the installed packages."""
    built = torch.__config__.show().lower()
    return {
        "JEMALLOC": False,
        "BLAS_OPEN": "blas_info=open" in built,
        "BLAS_ATLAS": "blas_info=atlas" in built,
        "BLAS_MKL": torch.backends.mkl.is_available(),
        "BLAS_APPLE": "blas_info=accelerate" in built,
        "LAPACK": "lapack_info=" in built,
        "MKLDNN": torch.backends.mkldnn.is_available(),
        "OPENCV": importlib.util.find_spec("cv2") is not None,
        "CAFFE": False,
        "PROFILER": torch.profiler.kineto_available(),
    }


def feature_list() -> list[Feature]:
    """Return all features of MXNet's list.

    >>> [f for f in feature_list() if f.name == "TENSORRT"]
    [✖ TENSORRT]
    """
    cuda = accelerator.has_cuda()
    nccl = torch.distributed.is_available() and torch.distributed.is_nccl_available()
    facts = {
        "CUDA": cuda,
        "CUDNN": accelerator.has_cudnn(),
        "NCCL": cuda and nccl,
        "CUDA_RTC": cuda,
        "TENSORRT": False,
        **_processor(),
        **_libraries(),
        "DIST_KVSTORE": torch.distributed.is_available(),
        "CXX14": False,
        "INT64_TENSOR_SIZE": True,
        "SIGNAL_HANDLER": False,
        "DEBUG": bool(torch.version.debug),
        "TVM_OP": False,
    }
    return [Feature(name, enabled) for name, enabled in facts.items()]


class Features(collections.OrderedDict):
    """All features by name (a singleton).

    >>> Features().is_enabled("tvm_op")
    False
    """

    instance: Features | None = None

    def __new__(cls) -> Features:
        """Return the singleton, created on first use."""
        if cls.instance is None:
            cls.instance = super().__new__(cls)
            collections.OrderedDict.__init__(cls.instance, ((f.name, f) for f in feature_list()))
        return cls.instance

    def __init__(self) -> None:
        """Do nothing: the singleton is already initialized."""

    def __repr__(self) -> str:
        return str(list(self.values()))

    def is_enabled(self, feature_name: str) -> bool:
        """Return whether a feature is available. The name is case-insensitive."""
        name = feature_name.upper()
        if name not in self:
            raise RuntimeError(
                f"Feature {feature_name!r} is unknown, known features are: {list(self)}"
            )
        return self[name].enabled
