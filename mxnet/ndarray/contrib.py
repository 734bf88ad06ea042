"""Contributed operators: `mx.nd.contrib`. Most functions are put here by `face`."""
