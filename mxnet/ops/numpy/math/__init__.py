"""NumPy's arithmetic, comparisons, reductions, products and linear algebra."""
