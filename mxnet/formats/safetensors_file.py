"""Named tensors in the safetensors format, which other frameworks read and write."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from torch import Tensor

from ..error import FormatError, MXNetError
from .atomic import replacing
from .files import local_path

SUFFIX = ".safetensors"


class MissingSafetensors(MXNetError, ImportError):
    """Raised if the `safetensors` library is not installed."""


def is_safetensors(path: Any) -> bool:
    """Return whether a file name has the extension of safetensors.

    >>> is_safetensors("net.safetensors"), is_safetensors("net.params")
    (True, False)
    """
    return isinstance(path, str | os.PathLike) and str(path).lower().endswith(SUFFIX)


def _library() -> ModuleType:
    try:
        return importlib.import_module("safetensors.torch")
    except ImportError as error:
        raise MissingSafetensors(
            "safetensors files need the safetensors library. Install it with: "
            "pip install safetensors"
        ) from error


def write(path: str | os.PathLike[str], tensors: Mapping[str, Tensor]) -> None:
    """Write named tensors atomically."""
    if not isinstance(tensors, Mapping):
        raise MXNetError(f"{path}: a safetensors file contains named arrays: pass a dict.")
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise MXNetError(
                f"{path}: {name!r} is sparse; safetensors files support dense arrays only."
            )
    # The library does not support tensors that share memory, such as a parameter with two names.
    own = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}
    content = _library().save(own, metadata={"format": "pt"})
    with replacing(local_path(path)) as file:
        file.write(content)


def read(place: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read named tensors; raise for a damaged file."""
    path = local_path(place)
    if not path.is_file():
        raise MXNetError(f"{path} does not exist.")
    library = _library()
    try:
        return library.load_file(str(path))
    except Exception as error:  # the library's own class, and OSError of its memory map
        raise FormatError(f"{path} is not a valid safetensors file: {error}") from None
