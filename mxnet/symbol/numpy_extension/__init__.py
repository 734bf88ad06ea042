"""`mx.sym.npx`: neural-network operators on symbols of `mx.sym.np`. `mxnet.numpy` fills it."""

from . import image, random

__all__ = ["image", "random"]
