"""Rows for NumPy's operators that choose, edit and count elements."""

import numpy as np

from tests.grammar.sampling import each, normal, sample

CONDITION = np.array([[1, 0, 2], [0, 0, 1]], "float32")
TRUTH = CONDITION != 0
for condition in (CONDITION, TRUTH, CONDITION.astype("int32")):
    sample("_npi_where", condition, normal(2, 3), normal(2, 3), grad=condition.dtype != "float32")
    sample(
        "_npi_where_lscalar",
        condition,
        normal(2, 3),
        scalar=each(0, 2.5),
        derived=condition is TRUTH,
        grad=condition is TRUTH,
    )
    sample("_npi_where_rscalar", condition, normal(3), scalar=each(0, 2.5), grad=False)
    sample("_npi_where_scalar2", condition, x=1.5, y=-2, grad=False)
sample("_npi_where", TRUTH, normal(3), normal(2, 1))
sample("_npi_where", TRUTH, normal(), normal())
sample("_npi_where", TRUTH, np.array([1, 2, 3], "int32"), np.array([4, 5, 6], "int32"), grad=False)
sample("_npi_where", np.array(True), normal(2), normal(2))

sample("_npi_unique", [3, 1, 1, 2], grad=False)
sample(
    "_npi_unique",
    [3, 1, 1, 2],
    return_index=True,
    return_inverse=True,
    return_counts=True,
    grad=False,
)
FLAGS = {"return_index": each(False, True), "return_inverse": each(False, True)}
sample(
    "_npi_unique",
    np.array([[3, 1], [3, 1], [2, 1]], "int32"),
    axis=each(None, 0, 1),
    **FLAGS,
    grad=False,
)
sample("_npi_unique", np.array([[3, 1], [3, 1]], "int64"), return_counts=True, grad=False)
sample("_npi_unique", np.array(3.0), return_inverse=True, grad=False)

LINE = np.array([1.5, 2.5, 3.5, 4.5, 5.5], "float32")
TABLE = np.arange(6, dtype="float32").reshape(2, 3) * 0.7
sample("_npi_delete", LINE, int_ind=each(0, 1, -1), grad=False)
sample("_npi_delete", LINE, start=each(None, 1), stop=each(None, 4), step=each(1, 2), grad=False)
sample("_npi_delete", LINE, step=-2, grad=False)
sample("_npi_delete", TABLE, int_ind=1, axis=each(None, 0, 1), grad=False)
sample("_npi_delete", LINE, np.array([1, 3], "int64"), grad=False)
sample("_npi_delete", TABLE, np.array([0, 2], "int32"), axis=1, grad=False)
sample("_npi_insert_scalar", LINE, val=9.5, int_ind=each(0, 2, -1, 5), grad=False)
sample("_npi_insert_scalar", LINE, [8, 9], int_ind=each(0, 2), grad=False)
sample("_npi_insert_scalar", TABLE, [8, 9, 7], int_ind=each(0, 2), axis=0, grad=False)
sample("_npi_insert_scalar", TABLE, [[8], [9]], int_ind=1, axis=1, grad=False)
sample("_npi_insert_scalar", TABLE, val=9, int_ind=1, grad=False)
sample("_npi_insert_slice", LINE, [8, 9], start=0, stop=4, step=2, grad=False)
sample("_npi_insert_slice", LINE[:4], [8, 9], start=None, stop=None, step=-2, grad=False)
sample("_npi_insert_slice", TABLE, [8, 9], start=0, stop=2, step=1, axis=1, grad=False)
sample("_npi_insert_tensor", LINE, [8, 9], np.array([1, 1], "int64"), grad=False)
sample("_npi_insert_tensor", LINE, [8, 9], np.array([3, 1], "int64"), grad=False)
sample("_npi_insert_tensor", LINE, [8], np.array([3, 1], "int64"), grad=False)
sample("_npi_insert_tensor", TABLE, [[7], [8]], np.array([0, 1], "int64"), axis=1, grad=False)
sample("_npi_insert_tensor", TABLE, [7, 8], np.array([0, 1], "int64"), axis=1, grad=False)
PADS = each(((1, 0), (0, 2)), ((0, 0), (0, 0)), ((1, 1), (2, 1)))
sample("_npi_pad", TABLE, pad_width=PADS, constant_value=each(0, 1.5))
sample("_npi_pad", TABLE, pad_width=PADS, mode=each("edge", "reflect", "symmetric"), derived=True)
sample("_npi_pad", TABLE, pad_width=PADS, mode=each("maximum", "minimum"), grad=False)
sample("_npi_pad", TABLE, pad_width=((3, 3), (5, 5)), mode=each("reflect", "symmetric"), grad=False)
sample("_npi_pad", TABLE.astype("int32"), pad_width=((1, 0), (0, 1)), constant_value=2, grad=False)

sample("_npi_bincount", np.array([0, 1, 1, 3], "int32"), minlength=each(0, 6), grad=False)
sample("_npi_bincount", np.array([0, 1, 1, 3], "int64"), minlength=each(0, 6), grad=False)
sample(
    "_npi_bincount", np.array([0, 1, 1, 3], "int64"), [1, 0.5, 2, 3], has_weights=True, grad=False
)
sample("_npi_diff", LINE, n=each(0, 1, 2, 7))
sample("_npi_diff", TABLE, n=each(1, 2), axis=each(0, 1, -1))
sample("_npi_diff", np.array([1, 3, 2], "uint8"), grad=False)
sample("_npi_ediff1d", LINE)
sample("_npi_ediff1d", TABLE)
sample("_npi_ediff1d", LINE, to_begin_scalar=5, to_end_scalar=6.5)
sample("_npi_ediff1d", LINE, [8, 9], to_begin_arr_given=True)
sample("_npi_ediff1d", LINE, [8, 9], to_end_arr_given=True, to_begin_scalar=1)
sample("_npi_ediff1d", LINE, [[8, 9]], [7], to_begin_arr_given=True, to_end_arr_given=True)
sample("_npi_ediff1d", np.array([1, 3, 2], "int32"), to_begin_scalar=5, grad=False)
sample("_npi_polyval", normal(3), normal(4))
sample("_npi_polyval", normal(3), normal(2, 2))
sample("_npi_polyval", normal(2), normal())
sample("_npi_polyval", np.array([1, 2, 3], "int32"), np.array([0, 1, 2], "int32"), grad=False)
WAYS = each("linear", "lower", "higher", "midpoint", "nearest")
sample("_npi_percentile", LINE, q_scalar=each(0, 30, 50, 100), interpolation=WAYS, grad=False)
sample(
    "_npi_percentile",
    TABLE,
    q_scalar=40,
    axis=each(None, 0, 1, (0, 1)),
    keepdims=each(False, True),
    grad=False,
)
sample(
    "_npi_percentile",
    TABLE,
    [10, 50, 90],
    axis=each(None, 1),
    keepdims=each(False, True),
    grad=False,
)
for dtype in ("int32", "float64", "float16"):
    sample("_npi_percentile", TABLE.astype(dtype), [10, 50], axis=0, grad=False, atol=1e-3)
sample("_npi_share_memory", normal(2), normal(2), grad=False)

# Legacy operators that NumPy's functions call, with scalars and empty arrays.
sample("_npi_take", LINE, np.array(2, "int64"), axis=0, mode=each("clip", "wrap"))
sample("_npi_take", TABLE, np.array([[0, 1]], "int64"), axis=each(0, 1), mode="clip")
sample("_npi_expand_dims", normal(), axis=each(0, -1))
sample("_npi_expand_dims", normal(2, 0), axis=1, grad=False)
sample("_npi_tile", normal(), reps=each((2,), (2, 1)), grad=False)
sample("_npi_tile", normal(2), reps=each((), 2, (2, 1)), grad=False)
sample("_np_repeat", normal(), repeats=2, grad=False)
sample("_np_repeat", normal(2, 3), repeats=2, axis=each(None, 0, 1), grad=False)
sample("_npi_clip", normal(), a_min=-0.5, a_max=0.5)
sample("_npi_clip", normal(0, 2), a_min=-0.5, a_max=0.5, grad=False)
sample("_npi_swapaxes", normal(2, 0, 3), dim1=0, dim2=2, grad=False)
sample("_npi_slice", normal(3, 4), begin=(1, 1), end=(3, 2))
sample("_npi_sort", [[3, 1, 2], [0, 5, 4]], axis=each(0, 1), is_ascend=True, grad=False)
sample(
    "_npi_argsort",
    [[3, 1, 2], [0, 5, 4]],
    axis=each(0, 1),
    is_ascend=True,
    dtype="int64",
    grad=False,
)
sample("_npi_maximum", normal(), normal(2, 3))
sample("_npi_minimum", normal(0, 3), normal(1, 3), grad=False)
sample("_npi_maximum_scalar", normal(), scalar=0.3, is_int=False)
sample("_npi_minimum_scalar", normal(2, 0), scalar=0.3, is_int=False, grad=False)
sample("_npi_hypot_scalar", normal(), scalar=0.3, is_int=False)
sample("_npi_linspace", start=0, stop=2, num=each(0, 1, 5), endpoint=each(True, False), grad=False)
sample("_np_cumsum", normal(2, 0), axis=each(None, 0, 1), grad=False)
sample("_np_cumsum", normal(), grad=False)
sample("_npi_boolean_mask", TABLE, np.array([False, True]), axis=0, grad=False)
sample("_npi_gather_nd", TABLE, np.array([[0, 1], [2, 0]], "int64"), grad=False)
sample("_npi_inv", [[4, 2], [2, 3]], numeric=False)
sample("_npi_det", [[4, 2], [2, 3]], grad=False)
sample("_npi_slogdet", [[4, 2], [2, 3]], grad=False)
