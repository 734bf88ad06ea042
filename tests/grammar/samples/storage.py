"""Rows of operators about storage types. Sparse arrays have tests of their own."""

from tests.grammar.sampling import integers, normal, sample

sample("cast_storage", normal(3, 2), stype="default")
sample("cast_storage", normal(2, 3, dtype="float64"), stype="default")
for shape in ((3,), (2, 2)):
    sample(
        "_contrib_SparseEmbedding",
        integers(0, 4, *shape),
        normal(4, 3),
        input_dim=4,
        output_dim=3,
        grad=False,
    )
