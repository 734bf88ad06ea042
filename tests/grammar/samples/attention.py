"""Interleaved attention products."""

from tests.grammar.sampling import each, normal, sample

_heads = each(1, 2)
sample("_contrib_interleaved_matmul_selfatt_qk", normal(4, 3, 12), heads=_heads)
sample("_contrib_interleaved_matmul_selfatt_valatt", normal(4, 3, 12), normal(3, 4, 4), heads=1)
sample("_contrib_interleaved_matmul_selfatt_valatt", normal(4, 3, 12), normal(6, 4, 4), heads=2)
sample("_contrib_interleaved_matmul_encdec_qk", normal(5, 2, 4), normal(3, 2, 8), heads=_heads)
sample("_contrib_interleaved_matmul_encdec_valatt", normal(3, 2, 8), normal(2, 5, 3), heads=1)
sample("_contrib_interleaved_matmul_encdec_valatt", normal(3, 2, 8), normal(4, 5, 3), heads=2)
