"""Arithmetic, comparisons, functions of each element, products and reductions."""
