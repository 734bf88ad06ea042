"""How a model is served: shapes, images, labels, device, from options and from a file.

The file is `PREFIX-serve.json` beside the model, or `serve.json` in its folder or the one above.
Options of the command line come first.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from .. import CommandError, UsageError
from ..models import SYMBOL_SUFFIX, Shapes, parse_shapes
from ..predict import Preparation, preparation, read_labels
from .encoding import Postprocessing

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
    layout: Literal["NCHW", "NHWC"] = "NCHW"


class SettingsFields(msgspec.Struct, forbid_unknown_fields=True):
    """What the file can say."""

    shape: dict[str, list[Annotated[int, msgspec.Meta(ge=1)]]] = {}
    labels: str | list[str] | None = None
    top: int | None = None
    softmax: bool = False
    preprocess: PreprocessFields = msgspec.field(default_factory=PreprocessFields)
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
    try:
        content = path.read_bytes()[:MAX_FILE] if path is not None else b"{}"
        fields = msgspec.json.decode(content, type=SettingsFields)
        how = fields.preprocess
        numbers = {n: ",".join(map(str, getattr(how, n) or ())) or None for n in ("mean", "std")}
        images = preparation(argparse.Namespace(**{**msgspec.structs.asdict(how), **numbers}))
        labels, files = fields.labels or [], ()
        if isinstance(labels, str):
            files = (model_file.parent / labels if path is None else path.parent / labels,)
            labels = read_labels(str(files[0]))
    except (ValueError, UsageError) as error:
        raise CommandError(f"{path}: {error}") from None
    shapes = {name: tuple(sizes) for name, sizes in fields.shape.items()}
    top, softmax = fields.top, fields.softmax
    if args is not None:
        shapes |= parse_shapes(args.shape, inputs)
        images = preparation(args) if has_image_options(args) else images
        top, softmax = (top if args.top is None else args.top), softmax or args.softmax
        if args.labels:
            labels, files = read_labels(args.labels), (Path(args.labels),)
    for name in shapes:
        if name not in inputs:
            names = ", ".join(inputs)
            raise UsageError(f"shape: the model has no input {name!r}; its inputs: {names}")
    top = (5 if labels else 0) if top is None else top
    post = Postprocessing(softmax, top, tuple(labels))
    return ModelSettings(shapes, images, post, files, fields.device)


def has_image_options(args: argparse.Namespace) -> bool:
    """Whether an option says how images are prepared."""
    values: Mapping[str, Any] = vars(args)
    return args.layout != "NCHW" or any(
        values[name] not in (None, False)
        for name in ("imagenet", "resize", "crop", "scale", "mean", "std", "bgr", "gray")
    )
