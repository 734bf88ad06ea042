"""`mx.sym.np.linalg`. `mxnet.numpy` fills it from the composites."""

__all__: list[str] = []
