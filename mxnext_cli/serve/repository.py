"""The models of a server: where their files are, their versions, and loading them again.

A model is loaded and warmed up before requests see it, and one assignment replaces the models: a
request is answered by exactly one version, and the old one is freed when its last request is
answered.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mxnet.context import Context
from mxnet.graph.passes.infer import infer_shapes

from .. import CommandError, UsageError
from ..models import (
    SYMBOL_SUFFIX,
    Model,
    Predictor,
    Shapes,
    find_files,
    load_model,
    parse_device,
)
from .batching import Batcher
from .decoding import Decoder
from .limits import Limits, Refused
from .monitoring import Metrics
from .open_inference import datatype_of
from .settings import ModelSettings, read_settings, settings_files

WARM_UP_SECONDS = 5.0  # after which larger batches are left cold
Fingerprint = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Source:
    """Where a model comes from: a name, and a prefix, a file or a folder."""

    name: str
    path: Path


def find_sources(texts: Sequence[str]) -> list[Source]:
    """Return the models that ``[NAME=]PATH`` name; a folder can hold one model or several."""
    sources: list[Source] = []
    for text in texts:
        name, equals, path = text.partition("=")
        if equals and not Path(text).exists():
            if not name or not all(c.isalnum() or c in "-_." for c in name):
                raise UsageError(f"{text}: a name has letters, digits and -_. only")
            sources.append(Source(name, Path(path)))
        else:
            sources += _find_in(Path(text))
    names = [source.name for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two models are called {name!r}; write NAME=PATH")
    return sources


def _find_in(path: Path) -> list[Source]:
    if not path.is_dir():
        name = path.name.removesuffix(SYMBOL_SUFFIX).removesuffix(".params").removesuffix(".onnx")
        return [Source(name, path)]
    if _versions_in(path) or _model_files(path):
        return [Source(path.resolve().name, path)]
    folders = sorted(folder for folder in path.iterdir() if folder.is_dir())
    sources = [Source(f.name, f) for f in folders if _versions_in(f) or _model_files(f)]
    if not sources:
        raise CommandError(f"{path}: it holds no model, and no folder that holds one")
    return sources


def _versions_in(folder: Path) -> dict[int, Path]:
    return {int(p.name): p for p in folder.iterdir() if p.is_dir() and p.name.isdigit()}


def _model_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob(f"*{SYMBOL_SUFFIX}"), *folder.glob("*.onnx")])


def _model_file(path: Path) -> Path:
    """Return the file of a model in a folder, or the path itself."""
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
    name, version
        Its name and the name of its version.
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
        name: str,
        version: str,
        model: Model,
        settings: ModelSettings,
        limits: Limits,
        metrics: Metrics,
        arriving: Callable[[], int] = lambda: 0,
        turns: threading.Lock | None = None,
    ) -> None:
        self.name, self.version, self.model = name, version, model
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
        inputs = [
            {
                "name": name,
                "datatype": datatype_of(decoder.dtypes[name]),
                "shape": [-1, *decoder.shapes.get(name, ())],
            }
            for name in decoder.inputs
        ]
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
        shape = inferred.values[node][0]
        is_known = shape is not None and len(shape) > 1 and all(n > 0 for n in shape[1:])
        if node.name in model.inputs and node.name not in shapes and shape and is_known:
            shapes[node.name] = tuple(shape[1:])
    return shapes


@dataclass
class Entry:
    """The versions of one model that are loaded, the newest first."""

    source: Source
    versions: dict[str, LoadedModel] = field(default_factory=dict)

    @property
    def latest(self) -> LoadedModel:
        """The version that answers if none is named."""
        return next(iter(self.versions.values()))


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
        self._entries: dict[str, Entry] = {}
        self._numbers: dict[str, Iterator[int]] = {}
        self._reloading = threading.Lock()
        self.arriving: Callable[[], int] = lambda: 0

    @property
    def entries(self) -> dict[str, Entry]:
        """The models by name."""
        return self._entries

    @property
    def models(self) -> list[LoadedModel]:
        """All versions of all models."""
        return [m for entry in self._entries.values() for m in entry.versions.values()]

    def get(self, name: str | None = None, version: str | None = None) -> LoadedModel:
        """Return a model, the first one by default; refuse names that are not there."""
        entries = self._entries
        entry = next(iter(entries.values()), None) if name is None else entries.get(name)
        if entry is None:
            names = ", ".join(list(entries)[:10]) or "none"
            raise Refused(404, f"there is no model {str(name)[:100]!r}; models: {names}")
        if version is None:
            return entry.latest
        if version not in entry.versions:
            versions = ", ".join(entry.versions)
            raise Refused(
                404,
                f"the model {name!r} has no version {version[:20]!r}; versions: {versions}",
            )
        return entry.versions[version]

    def load(self) -> list[str]:
        """Load what is new or changed, and drop what is gone; return what was loaded."""
        with self._reloading:
            loaded: list[LoadedModel] = []
            self._entries = {s.name: self._load_entry(s, loaded) for s in find_sources(self._texts)}
        return [f"{model.name} version {model.version}" for model in loaded]

    def _load_entry(self, source: Source, loaded: list[LoadedModel]) -> Entry:
        before = self._entries.get(source.name)
        versions = before.versions if before is not None else {}
        entry = Entry(source)
        for version, path in self._find_versions(source).items():
            old = versions.get(version) if version else next(iter(versions.values()), None)
            file = _model_file(path)
            if old is not None and not _is_stale(old, file, self._args):
                entry.versions[old.version] = old
                continue
            number = version or str(next(self._numbers.setdefault(source.name, itertools.count(1))))
            entry.versions[number] = self._load_model(source.name, number, file)
            loaded.append(entry.versions[number])
        return entry

    def _find_versions(self, source: Source) -> dict[str, Path]:
        """Return the folders of versions, the newest first; '' if versions have no folders."""
        versions = _versions_in(source.path) if source.path.is_dir() else {}
        if not versions:
            return {"": source.path}
        newest = sorted(versions, reverse=True)[: self._max_versions]
        return {str(number): versions[number] for number in newest}

    def _load_model(self, name: str, version: str, file: Path) -> LoadedModel:
        model = load_model(_model_args(file, self._args))
        model_file = model.files[0]
        settings = read_settings(model_file, model.inputs, self._args)
        files = fingerprint([*model.files, *settings_files(model_file), *settings.files])
        model.ctx = parse_device(self._device or settings.device)
        loaded = LoadedModel(
            name, version, model, settings, self._limits, self._metrics,
            lambda: self.arriving(), self._turns_on(model.ctx),
        )  # fmt: skip
        loaded.fingerprint = files
        loaded.warm_up()
        return loaded

    def _turns_on(self, ctx: Context) -> threading.Lock | None:
        """Return what models on one GPU share, so that one batch at a time takes its memory."""
        return None if ctx.device_type == "cpu" else self._turns.setdefault(ctx, threading.Lock())

    def has_changed(self) -> bool:
        """Whether the files of a model changed, or versions came or went."""
        sources = find_sources(self._texts)
        if [s.name for s in sources] != list(self._entries):
            return True
        for source in sources:
            versions = self._entries[source.name].versions
            files = self._find_versions(source)
            if "" not in files and list(files) != list(versions):
                return True
            for model, path in zip(versions.values(), files.values(), strict=True):
                if _is_stale(model, _model_file(path), self._args):
                    return True
        return False

    async def close(self, timeout: float) -> None:
        """Finish the requests that wait and end."""
        await asyncio.gather(*(model.batcher.close(timeout) for model in self.models))


def _model_args(file: Path, args: argparse.Namespace | None) -> argparse.Namespace:
    epoch, params = (args.epoch, args.params) if args is not None else (None, None)
    return argparse.Namespace(model=str(file), epoch=epoch, params=params)


def _is_stale(model: LoadedModel, file: Path, args: argparse.Namespace | None) -> bool:
    """Whether other files would be loaded now; a later epoch can be there, for example."""
    if model.fingerprint != fingerprint([Path(path) for path, *_ in model.fingerprint]):
        return True
    return find_files(_model_args(file, args)) != model.model.files


def fingerprint(files: Sequence[Path]) -> Fingerprint:
    """Return what changes when files are written again."""
    prints = []
    for file in files:
        try:
            status = file.stat()
            prints.append((str(file), status.st_mtime_ns, status.st_size))
        except OSError:
            prints.append((str(file), 0, -1))
    return tuple(prints)
