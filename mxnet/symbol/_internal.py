"""Operators whose names begin with an underscore, made from the registry."""
