"""`mx.sym.np.random`. `mxnet.numpy` fills it from the composites."""

from ...context import current_context  # noqa: F401 (MXNet shows it here)

__all__: list[str] = []
