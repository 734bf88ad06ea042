"""Law: an exported operator computes in onnxruntime what it computes here."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import mxnet as mx
from mxnet.onnx.builder import UnsupportedExport, rows
from mxnet.onnx.export import build_model
from mxnet.ops import registry
from mxnet.symbol.codegen import make_function
from tests.grammar.calling import arrays_of, call
from tests.grammar.conftest import sampled
from tests.grammar.sampling import Row
from tests.onnx.running import assert_equal_outputs, run

MOST_ROWS = 2
# What these rows do on purpose cannot be said in ONNX, or runtimes do it otherwise.
WITHOUT_NAN = {
    *("max", "min", "argmax", "argmin", "sign", "broadcast_mod", "_np_max", "_np_min"),
    *("_npi_argmax", "_npi_argmin", "_npi_sign"),
}
OUT_OF_RANGE = {"softmax_cross_entropy", "_hypot_scalar"}
FLOATS_ONLY = {"sigmoid", "_contrib_quadratic", "_image_normalize"}
PARAMETERS = {"RNN": {"in1"}}


def _cases() -> list:
    found: dict[tuple[str, bool], list[Row]] = {}
    for (family, name), samples in sampled().items():
        op = registry.get(name).name
        if op in rows() and op not in OUT_OF_RANGE:
            found.setdefault((op, family.startswith("numpy_")), []).extend(samples)
    return [
        pytest.param(is_np, _spread(s), id=f"{op}-numpy" if is_np else op)
        for (op, is_np), s in found.items()
    ]


def _spread(samples: list[Row]) -> list[Row]:
    """Return rows from all over the grid first; the others are for when those are refused."""
    step = -(-len(samples) // MOST_ROWS)
    return samples[::step] + [s for i, s in enumerate(samples) if i % step]


def _is_meant(op: str, arrays: list) -> bool:
    values = [a.asnumpy() for a in arrays]
    floats = [v for v in values if v.dtype.kind == "f"]
    if op in WITHOUT_NAN and not all(np.isfinite(v).all() for v in floats):
        return False
    return not (op in FLOATS_ONLY and len(floats) < len(values))


@pytest.mark.parametrize(("is_np", "samples"), _cases())
def test_exported_operator_equals_ours(is_np: bool, samples: list[Row]) -> None:
    """Values, shapes and dtypes agree for rows over the grid of options."""
    with mx.util.np_shape(is_np):
        _check_rows(samples)


def _check_rows(samples: list[Row]) -> None:
    tried = 0
    for row in samples:
        if tried == MOST_ROWS:
            break
        op = registry.get(row.op)
        arrays = arrays_of(row)
        if not _is_meant(op.name, arrays):
            continue
        wanted = [o.asnumpy() for o in call(row, [a.copy() for a in arrays])]
        named = {f"in{i}": a for i, a in enumerate(arrays)}
        inputs = [mx.sym.Variable(n) for n in named]
        symbol = make_function(op, row.op)(*inputs, name="it", **row.attrs)
        params = {n: named[n] for n in PARAMETERS.get(op.name, ())}
        free = {n: a for n, a in named.items() if n in symbol.list_inputs() and n not in params}
        try:
            model = build_model(
                symbol,
                params,
                {n: a.shape for n, a in free.items()},
                {n: a.dtype for n, a in free.items()},
                opset=max(16, rows()[op.name].since),
            )
        except UnsupportedExport as error:
            assert op.name in str(error)
            continue
        found = run(model, {n: a.asnumpy() for n, a in free.items()})
        loose = any(a.dtype == np.float16 for a in wanted)
        assert_equal_outputs(found, wanted, *((5e-3, 5e-3) if loose else (1e-4, 1e-5)))
        tried += 1
    assert tried or op.name in {"Dropout"}


def test_every_row_is_a_registered_operator() -> None:
    """The table is keyed by the first name of operators, no alias among them."""
    assert [n for n in rows() if registry.get(n).name != n] == []


def test_support_lists_what_mxnet_exports() -> None:
    """All 149 operators that MXNet 1.9.1 exports are here, under their registered names."""
    listed = set(mx.onnx.get_operator_support(13))
    theirs = mxnet_names() - {"null"}
    assert {registry.get(n).name for n in theirs} <= listed
    assert len(listed) > len(theirs)


def mxnet_names() -> set[str]:
    """Return the operators that MXNet 1.9.1 says it exports."""
    return set((pathlib.Path(__file__).parent / "mxnet_exports.txt").read_text().split())
