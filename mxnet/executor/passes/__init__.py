"""Rewrites of a prepared graph's calls, one file each, with the same results for less work.

A pass takes a `Plan` and changes it. Which run is a matter of purpose: prediction passes need a
graph that nobody differentiates. ``MXNET_GRAPH_PASSES`` switches them for debugging.
"""

from __future__ import annotations

import torch

from ... import env
from ...error import MXNetError, did_you_mean
from ..program import Pass
from .bind_attributes import bind_attributes
from .channels_last import channels_last
from .fold_batch_norm import fold_batch_norm
from .fuse_pointwise import fuse_pointwise
from .in_place import in_place
from .pack_convolutions import pack_convolutions
from .pass_through import pass_through
from .unpack_rnn import unpack_rnn

PREDICTION: tuple[Pass, ...] = (
    pass_through,
    pack_convolutions,
    fold_batch_norm,
    fuse_pointwise,
    in_place,
    unpack_rnn,
    bind_attributes,
)
TRAINING: tuple[Pass, ...] = (channels_last, unpack_rnn, bind_attributes)
TRACKED: tuple[Pass, ...] = (unpack_rnn, bind_attributes)  # torch differentiates these as well
NAMES = tuple(dict.fromkeys(p.__name__ for p in (*PREDICTION, *TRAINING)))


def chosen(training: bool, tracked: bool, device: torch.device) -> tuple[Pass, ...]:
    """Return the passes for training, or for prediction that nobody differentiates (`tracked`)."""
    wanted = _wanted()
    if training:
        fitting = TRAINING if device.type == "cpu" else TRACKED
    else:
        fitting = TRACKED if tracked else PREDICTION
    return tuple(p for p in fitting if p.__name__ in wanted)


def _wanted() -> tuple[str, ...]:
    """Return the names that ``MXNET_GRAPH_PASSES`` lets through."""
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
