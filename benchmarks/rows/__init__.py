"""Rows of the comparison with other engines, by group."""
