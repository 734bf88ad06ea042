"""Parts of MXNet beside its core: mixed precision, text, SVRG, TensorBoard, older names."""

from . import autograd, io, ndarray, symbol, tensorboard, text
from . import ndarray as nd
from . import symbol as sym
