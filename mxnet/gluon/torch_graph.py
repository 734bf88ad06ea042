"""Hybrid blocks inside `torch.compile`: one opaque call for Dynamo.

Dynamo does not trace the call; the next stage (AOTAutograd) runs it on fake tensors and traces
every torch function of the block's graph. The kernels of the block and their gradients are so
compiled together with the surrounding torch code.
"""

from __future__ import annotations

import weakref
from itertools import count
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..graph.typed_graph import Inputs, Mode
from ..ndarray import NDArray
from ..runtime.array import wrap_plain
from ..runtime.program import Program
from ..runtime.recording import state
from ..torch_private import without_onednn
from .hybrid import HybridBlock, flatten, regroup

if TYPE_CHECKING:
    from ..graph.graph import Graph
    from .block import Block

_blocks: weakref.WeakValueDictionary[int, Block] = weakref.WeakValueDictionary()
_keys = count()


def register_block(block: Block) -> int:
    """Return the key of a block for `run_graph`; Dynamo supports numbers, not objects."""
    key = next(_keys)
    _blocks[key] = block
    return key


def run_graph(
    key: int, training: bool, names: list[str], tensors: list[Tensor], inputs: list[Any]
) -> Any:
    """Run the graph of a hybrid block on tensors.

    Parameters
    ----------
    key
        The number of `register_block`.
    training
        Whether Dropout, BatchNorm and similar layers behave as in training.
    names, tensors
        The parameters, by name.
    inputs
        The inputs, nested as the block takes them.
    """
    block = _blocks[key]
    assert isinstance(block, HybridBlock)
    flat, structure = flatten([_as_placeholder(value) for value in inputs], "input")
    arguments, _ = regroup(flat, structure)
    variables, symbol = block._get_graph(*arguments)
    feed: dict[Any, Tensor] = dict(zip(names, tensors, strict=True))
    present = [array for array in flat if array is not None]
    feed.update({v.name: a._data for v, a in zip(variables, present, strict=True)})
    outputs = _run(symbol._graph, feed, training)
    if block._out_format == 0:
        return outputs[0]
    return regroup(outputs, block._out_format)[0]


def _as_placeholder(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_placeholder(item) for item in value]
    return wrap_plain(NDArray, value) if isinstance(value, Tensor) else value


def _run(graph: Graph, feed: dict[Any, Tensor], training: bool) -> list[Tensor]:
    tensors = [feed[node.name] for node in graph.variables]
    names = [node.name for node in graph.variables]
    device = tensors[0].device
    facts = Inputs(
        {n: tuple(map(int, t.shape)) for n, t in zip(names, tensors, strict=True)},
        {n: t.dtype for n, t in zip(names, tensors, strict=True)},
        device_of=lambda node: device,
    )
    mode = Mode(training, torch.is_grad_enabled())
    program = Program(graph, mode, device, facts, optimized=False)
    before, state.training = state.training, training
    # AOTAutograd does not support that oneDNN's LSTM returns None for an unused result.
    try:
        with without_onednn():
            return program.run(tensors)
    finally:
        state.training = before
