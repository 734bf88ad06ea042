"""`mx.nd.npx`: neural-network operators on `np.ndarray`s. `mxnet.numpy_extension` fills it."""

from . import image, random

__all__ = ["image", "random"]
