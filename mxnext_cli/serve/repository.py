"""The models of a server: where their files are, their versions, and loading them again.

A model is loaded and warmed up before requests see it, and one assignment replaces the models: a
request is answered by exactly one version, and the old one is freed when its last request is
answered.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mxnet.context import Context
from mxnet.graph.passes.infer import infer_shapes

from .. import CommandError, UsageError
from ..models import SYMBOL_SUFFIX, Model, Predictor, Shapes, find_files, load_model, parse_device
from .batching import Batcher
from .decoding import Decoder
from .limits import Limits, Refused
from .monitoring import Metrics
from .open_inference import datatype_of
from .settings import ModelSettings, read_settings, settings_files

WARM_UP_SECONDS = 5.0  # after which larger batches are left cold
Fingerprint = tuple[tuple[str, int, int], ...]
Slot = tuple[str, str]  # name and version


def find_sources(texts: Sequence[str]) -> dict[str, Path]:
    """Return the paths of the models that ``[NAME=]PATH`` name; a folder can hold several."""
    sources: dict[str, Path] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        is_named = bool(equals) and not Path(text).exists()
        if is_named and not (name and all(c.isalnum() or c in "-_." for c in name)):
            raise UsageError(f"{text}: a name has letters, digits and -_. only")
        more = {name: Path(path)} if is_named else _find_in(Path(text))
        if twice := sources.keys() & more.keys():
            raise UsageError(f"two models are called {min(twice)!r}; write NAME=PATH")
        sources |= more
    return sources


def _find_in(path: Path) -> dict[str, Path]:
    if not path.is_dir():
        name = path.name.removesuffix(SYMBOL_SUFFIX).removesuffix(".params").removesuffix(".onnx")
        return {name: path}
    if _versions_in(path) or _model_files(path):
        return {path.resolve().name: path}
    folders = sorted(folder for folder in path.iterdir() if folder.is_dir())
    sources = {f.name: f for f in folders if _versions_in(f) or _model_files(f)}
    if not sources:
        raise CommandError(f"{path}: it holds no model, and no folder that holds one")
    return sources


def _versions_in(folder: Path) -> dict[int, Path]:
    return {int(p.name): p for p in folder.iterdir() if p.is_dir() and p.name.isdigit()}


def _model_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob(f"*{SYMBOL_SUFFIX}"), *folder.glob("*.onnx")])


def _model_file(path: Path) -> Path:
    if not path.is_dir():
        return path
    files = _model_files(path)
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        raise CommandError(f"{path}: it needs one model; models there: {names}")
    return files[0]


class LoadedModel:
    """A version of a model that answers requests.

    Parameters
    ----------
    slot
        Its name and the name of its version; '' if versions have no names.
    model
        The model.
    settings
        How it is served.
    limits
        The limits of the server.
    metrics
        Where its work is counted.
    arriving
        Says how many requests are on their way.
    turns
        Is held while a batch runs, if models share a device; such a model runs in its own thread.
    """

    def __init__(
        self,
        slot: Slot,
        model: Model,
        settings: ModelSettings,
        limits: Limits,
        metrics: Metrics,
        arriving: Callable[[], int] = lambda: 0,
        turns: threading.Lock | None = None,
    ) -> None:
        self.slot, (self.name, self.version), self.model = slot, slot, model
        self.postprocessing = settings.postprocessing
        self.fingerprint: Fingerprint = ()
        self.predictor = predictor = Predictor(model)
        shapes = {**infer_sample_shapes(model), **settings.shapes}
        self.decoder = Decoder(model.inputs, shapes, predictor.dtypes, settings.preparation, limits)
        self.output_facts = [
            {"name": n, "datatype": "FP32", "shape": [-1]} for n in predictor.output_names
        ]
        self._max_batch = limits.max_batch

        def predict(inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
            with turns or contextlib.nullcontext():
                return predictor(inputs)

        self.batcher = Batcher(predict, limits, metrics, arriving, runs_inline=turns is None)

    def warm_up(self) -> None:
        """Run the model on zeros of every size, so that the first requests find it prepared."""
        decoder = self.decoder
        if any(name not in decoder.shapes for name in self.model.inputs):
            return
        sizes = [1, *(2**i for i in range(1, 16) if 2**i < self._max_batch), self._max_batch]
        end = time.monotonic() + WARM_UP_SECONDS
        for rows in sizes:
            inputs = {n: np.zeros((rows, *s), decoder.dtypes[n]) for n, s in decoder.shapes.items()}
            outputs = self.predictor(inputs)
            if rows == 1:
                for facts, out in zip(self.output_facts, outputs, strict=True):
                    has_rows = out.ndim > 0 and out.shape[0] == 1
                    facts["shape"] = [-1, *out.shape[1:]] if has_rows else list(out.shape)
                    facts["datatype"] = datatype_of(out.dtype)
            if time.monotonic() > end:
                break

    def describe(self) -> dict[str, Any]:
        """Return what it takes and gives, as `GET /model` and the page show it."""
        shapes = self.decoder.shapes
        arrays = self.model.parameters.values()
        return {
            "model": self.name,
            "version": self.version,
            "device": str(self.model.ctx),
            "inputs": {n: list(shapes[n]) if n in shapes else None for n in self.model.inputs},
            "dtypes": {n: str(self.decoder.dtypes[n]) for n in self.model.inputs},
            "outputs": self.predictor.output_names,
            "output_shapes": {str(f["name"]): f["shape"] for f in self.output_facts},
            "parameters": sum(array.size for array in arrays),
            "bytes": sum(array.size * np.dtype(array.dtype).itemsize for array in arrays),
            "layers": sum(node.op is not None for node in self.model.symbol._graph.nodes),
            "labels": len(self.postprocessing.labels),
            "softmax": self.postprocessing.softmax,
            "max_pixels": self.decoder.max_pixels,
        }

    def metadata(self, versions: list[str]) -> dict[str, Any]:
        """Return its description in the open inference protocol."""
        decoder = self.decoder
        types = {name: datatype_of(decoder.dtypes[name]) for name in decoder.inputs}
        shapes = {name: [-1, *decoder.shapes.get(name, ())] for name in decoder.inputs}
        inputs = [{"name": n, "datatype": types[n], "shape": shapes[n]} for n in decoder.inputs]
        facts = {"name": self.name, "versions": versions, "platform": "mxnext"}
        return {**facts, "inputs": inputs, "outputs": self.output_facts}


def infer_sample_shapes(model: Model) -> Shapes:
    """Return the shapes of samples that the files say, by themselves or by their parameters."""
    shapes = {name: shape[1:] for name, shape in model.stored_shapes.items()}
    try:
        inferred = infer_shapes(model.symbol._graph, model.known_shapes({}))
    except Exception:  # it needs more shapes than there are
        return shapes
    for node in model.symbol._graph.variables:
        sample = (inferred.values[node][0] or ())[1:]
        if node.name in model.inputs and sample and all(n > 0 for n in sample):
            shapes.setdefault(node.name, tuple(sample))
    return shapes


class Repository:
    """All models of a server.

    Parameters
    ----------
    texts
        The models, as ``[NAME=]PATH``.
    args
        Options of the command line for the model; None if there are several.
    device
        Where all models run, whatever their settings say.
    max_versions
        How many versions of a model are loaded, the newest first.
    """

    def __init__(
        self,
        texts: Sequence[str],
        limits: Limits,
        metrics: Metrics,
        args: argparse.Namespace | None = None,
        device: str | None = None,
        max_versions: int = 1,
    ) -> None:
        self._texts, self._limits, self._metrics = list(texts), limits, metrics
        self._args, self._device, self._max_versions = args, device, max_versions
        self._turns: dict[Context, threading.Lock] = {}
        self._numbers: collections.Counter[str] = collections.Counter()
        self._reloading = threading.Lock()
        self.entries: dict[str, dict[str, LoadedModel]] = {}  # versions by name, the newest first
        self.arriving: Callable[[], int] = lambda: 0

    @property
    def models(self) -> list[LoadedModel]:
        """All versions of all models."""
        return [model for versions in self.entries.values() for model in versions.values()]

    @property
    def latest(self) -> list[LoadedModel]:
        """The version of each model that answers if none is named."""
        return [next(iter(versions.values())) for versions in self.entries.values()]

    def get(self, name: str | None = None, version: str | None = None) -> LoadedModel:
        """Return a model, the first one by default; refuse names that are not there."""
        entries = self.entries
        name = next(iter(entries)) if name is None else name
        if name not in entries:
            names = ", ".join(list(entries)[:10])
            raise Refused(404, f"there is no model {name[:100]!r}; models: {names}")
        versions = entries[name]
        version = next(iter(versions)) if version is None else version
        if version not in versions:
            shown = f"{version[:20]!r}; versions: {', '.join(versions)}"
            raise Refused(404, f"the model {name!r} has no version {shown}")
        return versions[version]

    def load(self) -> list[str]:
        """Load what is new or changed, and drop what is gone; return what was loaded."""
        entries: dict[str, dict[str, LoadedModel]] = {}
        loaded: list[str] = []
        with self._reloading:
            current = {model.slot: model for model in self.models}
            for slot, file in self._find_files().items():
                model = current.get(slot)
                if model is None or self._is_stale(model, file):
                    model = self._load_model(slot, file)
                    loaded.append(f"{model.name} version {model.version}")
                entries.setdefault(model.name, {})[model.version] = model
            self.entries = entries
        return loaded

    def has_changed(self) -> bool:
        """Whether the files of a model changed, or models or versions came or went."""
        files, current = self._find_files(), {model.slot: model for model in self.models}
        is_same = list(files) == list(current)
        return not is_same or any(self._is_stale(current[s], file) for s, file in files.items())

    def _find_files(self) -> dict[Slot, Path]:
        """Return the files of models by name and version; '' if versions have no folders."""
        files: dict[Slot, Path] = {}
        for name, path in find_sources(self._texts).items():
            versions = _versions_in(path) if path.is_dir() else {}
            for number in sorted(versions, reverse=True)[: self._max_versions]:
                files[name, str(number)] = _model_file(versions[number])
            if not versions:
                files[name, ""] = _model_file(path)
        return files

    def _load_model(self, slot: Slot, file: Path) -> LoadedModel:
        model = load_model(_model_args(file, self._args))
        settings = read_settings(model.files[0], model.inputs, self._args)
        files = fingerprint([*model.files, *settings_files(model.files[0]), *settings.files])
        model.ctx = parse_device(self._device or settings.device)
        # Models on one GPU take turns, so that one batch at a time takes its memory.
        is_cpu = model.ctx.device_type == "cpu"
        turns = None if is_cpu else self._turns.setdefault(model.ctx, threading.Lock())
        loaded = LoadedModel(
            slot, model, settings, self._limits, self._metrics, lambda: self.arriving(), turns
        )
        loaded.warm_up()
        loaded.fingerprint = files
        if not loaded.version:
            self._numbers[loaded.name] += 1
            loaded.version = str(self._numbers[loaded.name])
        return loaded

    def _is_stale(self, model: LoadedModel, file: Path) -> bool:
        """Whether other files would be loaded now, such as a later epoch."""
        files = [Path(path) for path, *_ in model.fingerprint]
        is_changed = model.fingerprint != fingerprint(files)
        return is_changed or find_files(_model_args(file, self._args)) != model.model.files

    async def close(self, timeout: float) -> None:
        """Finish the requests that wait and end."""
        await asyncio.gather(*(model.batcher.close(timeout) for model in self.models))


def _model_args(file: Path, args: argparse.Namespace | None) -> argparse.Namespace:
    epoch, params = (args.epoch, args.params) if args is not None else (None, None)
    return argparse.Namespace(model=str(file), epoch=epoch, params=params)


def fingerprint(files: Sequence[Path]) -> Fingerprint:
    """Return what changes when files are written again."""
    states = {file: file.stat() if file.is_file() else None for file in files}
    return tuple((str(f), s.st_mtime_ns if s else 0, s.st_size if s else -1)
                 for f, s in states.items())  # fmt: skip
