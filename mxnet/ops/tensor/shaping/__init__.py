"""Operators that change shapes, join arrays or take them apart."""
