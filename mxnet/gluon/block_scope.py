"""Names of blocks: what a new one is called inside another one's `name_scope`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ..name import NameManager, Prefix
from .parameter import ParameterDict

if TYPE_CHECKING:
    from .block import Block


class _BlockScope:
    """Names for the children of a block that are made inside its `name_scope`."""

    _current = threading.local()

    def __init__(self, block: Block | None) -> None:
        self._block: Any = block
        self._counter: dict[str, int] = {}
        self._outer: list[tuple[_BlockScope | None, Prefix | None]] = []

    @staticmethod
    def create(
        prefix: str | None, params: ParameterDict | None, hint: str
    ) -> tuple[str, ParameterDict]:
        """Return prefix and parameters for a new block, as the scope around it asks."""
        scope = getattr(_BlockScope._current, "value", None)
        if scope is None:
            if prefix is None:
                name: str = NameManager.current.get(None, hint)
                prefix = name + "_"
            inside = outside = prefix
            shared = None
        else:
            if prefix is None:
                prefix = f"{hint}{scope._next(hint)}_"
            parent = scope._block.params
            inside, outside = parent.prefix + prefix, scope._block.prefix + prefix
            shared = parent._shared
        if params is not None:
            return outside, ParameterDict(params.prefix, params)
        return outside, ParameterDict(inside, shared)

    def _next(self, hint: str) -> int:
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return number

    def __enter__(self) -> _BlockScope:
        names = None
        previous = getattr(_BlockScope._current, "value", None)
        if not self._block._empty_prefix:  # a block without prefix leaves naming to those around
            names = Prefix(self._block.prefix)
            names.__enter__()
            _BlockScope._current.value = self
        self._outer.append((previous, names))
        return self

    def __exit__(self, *exc: object) -> None:
        previous, names = self._outer.pop()
        if names is not None:
            names.__exit__(*exc)
            _BlockScope._current.value = previous

    def __getstate__(self) -> dict[str, Any]:
        return {"_block": self._block, "_counter": self._counter, "_outer": []}
