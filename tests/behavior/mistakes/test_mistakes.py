"""Error messages of common user mistakes: MXNet's wording, short, at the user's line."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.behavior.mistakes.record import AREAS, TABLE, Answer, answer, mistakes

RECORDED = dict(
    re.fullmatch(r"- \*\*(.+?)\*\*: (.+)", line).groups()
    for line in TABLE.read_text(encoding="utf-8").splitlines()
    if line.startswith("- ")
)
MISTAKES = {name: function for area in AREAS for name, function in mistakes(area).items()}
TORCH_WORDS = re.compile(
    r"\bmat[12]\b|\b[Tt]ensors?\b|aten::|non-singleton|\bHalf\b|\bDouble\b|torch\.(?!export)"
)
MOST_LINES = 15


def test_every_error_case_is_recorded() -> None:
    assert sorted(RECORDED) == sorted(name.replace("_", " ") for name in MISTAKES)
    assert len(RECORDED) >= 130


@pytest.mark.parametrize("name", MISTAKES)
def test_error_message_matches_the_recorded_one(name: str) -> None:
    found = answer(MISTAKES[name])
    wanted = RECORDED[name.replace("_", " ")]
    if sys.version_info < (3, 11):  # errors have no notes
        assert wanted.startswith(found.message)
    else:
        assert found.message == wanted
    assert not TORCH_WORDS.search(found.message)
    assert found.lines <= MOST_LINES
    assert_shows_the_users_line(found, MISTAKES[name])


def assert_shows_the_users_line(found: Answer, function: Callable[[], None]) -> None:
    assert function.__code__.co_filename in found.files


PROGRAM = """
import mxnet as mx

def train():
    {}

train()
"""


@pytest.mark.parametrize(
    "line",
    [
        "mx.nd.dot(mx.nd.ones((2, 3)), mx.nd.ones((2, 3)))",
        "mx.io.CSVIter(data_csv='none.csv', data_shape=(3,), batch_size=2)",
    ],
)
def test_traceback_of_a_program_shows_only_its_own_lines(line: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(line))
    command = [sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    shown = done.stderr.splitlines()
    frames = [text for text in shown if text.startswith("  File ")]
    assert all(str(program) in frame for frame in frames) and len(frames) == 2
    assert len(shown) <= MOST_LINES
