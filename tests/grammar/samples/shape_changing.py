"""Rows of operators that rearrange, repeat, slice and return shapes."""

from tests.grammar.sampling import each, integers, normal, sample, uniform

shapes = ((0, -1), (-4, 1, 2, -2), (2, -4, -1, 3, -2), (-3, 0), (-3, 4), (0, -3), (-2, 1, 1))
sample("Reshape", normal(2, 3, 4), shape=each(*shapes, (24,), (-1,), (4, 0, 2), (-1, 0)))
sample("Reshape", normal(2, 3, 4, 2), shape=each((-1, 0), (0, -3, -1), (8, -1)), reverse=True)
sample("Reshape", normal(2, 3, 4), target_shape=each((2, 12), (0, 12), (24,)))
sample("Reshape", normal(2, 3, 4), target_shape=(5, 0), keep_highest=True)
sample("Flatten", normal(2, 3, 4))
sample("Flatten", normal(3))
sample("transpose", normal(2, 3, 4), axes=each((), (0, 2, 1), (2, 0, 1), (1, 0, 2)))
sample("transpose", integers(0, 9, 2, 3, dtype="int32"), grad=False)
sample("SwapAxis", normal(2, 3, 4), dim1=0, dim2=each(1, -1, 0))
sample("expand_dims", normal(2, 3), axis=each(0, 1, 2, -1, -3))
sample("squeeze", normal(1, 2, 1), axis=each(None, 0, (0, 2), -1))
sample("squeeze", normal(1, 1))
sample("reshape_like", normal(6, 2), normal(3, 4))
sample("reshape_like", normal(6, 5), normal(2, 3, 7), lhs_end=1, rhs_end=2)
sample(
    "reshape_like",
    normal(6, 5),
    normal(2, 3, 7),
    lhs_begin=-2,
    lhs_end=-1,
    rhs_begin=-3,
    rhs_end=-1,
)
sample("depth_to_space", normal(1, 8, 2, 3), block_size=2)
sample("space_to_depth", normal(1, 2, 4, 6), block_size=2)
sample("diag", normal(3, 4), k=each(0, 1, -1, -2))
sample("diag", normal(3), k=each(0, 1, -2))
sample("diag", normal(2, 3, 4), k=each(0, 1), axis1=1, axis2=each(2, -3))
sample("shape_array", normal(2, 3, 4), grad=False)
sample("size_array", normal(2, 3, 4), grad=False)

sample("broadcast_to", normal(2, 1, 3), shape=each((2, 4, 3), (0, 4, 0), (2, 1, 3)))
sample("broadcast_axis", normal(2, 1, 1), axis=(1, 2), size=(3, 4))
sample("broadcast_axis", normal(2, 1), axis=1, size=3)
sample("broadcast_like", normal(1, 3), normal(2, 3))
sample("broadcast_like", normal(1, 2), normal(3, 4), lhs_axes=(0,), rhs_axes=(-1,))
sample("tile", normal(2, 3), reps=each((2,), (2, 2), (2, 1, 2), ()))
sample("repeat", normal(2, 3), repeats=each(1, 3), axis=each(None, 0, -1))
for mode in ("constant", "edge", "reflect"):
    sample("Pad", normal(1, 2, 3, 4), mode=mode, pad_width=(0, 0, 0, 0, 1, 2, 3, 0))
    sample("Pad", normal(1, 2, 3, 4, 2), mode=mode, pad_width=(0, 0, 0, 0, 1, 2, 3, 0, 1, 1))
sample(
    "Pad", normal(1, 1, 2, 2), mode="constant", pad_width=(0, 0, 0, 0, 1, 1, 0, 1), constant_value=5
)
sample("_contrib_index_array", normal(2, 3), axes=each(None, (1,), (-1, 0)), grad=False)

sample("slice", normal(3, 4), begin=each((0, 1), (None, -3)), end=each((2, 3), (None, None)))
sample("slice", normal(3, 4), begin=(1,), end=(3,))
sample("slice", normal(3, 5), begin=(2, 4), end=(None, None), step=each((-1, -2), (-2, -1)))
sample("slice", normal(3, 5), begin=(0, 4), end=(2, 0), step=(1, -2))
sample("slice", normal(3, 5), begin=(0, 0), end=(None, 9), step=(2, 3))
sample("slice_axis", normal(3, 4), axis=1, begin=1, end=each(None, 3, -1))
sample("slice_axis", normal(3, 4), axis=-2, begin=-2, end=-1)
sample("slice_like", normal(3, 4), normal(2, 3))
sample("slice_like", normal(3, 4, 2), normal(2, 3, 5), axes=each((0, 1), (0,), (-2,)))
sample("reverse", normal(2, 3, 2), axis=each(0, (0, 1), (2,)))
sample("Crop", normal(1, 2, 4, 5), num_args=1, h_w=(2, 3), offset=each((0, 0), (2, 1)))
sample("Crop", normal(1, 2, 4, 5), num_args=1, h_w=(3, 2), center_crop=True)
sample("Crop", normal(1, 2, 4, 5), normal(1, 1, 2, 2), num_args=2, offset=(1, 1))
sample("Crop", normal(1, 2, 4, 5), normal(1, 1, 2, 2), num_args=2, center_crop=True)
sample("_slice_assign", normal(3, 4), normal(1, 2), begin=(0, 1), end=(1, 3), grad=False)
sample(
    "_slice_assign",
    normal(3, 4),
    normal(3, 2),
    begin=(2, 3),
    end=(None, 0),
    step=(-1, -2),
    grad=False,
)
sample("_slice_assign", normal(3, 4), normal(2, 4), begin=(1,), end=(3,), grad=False)
sample("_slice_assign_scalar", normal(3, 4), scalar=2.5, begin=(0, 1), end=(1, 3), grad=False)
sample(
    "_slice_assign_scalar",
    normal(3, 4),
    scalar=2.5,
    begin=(0, 1),
    end=(3, 4),
    step=(2, 2),
    grad=False,
)

sample("im2col", normal(1, 2, 4, 5), kernel=(2, 3))
sample("im2col", normal(1, 2, 5, 5), kernel=(3, 2), stride=(2, 1), dilate=(1, 2), pad=(1, 0))
sample("col2im", uniform(-1, 1, 1, 12, 9), output_size=(4, 5), kernel=(2, 3))
sample(
    "col2im", uniform(-1, 1, 1, 8, 6), output_size=(4, 5), kernel=(2, 2), stride=(2, 2), pad=(0, 1)
)
