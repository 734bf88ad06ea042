"""`mx predict`: a model on images or arrays, with the names of classes.

Below it: how files become inputs of a model, which `mx convert` and `mx serve` use too.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from mxnet import image
from mxnet.error import MXNetError
from mxnet.formats.atomic import replacing

from . import CommandError, UsageError
from .models import Predictor, Shape, load_model, parse_shapes
from .output import print_json, print_table

MAX_PRINTED_VALUES = 16  # values of an output that are printed as they are
WRITTEN = (".npy", ".npz", ".csv")
IMAGES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp"})
ARRAYS = frozenset({".npy", ".npz", ".csv", ".txt"})


# A convolution's weight for one channel, in the error about data that has more.
ONE_CHANNEL = re.compile(r"expected \[\d+, [34], .*got \[\d+, 1, ")


def run(args: argparse.Namespace) -> int:
    """Print the predictions for each input."""
    if args.output and Path(args.output).suffix not in WRITTEN:
        raise UsageError(f"--output {args.output}: it ends in {', '.join(WRITTEN)}")
    model = load_model(args)
    labels = read_labels(args.labels) if args.labels else None
    shapes = parse_shapes(args.shape, model.inputs)
    arrays, names = read_inputs(args.input, model.inputs, shapes, preparation(args))
    predictor = Predictor(model)
    try:
        outputs = predictor.in_batches(arrays, args.batch)
    except MXNetError as error:
        if not args.gray and ONE_CHANNEL.search(str(error)):
            raise CommandError(f"{error}\nThe model takes one channel: give --gray.") from error
        raise
    if args.softmax:
        outputs = [softmax(out) for out in outputs]
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


def read_labels(path: str) -> list[str]:
    """Return the names of classes, one per line."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: it is not text: {error}") from None
    return [line.strip() for line in lines if line.strip()]


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return scores as probabilities along the last axis."""
    if scores.ndim == 0:
        return scores
    shifted = np.exp(scores.astype(np.float64) - scores.max(axis=-1, keepdims=True))
    return (shifted / shifted.sum(axis=-1, keepdims=True)).astype(scores.dtype)


def _row(output: np.ndarray, index: int, count: int) -> np.ndarray:
    """Return one sample's part of an output, or all of an output without a batch axis."""
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
    elif values.size <= MAX_PRINTED_VALUES:
        facts["values"] = values.tolist()
    else:
        facts |= {n: float(getattr(values, n)()) for n in ("min", "max", "mean")}
    return facts


def _print(facts: list[dict[str, Any]]) -> None:
    rows = []
    for sample in facts:
        for name, output in sample["outputs"].items():
            shown = sample["input"] if len(sample["outputs"]) == 1 else f"{sample['input']} {name}"
            if "top" in output:
                for i, best in enumerate(output["top"]):
                    label = best["label"] if best["label"] is not None else best["class"]
                    rows.append((shown if i == 0 else "", label, f"{best['score']:.6g}"))
            elif "values" in output:
                rows.append((shown, "", output["values"]))
            else:
                text = ", ".join(f"{n} {output[n]:.6g}" for n in ("min", "max", "mean"))
                rows.append((shown, "x".join(map(str, output["shape"])), text))
    print_table(("input", "class", "score"), rows)


def write_outputs(path: Path, outputs: dict[str, np.ndarray]) -> None:
    """Write the outputs: all to ``.npz``, the first to ``.npy`` or ``.csv``."""
    first = next(iter(outputs.values()))
    if path.suffix == ".csv" and first.ndim > 2:
        raise UsageError(f"{path}: an output of shape {first.shape} is no table; write .npy")
    with replacing(path) as file:
        if path.suffix == ".npz":
            arrays: dict[str, Any] = outputs
            np.savez(file, **arrays)
        elif path.suffix == ".npy":
            np.save(file, first)
        else:
            np.savetxt(file, np.atleast_2d(first), delimiter=",", fmt="%.9g")


class Preparation(NamedTuple):
    """Preprocessing of images: resize, crop, scale, mean, std, layout."""

    resize: int | None = None
    crop: int | None = None
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    is_bgr: bool = False
    is_gray: bool = False
    layout: str = "NCHW"

    def prepare(
        self, content: bytes | bytearray, source: str, shape: Shape | None = None
    ) -> np.ndarray:
        """Return the array of an encoded image, without a batch axis."""
        flag = 0 if self.is_gray else 1
        try:
            pixels = image.imdecode(content, flag=flag, to_rgb=not self.is_bgr)
        except MXNetError as error:
            raise CommandError(f"{source}: {error}") from error
        if self.resize:
            pixels = image.resize_short(pixels, self.resize)
        if self.crop:
            pixels, _ = image.center_crop(pixels, (self.crop, self.crop))
        if not self.resize and not self.crop and shape is not None and len(shape) == 3:
            height, width = shape[1:] if self.layout == "NCHW" else shape[:2]
            pixels = image.imresize(pixels, width, height)
        values = pixels.asnumpy().astype(np.float32) * self.scale
        values = (values - self._channels(self.mean, values, "--mean")) / self._channels(
            self.std, values, "--std"
        )
        return values.transpose(2, 0, 1) if self.layout == "NCHW" else values

    def _channels(self, numbers: tuple[float, ...], values: np.ndarray, option: str) -> np.ndarray:
        if len(numbers) not in (1, values.shape[-1]):
            raise UsageError(
                f"{option} has {len(numbers)} numbers, but the image {values.shape[-1]} channels"
            )
        return np.array(numbers, np.float32)


IMAGENET = Preparation(
    256, 224, 1 / 255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
)  # what the zoo's models were trained on


def preparation(args: argparse.Namespace) -> Preparation:
    """Return the image preparation given by the options."""
    base = IMAGENET if args.imagenet else Preparation()
    chosen = {
        "resize": args.resize,
        "crop": args.crop,
        "scale": args.scale,
        "mean": _numbers("--mean", args.mean),
        "std": _numbers("--std", args.std),
    }
    changed = {name: value for name, value in chosen.items() if value is not None}
    if 0.0 in changed.get("std", ()):
        raise UsageError("--std: 0 cannot divide")
    return base._replace(**changed, is_bgr=args.bgr, is_gray=args.gray, layout=args.layout)


def _numbers(option: str, text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{option} {text}: write numbers with commas between them") from None


def read_inputs(
    files: list[str], inputs: list[str], shapes: dict[str, Shape], how: Preparation
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return the arrays of each input, with a batch axis, and a name for each sample."""
    parts: dict[str, list[np.ndarray]] = {}
    names: list[str] = []
    for text in files:
        name, path = _split_name(text, inputs)
        for key, value in _read(path, name, shapes, how).items():
            parts.setdefault(key, []).append(value)
            if key == next(iter(parts)):
                names += _sample_names(path, len(value))
    arrays = {}
    for name, values in parts.items():
        if len({value.shape[1:] for value in values}) > 1:
            shown = ", ".join(str(value.shape[1:]) for value in values[:4])
            raise UsageError(
                f"the files of {name} have different shapes ({shown}): give --resize and --crop, "
                f"or --shape {name}=..."
            )
        arrays[name] = np.concatenate(values)
    return arrays, names


def _sample_names(path: Path, count: int) -> list[str]:
    return [path.name] if count == 1 else [f"{path.name}[{i}]" for i in range(count)]


def _split_name(text: str, inputs: list[str]) -> tuple[str, Path]:
    """Split ``name=file``; without a name it is the input ``data`` or the first one."""
    name, equals, rest = text.partition("=")
    if equals and name in inputs:
        return name, Path(rest)
    if equals and not Path(text).exists():
        raise UsageError(f"the model has no input {name!r}; its inputs: {', '.join(inputs)}")
    if not inputs:
        raise UsageError("the model has no inputs")
    return ("data" if "data" in inputs else inputs[0]), Path(text)


def _read(
    path: Path, name: str, shapes: dict[str, Shape], how: Preparation
) -> dict[str, np.ndarray]:
    suffix = path.suffix.lower()
    if suffix in IMAGES:
        return {name: how.prepare(path.read_bytes(), str(path), shapes.get(name))[None]}
    if suffix not in ARRAYS:
        extensions = ", ".join(sorted(IMAGES | ARRAYS))
        raise UsageError(f"{path}: inputs are {extensions}")
    try:
        with path.open("rb") as file:
            read = _read_arrays(file, suffix, name)
    except (ValueError, EOFError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise CommandError(f"{path}: it cannot be read: {error}") from None
    except Exception as error:  # zipfile's own kinds
        raise CommandError(f"{path}: it is damaged: {error}") from None
    return {key: _add_batch_axis(value, shapes.get(key), path) for key, value in read.items()}


def _read_arrays(file: BinaryIO, suffix: str, name: str) -> dict[str, np.ndarray]:
    if suffix == ".npz":
        with np.load(file, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    if suffix == ".npy":
        return {name: np.load(file, allow_pickle=False)}
    return {name: np.loadtxt(file, delimiter=",", ndmin=2, dtype=np.float32)}


def _add_batch_axis(value: np.ndarray, shape: Shape | None, path: Path) -> np.ndarray:
    if value.dtype.kind not in "fiub":
        raise CommandError(f"{path}: it holds {value.dtype}, not numbers")
    if shape is None:
        return value if value.ndim else value[None]
    if value.shape == shape:
        return value[None]
    try:
        return value.reshape(-1, *shape)
    except ValueError:
        raise UsageError(f"{path}: {value.shape} cannot become samples of shape {shape}") from None
