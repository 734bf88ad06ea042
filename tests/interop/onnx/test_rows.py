"""Every exported operator is valid ONNX and computes the same in onnxruntime."""

from __future__ import annotations

import pathlib

import numpy as np
import onnx
import pytest

import mxnet as mx
from mxnet.interop.onnx.builder import UnsupportedExport, rows, why_refused
from mxnet.interop.onnx.export import build_model
from mxnet.interop.torch_rows import REFUSED
from mxnet.ops import registry
from tests.grammar.calling import arrays_of, call, compose
from tests.grammar.conftest import sampled
from tests.grammar.sampling import Row
from tests.interop.onnx.running import assert_equal_outputs, run

MAX_ROWS = 2
# Rows that ONNX cannot express, or that runtimes compute differently.
WITHOUT_NAN = {
    *("max", "min", "argmax", "argmin", "sign", "broadcast_mod", "_np_max", "_np_min"),
    *("_npi_argmax", "_npi_argmin", "_npi_sign"),
}
OUT_OF_RANGE = {"softmax_cross_entropy", "_hypot_scalar"}
FLOATS_ONLY = {"sigmoid", "_contrib_quadratic", "_image_normalize"}
PARAMETERS = {"RNN": {"in1"}}


def _exported_samples() -> dict[tuple[str, bool], list[Row]]:
    """Return the sample rows of each exported operator, and whether it is of `mx.np`."""
    found: dict[tuple[str, bool], list[Row]] = {}
    for (family, name), samples in sampled().items():
        op = registry.get(name).name
        if op in rows():
            found.setdefault((op, family.startswith("numpy_")), []).extend(samples)
    return found


def _build(row: Row, arrays: list, opset: int) -> tuple[onnx.ModelProto, dict]:
    """Return the model of a sample row and its inputs."""
    op = registry.get(row.op)
    named = {f"in{i}": a for i, a in enumerate(arrays)}
    symbol = compose(row, [mx.sym.var(name) for name in named])
    params = {n: named[n] for n in PARAMETERS.get(op.name, ())}
    free = {n: a for n, a in named.items() if n in symbol.list_inputs() and n not in params}
    shapes = {n: a.shape for n, a in free.items()}
    types = {n: a.dtype for n, a in free.items()}
    return build_model(symbol, params, shapes, types, opset=opset), free


def _cases() -> list:
    return [
        pytest.param(is_np, _spread(s), id=f"{op}-numpy" if is_np else op)
        for (op, is_np), s in _exported_samples().items()
        if op not in OUT_OF_RANGE
    ]


def _spread(samples: list[Row]) -> list[Row]:
    """Return rows spread over the grid first; the others replace unsupported ones."""
    step = -(-len(samples) // MAX_ROWS)
    return samples[::step] + [s for i, s in enumerate(samples) if i % step]


def _is_meant(op: str, arrays: list) -> bool:
    values = [a.asnumpy() for a in arrays]
    floats = [v for v in values if v.dtype.kind == "f"]
    if op in WITHOUT_NAN and not all(np.isfinite(v).all() for v in floats):
        return False
    return not (op in FLOATS_ONLY and len(floats) < len(values))


@pytest.mark.parametrize(("is_np", "samples"), _cases())
def test_exported_operators_match_in_onnxruntime(is_np: bool, samples: list[Row]) -> None:
    """Compare values, shapes and dtypes over the grid of options."""
    with mx.util.np_shape(is_np):
        _check_rows(samples)


def _check_rows(samples: list[Row]) -> None:
    tried = 0
    for row in samples:
        if tried == MAX_ROWS:
            break
        op = registry.get(row.op)
        arrays = arrays_of(row)
        if not _is_meant(op.name, arrays):
            continue
        wanted = [o.asnumpy() for o in call(row, [a.copy() for a in arrays])]
        try:
            model, free = _build(row, arrays, max(16, rows()[op.name].since))
        except UnsupportedExport as error:
            assert op.name in str(error)
            continue
        found = run(model, {n: a.asnumpy() for n, a in free.items()})
        loose = any(a.dtype == np.float16 for a in wanted)
        assert_equal_outputs(found, wanted, *((5e-3, 5e-3) if loose else (1e-4, 1e-5)))
        tried += 1
    assert tried or op.name in {"Dropout"}


def test_every_export_row_is_a_registered_operator() -> None:
    """The table is keyed by registry names, not by aliases."""
    assert [n for n in rows() if registry.get(n).name != n] == []


def test_supports_all_operators_that_mxnet_exports() -> None:
    """All 149 operators, under their registered names."""
    listed = set(mx.onnx.get_operator_support(13))
    theirs = mxnet_names() - {"null"}
    assert {registry.get(n).name for n in theirs} <= listed
    assert len(listed) > len(theirs)


def mxnet_names() -> set[str]:
    """Return the operators that MXNet 1.9.1 says it exports."""
    return set((pathlib.Path(__file__).parent / "mxnet_exports.txt").read_text().split())


def _error(row: Row, opset: int) -> str | None:
    try:
        onnx.checker.check_model(_build(row, arrays_of(row), opset)[0], full_check=True)
    except UnsupportedExport:
        return None
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return f"{row.op} at opset {opset}: {error}"
    return None


@pytest.mark.parametrize("opset", [12, 13, 15, 18, 21])
def test_exported_nodes_are_valid_in_their_opset(opset: int) -> None:
    """Check inputs, attributes and types."""
    failed = []
    for (_, is_np), samples in _exported_samples().items():
        with mx.util.np_shape(is_np):
            failed.append(_error(samples[len(samples) // 2], opset))
    assert [f for f in failed if f] == []


def _checked(symbol: mx.sym.Symbol, opset: int, **inputs: np.ndarray) -> list[np.ndarray]:
    shapes = {n: a.shape for n, a in inputs.items()}
    types = {n: a.dtype for n, a in inputs.items()}
    model = build_model(symbol, {}, shapes, types, opset=opset)
    onnx.checker.check_model(model, full_check=True)
    return run(model, inputs)


@pytest.mark.parametrize("opset", [12, 13, 14])
def test_resize_in_every_opset(opset: int) -> None:
    """Before opset 13 all inputs of Resize are required."""
    x = np.arange(4, dtype="float32").reshape(1, 1, 2, 2)
    data = mx.sym.var("data")
    for symbol in (
        mx.sym.UpSampling(data, scale=2, sample_type="nearest"),
        mx.sym.contrib.BilinearResize2D(data, height=3, width=5),
    ):
        wanted = symbol.eval(data=mx.nd.array(x))[0].asnumpy()
        np.testing.assert_allclose(_checked(symbol, opset, data=x)[0], wanted, rtol=1e-5)


def _reshaped(sizes: list[int], opset: int) -> onnx.ModelProto:
    data, to = mx.sym.var("data"), mx.nd.array(sizes, dtype="int64")
    symbol = mx.sym._internal._onnx_reshape(data, mx.sym.var("to"), allowzero=True)
    with mx.util.np_shape(True):
        model = build_model(symbol, {"to": to}, {"data": (0, 3)}, opset=opset)
    onnx.checker.check_model(model, full_check=True)
    return model


@pytest.mark.parametrize("opset", [12, 13, 14])
def test_reshape_with_zeros_in_every_opset(opset: int) -> None:
    """allowzero exists since opset 14; before, a 0 copies the input size."""
    feed = {"data": np.zeros((0, 3), "float32")}
    assert run(_reshaped([0, 1, 3], opset), feed)[0].shape == (0, 1, 3)
    if opset < 14:
        with pytest.raises(UnsupportedExport, match="allowzero needs opset_version=14"):
            _reshaped([3, 0], opset)
    else:
        assert run(_reshaped([3, 0], opset), feed)[0].shape == (3, 0)


@pytest.mark.parametrize("opset", [12, 18])
def test_range_of_float16(opset: int) -> None:
    ends = [np.array([v], "float16") for v in (0, 3, 0.5)]
    names = ("start", "stop", "step")
    symbol = mx.sym._internal._onnx_range(*map(mx.sym.var, names))
    (found,) = _checked(symbol, opset, **dict(zip(names, ends, strict=True)))
    assert found.dtype == np.float16 and found.tolist() == np.arange(0, 3, 0.5).tolist()


def test_image_normalize_of_float16() -> None:
    symbol = mx.sym.image.normalize(mx.sym.var("data"), mean=(1.0,), std=(2.0,))
    x = np.ones((3, 2, 2), "float16") * 5
    (found,) = _checked(symbol, 13, data=x)
    assert found.dtype == np.float16 and (found == 2).all()


def test_bfloat16_requires_opset_13() -> None:
    symbol = mx.sym.cast(mx.sym.var("data"), dtype="bfloat16")
    with pytest.raises(UnsupportedExport, match="bfloat16 needs opset_version=13"):
        build_model(symbol, {}, [(2,)], opset=12)


def _in(dtype: str, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.RandomState(0)
    return [rng.uniform(-0.5, 0.5, shape).astype(dtype) for shape in shapes]


TYPED = {
    "anchors": (lambda x: mx.sym.contrib.MultiBoxPrior(x, sizes=(0.3, 0.5)), ((1, 2, 3, 4),)),
    "affine grid": (
        lambda x: mx.sym.GridGenerator(x, transform_type="affine", target_shape=(3, 4)),
        ((2, 6),),
    ),
    "warped grid": (lambda x: mx.sym.GridGenerator(x, transform_type="warp"), ((1, 2, 3, 4),)),
    "sampled": (lambda x, y: mx.sym.BilinearSampler(x, y), ((1, 2, 4, 4), (1, 2, 3, 3))),
    "transformed": (
        lambda x, y: mx.sym.SpatialTransformer(
            x, y, target_shape=(3, 4), transform_type="affine", sampler_type="bilinear"
        ),
        ((1, 2, 4, 4), (1, 6)),
    ),
    "deformed": (
        lambda x, y, z: mx.sym.contrib.DeformableConvolution(
            x, y, z, kernel=(3, 3), pad=(1, 1), num_filter=2, no_bias=True
        ),
        ((1, 2, 4, 4), (1, 18, 4, 4), (2, 2, 3, 3)),
    ),
}


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("name", TYPED)
def test_constants_have_the_dtype_of_the_data(name: str, dtype: str) -> None:
    build, shapes = TYPED[name]
    arrays = dict(zip("abc", _in(dtype, *shapes), strict=False))
    symbol = build(*map(mx.sym.var, arrays))
    (wanted,) = symbol.eval(**{n: mx.nd.array(a, dtype=dtype) for n, a in arrays.items()})
    (found,) = _checked(symbol, 19, **arrays)
    assert found.dtype == np.dtype(dtype)
    limit = 0.02 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(found, wanted.asnumpy(), rtol=limit, atol=limit)


def test_error_for_unsupported_operators_names_an_alternative() -> None:
    """It suggests torch only for operators that torch supports."""
    others = [op.name for op in registry.operators() if op.name not in rows()]
    texts = {name: why_refused(name) for name in others}
    assert {n for n in texts if n in REFUSED and "--to torch" in texts[n]} == set()
    assert "takes matrices apart" in texts["_linalg_potrf"]
    assert "for training" in texts["_contrib_MultiBoxTarget"]
    with pytest.raises(UnsupportedExport, match="needs the gamma function, which ONNX does not"):
        build_model(mx.sym.gammaln(mx.sym.var("x")), {}, {"x": (2,)}, {"x": np.float32})
