"""How the processes of a job end."""

from __future__ import annotations

import socket
from dataclasses import dataclass


@dataclass
class Ended:
    """How a process ended."""

    role: str
    status: int
    out: str
    err: str
    seconds: float  # from the start of the job to the end of the process


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def succeeded(ended: list[Ended]) -> list[Ended]:
    """Return the processes of a job, after checking that all of them ended well."""
    for process in ended:
        assert process.status == 0, f"{process.role} ended with {process.status}: {process.err}"
    return ended
