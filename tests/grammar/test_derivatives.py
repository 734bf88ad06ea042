"""Law: the formulas of an operator's derivative give the gradients that torch gives."""

from __future__ import annotations

import inspect

import torch

from mxnet.graph.node import Node
from mxnet.ops import registry
from mxnet.ops.attributes import to_string
from tests.grammar.calling import arrays_of
from tests.grammar.laws import hold_for_all
from tests.grammar.sampling import Row


def _compare(row: Row) -> None:
    op = registry.get(row.op)
    attrs = Node(op, "node", {k: to_string(v) for k, v in row.attrs.items()}).typed
    formulas = op.derivative_rule(attrs)
    if formulas is None:
        return
    names = op.names_of_inputs(attrs)
    tensors = dict(zip(names, [a._data for a in arrays_of(row)], strict=True))
    leaves = {n: tensors[n].double().requires_grad_() for n in formulas if n in tensors}
    given = {
        n: leaves.get(n, t if not t.is_floating_point() else t.double()) for n, t in tensors.items()
    }
    out = op.kernel(*[given.get(i.name) for i in op.inputs], **attrs)
    grad = torch.linspace(0.5, 1.5, out.numel(), dtype=out.dtype).reshape(out.shape)
    wanted = torch.autograd.grad(out, list(leaves.values()), grad, allow_unused=True)
    values = {**given, "out": out, "grad": grad}
    for (name, leaf), expected in zip(leaves.items(), wanted, strict=True):
        read = inspect.signature(formulas[name]).parameters
        with torch.no_grad():
            found = formulas[name](**{n: values[n] for n in read if n in values})
            assert found.shape == leaf.shape
            torch.testing.assert_close(found, expected)
            if "into" in read:
                place = torch.zeros_like(leaf)
                arguments = {n: values[n] for n in read if n in values}
                assert formulas[name](**arguments, into=place).data_ptr() == place.data_ptr()
                torch.testing.assert_close(place, expected)


def test_formulas_give_torchs_gradients(family: str, rows: list[Row]) -> None:
    """For every sampled call of an operator that has formulas."""
    chosen = [r for r in rows if r.grad and registry.get(r.op).derivative_rule is not None]
    hold_for_all(chosen, _compare)
