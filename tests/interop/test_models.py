"""Layers, cells and detectors as torch modules and as programs without mxnet."""

from __future__ import annotations

import pathlib
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from mxnet.convert import UnsupportedTorch

import mxnet as mx
from mxnet.interop import to_torch
from mxnet.interop.comparison.isolated import run_file
from tests.golden.record.layer_cases import FAMILIES, Case, call, flat, ready
from tests.interop.onnx.running import relative_error
from tests.without_mxnet import forked_conversions  # noqa: F401

pytestmark = pytest.mark.usefixtures("forked_conversions")
S = mx.sym
RNG = np.random.RandomState(0)


def _convert(case: Case) -> tuple[torch.nn.Module, list[torch.Tensor], list[np.ndarray]]:
    """Return a layer as a module, its inputs, and what it computes."""
    block = ready(mx, case)
    arrays = [mx.nd.array(a) for a in case.arrays]
    expected = [o.asnumpy() for o in flat(call(mx, case, block, arrays))]
    names = [f"x{i}" for i in range(len(arrays))]
    symbol = S.Group(flat(call(mx, case, block, [S.var(n) for n in names])))
    params = {n: p.data() for n, p in block.collect_params().items()}
    shapes = {n: a.shape for n, a in zip(names, arrays, strict=True)}
    module = to_torch(
        symbol, params, {n: s for n, s in shapes.items() if n in symbol.list_inputs()}
    )
    read = [n.name for n in module.graph.nodes if n.op == "placeholder"]
    feed = [torch.from_numpy(case.arrays[names.index(n)]) for n in read]
    return module, feed, expected


def _check(case: Case) -> str | None:
    """Return what is wrong with a converted layer."""
    try:
        module, feed, expected = _convert(case)
    except UnsupportedTorch as error:
        return str(error)
    outputs = module(*feed)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, not {len(expected)}"
    for output, array in zip(outputs, expected, strict=True):
        if output.shape != array.shape:
            return f"{tuple(output.shape)}, not {array.shape}"
        if relative_error(output.detach().numpy(), array) > 1e-5:
            return f"differs by {relative_error(output.detach().numpy(), array)}"
    return None


@pytest.mark.parametrize("family", ["nn", "rnn", "contrib"])
def test_layers_and_cells_match_in_torch(family: str) -> None:
    """Every layer and cell that can be traced as a graph."""
    cases = [c for c in FAMILIES[family] if c.draws_graph and not c.train]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "LSTM with projections")
        problems = {c.key: _check(c) for c in cases}
    assert len(cases) > 5
    assert {key: text for key, text in problems.items() if text} == {}


# -- detectors ------------------------------------------------------------------------------


def _conv(x: Any, name: str, filters: int, stride: int = 1) -> Any:
    x = S.Convolution(
        x, kernel=(3, 3), pad=(1, 1), stride=(stride, stride), num_filter=filters, name=name
    )
    return S.Activation(x, act_type="relu")


def pyramid() -> Any:
    """A feature pyramid as in RetinaFace: levels are upsampled and added."""
    fine = _conv(S.var("data"), "c1", 4, 2)
    coarse = _conv(fine, "c2", 4, 2)
    up = S.UpSampling(coarse, scale=2, sample_type="nearest", num_args=1)
    both = fine + S.Crop(up, fine)
    sized = S.contrib.BilinearResize2D(both, height=5, width=7)
    return S.Group([both, _conv(sized, "c3", 2)])


def one_shot() -> Any:
    """SSD: prior boxes, scores and offsets, detections."""
    x = _conv(S.var("data"), "c1", 4, 4)
    anchors = S.contrib.MultiBoxPrior(x, sizes=(0.3, 0.5), ratios=(1, 2))
    scores = S.reshape(S.transpose(_conv(x, "cls", 9), (0, 2, 3, 1)), shape=(0, -1, 3))
    offsets = S.Flatten(S.transpose(_conv(x, "loc", 12), (0, 2, 3, 1)))
    probabilities = S.softmax(S.transpose(scores, (0, 2, 1)), axis=1)
    return S.contrib.MultiBoxDetection(probabilities, offsets, anchors, nms_topk=20)


def two_stages() -> Any:
    """Faster R-CNN: proposals, pooled regions by both operators, scores."""
    x = _conv(S.var("data"), "c1", 4, 4)
    scores = S.softmax(S.reshape(_conv(x, "cls", 4), shape=(0, 2, -1, 0)), axis=1)
    scores = S.reshape(scores, shape=(0, 4, -1, 0))
    offsets = _conv(x, "loc", 8) * 0.1
    info = S.reshape(S.slice(S._ones(shape=(3,)) * 32, begin=(0,), end=(3,)), shape=(1, 3))
    regions = S.contrib.Proposal(
        scores, offsets, info, scales=(1, 2), ratios=(1,), feature_stride=4,
        rpn_pre_nms_top_n=30, rpn_post_nms_top_n=6, rpn_min_size=0,
    )  # fmt: skip
    pooled = S.ROIPooling(x, regions, pooled_size=(2, 2), spatial_scale=0.25)
    aligned = S.contrib.ROIAlign(x, regions, pooled_size=(2, 2), spatial_scale=0.25)
    return S.Group([regions, S.FullyConnected(pooled, num_hidden=3, name="fc"), aligned])


def boxes() -> Any:
    """The end of YOLO: rows of class, score and box, filtered by suppression."""
    rows = S.reshape(_conv(S.var("data"), "c1", 12, 4), shape=(0, -1, 6))
    return S.contrib.box_nms(rows, overlap_thresh=0.3, topk=15, id_index=0, coord_start=2)


DETECTORS = (pyramid, one_shot, two_stages, boxes)


def _parameters(symbol: Any, data: Any) -> dict[str, Any]:
    shapes, _, _ = symbol.infer_shape(data=data.shape)
    names = zip(symbol.list_arguments(), shapes, strict=True)
    return {n: mx.nd.array(RNG.normal(0, 0.4, s)) for n, s in names if n != "data"}


@pytest.mark.slow
def test_detectors_run_without_mxnet(tmp_path: pathlib.Path) -> None:
    """All four in one program, with loops for suppression, on new images."""
    data = mx.nd.array(RNG.uniform(-1, 1, (1, 3, 32, 32)))
    params: dict[str, Any] = {}
    for build in DETECTORS:  # the same names have other shapes in each
        part, prefix = build(), f"{build.__name__}_"
        params |= {prefix + n: a for n, a in _parameters(part, data).items()}
    image = S.var("data")
    symbol = S.Group([_prefixed(build(), f"{build.__name__}_", image) for build in DETECTORS])
    report = mx.convert.convert(
        symbol, tmp_path / "all.pt2", [data.shape], params=params, tolerance=1e-5
    )
    assert report.passed
    other = RNG.uniform(-2, 2, data.shape).astype(np.float32)
    outputs = run_file(tmp_path / "all.pt2", {"other": {"data": other}})["other"]
    arrays = {**params, "data": mx.nd.array(other)}
    expected = symbol.bind(mx.cpu(), arrays, grad_req="null").forward()
    assert len(outputs) == len(expected) == 7
    for output, array in zip(outputs, expected, strict=True):
        assert relative_error(output, array.asnumpy()) < 1e-5


def _prefixed(symbol: Any, prefix: str, data: Any) -> Any:
    """Return a symbol whose parameters have names of their own."""
    renamed = {n: S.var(prefix + n) for n in symbol.list_arguments() if n != "data"}
    return symbol(data=data, **renamed)


def test_exported_programs_do_not_bake_in_example_values() -> None:
    """Value-dependent choices are exported or raise; caches keep no traced values."""
    x = S.var("data")
    module = to_torch(S.norm(x, axis=1), {}, shapes=[(2, 3)])
    for scale in (1e-30, 1.0, 1e30):
        data = np.full((2, 3), scale, np.float32)
        expected = mx.nd.norm(mx.nd.array(data), axis=1).asnumpy()
        np.testing.assert_allclose(module(torch.from_numpy(data)).numpy(), expected, rtol=1e-5)
    with pytest.raises(UnsupportedTorch, match="random numbers"):
        to_torch(S.image.random_flip_left_right(x), {}, shapes=[(2, 2, 3)])
    # The kernels' own caches hold plain arrays afterwards.
    to_torch(S.contrib.MultiBoxPrior(x * 7.25, sizes=(0.125,)), {}, shapes=[(1, 1, 3, 3)])
    again = mx.nd.contrib.MultiBoxPrior(mx.nd.ones((1, 1, 3, 3)) * 7.25, sizes=(0.125,))
    assert np.isfinite(again.asnumpy()).all()
