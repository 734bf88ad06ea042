"""Image operators of `mx.npx`. `mxnet.numpy_extension` fills it from the operator registry."""

__all__: list[str] = []
