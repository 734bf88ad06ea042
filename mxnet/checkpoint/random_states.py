"""The states of all random generators, to be kept and set again."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

__all__ = ["get_random_states", "set_random_states"]


def get_random_states() -> dict[str, Any]:
    """Return the state of every random generator: torch's on all devices, NumPy's, Python's."""
    kind, words, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002 (the global one)
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "cuda": [s.numpy().tobytes() for s in _cuda_states()],
        "numpy": (str(kind), words, int(position), int(has_gauss), float(gauss)),
        "python": _python_state(),
    }


def _python_state() -> tuple:
    version, words, gauss = random.getstate()
    return version, np.array(words, np.uint64), gauss


def _cuda_states() -> list[torch.Tensor]:
    used = torch.cuda.is_available() and torch.cuda.is_initialized()
    return torch.cuda.get_rng_state_all() if used else []


def set_random_states(state: Mapping[str, Any]) -> None:
    """Set every random generator to a state that `get_random_states` returned."""
    torch.set_rng_state(torch.frombuffer(bytearray(state["torch"]), dtype=torch.uint8))
    if state["cuda"] and torch.cuda.is_available():
        saved = [torch.frombuffer(bytearray(s), dtype=torch.uint8) for s in state["cuda"]]
        torch.cuda.set_rng_state_all(saved[: torch.cuda.device_count()])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    version, words, gauss = state["python"]
    random.setstate((version, tuple(int(w) for w in words), gauss))
