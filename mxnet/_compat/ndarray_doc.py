"""MXNet's texts on arrays, which are in the docstrings here; old programs import `NDArrayDoc`."""

__all__ = ["NDArrayDoc"]


class NDArrayDoc:
    """The base class of additional texts on functions of arrays."""
