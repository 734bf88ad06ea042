"""Backward uses a graph up: arrays that were members of it go on as constants.

Old programs lean on this. A recurrent net's state goes from batch to batch without being cut
(``for s in state: s.detach()`` cuts nothing), and backward still ends at the batch's border.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Sequence
from typing import Any
from weakref import ref

from torch import Tensor

from .storage import plain, recorded

# Up to so many living arrays are asked one by one; for more, a walk over the graph is cheaper.
_FEW = 2


# Where backwards began since arrays were last released; their graphs are used up.
_finished: deque = deque(maxlen=4096)


def note(heads: Sequence[Tensor]) -> None:
    """Remember that backward from these heads has used their graphs up."""
    _finished.extend(head.grad_fn for head in heads)


def release() -> None:
    """Take the arrays that still live out of used-up graphs; done when recording begins again.

    By then most results of the last step are gone, so that there is little to look at.
    """
    starts = set()
    while _finished:
        try:
            starts.add(_finished.popleft())
        except IndexError:  # another thread was faster
            break
    starts.discard(None)
    if not starts:
        return
    living = _living()
    if not living:
        return
    reached = starts
    if len(living) > _FEW:
        reached = _reachable(starts)
    for array, node in living:
        spent = node in reached or _is_spent(node)
        if spent is None:
            reached = _reachable(starts) if reached is starts else reached
            spent = node in reached
        if spent:
            plain(array)
            array._tracked = None
        else:
            recorded.append(ref(array))


def _living() -> list[tuple[Any, Any]]:
    """Return the recorded results that the program still holds, each with its node in the graph."""
    living = []
    for _ in range(len(recorded)):
        try:
            array = recorded.popleft()()
        except IndexError:  # backward in another thread was faster
            break
        tracked = None if array is None else array._tracked
        if tracked is not None and tracked.grad_fn is not None:
            living.append((array, tracked.grad_fn))
    return living


def _is_spent(node: Any) -> bool | None:
    """Return whether torch has freed the graph below a node; None if no node there tells.

    A node tells by the tensors that it saved. Of an operator made of several nodes with several
    results, backward may have come through one result only; hence the look at the nodes below.
    """
    seen, waiting = {node}, [node]
    for current in waiting:
        if (found := _is_freed(current)) is not None:
            return found
        for below, _ in current.next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                waiting.append(below)
    return None


@functools.cache
def _saved_names(kind: type) -> tuple[str, ...]:
    names = [name for name in dir(kind) if name.startswith("_saved_")]
    return (*names, *(["saved_tensors"] if hasattr(kind, "saved_tensors") else []))


def _is_freed(node: Any) -> bool | None:
    for name in _saved_names(type(node)):
        try:
            saved = getattr(node, name)
        except RuntimeError as error:
            if "second time" in str(error):
                return True
            continue
        if isinstance(saved, Tensor) or (isinstance(saved, tuple) and _has_tensor(saved)):
            return False
    return None


def _has_tensor(saved: tuple) -> bool:
    return any(isinstance(s, Tensor) for s in saved)


def _reachable(starts: set) -> set:
    seen, waiting = set(starts), list(starts)
    while waiting:
        for below, _ in waiting.pop().next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                waiting.append(below)
    return seen
