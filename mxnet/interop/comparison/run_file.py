"""Runs a converted file on stored inputs: ``python run_file.py model.pt2 inputs.npz outputs.npz``.

A separate program without MXNext, so its results are those of users of the file.
Arrays are named ``case/input`` and ``case/number of the output``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[[dict[str, np.ndarray]], Iterable[Any]]


def load_onnx(path: str) -> Run:
    """Return a function that runs an ONNX file, by ONNX Runtime where it is installed."""
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        evaluator: Any = ReferenceEvaluator(path)
        return lambda feed: evaluator.run(None, {n: feed[n] for n in evaluator.input_names})
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return lambda feed: session.run(None, {n: feed[n] for n in names})


def load_program(path: str) -> Run:
    """Return a function that runs a program of `torch.export`; inputs come in their order."""
    import torch

    program = torch.export.load(path).module()

    def run(feed: dict[str, np.ndarray]) -> list[np.ndarray]:
        with torch.no_grad():
            output = program(*(torch.from_numpy(array) for array in feed.values()))
        return [t.numpy() for t in (output if isinstance(output, tuple | list) else (output,))]

    return run


def main(model: str, inputs: str, outputs: str) -> None:
    """Run all cases and store the outputs."""
    run = (load_onnx if model.endswith(".onnx") else load_program)(model)
    cases: dict[str, dict[str, np.ndarray]] = {}
    with np.load(inputs) as stored:
        for key in stored.files:
            case, _, name = key.partition("/")
            cases.setdefault(case, {})[name] = stored[key]
    results: dict[str, Any] = {}
    for case, feed in cases.items():
        print(f"running {case}", flush=True)  # noqa: T201 -- tells the parent how far it came
        results |= {f"{case}/{i}": array for i, array in enumerate(run(feed))}
    np.savez(outputs, **results)


if __name__ == "__main__":
    # Its own folder has modules of MXNext, which nothing here may import by chance.
    sys.path.remove(str(Path(__file__).resolve().parent))
    main(*sys.argv[1:])
