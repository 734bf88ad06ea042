"""Unusual inputs give a result or an error that names the operator."""

from __future__ import annotations

import warnings

import numpy as np

import mxnet as mx
from mxnet.ops import registry
from tests.grammar.calling import arrays_of, call
from tests.grammar.properties import check_all, for_rows
from tests.grammar.sampling import Row

ACCEPTED = (mx.MXNetError, ValueError, TypeError, IndexError)


def _with_first(row: Row, change: object) -> list:
    arrays = arrays_of(row)
    arrays[0] = mx.nd.NDArray(change(arrays[0].to_torch()).contiguous())
    return arrays


def _specials(tensor):
    if not tensor.is_floating_point():
        return tensor
    flat = tensor.clone().reshape(-1)
    for place, value in zip(
        range(flat.numel()), (np.nan, np.inf, -np.inf, 1e30, -1e-30), strict=False
    ):
        flat[place] = value
    return flat.reshape(tensor.shape)


CHANGES = {
    "empty": lambda t: t[:0] if t.ndim else t,
    "one element": lambda t: t.reshape(-1)[:1],
    "one axis more": lambda t: t.unsqueeze(0),
    "one axis less": lambda t: t[0] if t.ndim and t.shape[0] else t,
    "nan and inf": _specials,
}


@for_rows(lambda row: row.inputs and not registry.get(row.op).value_dependent, at_most=2)
def test_unusual_inputs_return_or_raise_an_mxnet_error(family: str, rows: list[Row]) -> None:
    def check(row: Row) -> None:
        for name, change in CHANGES.items():
            try:
                arrays = _with_first(row, change)
            except (IndexError, ValueError):
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    for out in call(row, arrays):
                        out.asnumpy()
            except ACCEPTED as error:
                assert str(error), f"{name}: an error without words"
            except RuntimeError as error:
                raise AssertionError(f"{name}: torch's own error came out: {error}") from error

    check_all(rows, check)
