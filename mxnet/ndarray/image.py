"""Image operators: `mx.nd.image`. The functions are put here by `face`."""
