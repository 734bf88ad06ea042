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
from typing import Any, Literal

import msgspec

from .. import CommandError, UsageError
from ..models import SYMBOL_SUFFIX, Shapes, parse_shapes
from ..predict import IMAGENET, Preparation, preparation, read_labels
from .encoding import Postprocessing

MAX_FILE = 16 << 20  # bytes


class PreprocessFields(msgspec.Struct, forbid_unknown_fields=True):
    """How images become arrays, as `mx predict` names it."""

    imagenet: bool = False
    resize: int | None = None
    crop: int | None = None
    scale: float | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    bgr: bool = False
    gray: bool = False
    layout: Literal["NCHW", "NHWC"] = "NCHW"

    def preparation(self) -> Preparation:
        """Return how images become arrays."""
        if self.std is not None and 0.0 in self.std:
            raise ValueError("std: 0 cannot divide")
        base = IMAGENET if self.imagenet else Preparation()
        chosen = {name: getattr(self, name) for name in ("resize", "crop", "scale", "mean", "std")}
        changed = {name: value for name, value in chosen.items() if value is not None}
        return base._replace(
            **changed, is_bgr=self.bgr, is_gray=self.gray, layout=self.layout
        )  # fmt: skip


class SettingsFields(msgspec.Struct, forbid_unknown_fields=True):
    """What the file can say."""

    shape: dict[str, tuple[int, ...]] = {}
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
        for shape in fields.shape.values():
            if min(shape, default=1) < 1:
                raise ValueError(f"shape {list(shape)}: sizes are 1 or more")
        labels, files = fields.labels or [], ()
        if isinstance(labels, str):
            files = (path.parent / labels,)
            labels = read_labels(str(files[0]))
        top = fields.top if fields.top is not None else (5 if labels else 0)
        how = fields.preprocess.preparation()
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from None
    post = Postprocessing(fields.softmax, top, tuple(labels))
    return ModelSettings(fields.shape, how, post, files, fields.device)


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
    top = args.top if args.top is not None else (post.top or (5 if labels else 0))
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
