"""Errors for invalid inputs use MXNet's terms, not torch's."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import mxnet as mx
from mxnet.ndarray import NDArray

from .calling import arrays_of, call
from .sampling import Row, families, rows_of

TORCH_WORDS = re.compile(
    r"\bmat[12]\b|\bbatch[12]\b|\b[Tt]ensors?\b|aten::|non-singleton|torch\."
    r"|\b(Half|Float|Double|Long)\b|scalar type"
)


def misfits(array: NDArray) -> Iterator[NDArray]:
    """Yield invalid values for an array argument."""
    yield mx.nd.concat(array, array, dim=array.ndim - 1)
    yield array.reshape((-1,))
    yield array.expand_dims(0)
    yield array.astype("float64")
    yield array.astype("int32")


def errors(row: Row) -> Iterator[Exception]:
    """Yield the errors of an operator for each invalid input."""
    given = arrays_of(row)
    for i, array in enumerate(given):
        if not isinstance(array, NDArray) or array.stype != "default" or not array.ndim:
            continue
        for other in misfits(array):
            try:
                for made in call(row, [*given[:i], other, *given[i + 1 :]]):
                    made.asnumpy()
            except Exception as error:
                yield error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", families())
def test_invalid_inputs_raise_without_torch_terms(family: str) -> None:
    first = {row.op: row for row in reversed(rows_of(family))}
    wrong = [
        f"{row.op}: {type(error).__name__}: {error}"
        for row in first.values()
        for error in errors(row)
        if TORCH_WORDS.search(str(error))
        or not isinstance(error, mx.MXNetError | ValueError | TypeError)
    ]
    assert wrong == []
