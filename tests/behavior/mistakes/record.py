"""Run every invalid call and write its error message to `messages.md`.

Use: ``python -m tests.behavior.mistakes.record``.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import logging
import os
import re
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import mxnet as mx
from mxnet._process import tracebacks

AREAS = ("arrays", "layers", "data", "graphs", "numpy_and_files")
TABLE = Path(__file__).with_name("messages.md")
# Source line of a node, in a file of this folder, whose path may contain spaces.
MADE_AT = re.compile(re.escape(f"{Path(__file__).parent}{os.sep}") + r"(\w+\.py:)\d+")
HEADING = """# What mistakes say

Each line is a mistake, which is the function of that name in this folder, and the message. It is
written by `python -m tests.behavior.mistakes.record`; a test compares.
"""


class Answer(NamedTuple):
    """What a mistake raised."""

    message: str  # the class and the text
    lines: int  # of the traceback that a program prints, of a longer message the first
    files: list[str]  # of the frames of the traceback


def mistakes(area: str) -> dict[str, Callable[[], None]]:
    """Return the functions of an area that make a mistake: those that no other function calls."""
    module = importlib.import_module(f"tests.behavior.mistakes.{area}")
    source = inspect.getsource(module)
    return {
        name: function
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and not inspect.signature(function).parameters
        and len(re.findall(rf"\b{name}\(", source)) == 1
    }


def answer(function: Callable[[], None]) -> Answer:
    """Make a mistake in an empty folder and return what it said."""
    before, error = Path.cwd(), None
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with _silence(), mx.name.NameManager():
                function()
                mx.nd.waitall()
        except Exception as raised:
            error = raised
        finally:
            os.chdir(before)
    if error is None:
        raise AssertionError(f"{function.__name__} raised nothing")
    error.__traceback__ = error.__traceback__.tb_next  # without this file
    tracebacks.hide_internal_frames(error)
    shown = "".join(traceback.format_exception(error)).splitlines()
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return Answer(_normalized(error, folder), len(shown) - str(error).count("\n"), files)


@contextlib.contextmanager
def _silence():
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def _normalized(error: Exception, folder: str) -> str:
    text = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    text = text.replace(os.path.realpath(folder), "FOLDER").replace(folder, "FOLDER")
    text = re.sub(r"(?s)usage: .*?(mx[\w ]*: error:)", r"\1", text)  # as wide as the terminal
    text = re.sub(r"\(choose from [^)]*\)", "(choose from ...)", text)
    text = re.sub(r"(is not an ONNX file: ).*", r"\1...", text)
    text = re.sub(r"torch \d\S*", "torch N", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "0x...", text)
    text = MADE_AT.sub(r"\1N", text)
    text = re.sub(r"(dense|conv|embedding|empty|symbolblock|\wloss)\d+(?=['_])", r"\1N", text)
    return re.sub(r"\s*\n\s*", " ⏎ ", text.strip())


def record() -> str:
    """Return the table of all areas."""
    parts = [HEADING]
    for area in AREAS:
        parts.append(f"## {area.replace('_', ' ').capitalize()}\n")
        for name, function in mistakes(area).items():
            parts.append(f"- **{name.replace('_', ' ')}**: {answer(function).message}")
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    TABLE.write_text(record(), encoding="utf-8")
