"""The public operators. The functions are put here by `face`."""
