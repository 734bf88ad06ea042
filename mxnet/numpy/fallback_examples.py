"""An example for each function that NumPy computes: the call below `mx.np`, and its result.

In calls, ``x`` is ``[1, 2, 3]`` and ``m`` is ``[[1, 2], [3, 4]]``.
"""

from __future__ import annotations

import re


def _removed(name: str) -> str:
    head = "Traceback (most recent call last):\n    ..."
    return f"{head}\nRuntimeError: NumPy removed {name} in version 1.20..."


# fmt: off
EXAMPLES = {
    "allclose": ("allclose(x, x)", "True"),
    "apply_along_axis": ("apply_along_axis(lambda row: row.max(), 1, m)", "array([2., 4.])"),
    "apply_over_axes": ("apply_over_axes(np.sum, m, [0, 1])", "array([[10.]])"),
    "argpartition": ("argpartition(x, 1)", "array([0, 1, 2], dtype=int64)"),
    "argwhere": ("argwhere(x > 1)", "array([[1],\n       [2]], dtype=int64)"),
    "array_equal": ("array_equal(x, x)", "True"),
    "array_equiv": ("array_equiv(x, x)", "True"),
    "choose": ('choose(mx.np.array([0, 1], dtype="int64"), [x[:2], x[1:]])', "array([1., 3.])"),
    "compress": ("compress([True, False, True], x)", "array([1., 3.])"),
    "corrcoef": ("corrcoef(m).shape", "(2, 2)"),
    "correlate": ("correlate(x, x)", "array([14.])"),
    "count_nonzero": ("count_nonzero(m > 1, axis=0)", "array([1, 2], dtype=int64)"),
    "cov": ("cov(m)", "array([[0.5, 0.5],\n       [0.5, 0.5]], dtype=float64)"),
    "digitize": ("digitize(x, mx.np.array([0, 2]))", "array([1, 2, 2], dtype=int64)"),
    "divmod": ("divmod(x, 2)", "(array([0., 1., 1.]), array([1., 0., 1.]))"),
    "extract": ("extract(x > 1, x)", "array([2., 3.])"),
    "flatnonzero": ("flatnonzero(x > 1)", "array([1, 2], dtype=int64)"),
    "float_power": ("float_power(x, 2)", "array([1., 4., 9.], dtype=float64)"),
    "frexp": ("frexp(x)", "(array([0.5 , 0.5 , 0.75]), array([1, 2, 2], dtype=int32))"),
    "heaviside": ("heaviside(x, 0.5)", "array([1., 1., 1.])"),
    "histogram2d": (
        "histogram2d(x, x, bins=1)",
        "(array([[3.]], dtype=float64), array([1., 3.]), array([1., 3.]))",
    ),
    "histogram_bin_edges": ("histogram_bin_edges(x, bins=2)", "array([1., 2., 3.])"),
    "histogramdd": ("histogramdd([x], bins=1)[0]", "array([3.], dtype=float64)"),
    "i0": ("i0(mx.np.zeros(1)).round(3)", "array([1.])"),
    "in1d": ("in1d(x, mx.np.array([2]))", "array([False,  True, False])"),
    "interp": ("interp(2.5, x, x)", "np.float64(2.5)"),
    "intersect1d": ("intersect1d(x, mx.np.array([2, 5]))", "array([2.])"),
    "isclose": ("isclose(x, x)", "array([ True,  True,  True])"),
    "isin": ("isin(x, mx.np.array([2]))", "array([False,  True, False])"),
    "ix_": ("ix_([0], [1])", "(array([[0]], dtype=int64), array([[1]], dtype=int64))"),
    "lexsort": ("lexsort((x,))", "array([0, 1, 2], dtype=int64)"),
    "min_scalar_type": ("min_scalar_type(10)", "dtype('uint8')"),
    "modf": ("modf(mx.np.array([1.5]))", "(array([0.5]), array([1.]))"),
    "msort": ("msort(x)", "array([1., 2., 3.])"),
    "nanargmax": ("nanargmax(x)", "np.int64(2)"),
    "nanargmin": ("nanargmin(x)", "np.int64(0)"),
    "nancumprod": ("nancumprod(x)", "array([1., 2., 6.])"),
    "nancumsum": ("nancumsum(x)", "array([1., 3., 6.])"),
    "nanmax": ("nanmax(x)", "np.float32(3.0)"),
    "nanmedian": ("nanmedian(x)", "np.float32(2.0)"),
    "nanmin": ("nanmin(x)", "np.float32(1.0)"),
    "nanpercentile": ("nanpercentile(x, 50)", "np.float32(2.0)"),
    "nanprod": ("nanprod(x)", "np.float32(6.0)"),
    "nanquantile": ("nanquantile(x, 0.5)", "np.float32(2.0)"),
    "packbits": ('packbits(mx.np.array([1, 0], dtype="bool"))', "array([128], dtype=uint8)"),
    "partition": ("partition(x, 1)", "array([1., 2., 3.])"),
    "piecewise": ("piecewise(x, [x < 2, x >= 2], [-1, 1])", "array([-1.,  1.,  1.])"),
    "poly": ("poly(mx.np.array([1, 2]))", "array([ 1., -3.,  2.])"),
    "polyadd": ("polyadd(x, x)", "array([2., 4., 6.])"),
    "polydiv": ("polydiv(x, mx.np.array([1]))", "(array([1., 2., 3.]), array([0.]))"),
    "polyfit": ("polyfit(x, x, 1).round(3)", "array([1., 0.], dtype=float64)"),
    "polyint": ("polyint(mx.np.array([2, 1]))", "array([1., 1., 0.], dtype=float64)"),
    "polymul": ("polymul(x, mx.np.array([2]))", "array([2., 4., 6.])"),
    "polysub": ("polysub(x, x)", "array([0., 0., 0.])"),
    "positive": ("positive(x)", "array([1., 2., 3.])"),
    "promote_types": ('promote_types("float32", "int8")', "dtype('float32')"),
    "ptp": ("ptp(x)", "np.float32(2.0)"),
    "real": ("real(x)", "array([1., 2., 3.])"),
    "result_type": ('result_type("float32", "int8")', "dtype('float32')"),
    "roots": ("roots(mx.np.array([1, -3, 2]))", "array([2., 1.])"),
    "searchsorted": ("searchsorted(x, 2)", "np.int64(1)"),
    "select": ("select([x > 1], [x])", "array([0., 2., 3.])"),
    "setdiff1d": ("setdiff1d(x, mx.np.array([2]))", "array([1., 3.])"),
    "setxor1d": ("setxor1d(x, mx.np.array([2]))", "array([1., 3.])"),
    "signbit": ("signbit(x)", "array([False, False, False])"),
    "spacing": ("spacing(mx.np.ones(1))", "array([1.1920929e-07])"),
    "take_along_axis": ('take_along_axis(x, mx.np.array([0], dtype="int64"), 0)', "array([1.])"),
    "trapz": ("trapz(x)", "np.float32(4.0)"),
    "tril_indices_from": (
        "tril_indices_from(m)",
        "(array([0, 1, 1], dtype=int64), array([0, 0, 1], dtype=int64))",
    ),
    "trim_zeros": ("trim_zeros(mx.np.array([0, 1, 0]))", "array([1.])"),
    "triu_indices_from": (
        "triu_indices_from(m)",
        "(array([0, 0, 1], dtype=int64), array([0, 1, 1], dtype=int64))",
    ),
    "union1d": ("union1d(x, mx.np.array([5]))", "array([1., 2., 3., 5.])"),
    "unpackbits": (
        'unpackbits(mx.np.array([3], dtype="uint8"))',
        "array([0, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)",
    ),
    "unwrap": ("unwrap(x)", "array([1., 2., 3.])"),
    "vander": (
        "vander(x)",
        "array([[1., 1., 1.],\n       [4., 2., 1.],\n       [9., 3., 1.]], dtype=float64)",
    ),
    "mirr": ("mirr([-1, 2], 0.1, 0.1)", _removed("mirr")),
    "npv": ("npv(0.1, [1])", _removed("npv")),
    "ppmt": ("ppmt(0.1, 1, 2, 3)", _removed("ppmt")),
    "pv": ("pv(0.1, 2, 3)", _removed("pv")),
    "rate": ("rate(2, 3, 4, 5)", _removed("rate")),
    "linalg.cond": ("linalg.cond(mx.np.eye(2))", "np.float32(1.0)"),
    "linalg.lstsq": ("linalg.lstsq(mx.np.eye(2), mx.np.ones(2), rcond=None)[0]", "array([1., 1.])"),
    "linalg.matrix_power": (
        "linalg.matrix_power(mx.np.eye(2), 3)",
        "array([[1., 0.],\n       [0., 1.]])",
    ),
    "linalg.matrix_rank": ("linalg.matrix_rank(mx.np.eye(2))", "np.int64(2)"),
    "linalg.multi_dot": ("linalg.multi_dot([m, m])", "array([[ 7., 10.],\n       [15., 22.]])"),
    "linalg.qr": ("linalg.qr(mx.np.eye(2))[1].shape", "(2, 2)"),
}
# fmt: on
_ARRAYS = {"x": "[1, 2, 3]", "m": "[[1, 2], [3, 4]]"}


def example_of(name: str) -> str:
    """Return the section of examples of a function, or nothing.

    >>> example_of("ptp").splitlines()[2:]
    ['>>> x = mx.np.array([1, 2, 3])', '>>> mx.np.ptp(x)', 'np.float32(2.0)']
    """
    if name not in EXAMPLES:
        return ""
    call, result = EXAMPLES[name]
    words = set(re.findall(r"\b[xm]\b", call.replace("mx.", "")))
    made = [f">>> {a} = mx.np.array({v})" for a, v in _ARRAYS.items() if a in words]
    return "\n".join(["Examples", "--------", *made, f">>> mx.np.{call}", result])
