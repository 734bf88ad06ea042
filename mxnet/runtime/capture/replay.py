"""Decides when an executor's training step is captured, and replays captured steps."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor

from ...base import is_np_shape
from ...ops import interpreters
from ...ops.declare import KERNEL_ERRORS
from ...torch_private import (
    can_capture,
    count_dispatch_modes,
    count_function_modes,
    set_grad_enabled,
)
from ..backends import BackendProgram
from ..program import Program
from .kernels import ATTEMPTS, Capture
from .step import Functions, compile_step

# Results of a forward: the heads, and the same list with None for heads without gradients.
Forward = tuple[list[Tensor], list[Tensor | None]]


class _CapturedStep(NamedTuple):
    """The functions of a captured step, and the conditions under which they are valid."""

    functions: Functions
    inputs: Sequence[Tensor]  # the memory of the variables; other tensors need a new capture
    has_gradient: list[bool]  # for each head
    starts: list[int]  # the heads from which backward starts
    uses_np_shape: bool  # kernels may read it


class Repetition:
    """The training steps of one executor, which are counted, then captured, then replayed."""

    def __init__(self) -> None:
        self._is_possible: bool | None = None
        self._steps = 0  # with a backward
        self._attempts = list(ATTEMPTS if can_capture else ())
        self._step: _CapturedStep | None = None
        self._saved: list[Tensor] | None = None  # saved for backward of a replayed step
        self._capture: Capture | None = None  # of the present step
        self._uses_np_shape = False  # of the present step
        self._feed: Sequence[Tensor] = ()  # inputs of the present step
        self._inputs: Sequence[Tensor] = ()  # their memory
        self._heads: Sequence[Tensor] = ()

    def reset(self) -> None:
        """Forget the last forward."""
        self._saved = self._capture = None
        self._feed = self._inputs = self._heads = ()

    def consider(self, program: Program | BackendProgram) -> None:
        """Determine once whether the steps of a program can be captured."""
        if self._is_possible is None:
            self._is_possible = isinstance(program, Program) and program.is_repeatable

    def is_possible(self) -> bool:
        """Return whether steps can be captured, and no interpreter or torch mode is active."""
        return bool(self._is_possible) and not (
            interpreters.graphs
            or torch.is_anomaly_enabled()
            or torch.is_autocast_enabled("cpu")
            or count_dispatch_modes()
            or count_function_modes()
        )

    def forward(self, inputs: Sequence[Tensor]) -> Forward | None:
        """Run a captured step; return None if there is none for these inputs."""
        step = self._step
        if step is None or not all(map(operator.is_, inputs, step.inputs)):
            return None
        if is_np_shape() is not step.uses_np_shape:
            return None
        grad_mode = torch.is_grad_enabled()
        set_grad_enabled(False)
        try:
            heads, self._saved = step.functions.forward(inputs)
        except KERNEL_ERRORS:
            self._step = None  # the program itself explains the error
            return None
        finally:
            set_grad_enabled(grad_mode)
        pairs = zip(heads, step.has_gradient, strict=True)
        return heads, [head if has else None for head, has in pairs]

    def watch_forward(
        self, feed: Sequence[Tensor], inputs: Sequence[Tensor], run: Callable[[], list]
    ) -> list:
        """Return the heads of a forward. Capture it if a capture is due.

        `feed` are the tensors that represent `inputs`, the memory of the variables.
        """
        if self._step is not None or not self._attempts or self._steps < self._attempts[0]:
            return run()
        del self._attempts[0]
        self._capture, self._uses_np_shape = Capture(), is_np_shape()
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
        """Count a step. Compile it if it was captured."""
        self._steps += 1
        if self._capture is not None and is_np_shape() is self._uses_np_shape:
            heads, begin = self._heads, list(starts.values())
            functions = compile_step(self._capture, self._feed, heads, begin, gradients)
            if functions is not None:
                has_gradient = [head.requires_grad for head in heads]
                self._step = _CapturedStep(
                    functions, self._inputs, has_gradient, list(starts), self._uses_np_shape
                )
        self.reset()

    @property
    def is_repeated(self) -> bool:
        """Whether the last forward replayed a captured step."""
        return self._saved is not None

    def can_start(self, starts: Mapping[int, Tensor]) -> bool:
        """Return whether a captured backward can start from these gradients."""
        if self._step is None or list(starts) != self._step.starts:
            return False
        return all(gradient.is_contiguous() for gradient in starts.values())

    def backward(self, starts: Mapping[int, Tensor]) -> Sequence[Tensor | None]:
        """Return the gradients of a replayed step."""
        assert self._step is not None and self._saved is not None
        saved, self._saved = self._saved, None
        grad_mode = torch.is_grad_enabled()
        set_grad_enabled(False)
        try:
            return self._step.functions.backward(saved, starts.values())
        finally:
            set_grad_enabled(grad_mode)
