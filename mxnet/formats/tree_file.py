"""A tree of containers, numbers, strings, bytes and tensors in one parameter file.

Tensors are stored in MXNet's format under numbered names; the structure is JSON in a tensor of
bytes. Reading builds plain containers only and runs no code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..error import FormatError
from . import params_file

TREE = "tree"  # name of the JSON tensor


def write(path: Any, tree: Any) -> None:
    """Write a tree atomically."""
    params_file.write(path, pack(tree))


def pack(tree: Any) -> dict[str, Tensor]:
    """Return the tensors of a tree's file; tensors of the tree on the CPU are not copied."""
    tensors: dict[str, Tensor] = {}
    text = json.dumps(_flatten(tree, tensors), separators=(",", ":"))
    tensors[TREE] = _from_bytes(text.encode("utf-8"))
    return tensors


def read(path: Any) -> Any:
    """Read a tree. Mappings become dicts; NumPy arrays and bytes keep their type."""
    tensors = params_file.read(path)
    if not isinstance(tensors, dict) or TREE not in tensors:
        raise FormatError(f"{str(path)!r} holds arrays, but no description of a tree.")
    try:
        return _build(json.loads(_to_bytes(tensors[TREE])), tensors)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise FormatError(f"The tree in {str(path)!r} is damaged: {error!r}.") from error


def _from_bytes(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data) or bytearray(1), dtype=torch.uint8)


def _to_bytes(tensor: Tensor) -> bytes:
    return tensor.contiguous().numpy().tobytes()


def _flatten(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Convert a value to JSON; other than plain values become {kind: content}."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list):
        return [_flatten(v, tensors) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [_flatten(v, tensors) for v in value]}
    if isinstance(value, Mapping):
        return {"dict": [[_flatten(k, tensors), _flatten(v, tensors)] for k, v in value.items()]}
    if isinstance(value, bytes):
        return {"bytes": [_keep(_from_bytes(value), tensors), len(value)]}
    if isinstance(value, np.ndarray):
        exact = torch.from_numpy(np.frombuffer(value.tobytes() or b"\0", np.uint8).copy())
        return {"numpy": [_keep(exact, tensors), value.dtype.str, list(value.shape)]}
    if isinstance(value, Tensor):
        return {"tensor": _keep(value, tensors)}
    raise TypeError(f"A tree cannot contain {type(value).__name__}: {value!r:.80}")


def _keep(tensor: Tensor, tensors: dict[str, Tensor]) -> str:
    name = str(len(tensors))
    tensors[name] = tensor.detach().cpu()
    return name


def _build(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_build(v, tensors) for v in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tuple":
        return tuple(_build(v, tensors) for v in content)
    if kind == "dict":
        return {_build(k, tensors): _build(v, tensors) for k, v in content}
    if kind == "bytes":
        return _to_bytes(tensors[content[0]])[: content[1]]
    if kind == "numpy":
        name, dtype, shape = content
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise ValueError("an array of Python objects")
        count = int(np.prod(shape, dtype=np.int64))
        data = _to_bytes(tensors[name])[: count * kind.itemsize]
        return np.frombuffer(data, kind).reshape(shape).copy()
    if kind == "tensor":
        return tensors[content]
    raise ValueError(f"unknown kind {kind!r}")
