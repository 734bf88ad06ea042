"""`_Symbol`: a symbol whose operators have NumPy's semantics."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, cast

from ...error import NotImplementedForSymbol
from ..symbol import Symbol

__all__ = ["_Symbol"]


class _Symbol(Symbol):
    """A symbol of `mx.sym.np`: broadcasting arithmetic, bool comparisons, NumPy's methods.

    >>> x = mx.sym.var("x").as_np_ndarray()
    >>> (x + 1).list_arguments()
    ['x']
    """

    __slots__ = ()
    __module__ = "mxnet.symbol.numpy"
    is_numpy: ClassVar[bool] = True

    @property
    def T(self) -> _Symbol:
        """The symbol with its axes in reverse order."""
        return cast("_Symbol", self.transpose())  # methods return the same class

    def as_np_ndarray(self) -> _Symbol:
        """Return the symbol itself."""
        return self

    def __getitem__(self, key: Any) -> _Symbol:
        """Return one of several outputs, or a slice of a single output."""
        if len(self._heads) > 1 or isinstance(key, str):
            return super().__getitem__(key)
        from . import _internal

        items = key if isinstance(key, tuple) else (key,)
        begin, end, step, codes = [], [], [], []
        for item in items:
            if isinstance(item, slice):
                begin.append(item.start)
                end.append(item.stop)
                step.append(item.step)
                codes.append(-2)
            elif isinstance(item, Integral):
                begin.append(int(item))
                end.append(int(item) + 1 if item != -1 else None)
                step.append(None)
                codes.append(-3)
            else:
                raise NotImplementedForSymbol("__getitem__", f"integers and slices, not {item!r}")
        part = _internal.slice(self, begin=tuple(begin), end=tuple(end), step=tuple(step))
        if -3 not in codes:
            return part
        return _internal.reshape(part, newshape=(*codes, -4))

    def __iter__(self) -> Any:
        return (type(self)((entry,)) for entry in self._heads)

    def astype(  # pyright: ignore[reportIncompatibleMethodOverride] (NumPy's signature)
        self,
        dtype: Any,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> _Symbol:
        """Return the symbol cast to another data type."""
        from . import _internal

        return _internal.cast(self, dtype=dtype)
