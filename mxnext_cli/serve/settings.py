"""How a model is served: shapes, images, labels, device, from options and from a file.

The file is `PREFIX-serve.json` beside the model, or `serve.json` in its folder or the one above.
Options of the command line come first.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from .. import CommandError, UsageError
from ..models import SYMBOL_SUFFIX, Shapes, parse_shapes
from ..predict import Preparation, preparation, read_labels
from .encoding import Postprocessing

MAX_FILE = 16 << 20  # bytes


class Preprocess(msgspec.Struct, forbid_unknown_fields=True):
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


class Fields(msgspec.Struct, forbid_unknown_fields=True):
    """What the file can say."""

    shape: dict[str, list[Annotated[int, msgspec.Meta(ge=1)]]] = {}
    labels: str | list[str] | None = None
    top: int | None = None
    softmax: bool = False
    preprocess: Preprocess = msgspec.field(default_factory=Preprocess)
    device: str | None = None


class ModelSettings(NamedTuple):
    """How one model is served."""

    shapes: Shapes
    preparation: Preparation
    postprocessing: Postprocessing
    files: list[Path]  # of labels
    device: str | None


MODEL_OPTIONS = ("epoch", "params", "shape", "labels", "top", "softmax",
                 *Preprocess.__struct_fields__)  # fmt: skip


def find_used(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the command line that are for one model."""
    values = {name: getattr(args, name) for name in MODEL_OPTIONS}
    return {name: value for name, value in values.items()
            if value is not None and value is not False and value not in ([], "NCHW")}  # fmt: skip


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
    options = {} if args is None else find_used(args)
    try:
        content = path.read_bytes()[:MAX_FILE] if path is not None else b"{}"
        fields = msgspec.json.decode(content, type=Fields)
        how = msgspec.structs.asdict(fields.preprocess)
        texts = {n: ",".join(map(str, how[n])) for n in ("mean", "std") if how[n] is not None}
        images = preparation(argparse.Namespace(**how | texts | options))
        labels, files = options.get("labels", fields.labels) or [], []
        if isinstance(labels, str):
            files = [Path("" if "labels" in options else (path or model_file).parent, labels)]
            labels = read_labels(str(files[0]))
    except (ValueError, UsageError) as error:
        if path is None:
            raise
        raise CommandError(f"{path}: {error}") from None
    shapes = {name: tuple(sizes) for name, sizes in fields.shape.items()}
    shapes |= parse_shapes(options.get("shape", []), inputs)
    for name in shapes:
        if name not in inputs:
            names = ", ".join(inputs)
            raise UsageError(f"shape: the model has no input {name!r}; its inputs: {names}")
    top = options.get("top", fields.top)
    top = (5 if labels else 0) if top is None else top
    post = Postprocessing(fields.softmax or "softmax" in options, top, tuple(labels))
    return ModelSettings(shapes, images, post, files, fields.device)
