"""Record what MXNet 1.9.1's op hooks call inputs and outputs. Run inside an MXNet environment:

PYTHONPATH=. python tests/golden/record/record_hook_names.py

Rows are those of the grammar tests, one for each operator; `CachedOp` shows each of them alone.
"""

from __future__ import annotations

import json
import pathlib
import sys
import types

import mxnet as mx

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
FILE = DATA / "hook_names.json"
PREFIXES = {
    "_contrib_": [mx.sym.contrib],
    "_linalg_": [mx.sym.linalg],
    "_image_": [mx.sym.image],
    "_npi_": [mx.sym.np._internal],
    "_np_": [mx.sym.np._internal, mx.sym.np],
    "_npx_": [mx.sym.npx],
}


def function_of(name):
    """Return the function that makes a symbol of an operator, or None."""
    for space in (mx.sym, mx.sym._internal):
        if hasattr(space, name):
            return getattr(space, name)
    for prefix, spaces in PREFIXES.items():
        for space in spaces:
            if name.startswith(prefix) and hasattr(space, name[len(prefix) :]):
                return getattr(space, name[len(prefix) :])
    return None


def names_of(row):
    """Return the names that a hook meets in a run of one row."""
    is_np = row.op.startswith(("_np_", "_npi_", "_npx_"))
    arrays = [mx.nd.array(a, dtype=a.dtype) for a in row.arrays()]
    variables = [mx.sym.Variable(f"v{i}") for i in range(len(arrays))]
    if is_np:
        arrays = [a.as_np_ndarray() for a in arrays]
        variables = [v.as_np_ndarray() for v in variables]
    out = function_of(row.op)(*variables, name="node", **row.attrs)
    symbol = mx.sym.Group(list(out)) if isinstance(out, list | tuple) else out
    cached, names = mx.nd.CachedOp(symbol, []), []
    cached._register_op_hook(lambda name, op, array: names.append(mx.base.py_str(name)), True)
    cached(*[arrays[int(name[1:])] for name in symbol.list_inputs()])
    return names


def main():
    """Write the names by the keys of the rows."""
    package = types.ModuleType("tests")  # without what only our own tests can import
    package.__path__ = [str(HERE.parents[1])]
    sys.modules["tests"] = package
    from tests.grammar.sampling import families, rows_of

    recorded, done = {}, set()
    for family in families():
        for row in rows_of(family):
            if row.op in done or function_of(row.op) is None:
                continue
            try:
                recorded[row.key] = names_of(row)
            except (mx.MXNetError, TypeError, ValueError, IndexError):
                continue  # some rows have no gradient, or no inputs, which a CachedOp needs
            done.add(row.op)
    FILE.write_text(json.dumps(recorded, indent=0) + "\n")
    print(len(recorded), "operators")


if __name__ == "__main__":
    main()
