"""Runs a converted file in a separate process, so that a crash becomes an error message."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..source import ConversionError

PROGRAM = Path(__file__).with_name("run_file.py")
TIMEOUT = 1800  # seconds

Feed = Mapping[str, np.ndarray]


def run_file(model: Path, cases: Mapping[str, Feed]) -> dict[str, list[np.ndarray]]:
    """Return the outputs of a ``.onnx`` or ``.pt2`` file for each case of inputs, in order."""
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = (Path(folder) / name for name in ("inputs.npz", "outputs.npz"))
        arrays: dict[str, Any] = {
            f"{case}/{name}": array for case, feed in cases.items() for name, array in feed.items()
        }
        np.savez(inputs, **arrays)
        command = [sys.executable, str(PROGRAM), str(model.resolve()), str(inputs), str(outputs)]
        run_program(command, "the converted model", TIMEOUT)
        results: dict[str, list[np.ndarray]] = {case: [] for case in cases}
        with np.load(outputs) as stored:
            for key in stored.files:
                results[key.rpartition("/")[0]].append(stored[key])
    return results


def run_program(
    command: Sequence[str],
    title: str,
    timeout: float,
    env: Mapping[str, str] | None = None,
    shown: int = 1,
) -> None:
    """Run a program that prints what it is about to do; raise if it does not end well.

    `shown` lines of its error are in the message.
    """
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=timeout, env=env
        )
    except subprocess.TimeoutExpired:
        raise ConversionError(
            f"{title} ran for more than {timeout} seconds and was stopped."
        ) from None
    if done.returncode == 0:
        return
    lines = done.stdout.strip().splitlines()
    where = f"while {lines[-1]}" if lines else "while it was loaded"
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise ConversionError(f"{title} crashed its process ({name}) {where}.")
    errors = done.stderr.strip().splitlines() or ["no message"]
    text = "\n".join(line[:300] for line in errors[-shown:])
    raise ConversionError(f"{title} failed {where}; nothing was written: {text}")
