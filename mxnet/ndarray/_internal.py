"""Operators whose MXNet names begin with an underscore. The functions are put here by `face`."""
