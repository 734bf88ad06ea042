"""Insert, delete, append and their relatives in `mx.np`: kinds of indices, empty arrays, scalars."""

# ruff: noqa: E501, SIM905 (a question a line, names in a row)

NUMPY = True

SETUP = """
import numpy as onp
ARRAYS = {
    'scalar': np.array(7.0), 'empty': np.zeros((0,)), 'one': np.array([5.0]), 'line': np.arange(4.0),
    'table': np.arange(6.0).reshape(3, 2), 'no_rows': np.zeros((0, 2)), 'no_columns': np.zeros((3, 0)),
    'ints': np.arange(4, dtype='int32'), 'bools': np.array([True, False, True], dtype='bool'),
}
scalar, empty, one, line, table, no_rows, no_columns, ints, bools = ARRAYS.values()

def wrote(array, key, value):
    array[key] = value
    return array
"""

ARRAYS = "scalar empty one line table no_rows no_columns ints bools".split()
AXES = ("None", "0", "1", "-1")
INDICES = (
    """
0|1|-1|2|slice(None)|slice(0, 0)|slice(1, 3)|slice(None, None, 2)|slice(None, None, -1)
np.array([0], dtype='int64')|np.array([0, 2], dtype='int64')|np.array([1, 1], dtype='int32')|np.array([], dtype='int64')
np.array(1, dtype='int64')|[0]|[0, 1]|[]|(0, 1)|[-1]
""".strip()
    .replace("\n", "|")
    .split("|")
)
VALUES = ("9", "9.5", "np.array(9.0)", "np.array([9.0])", "np.array([8.0, 9.0])", "[8, 9]", "empty")
KEYS = (
    """
0|-1|slice(None)|slice(0, 0)|slice(None, None, 2)|Ellipsis|None|()|[0]|[0, 0]|[]|True|False
np.array([0], dtype='int64')|np.array([], dtype='int64')|np.array(0, dtype='int64')|bools|onp.array([0])|onp.array([], dtype='int64')
(0, 0)|(slice(None), 0)|(Ellipsis, 0)|(None, 0)|(slice(None), [0])|([0], [0])|(0, None)|([0], slice(None))|(slice(None), None)
np.array([True], dtype='bool')|onp.array([True, False, True])|0.0|'a'|onp.int64(0)|(Ellipsis, slice(0, 0))
""".strip()
    .replace("\n", "|")
    .split("|")
)
CALLS = (
    """
append({a}, 1)|append({a}, {a})|append({a}, {a}, axis=0)|append({a}, empty)|append(empty, {a})|append({a}, one)
ravel({a})|squeeze({a})|squeeze({a}, axis=0)|expand_dims({a}, 0)|expand_dims({a}, -1)|flip({a})|flip({a}, 0)|roll({a}, 1)|roll({a}, 1, 0)
repeat({a}, 2)|repeat({a}, 2, 0)|repeat({a}, 0)|tile({a}, 2)|tile({a}, (2, 1))|tile({a}, 0)|rot90({a})|unique({a})|nonzero({a})
concatenate([{a}, {a}])|concatenate([{a}])|stack([{a}, {a}])|vstack([{a}, {a}])|hstack([{a}, {a}])|dstack([{a}, {a}])|column_stack([{a}, {a}])
atleast_1d({a})|atleast_2d({a})|atleast_3d({a})|diag({a})|diagonal({a})|tril({a})|transpose({a})|swapaxes({a}, 0, 0)|moveaxis({a}, 0, 0)
take({a}, np.array([0], dtype='int64'))|take({a}, np.array([], dtype='int64'))|take({a}, np.array(0, dtype='int64'))|take({a}, np.array([5], dtype='int64'), mode='clip')|take({a}, np.array([5], dtype='int64'), mode='wrap')|take({a}, np.array([0], dtype='int64'), axis=0)
sum({a})|sum({a}, axis=0)|mean({a})|mean({a}, axis=0)|prod({a})|prod({a}, axis=0)|max({a})|max({a}, axis=0)|min({a})|argmax({a})|argmax({a}, axis=0)|argmin({a})|any({a})|all({a})|std({a})|var({a}, axis=0)
cumsum({a})|cumsum({a}, axis=0)|sort({a})|argsort({a})|sort({a}, axis=0)|diff({a})|ediff1d({a})|where({a})|where({a}, {a}, 0)|where({a} > 0, 1, {a})|clip({a}, 0, 1)|around({a}, 1)|median({a})|percentile({a}, 50)|bincount({a})
reshape({a}, (-1,))|reshape({a}, ())|reshape({a}, (1, -1))|reshape({a}, (0, -1))|broadcast_to({a}, (2, 2))|broadcast_to({a}, (0,))|zeros_like({a})|full_like({a}, 3)|split({a}, 1)|split({a}, [0])|split({a}, [1, 1])|array_split({a}, 2)|dot({a}, {a})|inner({a}, {a})|outer({a}, {a})|vdot({a}, {a})|tensordot({a}, {a}, 0)|matmul({a}, {a})|kron({a}, {a})
pad({a}, 1)|pad({a}, ((1, 1),))|count_nonzero({a})|isin({a}, one)|meshgrid({a}, {a})|histogram({a}, 2)|linalg.norm({a})|trace({a})|indices({a}.shape)|may_share_memory({a}, {a})|shape({a})|ndim({a})|size({a})
""".strip()
    .replace("\n", "|")
    .split("|")
)

EXPRESSIONS = [
    *(f"np.delete({a}, {i}, {x})" for a in ARRAYS for i in INDICES for x in AXES),
    *(f"np.insert({a}, {i}, 9, {x})" for a in ARRAYS for i in INDICES for x in AXES),
    *(f"np.insert({a}, {i}, {v}, 0)" for a in ARRAYS for i in INDICES[:14] for v in VALUES[1:]),
    *(f"{a}[{k}]" for a in ARRAYS for k in KEYS),
    *(f"wrote({a}, {k}, 3)" for a in ARRAYS for k in KEYS),
    *(f"wrote({a}, {k}, np.array([3.0]))" for a in ARRAYS for k in KEYS),
    *(f"wrote({a}, {k}, empty)" for a in ARRAYS for k in KEYS),
    *(f"np.{call.format(a=a)}" for a in ARRAYS for call in CALLS),
]
# Values that do not broadcast and indices out of range are errors; MXNet cuts off, or reads other
# memory. A NumPy mask selects; MXNet takes it for the numbers 0 and 1.
ON_PURPOSE = (
    r"np.insert\(no_columns, .*np.array\(\[8.0, 9.0\]\), 0\)",
    r"np.insert\((one|empty), np.array\((1|\[0, 2\]), dtype='int64'\), .*",
    r"np.percentile\((empty|no_columns|no_rows), 50\)",
    r"wrote\(.*, onp.array\(\[True, False, True\]\), .*",
)
