"""Rows for NumPy's products."""

import numpy as np

from tests.grammar.sampling import each, normal, sample

for lhs, rhs in (
    ((2, 3), (3, 2)),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((), (3,)),
    ((2, 3), ()),
    ((2, 2, 3), (4, 3, 2)),
    ((2, 2, 3), (3,)),
):
    sample("_np_dot", normal(*lhs), normal(*rhs))
sample("_np_dot", normal(2, 0), normal(0, 3), grad=False)
sample("_np_dot", normal(2, 3, dtype="float64"), normal(3, 2, dtype="float64"))
for lhs, rhs in (
    ((2, 3), (3, 2)),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (2, 3, 2)),
    ((2, 2, 3), (2, 3, 2)),
):
    sample("_npi_matmul", normal(*lhs), normal(*rhs))
sample("_npi_matmul", normal(2, 1, 2, 3), normal(4, 3, 1), derived=True)
sample("_npi_matmul", normal(2, 0), normal(0, 3), grad=False)
sample("_npi_matmul", normal(2, 3, dtype="float64"), normal(3, 2, dtype="float64"))
sample("_npi_tensordot", normal(2, 3), normal(3, 2), a_axes_summed=1, b_axes_summed=0)
sample("_npi_tensordot", normal(2, 3), normal(3, 2), a_axes_summed=(0, 1), b_axes_summed=(1, 0))
sample("_npi_tensordot", normal(2, 3), normal(2), a_axes_summed=(), b_axes_summed=())
sample("_npi_tensordot", normal(2, 3, 4), normal(4, 3), a_axes_summed=(1, -1), b_axes_summed=(1, 0))
sample("_npi_tensordot_int_axes", normal(2, 3), normal(3, 2), axes=each(0, 1))
sample("_npi_tensordot_int_axes", normal(2, 3, 4), normal(3, 4, 2), axes=2)
sample("_npi_tensordot_int_axes", normal(2, 0), normal(0, 2), axes=1, grad=False)
sample("_npi_einsum", normal(2, 3), normal(3, 2), subscripts=each("ij,jk", "ij,jk->ik", "ij,jk->"))
sample("_npi_einsum", normal(3, 3), subscripts=each("ii", "ii->i", "ij->ji", "...j->j...", "ij->"))
sample(
    "_npi_einsum", normal(2, 3), normal(2, 3), subscripts=each("ij,ij->i", "ij,ij->ij", "ij,kj->ik")
)
sample(
    "_npi_einsum", normal(2, 3, 4), normal(2, 4, 5), subscripts="bij,bjk->bik", optimize=each(0, 1)
)
sample(
    "_npi_einsum", normal(2), normal(2, 3), normal(3), subscripts="i,ij,j->", optimize=each(0, 1)
)
sample("_npi_einsum", np.arange(9, dtype="int32").reshape(3, 3), subscripts="ij->j", grad=False)
