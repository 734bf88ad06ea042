"""Every operator's samples on a device: forward, gradients, `out=`, `grad_req`, bound graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

import mxnet as mx
from mxnet.ops import registry
from tests.device import second_device
from tests.device.cases.comparing import assert_close, assert_on, values
from tests.grammar.calling import arrays_of, call, differentiable, run_backward
from tests.grammar.properties import check_all, for_rows
from tests.grammar.sampling import Row


def _run(row: Row, grad_req: str = "write", times: int = 1) -> tuple[list, list]:
    """Return outputs and gradients in the current context."""
    arrays = arrays_of(row)
    positions = differentiable(arrays) if row.has_gradients else []
    for _ in range(times):
        outputs = run_backward(row, arrays, positions, grad_req) if positions else call(row, arrays)
    return outputs, [arrays[i].grad for i in positions]


def _compare(row: Row, ctx: mx.Context) -> None:
    mx.random.seed(0)
    expected = [values(part) for part in _run(row)]
    with ctx:
        mx.random.seed(0)
        actual = _run(row)
    for arrays, right in zip(actual, expected, strict=True):
        assert_on(ctx, *arrays)
        assert_close(values(arrays), right, row.rtol, row.atol)


def _kind(row: Row) -> tuple:
    """Return what selects the code path of an operator: flags, inputs and dtypes, not sizes."""
    switches = [(k, v) for k, v in sorted(row.attrs.items()) if isinstance(v, bool | str)]
    types = [str(getattr(v, "dtype", "float32")) for v in row.inputs.values()]
    return row.op, row.train, tuple(sorted(row.attrs)), repr(switches), tuple(types)


@for_rows(lambda row: True)
def test_forward_and_gradients(family: str, rows: list[Row], last: mx.Context) -> None:
    """One row of each kind; the next test runs all."""
    chosen = {_kind(row): row for row in rows}
    check_all(list(chosen.values()), lambda row: _compare(row, last))


@pytest.mark.slow
@for_rows(lambda row: True)
def test_forward_and_gradients_of_all_rows(family: str, rows: list[Row], last: mx.Context) -> None:
    check_all(rows, lambda row: _compare(row, last))


@for_rows(lambda row: not registry.get(row.op).facts.random and not row.train, at_most=1)
def test_out_argument(family: str, rows: list[Row], last: mx.Context) -> None:
    """`out=` is written on its device."""

    def check(row: Row) -> None:
        with last:
            outputs = call(row, arrays_of(row))
            targets = [o.zeros_like() for o in outputs]
            call(row, arrays_of(row), out=targets if len(targets) > 1 else targets[0])
        assert_on(last, *targets)
        assert_close(values(targets), values(outputs), row.rtol, row.atol)

    check_all(rows, check)


@for_rows(lambda row: row.has_gradients and not registry.get(row.op).facts.random, at_most=1)
def test_grad_req_add(family: str, rows: list[Row], last: mx.Context) -> None:
    def check(row: Row) -> None:
        expected = values(_run(row, "add", times=2)[1])
        with last:
            gradients = _run(row, "add", times=2)[1]
        assert_on(last, *gradients)
        assert_close(values(gradients), expected, row.rtol, row.atol)

    check_all(rows, check)


MIN_OPERATORS = 150


@pytest.mark.skipif(not second_device.is_loaded(), reason="only the second device keeps a list")
def test_operators_have_cuda_kernels() -> None:
    """All operators called so far have a CUDA kernel in torch's table."""
    yaml = pytest.importorskip("yaml")
    torchgen = pytest.importorskip("torchgen")
    table = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    rows = {
        row["func"].split("(")[0]: row for row in yaml.load(table.read_text(), yaml.CSafeLoader)
    }
    operators = {name.removeprefix("aten::") for name in second_device.operators()}
    if len(operators) < MIN_OPERATORS:
        pytest.skip("the tests before this one run the operators, and were left out")
    missing = [name for name in sorted(operators) if not _runs_on_cuda(rows, name)]
    assert not missing


def _runs_on_cuda(rows: dict[str, dict], name: str) -> bool:
    row = rows[name]
    if "structured_delegate" in row:
        return _runs_on_cuda(rows, row["structured_delegate"])
    if "ufunc_inner_loop" in row or "dispatch" not in row:
        return True
    keys = {key.strip() for keys in row["dispatch"] for key in keys.split(",")}
    return "CUDA" in keys or any(key.startswith("Composite") for key in keys)
