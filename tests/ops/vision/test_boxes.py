"""Suppression at size: every road gives what the plain greedy search gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.ops.vision import suppression


def _search(boxes: np.ndarray, ids: np.ndarray | None, threshold: float) -> np.ndarray:
    """Look at one box after the other."""
    low, high = boxes[:, None, :2], boxes[:, None, 2:]
    both = np.minimum(high, boxes[None, :, 2:]) - np.maximum(low, boxes[None, :, :2])
    common = both.clip(0).prod(-1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    clash = common / (area[:, None] + area[None] - common) > threshold
    if ids is not None:
        clash &= ids[:, None] == ids[None]
    keep = np.ones(len(boxes), bool)
    for i in range(len(boxes)):
        if keep[i]:
            keep[i + 1 :] &= ~clash[i, i + 1 :]
    return keep


@pytest.mark.parametrize("count", [7, 300, 1500])
@pytest.mark.parametrize("size", [0.02, 0.5])
@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("threshold", [0.2, 0.6])
def test_keeps_what_a_plain_search_keeps(
    count: int, size: float, classes: int, threshold: float
) -> None:
    rng = np.random.RandomState(count)
    centre, half = rng.rand(count, 2), rng.rand(count, 2) * size
    boxes = np.concatenate([centre - half, centre + half], 1).astype("float32")
    ids = rng.randint(0, classes, count) if classes else None
    found = suppression.keep_greedily(
        torch.tensor(boxes)[None], threshold, None if ids is None else torch.tensor(ids)[None]
    )
    assert np.array_equal(found[0].numpy(), _search(boxes, ids, threshold))


def test_listing_pairs_in_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.RandomState(0)
    centre = rng.rand(900, 2)
    boxes = torch.tensor(np.concatenate([centre - 0.01, centre + 0.01], 1))[None]
    whole = suppression.keep_greedily(boxes, 0.1)
    monkeypatch.setattr(suppression, "MAX_LISTED", 50)
    assert torch.equal(suppression.keep_greedily(boxes, 0.1), whole)


def test_empty_and_hopeless_inputs_give_only_removed_rows() -> None:
    out = mx.nd.contrib.box_nms(mx.nd.zeros((2, 3, 6)))
    assert (out.asnumpy() == -1).all()


def test_iou_says_what_boxes_need() -> None:
    with pytest.raises(MXNetError, match="last axis of 4"):
        mx.nd.contrib.box_iou(mx.nd.ones((2, 3)), mx.nd.ones((2, 4)))


def test_matching_takes_the_best_pair_left() -> None:
    rng = np.random.RandomState(1)
    scores = rng.rand(20, 30)
    rows = mx.nd.contrib.bipartite_matching(mx.nd.array(scores), threshold=0.0)[0].asnumpy()
    left, wanted = scores.astype("float32").copy(), np.full(20, -1)
    for _ in range(20):
        i, j = np.unravel_index(left.argmax(), left.shape)
        wanted[i] = j
        left[i], left[:, j] = -1, -1
    assert np.array_equal(rows, wanted)
