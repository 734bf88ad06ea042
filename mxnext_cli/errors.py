"""Errors that commands report to the user without a traceback."""

from __future__ import annotations

__all__ = ["CommandError", "UsageError"]


class CommandError(Exception):
    """A command cannot do what was asked; the message says why and what to do."""


class UsageError(CommandError):
    """The arguments do not fit together or lack something."""
