"""Encoding sentences, and BucketSentenceIter."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.rnn import BucketSentenceIter, encode_sentences

LINES = [
    [1, 2],
    [3, 4, 5],
    [1, 2, 3, 4],
    [2, 3],
    [5, 6],
    [1, 2, 3, 4, 5, 6, 7],
    [7, 8, 9],
    [3, 2, 1],
]


@pytest.mark.parametrize(
    ("settings", "coded", "vocab"),
    [
        ({}, [[0, 1], [1, 2, 0]], {"\n": -1, "a": 0, "b": 1, "c": 2}),
        (
            {"start_label": 1, "invalid_label": 0},
            [[1, 2], [2, 3, 1]],
            {"\n": 0, "a": 1, "b": 2, "c": 3},
        ),
        (
            {"start_label": 2, "invalid_label": 3, "invalid_key": "x"},
            [[2, 4], [4, 5, 2]],
            {"x": 3, "a": 2, "b": 4, "c": 5},
        ),
    ],
)
def test_encode_sentences(settings, coded, vocab):
    assert encode_sentences([["a", "b"], ["b", "c", "a"]], **settings) == (coded, vocab)


def test_encode_sentences_with_unknown_words():
    with pytest.raises(AssertionError, match="Unknown token z"):
        encode_sentences([["a", "z"]], vocab={"a": 1})
    known = {"a": 1, "<u>": 2}
    assert encode_sentences([["a", "z"]], vocab=known, unknown_token="<u>")[0] == [[1, 2]]
    assert encode_sentences([["a", "z"]], vocab={"a": 1}, unknown_token="<u>")[0] == [[1, 0]]


def test_buckets_contain_sentences_and_next_word_labels(capsys):
    data = BucketSentenceIter(LINES, 2, buckets=[5, 3], invalid_label=0)
    assert capsys.readouterr().out == (
        "WARNING: discarded 1 sentences longer than the largest bucket.\n"
    )
    assert (data.buckets, data.default_bucket_key, data.major_axis) == ([3, 5], 5, 0)
    assert data.provide_data == [("data", (2, 5))]
    seen = []
    for batch in data:
        words, labels = batch.data[0].asnumpy(), batch.label[0].asnumpy()
        assert batch.provide_data == [("data", (2, batch.bucket_key))]
        assert words.shape == (2, batch.bucket_key)
        np.testing.assert_array_equal(labels[:, :-1], words[:, 1:])
        assert (labels[:, -1] == 0).all()
        seen += [tuple(row[row > 0].astype(int)) for row in words]
    assert len(seen) == 6  # of six short ones; one of length 4 fills no batch
    assert set(seen) == {tuple(line) for line in LINES if len(line) <= 3}


def test_bucket_iter_with_time_major_layout():
    data = BucketSentenceIter(LINES[:5], 2, buckets=[4], layout="TN", dtype="int32")
    batch = next(data)
    assert data.provide_data[0].layout == "TN"
    assert batch.data[0].shape == (4, 2)
    assert batch.data[0].dtype == np.int32


def test_default_buckets_are_lengths_with_enough_sentences(caplog):
    assert BucketSentenceIter(LINES, 2).buckets == [2, 3]
    with pytest.raises(ValueError, match="No length has 20 sentences"):
        BucketSentenceIter(LINES, 20)
    with pytest.raises(ValueError, match="Invalid layout XY"):
        BucketSentenceIter(LINES, 2, layout="XY")


def test_order_varies_per_epoch_and_is_reproducible_with_a_seed():
    def epochs():
        mx.random.seed(3)
        data = BucketSentenceIter(LINES, 1, buckets=[7])
        rows = []
        for _ in range(2):
            rows.append([b.data[0].asnumpy().tolist() for b in data])
            data.reset()
        return rows

    first = epochs()
    assert first[0] != first[1]
    assert epochs() == first


def test_state_dict_restores_the_order_of_an_epoch():
    data = BucketSentenceIter(LINES, 2, buckets=[3, 7])
    data.reset()
    state = data.state_dict()
    wanted = [b.data[0].asnumpy().tolist() for b in data]
    other = BucketSentenceIter(LINES, 2, buckets=[3, 7])
    other.load_state_dict(state)
    assert [b.data[0].asnumpy().tolist() for b in other] == wanted
    with pytest.raises(ValueError, match="different sentences"):
        BucketSentenceIter(LINES[:4], 2, buckets=[3, 7]).load_state_dict(state)
