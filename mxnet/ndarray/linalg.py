"""`mx.nd.linalg`: linear algebra on the last two axes. The functions are put here by `face`."""
