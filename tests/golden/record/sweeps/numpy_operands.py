"""NumPy's scalars and arrays beside those of `mx.np`, with any strides, in any function."""

# ruff: noqa: E501, SIM905 (a question a line, names in a row)

NUMPY = True

SETUP = """
import numpy as onp
import operator
a, z = np.array([5.0, 6.0]), np.array(5.0)
i = np.array([5, 6], dtype='int64')
host, host_z, host_i = onp.array([2.0, 4.0]), onp.array(2.0), onp.array([2, 4])
column = onp.arange(3.0, dtype='float32').reshape(3, 1)
back = onp.arange(4.0, dtype='float32')[::-1]
table = onp.arange(12.0, dtype='float32').reshape(3, 4)
both = table[::-1, ::-1]
turned = table.T[::-1]
sparse_steps = onp.arange(24.0, dtype='float32').reshape(2, 3, 4)[::-1, 1:, ::-2]
repeated = onp.broadcast_to(onp.arange(3.0, dtype='float32'), (2, 3))
none = table[:0, ::-1]
order = onp.argsort(onp.array([2.0, 0.0, 1.0]))[::-1]
mask = onp.array([True, False, True])[::-1]
x = np.array(table)
old = mx.nd.array(table)

def text(value):
    number = value.item() if value.size == 1 else value.tolist()
    kind = 'mx' if isinstance(value, np.ndarray) else 'numpy'
    return kind + ' ' + str(number)

def wrote(array, key, value):
    array[key] = value
    return array

def batch(data, **options):
    return mx.io.NDArrayIter(data, batch_size=2, **options).next().data[0]

def added(array, other):
    array += other
    return array
"""

UFUNCS = "floor_divide logaddexp heaviside nextafter float_power fmod fmax fmin logical_and".split()
KNOWN = "add subtract multiply power maximum hypot arctan2 remainder greater equal copysign".split()
COMPARED = "gt lt ge le eq ne add sub mul truediv mod pow floordiv".split()
SCALARS = "onp.float64(2) onp.float32(2) onp.int64(2) onp.bool_(True)".split()
STRIDED = (
    "column[:,::-1] back both turned sparse_steps repeated none table[1:,1:] back[::2]".split()
)
TAKERS = (
    """
np.array({s})|mx.nd.array({s})|mx.nd.array({s}, dtype='float64')|mx.nd.from_numpy({s}, zero_copy=False)|np.array({s}, dtype='int32')
np.array([{s}, {s}])|np.zeros_like(np.array({s}))|wrote(np.zeros({s}.shape), slice(None), {s})|wrote(mx.nd.zeros({s}.shape), slice(None), {s})
wrote(np.zeros({s}.shape), Ellipsis, {s})|mx.nd.array({s}.tolist() if {s}.size else [])|np.array({s}).asnumpy()|mx.nd.array([{s}[0]]) if len({s}) else 0
mx.nd.zeros({s}.shape) + mx.nd.array({s})|mx.nd.array({s}).tostype('row_sparse').asnumpy()|mx.nd.sparse.csr_matrix({s}).asnumpy() if {s}.ndim == 2 else 0
mx.nd.sparse.row_sparse_array({s}).asnumpy()|mx.test_utils.same({s}, {s}.copy())|mx.gluon.data.ArrayDataset({s})[0] if len({s}) else 0
next(iter(mx.gluon.data.DataLoader({s}, 1))) if len({s}) else 0|mx.gluon.utils.split_data(mx.nd.array({s}), 1)[0]|batch({s}) if len({s}) > 1 else 0
mx.image.imresize(mx.nd.array({s}[:, :, None] if {s}.ndim == 2 else {s}), 2, 2) if {s}.ndim == 2 and {s}.size else 0|np.append(np.array({s}), 1)
mx.init.Constant(mx.nd.array({s})) and 0|mx.gluon.Constant('c', {s}).value if 0 else 0
""".strip()
    .replace("\n", "|")
    .split("|")
)

EXPRESSIONS = [
    *(
        f"onp.{name}({left}, {right})"
        for name in (*UFUNCS, *KNOWN)
        for left, right in [("a", "host"), ("a", "host_z"), ("z", "host"), ("z", "host_z")]
    ),
    *(f"onp.{name}(a, {number})" for name in (*UFUNCS, *KNOWN) for number in SCALARS),
    *(f"onp.{name}({number}, a)" for name in KNOWN for number in SCALARS),
    *(f"onp.{name}(i, host_i)" for name in ("gcd", "left_shift", "bitwise_and", "lcm")),
    *(f"operator.{name}({left}, {n})" for name in COMPARED for left in "azi" for n in SCALARS),
    *(f"operator.{name}({n}, {right})" for name in COMPARED for right in "azi" for n in SCALARS),
    *(
        f"text({function}({left}, {right}))"
        for function in ("max", "min")
        for left, right in [
            ("host[-1]", "a[-1]"),
            ("host_z", "a[:1]"),
            ("onp.float32(5.5)", "z"),
            ("z", "onp.float32(5.5)"),
            ("a[:1]", "host[-1]"),
            ("host[:1]", "z"),
        ]
    ),
    *(taker.format(s=s) for s in STRIDED for taker in TAKERS),
    *(f"{array}[{key}]" for array in ("x", "old") for key in ("order", "order[:1]", "order[:0]")),
    *(f"wrote({array}, order, 7)" for array in ("x", "old")),
    *(f"wrote({array}, order, both)" for array in ("x", "old")),
    "x[mask]",
    "wrote(x, (slice(None), order), turned[:3, :].T)",
    "x[:, order]",
    "x.take(np.array(order))",
    "np.take(x, np.array(order), axis=0)",
    "np.delete(x, np.array(order[:1]), 0)",
    "np.where(np.array(mask)[:, None], x, 0)",
    "mx.nd.take(old, mx.nd.array(order))",
    "added(np.zeros((3, 4)), np.array(both))",
    "np.split(x, order)",
    "np.isin(x, np.array(back))",
    "mx.metric.create('mse').update([mx.nd.array(back)], [mx.nd.array(back)])",
]
ON_PURPOSE = ()
