"""Sampling functions of `mx.npx`. `mxnet.numpy_extension` fills it from the composites."""

__all__: list[str] = []
