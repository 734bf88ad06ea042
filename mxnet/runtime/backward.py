"""`backward`: the only caller of torch's autograd engine.

It also translates the engine's errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import accelerator
from ..error import MXNetError, memory_error
from ..torch_private import is_freed_error, is_overwritten_error, run_backward
from .recording import state

NOT_RECORDED = (
    "Cannot differentiate node because it is not in a computational graph. You need to set "
    "is_recording to true or use autograd.record() to save computational graphs for backward. If "
    "you want to differentiate the same graph twice, you need to pass retain_graph=True to "
    "backward."
)


def backward(
    heads: Sequence[Tensor],
    starts: Sequence[Tensor],
    leaves: Sequence[Tensor],
    *,
    keep: bool = False,
    create: bool = False,
    found: Any = None,
) -> Sequence[Tensor | None]:
    """Return the gradients of the leaves, all computed in this thread.

    The engine returns them without accumulating, so threads may share leaves. If `leaves` is empty,
    it accumulates into the `grad` of every leaf, as torch code expects.

    Parameters
    ----------
    heads : tensors of torch's graph to start from.
    starts : their gradients.
    leaves : tensors of the graph. The gradient is None if no head depends on the leaf.
    keep : whether to keep the graph for another backward.
    create : whether to record the gradients, so that they can be differentiated again.
    found : collects gradients that leaf hooks receive; see `gradients.Received`.
    """
    run = partial(
        run_backward,
        tuple(heads),
        tuple(starts),
        keep,
        create,
        tuple(leaves),
        True,  # leaves may be unreachable
        accumulate_grad=not leaves,
    )
    outer = state.session, state.found
    state.session, state.found = None, found
    try:
        if heads[0].is_cpu and not accelerator.is_used():
            return run() or ()
        # Recording, training mode, np_shape and names are thread-local, and user-defined gradients
        # read them: the engine must not start threads for devices.
        with torch.autograd.grad_mode.set_multithreading_enabled(False):
            return run() or ()
    except MXNetError:  # from a user-defined gradient
        raise
    except RuntimeError as error:
        raise _explain(error) from error
    finally:
        state.session, state.found = outer


def _explain(error: RuntimeError) -> MXNetError:
    """Translate torch's error about a graph to MXNet's error."""
    text = str(error)
    if is_freed_error(error):
        return MXNetError(NOT_RECORDED)
    if is_overwritten_error(error):
        return MXNetError(
            "backward: an array that the gradient needs was changed in place after it was used in "
            "record(). Write into it after backward, or change a copy: y = x.copy(). "
            f"(torch: {text})"
        )
    return memory_error(error, "backward") or MXNetError(f"backward: {text}")
