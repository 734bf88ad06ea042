"""Recurrent cells for symbols, checkpoints of them, and iterators over sentences."""

from __future__ import annotations

from .._compat.star_imports import complete_star_imports
from ..base import numeric_types, string_types
from . import io, rnn, rnn_cell
from .io import BucketSentenceIter, encode_sentences
from .rnn import do_rnn_checkpoint, load_rnn_checkpoint, rnn_unroll, save_rnn_checkpoint
from .rnn_cell import *  # noqa: F403 (MXNet shows all cells here)

__all__ = [
    "BucketSentenceIter",
    "do_rnn_checkpoint",
    "encode_sentences",
    "load_rnn_checkpoint",
    "rnn_unroll",
    "save_rnn_checkpoint",
]
__all__ += rnn_cell.__all__

complete_star_imports("rnn")
