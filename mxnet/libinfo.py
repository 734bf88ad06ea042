"""Versions, and paths of the package's files."""

from __future__ import annotations

from pathlib import Path

# The MXNet whose programs run here, which they may ask for; `mxnext_version` is our own.
__version__ = "1.9.1"
mxnext_version = "0.1.0"


def find_lib_path(prefix: str = "libmxnet") -> list[str]:
    """Return the package's folder: MXNext has no library of its own, its kernels are torch's."""
    return [str(Path(__file__).parent)]


def find_include_path() -> str:
    """Return the package's folder: there are no C headers."""
    return str(Path(__file__).parent)


def find_conf_path(prefix: str = "tvmop") -> str:
    """Return the package's folder: MXNext has no CMake configuration."""
    return str(Path(__file__).parent)
