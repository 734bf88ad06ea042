"""Parts of MXNet beside its core: mixed precision, text, SVRG, TensorBoard, older names."""

from . import amp, autograd, io, ndarray, svrg_optimization, symbol, tensorboard, text
from . import ndarray as nd
from . import symbol as sym
