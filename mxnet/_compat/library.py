"""Loading of C++ operator libraries, which is not supported."""

from __future__ import annotations

from pathlib import Path

from ..base import MXNetError

_SUFFIXES = (".so", ".dll", ".dylib")


def load(path: str, verbose: bool = True) -> None:
    """Not supported: operators for MXNet's C++ engine cannot run on torch.

    Parameters
    ----------
    path
        Path of the library.
    verbose
        Accepted for compatibility; has no effect.

    >>> mx.library.load("operators.so")
    Traceback (most recent call last):
    mxnet.error.MXNetError: load path operators.so does NOT exist
    """
    file = Path(path)
    if not file.exists():
        raise MXNetError(f"load path {path} does NOT exist")
    if file.suffix not in _SUFFIXES:
        raise MXNetError(f"load path {path} is NOT a library file")
    raise MXNetError(
        f"{path} holds operators for MXNet's C++ engine, which MXNext does not have. Write the "
        "operator in Python (mx.operator.CustomOp), or load a torch extension with "
        "torch.ops.load_library and call it there."
    )
