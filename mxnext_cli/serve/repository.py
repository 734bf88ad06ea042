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
from logging import getLogger
from pathlib import Path
from typing import Any

import numpy as np
from starlette.requests import Request

from mxnet.context import Context
from mxnet.graph.passes.infer import infer_shapes

from .. import CommandError, UsageError
from ..models import SYMBOL_SUFFIX, Model, Predictor, Shapes, find_files, load_model, parse_device
from .batching import Batcher
from .decoding import Decoder
from .encoding import describe_array
from .limits import Limits, Refused
from .monitoring import Metrics
from .settings import read_settings, settings_files

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
        file = _prefer_prefix(Path(path if is_named else text))
        more = {name: file} if is_named else _find_in(file)
        if twice := sources.keys() & more.keys():
            raise UsageError(f"two models are called {min(twice)!r}; write NAME=PATH")
        sources |= more
    return sources


def _prefer_prefix(path: Path) -> Path:
    """Return the symbol file of a prefix that is also the name of a folder."""
    symbol_file = path.with_name(path.name + SYMBOL_SUFFIX) if path.name else path
    return symbol_file if path.is_dir() and symbol_file.is_file() else path


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
    name
        The name of the model.
    version
        The name of its version.
    file
        Its symbol or ONNX file.
    repository
        The models of the server.
    """

    def __init__(self, name: str, version: str, file: Path, repository: Repository) -> None:
        self.name, self.version, limits = name, version, repository.limits
        self.model = model = load_model(_model_args(file, repository.args))
        settings = read_settings(model.files[0], model.inputs, repository.args)
        files = [*model.files, *settings_files(model.files[0]), *settings.files]
        self.fingerprint = fingerprint(files)
        model.ctx = parse_device(repository.device or settings.device)
        self.postprocessing = settings.postprocessing
        self.predictor = predictor = Predictor(model)
        shapes = {**infer_sample_shapes(model), **settings.shapes}
        dtypes = {name: np.dtype(predictor.dtypes[name]) for name in model.inputs}
        self.decoder = Decoder(shapes, dtypes, settings.preparation, limits)
        self.outputs = [
            describe_array(name, np.dtype("f4"), [-1]) for name in predictor.output_names
        ]
        # Models on one GPU take turns, so that one batch at a time takes its memory.
        is_cpu = model.ctx.device_type == "cpu"
        turns = None if is_cpu else repository.turns.setdefault(model.ctx, threading.Lock())

        def predict(inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
            with turns or contextlib.nullcontext():
                return predictor(inputs)

        self.batcher = Batcher(
            predict, limits, repository.metrics, lambda: repository.arriving(), runs_inline=is_cpu
        )
        self._warm_up(limits.max_batch)

    def _warm_up(self, max_batch: int) -> None:
        """Run the model on zeros of every size, so that the first requests find it prepared."""
        shapes, dtypes = self.decoder.shapes, self.decoder.dtypes
        if unknown := ", ".join(name for name in self.model.inputs if name not in shapes):
            getLogger("mxnext.serve").warning(
                f"{self.name}: without --shape of {unknown} the first requests are slower, and "
                "bodies are bounded by --max-body alone"
            )
            return
        end = time.monotonic() + WARM_UP_SECONDS
        for rows in [*(2**i for i in range(16) if 2**i < max_batch), max_batch]:
            outputs = self.predictor(
                {n: np.zeros((rows, *s), dtypes[n]) for n, s in shapes.items()}
            )
            if rows == 1:
                named = zip(self.predictor.output_names, outputs, strict=True)
                self.outputs = [describe_array(n, out.dtype, _sizes(out)) for n, out in named]
            if time.monotonic() > end:
                break

    def describe(self) -> dict[str, Any]:
        """Return what it takes and gives, as `GET /model` and the page show it."""
        decoder, arrays = self.decoder, self.model.parameters.values()
        return {
            "model": self.name,
            "version": self.version,
            "device": str(self.model.ctx),
            "inputs": {n: decoder.shapes.get(n) for n in decoder.inputs},
            "dtypes": {n: str(decoder.dtypes[n]) for n in decoder.inputs},
            "outputs": self.predictor.output_names,
            "output_shapes": {output["name"]: output["shape"] for output in self.outputs},
            "parameters": sum(array.size for array in arrays),
            "bytes": sum(array.size * np.dtype(array.dtype).itemsize for array in arrays),
            "layers": sum(node.op is not None for node in self.model.symbol._graph.nodes),
            "labels": len(self.postprocessing.labels),
            "softmax": self.postprocessing.softmax,
            "max_pixels": decoder.max_pixels,
        }

    def metadata(self, versions: list[str]) -> dict[str, Any]:
        """Return its description in the open inference protocol."""
        shapes, dtypes = self.decoder.shapes, self.decoder.dtypes
        inputs = [describe_array(name, dtypes[name], [-1, *shapes.get(name, ())])
                  for name in self.decoder.inputs]  # fmt: skip
        facts = {"name": self.name, "versions": versions, "platform": "mxnext"}
        return {**facts, "inputs": inputs, "outputs": self.outputs}


def _sizes(out: np.ndarray) -> list[int]:
    return [-1, *out.shape[1:]] if out.shape[:1] == (1,) else list(out.shape)


def infer_sample_shapes(model: Model) -> Shapes:
    """Return the shapes of samples that the files say, by themselves or by their parameters."""
    shapes = {name: shape[1:] for name, shape in model.stored_shapes.items()}
    try:
        inferred = infer_shapes(model.symbol._graph, model.known_shapes({}))
    except Exception:  # some shapes are unknown
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
        self._texts, self.limits, self.metrics = list(texts), limits, metrics
        self.args, self.device, self._max_versions = args, device, max_versions
        self.turns: dict[Context, threading.Lock] = {}
        self._numbers: collections.Counter[str] = collections.Counter()
        self._reloading = threading.Lock()
        self._by_slot: dict[Slot, LoadedModel] = {}
        self.entries: dict[str, dict[str, LoadedModel]] = {}  # versions by name, the newest first
        self.arriving: Callable[[], int] = lambda: 0

    @property
    def models(self) -> list[LoadedModel]:
        """All versions of all models."""
        return list(self._by_slot.values())

    def find(self, request: Request) -> LoadedModel:
        """Return the model that a request names, by default the first and its newest version."""
        entries, names = self.entries, {**request.query_params, **request.path_params}
        name = names.get("model", next(iter(entries)))
        if name not in entries:
            models = ", ".join(list(entries)[:10])
            raise Refused(404, f"there is no model {name[:100]!r}; models: {models}")
        version = names.get("version", next(iter(entries[name])))
        if version not in entries[name]:
            shown = f"{version[:20]!r}; versions: {', '.join(entries[name])}"
            raise Refused(404, f"the model {name!r} has no version {shown}")
        return entries[name][version]

    def load(self) -> list[str]:
        """Load what is new or changed, and drop what is gone; return what was loaded."""
        with self._reloading:
            models, entries, loaded = {}, collections.defaultdict(dict), []
            for slot, file in self._find_files().items():
                models[slot] = model = self._by_slot.get(slot)
                if model is None or self._is_stale(model, file):
                    name, version = slot
                    models[slot] = model = LoadedModel(name, version, file, self)
                    if not version:
                        self._numbers[name] += 1
                        model.version = str(self._numbers[name])
                    loaded.append(f"{name} version {model.version}")
                entries[model.name][model.version] = model
            self._by_slot, self.entries = models, entries
        return loaded

    async def reload(self) -> list[str]:
        """Load what changed, while requests are answered; return what was loaded."""
        try:
            loaded = await asyncio.to_thread(self.load)
        except Exception as error:
            raise Refused(409, f"nothing was loaded: {error}") from error
        self.metrics.reloads.inc(len(loaded))
        return loaded

    def has_changed(self) -> bool:
        """Whether the files of a model changed, or models or versions came or went."""
        files, models = self._find_files(), self._by_slot
        is_same = list(files) == list(models)
        return not is_same or any(self._is_stale(models[s], file) for s, file in files.items())

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

    def _is_stale(self, model: LoadedModel, file: Path) -> bool:
        """Whether other files would be loaded now, such as a later epoch."""
        is_changed = model.fingerprint != fingerprint(
            [Path(path) for path, *_ in model.fingerprint]
        )
        return is_changed or find_files(_model_args(file, self.args)) != model.model.files

    async def close(self, timeout: float) -> None:
        """Finish the requests that wait and end."""
        await asyncio.gather(*(model.batcher.close(timeout) for model in self.models))


def _model_args(file: Path, args: argparse.Namespace | None) -> argparse.Namespace:
    epoch, params = (args.epoch, args.params) if args is not None else (None, None)
    return argparse.Namespace(model=str(file), epoch=epoch, params=params)


def fingerprint(files: Sequence[Path]) -> Fingerprint:
    """Return what changes when files are written again."""
    states = [(file, file.stat() if file.is_file() else None) for file in files]
    return tuple((str(f), s.st_mtime_ns if s else 0, s.st_size if s else -1) for f, s in states)
