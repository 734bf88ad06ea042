"""The tensors of a ported model, and their conversion from MXNet's arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .tree import Layer, Param, TensorSource, walk


@dataclass
class Layout:
    """The names of the tensors of a model in torch, with their sources in MXNet."""

    sources: dict[str, TensorSource] = field(default_factory=dict)
    ties: list[tuple[str, str]] = field(default_factory=list)  # (path, path of the same tensor)
    nodes: dict[str, str] = field(default_factory=dict)  # MXNet's node of each module, by path
    norms: list[str] = field(default_factory=list)  # batch normalizations

    def tensors(self, arrays: Mapping[str, Any]) -> dict[str, Tensor]:
        """Convert MXNet's arrays of parameters or gradients to torch's layout."""
        result = {}
        for path, source in self.sources.items():
            if source.constant is not None:
                result[path] = source.constant
            elif all(name in arrays for name in source.names):
                result[path] = _collect(source, arrays)
        return result

    def state_dict(self, arrays: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the complete state of the torch module."""
        state = self.tensors(arrays)
        counts = {f"{p}.num_batches_tracked": torch.tensor(0) for p in self.norms}
        return {name: t.contiguous().clone() for name, t in {**state, **counts}.items()}


def _collect(source: TensorSource, arrays: Mapping[str, Any]) -> Tensor:
    parts = [torch.as_tensor(np.asarray(arrays[name])) for name in source.names]
    if source.index is None:
        return parts[0]
    flat = parts[0].reshape(-1) if len(parts) == 1 else torch.cat([p.reshape(-1) for p in parts])
    return flat[source.index]


def lay_out(root: Any) -> Layout:
    """Return the tensors of a module by their dotted paths."""
    layout = Layout()
    first: dict[tuple, str] = {}
    for path, module in walk(root):
        prefix = f"{path}." if path else ""
        if isinstance(module, Layer):
            layout.nodes[path] = module.node
            if "BatchNorm" in module.cls:
                layout.norms.append(path)
            for name, source in module.tensors:
                _add(layout, first, prefix + name, source)
        elif isinstance(module, Param):
            _add(layout, first, path, module.source)
        elif node := getattr(module, "node", ""):
            layout.nodes.setdefault(path, node)
    return layout


def _add(layout: Layout, first: dict[tuple, str], path: str, source: TensorSource) -> None:
    layout.sources[path] = source
    if source.constant is not None:
        return
    key = (source.names, None if source.index is None else source.index.numpy().tobytes())
    if key in first:
        layout.ties.append((path, first[key]))
    else:
        first[key] = path
