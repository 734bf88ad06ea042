"""Parameters: the arrays of a network that training changes, and dictionaries of them."""

from ... import autograd, context, initializer, ndarray, symbol
from ...context import Context, cpu
from ...error import MXNetError
from ...ndarray import NDArray
from ...symbol import Symbol
from ...util import is_np_array, is_np_shape
from ..utils import shape_is_known
from .dictionary import ParameterDict
from .parameter import (
    FIRST_CALL,
    Constant,
    DeferredInitializationError,
    Generation,
    Parameter,
    ParameterError,
)

__all__ = [
    "Constant",
    "DeferredInitializationError",
    "Parameter",
    "ParameterDict",
    "tensor_types",
]

tensor_types = (Symbol, NDArray)
