"""Rows of the comparison with other engines, by group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Program = tuple[str, str]  # set-up, and what is measured


@dataclass(frozen=True)
class Row:
    """The same work as programs for MXNext and for its peers.

    Parameters
    ----------
    name : what is done.
    ours : set-up and statement, an MXNet program.
    peers : programs of others by their names; ``mxnet`` runs `ours` on MXNet 1.9.1 if its program
        is None.
    goal : the ratio that our own kernels are to reach, to the best of `against` (all peers by
        default).
    number : how often the statement runs in one measurement.
    unit : ``ms`` and ``us`` are times of the statement; ``value`` rows have an expression as their
        statement, which gives seconds, ``MB`` rows one that gives megabytes.
    fresh : whether each measurement takes a new process.
    rounds : maximum number of rounds of all sides in one process.
    family, size : rows of one family differ by their size alone; they are drawn as one curve.
    variants : other programs of ours; ``auto`` is ``hybridize(backend="auto")``.
    engine_goal : the goal of ``auto``, if it is another than `goal`.
    """

    name: str
    ours: Program
    peers: dict[str, Program | None]
    goal: float
    against: tuple[str, ...] = ()
    number: int = 1
    unit: Literal["ms", "us", "value", "MB"] = "ms"
    fresh: bool = False
    rounds: int = 5
    family: str = ""
    size: int = 0
    variants: dict[str, Program] = field(default_factory=dict)  # of ours, in columns of their own
    engine_goal: float | None = None

    @property
    def evaluates(self) -> bool:
        """Whether the statement is an expression that gives the measured value."""
        return self.unit in ("value", "MB")
