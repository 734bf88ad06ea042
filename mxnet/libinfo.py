"""Versions, and paths of the package's files."""

from __future__ import annotations

from pathlib import Path

# Version of the compatible MXNet, for programs that check it; `mxnext_version` is that of MXNext.
__version__ = "1.9.1"
mxnext_version = "0.1.0"


def find_lib_path(prefix: str = "libmxnet") -> list[str]:
    """Return the package's folder: MXNext has no library, its kernels are torch's."""
    return [str(Path(__file__).parent)]


def find_include_path() -> str:
    """Return the package's folder: there are no C headers."""
    return str(Path(__file__).parent)


def find_conf_path(prefix: str = "tvmop") -> str:
    """Return the package's folder: MXNext has no CMake configuration."""
    return str(Path(__file__).parent)
