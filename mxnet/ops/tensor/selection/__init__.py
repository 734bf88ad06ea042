"""Operators that pick, place and sort elements."""
