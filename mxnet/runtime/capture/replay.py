"""When an executor's training step is captured, and how captured steps run; see `capture`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from ...base import is_np_shape
from ...ops import interpreters
from ...ops.declare import KERNEL_ERRORS
from ...torch_private import can_capture, set_grad_enabled
from ..backends import BackendProgram
from ..program import Program
from .kernels import ATTEMPTS, Capture
from .step import CapturedStep, compile_step


class Repetition:
    """The training steps of one executor: counted, captured at last, then repeated."""

    def __init__(self) -> None:
        self._is_possible: bool | None = None
        self._steps = 0  # with a backward
        self._attempts = list(ATTEMPTS if can_capture else ())
        self._step: CapturedStep | None = None
        self._shape_mode = False  # kernels may ask for it
        self._saved: list[Tensor] | None = None  # what backward of a repeated step needs
        self._capture: Capture | None = None  # of the present step
        self._feed: Sequence[Tensor] = ()  # what it was run on
        self._inputs: Sequence[Tensor] = ()  # their memory
        self._heads: Sequence[Tensor] = ()

    def reset(self) -> None:
        """Forget the last forward."""
        self._saved = self._capture = None
        self._feed = self._inputs = self._heads = ()

    def consider(self, program: Program | BackendProgram) -> None:
        """Learn once whether the steps of a program can be captured at all."""
        if self._is_possible is None:
            self._is_possible = isinstance(program, Program) and program.is_repeatable

    def is_possible(self) -> bool:
        """Return whether steps can be captured, and no interpreter or torch mode is active."""
        return bool(self._is_possible) and not interpreters.is_watched()

    def forward(self, inputs: Sequence[Tensor]) -> list[Tensor] | None:
        """Return the heads of a repeated step; None if there is none for these inputs."""
        step = self._step
        if step is None or not step.accepts(inputs) or is_np_shape() is not self._shape_mode:
            return None
        grad_mode = torch.is_grad_enabled()
        set_grad_enabled(False)
        try:
            heads, self._saved = step.forward(inputs)
        except KERNEL_ERRORS:
            self._step = None  # the program itself explains the error
            return None
        finally:
            set_grad_enabled(grad_mode)
        return heads

    def watch_forward(
        self, feed: Sequence[Tensor], inputs: Sequence[Tensor], run: Callable[[], list]
    ) -> list:
        """Return the heads of a forward, which is captured if it is time for that.

        `feed` are the tensors that stand for `inputs`, the memory of the variables.
        """
        if self._step is not None or not self._attempts or self._steps < self._attempts[0]:
            return run()
        del self._attempts[0]
        self._capture, self._shape_mode = Capture(), is_np_shape()
        self._feed, self._inputs = feed, inputs
        with self._capture.watching():
            self._heads = run()
        return self._heads

    def watch_backward(self) -> AbstractContextManager:
        """Return a scope for the backward of a captured forward."""
        capture = self._capture
        if capture is None or capture.calls is None:
            return nullcontext()
        capture.forward_calls = len(capture.calls)
        return capture.watching()

    def finish(self, starts: Mapping[int, Tensor], gradients: Sequence[Tensor | None]) -> None:
        """Count a step, and make functions of one that was watched."""
        self._steps += 1
        if self._capture is not None and is_np_shape() is self._shape_mode:
            self._step = compile_step(
                self._capture, self._feed, self._inputs, self._heads, starts, gradients
            )
        self.reset()

    @property
    def is_repeated(self) -> bool:
        """Whether the last forward was a repeated one."""
        return self._saved is not None

    def tracked(self, heads: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Return the heads that have gradients, None for the others."""
        if self._saved is None or self._step is None:
            return [h if h is not None and h.requires_grad else None for h in heads]
        return [h if t else None for h, t in zip(heads, self._step.tracked, strict=True)]

    def can_start(self, starts: Mapping[int, Tensor]) -> bool:
        """Return whether the backward of a repeated step may begin so."""
        return self._step is not None and self._step.can_start(starts)

    def backward(self, starts: Mapping[int, Tensor]) -> Sequence[Tensor | None]:
        """Return the gradients of a repeated step."""
        assert self._step is not None and self._saved is not None
        saved, self._saved = self._saved, None
        grad_mode = torch.is_grad_enabled()
        set_grad_enabled(False)
        try:
            return self._step.backward(saved, starts.values())
        finally:
            set_grad_enabled(grad_mode)
