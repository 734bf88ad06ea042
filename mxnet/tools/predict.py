"""`mx predict`: a model on images or arrays, with the names of classes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from mxnext_cli.errors import CommandError, UsageError
from mxnext_cli.output import print_json, print_table

from ..formats.atomic import replacing
from .loading.input_files import preparation, read_inputs
from .loading.models import load_model, parse_shapes
from .loading.predictor import Predictor

FEW = 16  # values of an output that are printed as they are
WRITTEN = (".npy", ".npz", ".csv")


def run(args: argparse.Namespace) -> int:
    """Print what the model says about each input."""
    if args.output and Path(args.output).suffix not in WRITTEN:
        raise UsageError(f"--output {args.output}: it ends in {', '.join(WRITTEN)}")
    model = load_model(args)
    labels = _read_labels(args.labels) if args.labels else None
    shapes = parse_shapes(args.shape, model.inputs)
    arrays, names = read_inputs(args.input, model.inputs, shapes, preparation(args))
    predictor = Predictor(model)
    outputs = predictor.in_batches(arrays, args.batch)
    if args.softmax:
        outputs = [_softmax(out) for out in outputs]
    if args.output:
        write_outputs(Path(args.output), dict(zip(predictor.output_names, outputs, strict=True)))
    facts = [
        {
            "input": name,
            "outputs": {
                key: describe(_row(out, i, len(names)), labels, args.top)
                for key, out in zip(predictor.output_names, outputs, strict=True)
            },
        }
        for i, name in enumerate(names)
    ]
    if args.json:
        print_json(facts)
    else:
        _print(facts)
    return 0


def _read_labels(path: str) -> list[str]:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: it is not text: {error}") from None
    return [line.strip() for line in lines if line.strip()]


def _softmax(scores: np.ndarray) -> np.ndarray:
    if scores.ndim == 0:
        return scores
    shifted = np.exp(scores.astype(np.float64) - scores.max(axis=-1, keepdims=True))
    return (shifted / shifted.sum(axis=-1, keepdims=True)).astype(scores.dtype)


def _row(output: np.ndarray, index: int, count: int) -> np.ndarray:
    """Return the part of an output for one sample; all of it where there is no such part."""
    return output[index] if output.ndim and output.shape[0] == count else output


def describe(values: np.ndarray, labels: list[str] | None, top: int) -> dict[str, Any]:
    """Return the facts about one output of one sample: the best classes of a vector of scores."""
    facts: dict[str, Any] = {"shape": list(values.shape)}
    if values.ndim == 1 and values.size > 1:
        best = np.argsort(-values, kind="stable")[:top]
        facts["top"] = [
            {
                "class": int(i),
                "label": labels[i] if labels is not None and i < len(labels) else None,
                "score": float(values[i]),
            }
            for i in best
        ]
    elif values.size <= FEW:
        facts["values"] = values.tolist()
    else:
        facts |= {n: float(getattr(values, n)()) for n in ("min", "max", "mean")}
    return facts


def _print(facts: list[dict[str, Any]]) -> None:
    rows = []
    for sample in facts:
        for name, said in sample["outputs"].items():
            shown = sample["input"] if len(sample["outputs"]) == 1 else f"{sample['input']} {name}"
            if "top" in said:
                for i, found in enumerate(said["top"]):
                    label = found["label"] if found["label"] is not None else found["class"]
                    rows.append((shown if i == 0 else "", label, f"{found['score']:.6g}"))
            elif "values" in said:
                rows.append((shown, "", said["values"]))
            else:
                text = ", ".join(f"{n} {said[n]:.6g}" for n in ("min", "max", "mean"))
                rows.append((shown, "x".join(map(str, said["shape"])), text))
    print_table(("input", "class", "score"), rows)


def write_outputs(path: Path, outputs: dict[str, np.ndarray]) -> None:
    """Write the outputs: all to ``.npz``, the first to ``.npy`` or ``.csv``."""
    first = next(iter(outputs.values()))
    if path.suffix == ".csv" and first.ndim > 2:
        raise UsageError(f"{path}: an output of shape {first.shape} is no table; write .npy")
    with replacing(path) as file:
        if path.suffix == ".npz":
            np.savez(file, **outputs)
        elif path.suffix == ".npy":
            np.save(file, first)
        else:
            np.savetxt(file, np.atleast_2d(first), delimiter=",", fmt="%.9g")
