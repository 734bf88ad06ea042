"""Errors inside blocks: add the failed layer, and hide internal frames.

`Block.__call__` calls `report_failure` only if its forward raised. Every enclosing block adds its
part to the path: `Net.features.4 (Dense 'dense2')`.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from .._process.tracebacks import hide_internal_frames
from ..error import MXNetError, did_you_mean

if TYPE_CHECKING:
    from .block import Block

__all__ = ["SetByInit", "report_failure", "uninitialized", "unknown_option"]


def uninitialized(block: Block) -> AttributeError:
    """Return the error for a block whose `Block.__init__` did not run."""
    kind = type(block).__name__
    return AttributeError(
        f"{kind} has not been initialized as a Block: call super().__init__(**kwargs) first in "
        f"{kind}.__init__, before children and parameters are assigned."
    )


def unknown_option(kind: type[Block], name: str) -> TypeError:
    """Return the error for an option that a block does not have."""
    options = [
        option
        for base in kind.__mro__
        if "__init__" in vars(base) and base is not object
        for option in inspect.signature(vars(base)["__init__"]).parameters
        if option not in ("self", "kwargs", "unknown")
    ]
    hint = did_you_mean(name, options)
    return TypeError(
        f"{kind.__name__}.__init__() got an unexpected keyword argument {name!r}. {hint}".rstrip()
    )


class SetByInit:
    """Placeholder of a block's attribute until `Block.__init__` sets it."""

    def __get__(self, block: Block | None, owner: type[Block]) -> Any:
        if block is None:
            return self
        raise uninitialized(block)


class _Failure:
    """The failed layer of a propagating error, and the path to it."""

    def __init__(self, block: Block, error: BaseException) -> None:
        self.outermost = block
        path, layer = _locate(block, getattr(error, "node", None))
        self.path = path
        self.layer = f"{type(layer).__name__} '{layer.name}'"
        self.text = str(error)
        self.notes = [*getattr(error, "__notes__", ()), *_signature_hint(block, error)]

    def enclose(self, block: Block) -> None:
        inner = self.outermost
        keys = [key for key, child in block._children.items() if child is inner]
        self.path = [*(keys[:1] or [type(inner).__name__]), *self.path]
        self.outermost = block

    def __reduce__(self) -> tuple:
        return str, (str(self),)  # errors are sent between processes, networks are not

    def __str__(self) -> str:
        path = ".".join([type(self.outermost).__name__, *self.path])
        return f"In layer {path} ({self.layer})."


def _signature_hint(block: Block, error: BaseException) -> list[str]:
    """Return advice if `hybrid_forward` lacks an argument for a parameter of its block."""
    if not isinstance(error, TypeError) or "unexpected keyword argument" not in str(error):
        return []
    names = list(getattr(block, "_reg_params", ()))
    if not any(f"'{name}'" in str(error) for name in names):
        return []
    return [
        f"Parameters of a block are given to its hybrid_forward by name: define "
        f"hybrid_forward(self, F, x, {', '.join(names)})."
    ]


def _locate(block: Block, name: str | None) -> tuple[list[str], Block]:
    """Return the path to the child that owns a node of the graph or a parameter."""
    path: list[str] = []
    while name is not None:
        owners = [
            (len(prefix), key, child)
            for key, child in block._children.items()
            for prefix in _prefixes(child)
            if name.startswith(prefix)
        ]
        if not owners:
            break
        _, key, block = max(owners, key=lambda item: item[0])
        path.append(key)
    return path, block


def _prefixes(block: Block) -> list[str]:
    """Return the prefixes of the names of a block's nodes, and of its children's."""
    own = [block.prefix] if block.prefix else []
    return own + [p for child in block._children.values() for p in _prefixes(child)]


def report_failure(block: Block, error: Exception) -> None:
    """Add the failed layer to an error raised in a block, and hide internal frames.

    The layer is appended to the text of MXNext's own errors, and added as a note to others.
    ``MXNET_FULL_TRACEBACK=1`` shows the internal frames.
    """
    if "_children" not in block.__dict__:
        raise uninitialized(block) from None
    failure = getattr(error, "_failure", None)
    if not isinstance(failure, _Failure):
        failure = _Failure(block, error)
        try:
            error._failure = failure  # type: ignore[attr-defined]
        except AttributeError:  # an exception class with slots
            return
    else:
        failure.enclose(block)
    if isinstance(error, MXNetError):
        if len(error.args) == 1:
            error.args = (f"{failure.text}\n{failure}",)
    elif hasattr(error, "add_note"):  # Python 3.11
        vars(error)["__notes__"] = [*failure.notes, str(failure)]
    hide_internal_frames(error)
