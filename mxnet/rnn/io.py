"""Encoding of sentences, and batches of sentences of similar length."""

from __future__ import annotations

import bisect
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import ndarray
from ..io import DataBatch, DataDesc, DataIter
from ..random import host_order, host_rng, streams_are_seeded

__all__ = ["BucketSentenceIter", "encode_sentences"]


def encode_sentences(
    sentences: Sequence[Sequence[Any]],
    vocab: dict[Any, int] | None = None,
    invalid_label: int = -1,
    invalid_key: Any = "\n",
    start_label: int = 0,
    unknown_token: Any = None,
) -> tuple[list[list[int]], dict[Any, int]]:
    r"""Encode sentences as integers; return them and the vocabulary.

    Parameters
    ----------
    sentences : list of list of words
        Sentences as lists of words.
    vocab : dict of words to int, optional
        Vocabulary; by default built from the sentences. If given, unknown words raise an error.
    invalid_label, invalid_key
        Index of padding, and its word.
    start_label : int
        First index.
    unknown_token
        Word that replaces unknown words.

    >>> mx.rnn.encode_sentences([["a", "b"], ["b", "a"]])
    ([[0, 1], [1, 0]], {'\n': -1, 'a': 0, 'b': 1})
    """
    grows = vocab is None
    vocab = {invalid_key: invalid_label} if vocab is None else vocab
    number = start_label
    coded = []
    for sentence in sentences:
        line = []
        for word in sentence:
            if word not in vocab:
                if not grows and not unknown_token:
                    raise AssertionError(f"Unknown token {word}")
                word = unknown_token or word
                if word not in vocab:
                    number += number == invalid_label
                    vocab[word] = number
                    number += 1
            line.append(vocab[word])
        coded.append(line)
    return coded, vocab


class BucketSentenceIter(DataIter):
    """Iterates over sentences padded to the length of their bucket; labels are the next words.

    Parameters
    ----------
    sentences : list of list of int
        Sentences as lists of numbers.
    batch_size : int
        Number of sentences in a batch.
    buckets : list of int, optional
        Lengths of the buckets; by default all lengths with enough sentences for a batch. Longer
        sentences are dropped.
    invalid_label : int
        Value of the padding.
    data_name, label_name : str
        Name of the data.
    dtype : str
        Data type of the batches.
    layout : {'NT', 'TN'}
        Order of the axes.

    >>> batches = mx.rnn.BucketSentenceIter([[1, 2], [3, 4]], batch_size=2, buckets=[4])
    WARNING: discarded 0 sentences longer than the largest bucket.
    >>> next(batches).data[0].shape
    (2, 4)
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[int]],
        batch_size: int,
        buckets: Sequence[int] | None = None,
        invalid_label: int = -1,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: str = "float32",
        layout: str = "NT",
    ) -> None:
        super().__init__()
        if not buckets:
            counts = np.bincount([len(s) for s in sentences])
            buckets = [length for length, count in enumerate(counts) if count >= batch_size]
        if not buckets:
            raise ValueError(
                f"No length has {batch_size} sentences: pass buckets, or a smaller batch_size."
            )
        if layout not in ("NT", "TN"):
            raise ValueError(
                f"Invalid layout {layout}: Must by NT (batch major) or TN (time major)"
            )
        self.batch_size, self.buckets = batch_size, sorted(buckets)
        self.data_name, self.label_name = data_name, label_name
        self.dtype, self.invalid_label, self.layout = dtype, invalid_label, layout
        self.major_axis = layout.find("N")
        self.default_bucket_key = max(self.buckets)
        self.data = self._padded(sentences)
        self._rows = [np.arange(len(rows)) for rows in self.data]  # original position of each row
        self.provide_data = [self._describe(data_name, self.default_bucket_key)]
        self.provide_label = [self._describe(label_name, self.default_bucket_key)]
        self.idx = [
            (i, j)
            for i, rows in enumerate(self.data)
            for j in range(0, len(rows) - batch_size + 1, batch_size)
        ]
        self.curr_idx = 0
        self.reset()

    def _padded(self, sentences: Sequence[Sequence[int]]) -> list[np.ndarray]:
        by_bucket: list[list[np.ndarray]] = [[] for _ in self.buckets]
        left_out = 0
        for sentence in sentences:
            bucket = bisect.bisect_left(self.buckets, len(sentence))
            if bucket == len(self.buckets):
                left_out += 1
                continue
            row = np.full((self.buckets[bucket],), self.invalid_label, dtype=self.dtype)
            row[: len(sentence)] = sentence
            by_bucket[bucket].append(row)
        discarded = f"discarded {left_out} sentences longer than the largest bucket."
        print(f"WARNING: {discarded}")  # noqa: T201 (as MXNet does, also for 0 sentences)
        return [
            np.asarray(rows, dtype=self.dtype).reshape(-1, length)
            for rows, length in zip(by_bucket, self.buckets, strict=True)
        ]

    def _describe(self, name: str, length: int) -> DataDesc:
        shape = (self.batch_size, length)
        return DataDesc(name, shape if self.major_axis == 0 else shape[::-1], layout=self.layout)

    def reset(self) -> None:
        """Start a new epoch: shuffle the batches, and the sentences within each bucket."""
        self.curr_idx = 0
        if streams_are_seeded():
            # MXNet draws this order from Python's stream, the others from NumPy's.
            random.shuffle(self.idx)
        else:
            self.idx = [self.idx[i] for i in host_rng().permutation(len(self.idx))]
        self._reorder([host_order(len(rows)) for rows in self.data])

    def _reorder(self, orders: Sequence[np.ndarray]) -> None:
        self.data = [rows[order] for rows, order in zip(self.data, orders, strict=True)]
        self._rows = [rows[order] for rows, order in zip(self._rows, orders, strict=True)]
        self.nddata, self.ndlabel = [], []
        for rows in self.data:
            labels = np.full_like(rows, self.invalid_label)
            labels[:, :-1] = rows[:, 1:]
            self.nddata.append(ndarray.array(rows, dtype=self.dtype) if len(rows) else None)
            self.ndlabel.append(ndarray.array(labels, dtype=self.dtype) if len(rows) else None)

    def next(self) -> DataBatch:
        """Return the next batch, or raise StopIteration."""
        if self.curr_idx == len(self.idx):
            raise StopIteration
        bucket, row = self.idx[self.curr_idx]
        self.curr_idx += 1
        data = self.nddata[bucket][row : row + self.batch_size]
        label = self.ndlabel[bucket][row : row + self.batch_size]
        if self.major_axis == 1:
            data, label = data.T, label.T
        length = self.buckets[bucket]
        return DataBatch(
            [data],
            [label],
            pad=0,
            bucket_key=length,
            provide_data=[self._describe(self.data_name, length)],
            provide_label=[self._describe(self.label_name, length)],
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the order of this epoch, for `load_state_dict` of an equal iterator."""
        return {"idx": [tuple(map(int, pair)) for pair in self.idx], "rows": list(self._rows)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Start an epoch with the order saved by `state_dict`."""
        orders = [np.asarray(rows) for rows in state["rows"]]
        if [len(rows) for rows in orders] != [len(rows) for rows in self._rows]:
            raise ValueError("The order belongs to different sentences or buckets.")
        self.idx = [tuple(pair) for pair in state["idx"]]
        self.curr_idx = 0
        pairs = zip(self._rows, orders, strict=True)
        self._reorder([np.argsort(now)[then] for now, then in pairs])
