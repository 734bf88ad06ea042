"""How a model is served: shapes, images, labels, device, from options and from a file.

The file is `PREFIX-serve.json` beside the model, or `serve.json` in its folder or the one above.
Options of the command line come first.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ... import CommandError, UsageError
from ...models import SYMBOL_SUFFIX, Shape, Shapes, parse_shapes
from ...predict import IMAGENET, Preparation, preparation, read_labels
from ..payloads.encoding import Postprocessing

MAX_FILE = 16 << 20  # bytes


class PreprocessFields(msgspec.Struct, forbid_unknown_fields=True):
    """How images become arrays, as `mx predict` names it."""

    imagenet: bool = False
    resize: int | None = None
    crop: int | None = None
    scale: float | None = None
    mean: list[float] | None = None
    std: list[float] | None = None
    bgr: bool = False
    gray: bool = False
    layout: str = "NCHW"


class SettingsFields(msgspec.Struct, forbid_unknown_fields=True):
    """What the file can say."""

    shape: dict[str, list[int]] = {}
    labels: str | list[str] | None = None
    top: int | None = None
    softmax: bool = False
    preprocess: PreprocessFields | None = None
    device: str | None = None


@dataclass(frozen=True)
class ModelSettings:
    """How one model is served."""

    shapes: Shapes = field(default_factory=dict)
    preparation: Preparation = field(default_factory=Preparation)
    postprocessing: Postprocessing = field(default_factory=Postprocessing)
    files: tuple[Path, ...] = ()  # of labels
    device: str | None = None


def settings_files(model_file: Path) -> list[Path]:
    """Return where the settings of a model can be, whether they are there or not."""
    prefix = model_file.name.removesuffix(SYMBOL_SUFFIX).removesuffix(".onnx")
    folder = model_file.parent
    files = [folder / f"{prefix}-serve.json", folder / "serve.json"]
    return [*files, folder.parent / "serve.json"] if folder.name.isdigit() else files


def read_settings(
    model_file: Path, inputs: Sequence[str], args: argparse.Namespace | None = None
) -> ModelSettings:
    """Return the settings of a model; `args` are options that come before the file's."""
    path = next((path for path in settings_files(model_file) if path.is_file()), None)
    settings = _from_file(path) if path is not None else ModelSettings()
    if args is not None:
        settings = _with_options(settings, args, inputs)
    for name in settings.shapes:
        if name not in inputs:
            raise UsageError(
                f"shape: the model has no input {name!r}; its inputs: {', '.join(inputs)}"
            )
    return settings


def _from_file(path: Path) -> ModelSettings:
    try:
        fields = msgspec.json.decode(path.read_bytes()[:MAX_FILE], type=SettingsFields)
        labels, files = _labels(fields.labels, path)
        return ModelSettings(
            {name: _shape(sizes, path) for name, sizes in fields.shape.items()},
            _preparation(fields.preprocess or PreprocessFields(), path),
            Postprocessing(fields.softmax, _top(fields.top, labels), labels),
            tuple(files),
            fields.device,
        )
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {error}") from None


def _top(top: int | None, labels: Sequence[str]) -> int:
    return top if top is not None else (5 if labels else 0)


def _labels(value: str | list[str] | None, path: Path) -> tuple[tuple[str, ...], list[Path]]:
    if value is None:
        return (), []
    if isinstance(value, list):
        return tuple(value), []
    file = path.parent / value
    return tuple(read_labels(str(file))), [file]


def _shape(sizes: list[int], path: Path) -> Shape:
    if any(n < 1 for n in sizes):
        raise CommandError(f"{path}: shape {sizes}: sizes are 1 or more")
    return tuple(sizes)


def _preparation(fields: PreprocessFields, path: Path) -> Preparation:
    if fields.layout not in ("NCHW", "NHWC"):
        raise CommandError(f"{path}: layout {fields.layout!r} is not NCHW or NHWC")
    if fields.std is not None and 0.0 in fields.std:
        raise CommandError(f"{path}: std: 0 cannot divide")
    chosen = {
        "resize": fields.resize,
        "crop": fields.crop,
        "scale": fields.scale,
        "mean": tuple(fields.mean) if fields.mean is not None else None,
        "std": tuple(fields.std) if fields.std is not None else None,
    }
    base = IMAGENET if fields.imagenet else Preparation()
    changed = {name: value for name, value in chosen.items() if value is not None}
    return base._replace(**changed, is_bgr=fields.bgr, is_gray=fields.gray, layout=fields.layout)


def _with_options(
    settings: ModelSettings, args: argparse.Namespace, inputs: Sequence[str]
) -> ModelSettings:
    """Return settings in which the options that were given replace those of the file."""
    changes: dict[str, Any] = {}
    if args.shape:
        changes["shapes"] = settings.shapes | parse_shapes(args.shape, inputs)
    if has_image_options(args):
        changes["preparation"] = preparation(args)
    post = settings.postprocessing
    labels = tuple(read_labels(args.labels)) if args.labels else post.labels
    top = args.top if args.top is not None else (post.top or _top(None, labels))
    changes["postprocessing"] = Postprocessing(args.softmax or post.softmax, top, labels)
    if args.labels:
        changes["files"] = (*settings.files, Path(args.labels))
    return dataclasses.replace(settings, **changes)


def has_image_options(args: argparse.Namespace) -> bool:
    """Whether an option says how images are prepared."""
    values: Mapping[str, Any] = vars(args)
    return args.layout != "NCHW" or any(
        values[name] not in (None, False)
        for name in ("imagenet", "resize", "crop", "scale", "mean", "std", "bgr", "gray")
    )
