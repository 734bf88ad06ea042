"""Rows for NumPy's operators that rearrange, join and split arrays."""

import numpy as np

from tests.grammar.sampling import each, integers, normal, sample

sample("_np_reshape", normal(2, 3, 2), newshape=each((-1,), (3, 4), (2, -1, 1), (12,)))
sample("_np_reshape", normal(1, 1), newshape=each((), (1,), (-1, 1)))
sample("_np_reshape", normal(0, 3), newshape=each((0,), (-1, 3), (2, 0)), grad=False)
sample("_np_reshape", normal(), newshape=each((), (1, 1)))
sample(
    "_npx_reshape", normal(2, 3, 4), newshape=each((-2, -2, -2), (-2, -1), (-5, -2), (-4,), (2, -4))
)
sample(
    "_npx_reshape",
    normal(6, 1, 4),
    newshape=each((-6, 2, -1, -4), (-6, -1, 2, -3, -2), (-2, -3, -1)),
)
sample(
    "_npx_reshape",
    normal(2, 3, 8),
    newshape=each((-4, -1, 2, -6), (-4, -5), (-1, -2)),
    reverse=True,
)
sample("_npx_reshape", normal(2, 0), newshape=each((-2, 0), (-1,)), grad=False)
sample("_npx_reshape", normal(), newshape=each((-1,), (-4,)))
sample("_np_transpose", normal(2, 3, 4), axes=each(None, (0, 2, 1), (2, -2, 0)))
sample("_np_transpose", normal())
sample("_np_transpose", normal(2, 0), grad=False)
sample("_np_squeeze", normal(1, 2, 1), axis=each(None, 0, -1, (0, 2), ()))
sample("_np_squeeze", normal(1, 1))
sample("_np_squeeze", normal())
sample("_np_moveaxis", normal(2, 3, 4), source=each(0, -1), destination=each(0, 1, -1))
sample("_np_moveaxis", normal(2, 3, 4), source=(0, 1), destination=each((-1, 0), (1, 2)))
sample("_np_roll", normal(2, 3), shift=each(1, -2, 7))
sample("_np_roll", normal(2, 3), shift=1, axis=each(0, 1, (0, 1)))
sample("_np_roll", normal(2, 3), shift=(1, 2), axis=each((0, 1), (1, 0)))
sample("_np_roll", normal(), shift=1)
sample("_np_roll", normal(0), shift=1, grad=False)
sample("_npi_flip", normal(2, 3), axis=each((0,), (1,), (0, 1), ()))
sample("_npi_flip", integers(0, 9, 3, dtype="int32"), axis=0, grad=False)
sample("_npi_rot90", normal(2, 3), k=each(-1, 0, 1, 2, 5), axes=each((0, 1), (1, 0)), derived=True)
sample("_npi_rot90", normal(2, 3, 2), k=1, axes=(2, 0), derived=True)
sample("_npi_broadcast_to", normal(3), shape=each((3,), (2, 3), (2, 1, 3)))
sample("_npi_broadcast_to", normal(2, 1), shape=(3, 2, 2))
sample("_npi_broadcast_to", normal(), shape=each((), (2,)))
sample("_npi_broadcast_to", normal(1, 3), shape=(0, 3), grad=False)
sample("_np_copy", normal(2, 3))
sample("_np_copy", normal())

sample("_npi_concatenate", normal(2, 3), normal(1, 3), axis=each(0, -2, None))
sample("_npi_concatenate", normal(2, 3), normal(2, 1), normal(2, 2), axis=1)
sample("_npi_concatenate", normal(2), normal(0), axis=0, grad=False)
sample("_npi_stack", normal(2, 3), normal(2, 3), axis=each(0, 1, -1))
sample("_npi_stack", normal(), normal())
for name in ("_npi_vstack", "_npi_hstack", "_npi_dstack", "_npi_column_stack"):
    sample(name, normal(2), normal(2))
    sample(name, normal(2, 2), normal(2, 2))
    sample(name, normal(), normal())
    sample(name, normal(3))
sample("_npi_vstack", normal(2), normal(3, 2))
sample("_npi_hstack", normal(2, 1), normal(2, 2))
sample("_npi_dstack", normal(2, 1, 1), normal(2, 1, 2))
sample("_npi_column_stack", normal(2), normal(2, 2))
for count in (1, 2, 3):
    sample(f"_np_atleast_{count}d", normal(), normal(2), normal(2, 3), derived=True)
    sample(f"_np_atleast_{count}d", normal(2, 3, 4), derived=True)
    sample(f"_np_atleast_{count}d", np.array([1, 2], "int32"), grad=False)
sample("_npi_dsplit", normal(1, 1, 4), indices=(0,), grad=False)
sample("_npi_hsplit", normal(4), indices=(), sections=2)
sample("_npi_hsplit", normal(2, 4), indices=each((0, 1, 2), (0, 3)))
sample("_npi_hsplit", normal(1, 4, 2), indices=(), sections=each(1, 4))
sample("_npi_split", normal(7), indices=(), sections=3, axis=0)
sample("_npi_split", normal(4, 2), indices=(0, 1), axis=0)
sample("_npx_nonzero", [[0, 1, 2], [3, 0, 0]], grad=False)
sample("_npx_nonzero", [[0, 0]], grad=False)
sample("_npx_nonzero", normal(), grad=False)
sample("_npx_nonzero", np.array([0, 3, 1], "int32"), grad=False)
sample("_npx_nonzero", np.array([True, False, True]), grad=False)
sample("_npx_nonzero", [[[0, 1], [0, 0]]], grad=False)
sample("_npx_constraint_check", np.array([True, True]), grad=False)
sample("_npx_constraint_check", np.array([[True], [True]]), msg="no", grad=False)
