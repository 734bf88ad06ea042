"""Sparse arrays in graphs: which values are sparse, and the calls that take them."""
