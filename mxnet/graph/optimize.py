"""Selection of the passes for a graph, by mode, device and ``MXNET_GRAPH_PASSES``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import cast

import torch

from .._process import env
from ..error import MXNetError, did_you_mean
from .passes.composites import fuse_attention, fuse_likelihood
from .passes.convolutions import (
    channels_last,
    drop_finite_checks,
    fold_batch_norm,
    fuse_pointwise,
    pack_convolutions,
)
from .passes.recompute import recompute, recompute_marked
from .passes.recurrent import batch_projections, fuse_recurrent, unpack_rnn
from .passes.segments import block_pointwise
from .passes.simplify import remove_identities
from .passes.statistics import join_statistics
from .quantization.fused_layers import open_layers
from .quantization.lowering import fuse_quantized
from .rewrite import Table, apply_tables
from .typed_graph import Mode, TypedGraph

Pass = Callable[[TypedGraph], TypedGraph]

INFERENCE_PASSES: tuple[Pass, ...] = (
    open_layers,
    remove_identities,
    pack_convolutions,
    fold_batch_norm,
    fuse_pointwise,
    fuse_quantized,
    fuse_attention,
    drop_finite_checks,
    unpack_rnn,
    fuse_recurrent,
    batch_projections,
    block_pointwise,
)
TRAINING_PASSES: tuple[Pass, ...] = (
    channels_last,
    unpack_rnn,
    fuse_recurrent,
    batch_projections,
    fuse_likelihood,
    join_statistics,
)
DIFFERENTIABLE_PASSES: tuple[Pass, ...] = (
    unpack_rnn,
    fuse_recurrent,
    batch_projections,
    join_statistics,
)
# For the CPU only: oneDNN's kernels and cache blocking. Packed layers check their data first, which
# would synchronize with a device.
CPU_PASSES: tuple[Pass, ...] = (
    channels_last,
    pack_convolutions,
    fold_batch_norm,
    fuse_pointwise,
    fuse_quantized,
    drop_finite_checks,
    block_pointwise,
)
# Options of the scheduler, enabled like passes: kernels bound to their attributes, and results
# written over inputs without other consumers.
SPECIALIZE, IN_PLACE, RECOMPUTE = "specialize", "in_place", "recompute"
_PASS_NAMES = dict.fromkeys(p.__name__ for p in (*INFERENCE_PASSES, *TRAINING_PASSES))
NAMES = (*_PASS_NAMES, RECOMPUTE, SPECIALIZE, IN_PLACE)


def enabled_passes() -> tuple[str, ...]:
    """Return the names of passes enabled by ``MXNET_GRAPH_PASSES``."""
    said = env.get("MXNET_GRAPH_PASSES").strip()
    if said in ("0", "1"):
        return NAMES if said == "1" else ()
    names = tuple(name.strip() for name in said.split(","))
    for name in names:
        if name not in NAMES:
            raise MXNetError(
                f"MXNET_GRAPH_PASSES={said!r}: there is no pass {name!r}. Give 1 (all), 0 (none) "
                f"or some of {', '.join(NAMES)}. {did_you_mean(name, NAMES)}".rstrip()
            )
    return names


def select_passes(
    mode: Mode,
    device: torch.device,
    enabled: Sequence[str],
    recompute_limit: int | bool | None = None,
) -> tuple[Pass, ...]:
    """Return the passes for a mode and a device, in order.

    `recompute_limit` tells whether training recomputes results for backward, or the number of bytes
    it may keep; None: ``MXNET_BACKWARD_DO_MIRROR`` and marks on nodes decide.
    """
    if mode.training:
        fitting = TRAINING_PASSES
    else:
        fitting = DIFFERENTIABLE_PASSES if mode.differentiable else INFERENCE_PASSES
    chosen = [p for p in fitting if p.__name__ in enabled]
    if device.type != "cpu":
        chosen = [p for p in chosen if p not in CPU_PASSES]
    if mode.training and RECOMPUTE in enabled and recompute_limit is not False:
        chosen.append(_recompute_pass(recompute_limit))
    return tuple(chosen)


def _recompute_pass(limit: int | bool | None) -> Pass:
    if limit is None and not env.get("MXNET_BACKWARD_DO_MIRROR"):
        return recompute_marked
    return lambda graph: recompute(graph, None if limit is True else limit)


def optimize(graph: TypedGraph, passes: Sequence[Pass]) -> TypedGraph:
    """Run passes one after another; tables that follow each other run as one."""
    for is_table, group in groupby(passes, lambda run: isinstance(run, Table)):
        if is_table:
            graph = apply_tables(graph, cast("Iterator[Table]", group))
        else:
            for run in group:
                graph = run(graph)
    return graph
