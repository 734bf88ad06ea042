"""The library of functions: each gives what MXNet's operator gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.interop.port.functions import boxes, regions, sequences
from mxnet.interop.port.functions.frozen_batch_norm import FrozenBatchNorm2d
from mxnet.interop.port.functions.group_norm import group_norm
from mxnet.interop.port.functions.hinge_loss import hinge_loss
from mxnet.interop.port.functions.l2_normalize import l2_normalize
from mxnet.interop.port.functions.smooth_l1 import smooth_l1
from mxnet.interop.port.functions.softmax_loss import softmax_loss
from mxnet.interop.port.text.file import FUNCTIONS, library


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def uniform(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).uniform(0, 1, shape).astype(np.float32)


def compare(result: torch.Tensor, reference: Any) -> None:
    np.testing.assert_allclose(result.numpy(), reference.asnumpy(), rtol=1e-5, atol=1e-5)


def random_boxes(*shape: int, size: float = 0.3) -> np.ndarray:
    corner = uniform(*shape, 2) * (1 - size)
    return np.concatenate([corner, corner + size], -1)


@pytest.mark.parametrize("topk", [-1, 7])
@pytest.mark.parametrize("force", [False, True])
def test_box_nms(topk: int, force: bool) -> None:
    heads = np.stack([np.floor(uniform(2, 20, seed=1) * 3), uniform(2, 20, seed=2)], -1)
    rows = np.concatenate([heads, random_boxes(2, 20)], -1).astype(np.float32)
    options = {"overlap_thresh": 0.4, "valid_thresh": 0.1, "topk": topk}
    reference = mx.nd.contrib.box_nms(
        mx.nd.array(rows), id_index=0, force_suppress=force, **options
    )
    result = boxes.box_nms(torch.from_numpy(rows), 0.4, 0.1, topk, id_index=0, force_suppress=force)
    compare(result, reference)


@pytest.mark.parametrize("ratios", [(1.0,), (1.0, 2.0, 0.5)])
def test_multibox_prior(ratios: tuple) -> None:
    x = numbers(1, 2, 3, 4)
    options: dict[str, Any] = {"sizes": (0.2, 0.4), "ratios": ratios, "clip": True}
    compare(
        boxes.multibox_prior(torch.from_numpy(x), **options),
        mx.nd.contrib.MultiBoxPrior(mx.nd.array(x), **options),
    )


@pytest.mark.parametrize("shape", ["center", "corner"])
def test_box_decode(shape: str) -> None:
    offsets, anchors = numbers(2, 5, 4), random_boxes(1, 5).astype(np.float32)
    reference = mx.nd.contrib.box_decode(
        mx.nd.array(offsets), mx.nd.array(anchors), 0.1, 0.2, 0.3, 0.4, clip=0.2, format=shape
    )
    stds = (0.1, 0.2, 0.3, 0.4)
    tensors = torch.from_numpy(offsets), torch.from_numpy(anchors)
    compare(boxes.box_decode(*tensors, stds, 0.2, shape == "center"), reference)


def test_multibox_detection() -> None:
    scores = uniform(2, 4, 15)
    scores /= scores.sum(1, keepdims=True)
    offsets, anchors = numbers(2, 60) * 0.1, random_boxes(1, 15)
    reference = mx.nd.contrib.MultiBoxDetection(*map(mx.nd.array, (scores, offsets, anchors)))
    compare(boxes.multibox_detection(*map(torch.from_numpy, (scores, offsets, anchors))), reference)


def region_rows() -> np.ndarray:
    corner = uniform(6, 2, seed=3) * 20
    size = uniform(6, 2, seed=4) * 12
    image = np.array([[0], [1], [1], [0], [1], [0]])
    return np.concatenate([image, corner, corner + size], 1).astype(np.float32)


def test_roi_pooling() -> None:
    x, rows = numbers(2, 3, 14, 16), region_rows()
    reference = mx.nd.ROIPooling(mx.nd.array(x), mx.nd.array(rows), (3, 4), 0.5)
    pair = torch.from_numpy(x), torch.from_numpy(rows)
    compare(regions.roi_pooling(*pair, (3, 4), 0.5), reference)


@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align(aligned: bool) -> None:
    x, rows = numbers(2, 3, 14, 16), region_rows()
    reference = mx.nd.contrib.ROIAlign(
        mx.nd.array(x), mx.nd.array(rows), (3, 4), 0.5, sample_ratio=2, aligned=aligned
    )
    pair = torch.from_numpy(x), torch.from_numpy(rows)
    compare(regions.roi_align(*pair, (3, 4), 0.5, 2, aligned), reference)


@pytest.mark.parametrize("axis", [0, 1])
def test_sequence_mask(axis: int) -> None:
    x = numbers(3, 3, 2)
    lengths = np.array([1, 3, 2], np.float32)
    reference = mx.nd.SequenceMask(
        mx.nd.array(x), mx.nd.array(lengths), use_sequence_length=True, value=-1, axis=axis
    )
    compare(
        sequences.sequence_mask(torch.from_numpy(x), torch.from_numpy(lengths), -1.0, axis),
        reference,
    )


def test_interleaved_attention() -> None:
    qkv = numbers(5, 2, 3 * 8)
    scores = mx.nd.contrib.interleaved_matmul_selfatt_qk(mx.nd.array(qkv), heads=2)
    compare(sequences.attention_scores(torch.from_numpy(qkv), 2), scores)
    weights = mx.nd.softmax(scores)
    reference = mx.nd.contrib.interleaved_matmul_selfatt_valatt(mx.nd.array(qkv), weights, heads=2)
    result = sequences.attend(torch.from_numpy(qkv), torch.from_numpy(weights.asnumpy()), 2)
    compare(result, reference)


def test_smooth_l1() -> None:
    x = numbers(20)
    compare(smooth_l1(torch.from_numpy(x), 2.0), mx.nd.smooth_l1(mx.nd.array(x), scalar=2.0))


@pytest.mark.parametrize("mode", ["instance", "channel", "spatial"])
def test_l2_normalize(mode: str) -> None:
    x = numbers(2, 3, 4, 5)
    reference = mx.nd.L2Normalization(mx.nd.array(x), mode=mode)
    compare(l2_normalize(torch.from_numpy(x), mode), reference)


def test_group_norm_with_a_scale_for_each_group() -> None:
    x, scale, shift = numbers(2, 6, 4), uniform(3), numbers(3)
    reference = mx.nd.GroupNorm(*map(mx.nd.array, (x, scale, shift)), num_groups=3, eps=1e-5)
    compare(group_norm(*map(torch.from_numpy, (x, scale, shift))), reference)


def gradients(operator: Any, loss: Any, x: np.ndarray, label: np.ndarray) -> tuple:
    """Return the gradient that MXNet's output layer gives, and that of a loss."""
    array = mx.nd.array(x)
    array.attach_grad()
    with mx.autograd.record():
        output = operator(array, mx.nd.array(label))
    output.backward()
    tensor = torch.from_numpy(x).requires_grad_()
    loss(tensor, torch.from_numpy(label)).backward()
    return tensor.grad, array.grad


@pytest.mark.parametrize("normalization", ["null", "batch", "valid"])
@pytest.mark.parametrize("ignore", [None, 1])
@pytest.mark.parametrize(("multi", "smoothing"), [(False, 0.0), (False, 0.1), (True, 0.0)])
def test_softmax_loss_has_the_gradient_of_softmax_output(
    normalization: str, ignore: int | None, multi: bool, smoothing: float
) -> None:
    x = numbers(4, 5, 3) if multi else numbers(4, 5)
    label = np.array([[1, 4, 0], [2, 2, 1], [3, 0, 0], [1, 1, 4]] if multi else [1, 4, 0, 2])
    label = label.astype(np.float32)

    def operator(data: Any, target: Any) -> Any:
        return mx.nd.SoftmaxOutput(
            data, target, multi_output=multi, use_ignore=ignore is not None,
            ignore_label=-1 if ignore is None else ignore, normalization=normalization,
            smooth_alpha=smoothing,
        )  # fmt: skip

    def loss(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return softmax_loss(scores, target, 1 if multi else -1, ignore, normalization, smoothing)

    compare(*gradients(operator, loss, x, label))


@pytest.mark.parametrize("linear", [False, True])
def test_hinge_loss_has_the_gradient_of_svm_output(linear: bool) -> None:
    label = np.array([1, 0, 2, 2], np.float32)

    def operator(data: Any, target: Any) -> Any:
        return mx.nd.SVMOutput(data, target, margin=0.7, use_linear=linear)

    def loss(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return hinge_loss(scores, target, 0.7, not linear)

    compare(*gradients(operator, loss, numbers(4, 3), label))


def test_copied_functions_keep_their_decorators() -> None:
    texts, _ = library(dict.fromkeys(["box_decode", "multibox_prior"], "boxes"))
    source = (FUNCTIONS / "boxes.py").read_text(encoding="utf-8")
    assert all(text in source for text in texts)
    for name in ("box_decode", "multibox_prior"):
        assert any(text.startswith(f"@torch.no_grad()\ndef {name}(") for text in texts), name


def test_frozen_batch_norm_is_frozen_before_train_or_eval_is_called() -> None:
    norm = FrozenBatchNorm2d(2)
    x = torch.randn(4, 2, 3, 3)
    np.testing.assert_allclose(norm(x).detach(), x, rtol=1e-4)
    assert norm.running_mean.tolist() == [0, 0]
