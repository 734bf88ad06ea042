"""The node tests of the ONNX project. Exclusions are listed with a reason."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
import pytest

import mxnet as mx
from mxnet.interop.onnx.export import build_model
from mxnet.interop.onnx.importer.integers import WIDER_TYPES
from mxnet.interop.onnx.importer.value import NeedsConstant
from mxnet.interop.onnx.importer.walk import Importer
from tests.batches import check_each
from tests.interop.onnx.running import check_files_here, run

# Excluded cases, by a part of their name or error message, with the reason.
EXCLUDED = {
    r"(?i)float8|int4|int2\b|int2_|float4|e4m3|e5m2|e8m0": "MXNet has no type of this kind",
    r"bitcast_uint(32|16)_to": "MXNet has these numbers in a type of another size",
    r"string|strnorm|label_encoder|regex|tfidf|equal_string": "text is not data of a network",
    r"ai_onnx_ml|adagrad|adam|momentum": "classic models and optimizers are other domains",
    r"image_decoder": "image files are read by mx.image",
    r"bernoulli|training_dropout": "random numbers differ",
    r"attention.*(bf16|fp16)": "sums of half precision round in another order",
    r"optional|melweightmatrix": "nothing is left to compute after import",
    r"if_seq|if_opt|loop13_seq|loop16": "sequences whose length depends on values",
    r"affine_grid.*expanded": "a rank that depends on values",
}
# Cases with such names that pass nevertheless.
NOT_EXCLUDED = {
    *(f"test_attention_4d_{n}" for n in ("fp16", "gqa_with_past_and_present_fp16")),
    *(f"test_attention_4d_{n}_expanded" for n in ("fp16", "gqa_with_past_and_present_fp16")),
    "test_attention_4d_gqa_causal_nonpad_decode_fp16",
    "test_attention_4d_gqa_causal_nonpad_decode_fp16_expanded",
    *("test_affine_grid_3d_expanded", "test_bitwise_or_i16_4d"),
    *("test_flexattention_fp16", "test_flexattention_fp16_expanded_ver26"),
    *("test_linear_attention_fp16", "test_linear_attention_fp16_expanded"),
    *(f"test_optional_get_element_{n}" for n in ("optional_sequence", "sequence", "tensor")),
    "test_optional_has_element_empty_no_input_name_optional_input",
    "test_optional_has_element_empty_no_input_name_tensor_input",
    "test_optional_has_element_empty_no_input_optional_input",
    "test_optional_has_element_empty_no_input_tensor_input",
    *("test_training_dropout_zero_ratio", "test_training_dropout_zero_ratio_mask"),
}
MIN_CASES = 1625
MAX_CONSTANTS = 8


def passing_names(cases: Iterable[str]) -> list[str]:
    """Return the names of cases that are not excluded."""
    return sorted(
        n for n in cases if n in NOT_EXCLUDED or not any(re.search(p, n) for p in EXCLUDED)
    )


def _imported(case: Any, feed: dict[str, np.ndarray]) -> tuple:
    """Import a model; inputs that a node needs as constants, such as shapes, become such."""
    constants: dict[str, np.ndarray] = {}
    for _ in range(MAX_CONSTANTS):
        try:
            importer = Importer(case.model, constants)
            return importer, *importer.run()
        except NeedsConstant as error:
            wanted = {n: feed[n] for n in error.roots if n in feed and n not in constants}
            if not wanted:
                raise
            constants.update(wanted)
            tensors = [n for n in feed if not isinstance(feed[n], list)]
            assert not tensors or set(tensors) - set(constants), "nothing is left to compute"
    raise AssertionError("too many inputs must be constants")


def _arrays(side: Any) -> list[Any]:
    """Return the values of a case as arrays and lists of arrays; some are protocol buffers."""
    proto, to_array = onnx.TensorProto, onnx.numpy_helper.to_array
    return [to_array(a) if isinstance(a, proto) else a for a in side]


def _to_ndarray(array: np.ndarray) -> mx.nd.NDArray:
    if array.dtype.name == "bfloat16":
        return mx.nd.array(array.astype("float32")).astype("bfloat16")
    return mx.nd.array(array, dtype=_held_type(array.dtype))


def _held_type(dtype: np.dtype) -> np.dtype:
    """Return the dtype that MXNet uses for integer types that it lacks."""
    return WIDER_TYPES.get(dtype, dtype)


def _to_numpy(array: mx.nd.NDArray) -> np.ndarray:
    if np.dtype(array.dtype).names:
        wide = array.astype("float32").asnumpy()
        return wide.astype(onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16))
    return np.asarray(array.asnumpy())


def _run(case: Any) -> None:
    inputs, wanted = (_arrays(side) for side in case.data_sets[0])
    names = [i.name for i in case.model.graph.input]
    feed = dict(zip(names, inputs, strict=True))
    with mx.util.np_shape(True):
        importer, symbol, args, aux = _imported(case, feed)
        used, states = set(symbol.list_inputs()), set(symbol.list_auxiliary_states())
        for name in importer.inputs:
            if name in used:
                target = aux if name in states else args
                target[name] = _to_ndarray(feed[name])
        executor = symbol.bind(mx.cpu(), args, aux_states=aux, grad_req="null")
        found = [_to_numpy(o) for o in executor.forward(is_train=False)]
    flat = [b for side in wanted for b in (side if isinstance(side, list) else [side])]
    for a, b in zip(found, flat, strict=True):
        assert a.shape == np.shape(b)
        assert a.dtype == _held_type(np.asarray(b).dtype)
        np.testing.assert_allclose(a, b, rtol=case.rtol, atol=max(case.atol, 1e-6))


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    """Return the ONNX library's own cases by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of them divide by zero while they are made
        from onnx.backend.test.case.node import collect_testcases

        return {case.name: case for case in collect_testcases(None)}


@pytest.mark.slow
def test_onnx_node_tests_pass(cases: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare values, shapes and dtypes of every case that is not excluded."""
    check_files_here(monkeypatch)
    names = passing_names(cases)
    assert len(names) >= MIN_CASES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_each({name: cases[name] for name in names}, _run)


# -- export after import ----------------------------------------------------------------------

NEWEST = 24
STEP = 6  # a part of all cases; all of them take minutes
# Cases that cannot be exported, or for which onnxruntime gives other results.
EXCEPTIONS = (
    r"bfloat16|BFLOAT16|bf16|bitshift|bitcast|cumprod|dft|stft|roialign_mode_max|_ceil_|"
    r"mod_float_edge|qk_matmul|attention.*(causal|window)|align_corners|convinteger|float16_type|reordered|"
    r"expanded|uint16|uint32|uint64|_int16|ui16|ui32|ui64|_i16"  # types that MXNet lacks
)


def _goes_out_again(case: Any) -> None:
    inputs, wanted = (_arrays(side) for side in case.data_sets[0])
    feed = dict(zip([i.name for i in case.model.graph.input], inputs, strict=True))
    with mx.util.np_shape(True):
        importer, symbol, args, aux = _imported(case, feed)
        used = set(symbol.list_inputs())
        free = {n: np.asarray(feed[n]) for n in importer.inputs if n in used}
        model = build_model(
            symbol,
            {**args, **aux},
            {n: a.shape for n, a in free.items()},
            {n: a.dtype for n, a in free.items()},
            opset=NEWEST,
        )
    flat = [b for side in wanted for b in (side if isinstance(side, list) else [side])]
    for found, each in zip(run(model, free), flat, strict=True):
        assert found.shape == np.shape(each)
        np.testing.assert_allclose(
            found.astype("float64"), np.asarray(each, "float64"), rtol=2e-3, atol=2e-5
        )


@pytest.mark.slow
def test_imported_node_tests_can_be_exported(
    cases: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every sixth case runs after import, export and in onnxruntime."""
    check_files_here(monkeypatch)
    names = [n for n in passing_names(cases) if not re.search(EXCEPTIONS, n)]
    assert len(names) > 900
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_each({name: cases[name] for name in names[::STEP]}, _goes_out_again)
