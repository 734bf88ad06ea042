"""Box operators: every algorithm of suppression equals the plain greedy search."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.ops.vision import boxes as suppression


def _search(boxes: np.ndarray, ids: np.ndarray | None, threshold: float) -> np.ndarray:
    """Plain greedy search, one box after the other."""
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


def _random_boxes(count: int, size: float, classes: int) -> tuple[np.ndarray, np.ndarray | None]:
    rng = np.random.RandomState(count)
    centre, half = rng.rand(count, 2), rng.rand(count, 2) * size
    boxes = np.concatenate([centre - half, centre + half], 1).astype("float32")
    return boxes, rng.randint(0, classes, count) if classes else None


@pytest.mark.parametrize("count", [7, 300, 1500])
@pytest.mark.parametrize("size", [0.02, 0.5])
@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("threshold", [0.2, 0.6])
def test_keep_greedily_equals_a_plain_search(
    count: int, size: float, classes: int, threshold: float
) -> None:
    boxes, ids = _random_boxes(count, size, classes)
    found = suppression.keep_greedily(
        torch.tensor(boxes)[None], threshold, None if ids is None else torch.tensor(ids)[None]
    )
    assert np.array_equal(found[0].numpy(), _search(boxes, ids, threshold))


@pytest.mark.parametrize("size", [0.02, 0.5])
@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("most", [1, 100, 600, 1400])
def test_keep_greedily_with_a_maximum_of_survivors(size: float, classes: int, most: int) -> None:
    boxes, ids = _random_boxes(1500, size, classes)
    found = suppression.keep_greedily(
        torch.tensor(boxes)[None],
        0.4,
        None if ids is None else torch.tensor(ids)[None],
        most=most,
    )
    wanted = _search(boxes, ids, 0.4).nonzero()[0][:most]
    assert np.array_equal(found[0].numpy().nonzero()[0][:most], wanted)


def test_boxes_of_different_images_do_not_compete() -> None:
    made = [_random_boxes(300, 0.5, 20) for _ in range(4)]
    boxes, ids = (np.stack(side) for side in zip(*made, strict=True))
    # Equal boxes in all images, of one class and of classes a rounding apart.
    boxes[:], ids = boxes[0], ids.astype("float32")
    ids[1], ids[2] = 0.3, np.nextafter(np.float32(0.3), np.float32(1))
    found = suppression.keep_greedily(torch.tensor(boxes), 0.3, torch.tensor(ids))
    wanted = [_search(b, i, 0.3) for b, i in zip(boxes, ids, strict=True)]
    assert np.array_equal(found.numpy(), np.stack(wanted))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [10, 1000])
def test_best_first_is_a_stable_sort(dtype: torch.dtype, count: int) -> None:
    score = torch.randint(-3, 4, (2, count), generator=torch.manual_seed(0)).to(dtype) / 4
    score[:, ::7] *= -1  # some zeros become -0, which equals 0
    score[:, 3], score[:, 5] = torch.inf, -torch.inf
    wanted = score.sort(dim=1, descending=True, stable=True)[1]
    for most in (0, 1, count // 2, count):
        assert torch.equal(suppression.best_first(score, most), wanted[:, :most])


def test_keep_greedily_with_chunked_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.RandomState(0)
    centre = rng.rand(900, 2)
    boxes = torch.tensor(np.concatenate([centre - 0.01, centre + 0.01], 1))[None]
    whole = suppression.keep_greedily(boxes, 0.1)
    monkeypatch.setattr(suppression, "MAX_LISTED", 50)
    assert torch.equal(suppression.keep_greedily(boxes, 0.1), whole)


def test_box_nms_of_invalid_boxes_removes_all_rows() -> None:
    out = mx.nd.contrib.box_nms(mx.nd.zeros((2, 3, 6)))
    assert (out.asnumpy() == -1).all()


def test_box_iou_with_a_wrong_last_axis_raises() -> None:
    with pytest.raises(MXNetError, match="last axis of 4"):
        mx.nd.contrib.box_iou(mx.nd.ones((2, 3)), mx.nd.ones((2, 4)))


def test_bipartite_matching_is_greedy() -> None:
    rng = np.random.RandomState(1)
    scores = rng.rand(20, 30)
    rows = mx.nd.contrib.bipartite_matching(mx.nd.array(scores), threshold=0.0)[0].asnumpy()
    left, wanted = scores.astype("float32").copy(), np.full(20, -1)
    for _ in range(20):
        i, j = np.unravel_index(left.argmax(), left.shape)
        wanted[i] = j
        left[i], left[:, j] = -1, -1
    assert np.array_equal(rows, wanted)


def test_detection_prefers_the_first_class_on_ties() -> None:
    prob = mx.nd.array([[[0.1, 0.1, 0.2], [0.3, 0.2, 0.1], [0.3, 0.5, 0.6], [0.3, 0.2, 0.6]]])
    anchor = mx.nd.array([[[0.1, 0.1, 0.2, 0.2], [0.4, 0.4, 0.5, 0.5], [0.7, 0.7, 0.8, 0.8]]])
    rows = mx.nd.contrib.MultiBoxDetection(prob, mx.nd.zeros((1, 12)), anchor).asnumpy()[0]
    assert rows[:, 0].tolist() == [1, 1, 0]
    assert np.allclose(rows[:, 1:3], [[0.6, 0.7], [0.5, 0.4], [0.3, 0.1]])


def test_background_has_no_detections() -> None:
    prob = mx.nd.array([[[1.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]]])
    anchor = mx.nd.array([[[0.1, 0.1, 0.2, 0.2], [0.4, 0.4, 0.5, 0.5]]])
    for keep in (0.5, -1.0):
        rows = mx.nd.contrib.MultiBoxDetection(
            prob, mx.nd.zeros((2, 8)), anchor, nms_threshold=keep
        )
        assert (rows.asnumpy() == -1).all()


def test_multi_box_prior_returns_a_new_array_each_time() -> None:
    data = mx.nd.zeros((1, 3, 2, 2))
    first = mx.nd.contrib.MultiBoxPrior(data, sizes=(0.5, 0.25))
    wanted = first.asnumpy()
    first[:] = 7
    again = mx.nd.contrib.MultiBoxPrior(data, sizes=(0.5, 0.25))
    assert np.array_equal(again.asnumpy(), wanted)
