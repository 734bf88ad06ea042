"""What a program is made of before it is fixed: calls on numbered slots, which passes rewrite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ..graph.node import Node

ABSENT = 0  # the slot that always holds None: for optional inputs that are not there


class Unsuited(Exception):
    """A rewritten call met values on which it differs from the operators that it stands for."""


@dataclass(slots=True, eq=False)
class Call:
    """A kernel, the slots it reads, its attributes, and the slots it fills.

    `node` is where it comes from; a call that does the work of several nodes names the first.
    """

    node: Node
    kernel: Callable
    inputs: tuple[int, ...]
    attrs: dict[str, Any]
    first: int
    count: int = 1


@dataclass(slots=True)
class Plan:
    """Calls in order. Slots are filled once; slots 1 to `variables` hold the graph's inputs."""

    calls: list[Call]
    heads: list[int]
    variables: int
    training: bool
    device: torch.device
    rearranged: bool = False  # results may lie in memory otherwise than users expect
    makers: dict[int, Call] = field(default_factory=dict, init=False)
    users: dict[int, list[Call]] = field(default_factory=dict, init=False)
    shown: frozenset[int] = field(default=frozenset(), init=False)

    def __post_init__(self) -> None:
        self.shown = frozenset(self.heads)
        self.index()

    def index(self) -> None:
        """Find anew who fills and who reads each slot, after calls were changed."""
        self.makers = {c.first + i: c for c in self.calls for i in range(c.count)}
        self.users = {}
        for call in self.calls:
            for slot in call.inputs:
                self.users.setdefault(slot, []).append(call)

    def is_variable(self, slot: int) -> bool:
        """Return whether a slot holds an input of the graph."""
        return 0 < slot <= self.variables

    def sole_user(self, slot: int) -> Call | None:
        """Return the one call that reads a slot, once, when nobody else needs its value."""
        users = self.users.get(slot, ())
        return users[0] if len(users) == 1 and slot not in self.shown else None

    def remove(self, gone: set[Call]) -> None:
        """Drop calls, and index what is left."""
        self.calls = [c for c in self.calls if c not in gone]
        self.index()
