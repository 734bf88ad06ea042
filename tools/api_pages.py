"""Write the API reference as Markdown: one page for each public module, from live docstrings.

The functions of ``mx.nd``, ``mx.sym`` and ``mx.np`` are generated from operator records, so a
reader of source files would not find them. The site builds these pages (`tools/site_hooks.py`).
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import re
import textwrap
import types
from collections.abc import Iterator
from typing import Any

import mxnet
from mxnet.ops import registry
from mxnet.ops.declare import Op
from mxnet.ops.documentation import sections
from tools import tables

__all__ = [
    "PAGES",
    "ReferencePage",
    "function_pages",
    "navigation",
    "public_names",
    "render",
    "render_index",
]


@dataclasses.dataclass(frozen=True)
class ReferencePage:
    """A page of the reference: the module, and the name that people write for it."""

    module: str
    title: str
    homes: tuple[str, ...] = ()  # other modules whose names belong on the page

    @property
    def path(self) -> str:
        """Return where the page lies in the site."""
        return f"reference/{self.module.removeprefix('mxnet.')}.md"


_HOMES = {
    "ndarray": ("mxnet.ndarray.op",),  # where generated functions live
    "symbol": ("mxnet.symbol.op",),
    "numpy_extension": ("mxnet.ndarray.op", "mxnet.ndarray.contrib", "mxnet.util"),
    "random": ("mxnet.ndarray.random",),
}

# What a user wants to do -> the modules for it: their name, as people write it, and a sentence.
GROUPS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Compute with arrays": (
        ("ndarray", "mx.nd", "Arrays, and all operators as functions on them."),
        (
            "ndarray.contrib",
            "mx.nd.contrib",
            "Detection, attention and control flow.",
        ),
        ("ndarray.linalg", "mx.nd.linalg", "Matrix products, decompositions and solvers."),
        ("ndarray.random", "mx.nd.random", "Random samples of many distributions as arrays."),
        ("ndarray.sparse", "mx.nd.sparse", "Sparse arrays: rows (row_sparse) and matrices (csr)."),
        ("ndarray.image", "mx.nd.image", "Operators that change images in arrays."),
        ("numpy", "mx.np", "NumPy's functions on arrays that have a device and gradients."),
        ("numpy.linalg", "mx.np.linalg", "Linear algebra with NumPy's names."),
        ("numpy.random", "mx.np.random", "Random samples with NumPy's names."),
        ("numpy_extension", "mx.npx", "Layers as functions for arrays of mx.np."),
        ("random", "mx.random", "Set the seed; draw samples."),
        ("context", "mx.context", "Choose a device: cpu() or gpu(i)."),
    ),
    "Differentiate": (
        ("autograd", "mx.autograd", "Record a computation, then run it backward."),
        ("operator", "mx.operator", "Write an operator in Python, with its gradient."),
    ),
    "Build networks": (
        ("gluon", "mx.gluon", "Blocks, parameters and the Trainer."),
        (
            "gluon.nn",
            "mx.gluon.nn",
            "Layers: dense, convolution, pooling and others.",
        ),
        ("gluon.rnn", "mx.gluon.rnn", "Recurrent layers and cells: RNN, LSTM, GRU."),
        ("gluon.loss", "mx.gluon.loss", "Losses, one value for each sample."),
        ("gluon.model_zoo.vision", "mx.gluon.model_zoo.vision", "ResNet, MobileNet and others."),
        (
            "gluon.contrib.nn",
            "mx.gluon.contrib.nn",
            "More layers: branches, pixel shuffle.",
        ),
        ("gluon.contrib.rnn", "mx.gluon.contrib.rnn", "More cells: convolutional, projected."),
        ("gluon.utils", "mx.gluon.utils", "Split batches, clip gradients, download files."),
        ("symbol", "mx.sym", "Graphs of operators that are compiled before they run."),
        ("symbol.contrib", "mx.sym.contrib", "Contributed operators and control flow in graphs."),
        ("rnn", "mx.rnn", "Recurrent cells for symbols, and iterators over sentences."),
        ("initializer", "mx.init", "First values of parameters: Xavier, Normal and others."),
    ),
    "Feed data": (
        ("gluon.data", "mx.gluon.data", "Data sets, samplers and the DataLoader."),
        (
            "gluon.data.vision",
            "mx.gluon.data.vision",
            "MNIST, CIFAR, folders of images.",
        ),
        (
            "gluon.data.vision.transforms",
            "mx.gluon.data.vision.transforms",
            "Resize, crop, flip and normalize images.",
        ),
        ("io", "mx.io", "Iterators over arrays, CSV, LibSVM and record files."),
        ("image", "mx.image", "Read, change and iterate over images, also for detection."),
        ("recordio", "mx.recordio", "Read and write record files (.rec)."),
        ("contrib.text.vocab", "mx.contrib.text.vocab", "Number the words of a text."),
        ("contrib.text.embedding", "mx.contrib.text.embedding", "Word vectors: GloVe, fastText."),
    ),
    "Train": (
        ("optimizer", "mx.optimizer", "SGD, Adam and other rules that update weights."),
        ("lr_scheduler", "mx.lr_scheduler", "Learning rates that change during training."),
        ("metric", "mx.metric", "Accuracy and other measures over batches."),
        ("module", "mx.mod", "Train a symbol with fit, use it with predict."),
        ("model", "mx.model", "Save and load checkpoints; FeedForward of 2015."),
        ("gluon.contrib.estimator", "mx.gluon.contrib.estimator", "A training loop with handlers."),
        ("callback", "mx.callback", "Log the speed, save after each epoch."),
        ("tracking", "mx.tracking", "Progress bars, history and loggers."),
        ("checkpoint", "mx.checkpoint", "Continue an interrupted training run bit for bit."),
        ("contrib.amp", "mx.contrib.amp", "Mixed precision: float16 or bfloat16 where it is safe."),
    ),
    "Use several devices and machines": (
        ("kvstore", "mx.kvstore", "Sum gradients over devices and machines."),
        ("distributed", "mx.distributed", "Train in several processes, with Horovod's names."),
    ),
    "Save, convert and deploy": (
        ("onnx", "mx.onnx", "Write and read ONNX models."),
        ("convert", "mx.convert", "Convert to and from PyTorch and safetensors, and check it."),
        ("contrib.quantization", "mx.contrib.quantization", "Networks in 8-bit integers."),
        ("executor", "mx.executor", "Bind a symbol to arrays and run it."),
    ),
    "Look inside": (
        ("visualization", "mx.viz", "Tables of layers, drawings of graphs, curves of training."),
        ("profiler", "mx.profiler", "See where the time goes."),
        ("monitor", "mx.monitor", "Watch the values inside a network."),
        ("runtime", "mx.runtime", "Ask what this installation can do."),
        ("util", "mx.util", "Switch between the rules of MXNet and NumPy."),
        ("test_utils", "mx.test_utils", "Compare arrays and check gradients in tests."),
    ),
}
PAGES = tuple(
    ReferencePage(f"mxnet.{module}", title, _HOMES.get(module.partition(".")[0], ()))
    for modules in GROUPS.values()
    for module, title, _ in modules
)


_SENTENCES = {title: sentence for modules in GROUPS.values() for _, title, sentence in modules}


def render_index() -> str:
    """Return the page that lists all modules by what a user wants to do."""
    out = ["# API reference", "", "Every public name, by what you want to do.", ""]
    for group, modules in GROUPS.items():
        out += [f"## {group}", ""]
        out += [f"- [{title}]({module}.md): {sentence}" for module, title, sentence in modules]
        out.append("")
    return "\n".join(out)


def navigation() -> list[dict[str, list[dict[str, str]]]]:
    """Return the entries of the site's navigation, in the same groups."""
    return [
        {group: [{title: f"reference/{module}.md"} for module, title, _ in modules]}
        for group, modules in GROUPS.items()
    ]


def public_names(
    module: types.ModuleType, homes: tuple[str, ...] = ()
) -> Iterator[tuple[str, object]]:
    """Yield the public classes and functions of a module in alphabetical order.

    Names that a module only imports are left out, unless they come from one of `homes`.

    >>> import mxnet as mx
    >>> [name for name, _ in public_names(mx.lr_scheduler)][:2]
    ['CosineScheduler', 'FactorScheduler']
    """
    homes = (module.__name__, *homes)
    for name in sorted(set(getattr(module, "__all__", None) or dir(module)), key=str.lower):
        value = getattr(module, name, None)
        home = getattr(value, "__module__", None) or ""
        if (
            not name.startswith("_")
            and callable(value)
            and any(home == h or home.startswith(f"{h}.") for h in homes)
        ):
            yield name, value


def _signature(value: object, head: str) -> list[str]:
    """Return the lines of a call: names and defaults, without annotations."""
    try:
        parameters = inspect.signature(value).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return [f"{head}(...)"]
    plain = [str(p.replace(annotation=p.empty)) for p in parameters if p.name != "self"]
    texts = [re.sub(r" at 0x[0-9a-f]+", "", text) for text in plain]
    line = f"{head}({', '.join(texts)})"
    if len(line) <= 72:
        return [line]
    return [f"{head}(", textwrap.indent(textwrap.fill(", ".join(texts), 68), "    "), ")"]


def _prose(lines: list[str]) -> list[str]:
    """Return Markdown of text in which ``>>>`` begins an example."""
    out: list[str] = []
    inside = False
    for line in lines:
        starts = line.lstrip().startswith(">>>")
        if starts and not inside:
            out += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            out += ["```", ""]
            inside = False
            continue
        out.append(line if inside else line.replace("|", "&#124;"))
    return [*out, "```"] if inside else out


def _annotations(value: object) -> dict[str, str]:
    """Return the types in a signature, for parameters whose docstring leaves them out."""
    try:
        parameters = inspect.signature(value).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return {}
    annotations = {p.name: p.annotation for p in parameters if isinstance(p.annotation, str)}
    return {name: kind for name, kind in annotations.items() if kind not in ("Any", "object")}


def _fields(lines: list[str], kinds: dict[str, str]) -> list[str]:
    """Return a Markdown list of a section whose rows are ``name : type`` and a sentence."""
    out: list[str] = []
    for line in textwrap.dedent("\n".join(lines)).splitlines():
        if not line.strip():
            continue
        if line.startswith((" ", "\t")):
            out.append(f"    {line.strip()}")
            continue
        name, _, kind = line.partition(" : ")
        kind = kind or (f"`{kinds[name]}`" if name in kinds else "")
        out.append(f"- `{name.strip()}`" + (f" ({kind.strip()})" if kind else "") + "  ")
    return out


_LISTS = {"Parameters", "Other Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns"}
_LISTS |= {"Inputs", "Outputs"}


def _docstring(value: object) -> list[str]:
    doc = inspect.getdoc(value)
    if not doc:
        return []
    out: list[str] = []
    kinds = _annotations(value)
    for title, text in sections(doc).items():
        lines = text.splitlines()
        if title:
            out += ["", f"**{title}**", ""]
        out += _fields(lines, kinds) if title in _LISTS else _prose(lines)
    return out


def _methods(value: type) -> Iterator[tuple[str, object]]:
    """Yield the methods that a class defines itself and documents."""
    for name, method in sorted(vars(value).items()):
        plain = method.__func__ if isinstance(method, (staticmethod, classmethod)) else method
        if name.startswith("_") or name in ("forward", "hybrid_forward"):
            continue
        if inspect.isfunction(plain) and plain.__doc__:
            yield name, plain


def _entry(title: str, name: str, value: object, links: dict[str, str]) -> list[str]:
    """Return the part of a page about a name; methods in `links` have pages of their own."""
    kind = "class " if inspect.isclass(value) else ""
    call = _signature(value, f"{kind}{title}.{name}")
    out = [f"## {name}", "", "```python", *call, "```", "", *_docstring(value)]
    if inspect.isclass(value):
        methods = dict(_methods(value))
        operators = [m for m, f in methods.items() if m in links and hasattr(f, "op")]
        if operators:
            listed = ", ".join(f"[{method}]({links[method]})" for method in operators)
            out += ["", f"Operators as methods, with this as their first input: {listed}."]
        for method, function in methods.items():
            if method in operators:
                continue
            call = _signature(function, method)
            out += ["", f"### {name}.{method}", "", "```python", *call, "```", ""]
            out += _docstring(function)
    return [*out, ""]


# Functions that have pages of their own, by module: the folder of these pages.
FUNCTION_PAGES = {
    "mxnet.ndarray": "operators",
    "mxnet.ndarray.contrib": "operators/contrib",
    "mxnet.numpy": "operators/np",
    "mxnet.numpy_extension": "operators/npx",
    "mxnet.test_utils": "test_utils",
}
# Modules whose functions are those of another under the same names.
TWINS = {
    "mxnet.symbol": "mxnet.ndarray",
    "mxnet.ndarray.sparse": "mxnet.ndarray",
    "mxnet.symbol.contrib": "mxnet.ndarray.contrib",
}


def render(page: ReferencePage) -> str:
    """Return the Markdown of a page; functions that have pages of their own are listed."""
    module = importlib.import_module(page.module)
    head = ["---", "search: {boost: 0.3}", "---", ""]
    out = [*head, f"# {page.title}", "", f"`import {page.module}`", ""]
    out += [_SENTENCES[page.title], ""]
    home = TWINS.get(page.module, page.module)
    links = {name: f"{FUNCTION_PAGES[home]}/{name}.md" for name in _functions(home)}
    entries: list[str] = []
    for name, value in public_names(module, page.homes):
        if name in links and not inspect.isclass(value):
            out.append(f"- [{name}]({links[name]}): {_first_sentence(value)}")
        else:
            entries += _entry(page.title, name, value, links)
    return "\n".join([*out, "", *entries]) + "\n"


def function_pages() -> dict[str, str]:
    """Return the pages of single functions by path: call, parameters, example, other names."""
    return {
        f"reference/{folder}/{name}.md": _function_page(page.title, name, value, folder)
        for module, folder in FUNCTION_PAGES.items()
        for page in PAGES
        if page.module == module
        for name, value in _functions(module).items()
    }


@functools.cache
def _functions(module: str) -> dict[str, Any]:
    """Return the functions of a module that have pages of their own."""
    if module not in FUNCTION_PAGES:
        return {}
    homes = next(page.homes for page in PAGES if page.module == module)
    names = public_names(importlib.import_module(module), homes)
    return {name: value for name, value in names if not inspect.isclass(value)}


_GRADIENTS = {
    "torch": "Gradient: the derivative, as torch computes it.",
    "own": "Gradient: by a rule of MXNet's own.",
    "none": "Gradient: none flows through it.",
}


@functools.cache
def _gradients() -> dict[str, str]:
    """Return what differentiates each operator."""
    rows = tables.sample_rows()
    operators = registry.operators()
    return {op.name: tables.gradient_of(op, rows.get(op.name, ())) for op in operators}


@functools.cache
def _differing() -> set[str]:
    """Return the operators that the page of differences names."""
    return {registry.get(name).name for name in tables.differing()}


def _function_page(title: str, name: str, value: Any, folder: str) -> str:
    head = ["---", f"search: {{boost: {_search_boost(name, folder)}}}", "---", ""]
    parent = "../" * (folder.count("/") + 1) + _parent_page(title)
    out = [*head, f"# {name}", "", f"[{title}]({parent}) › {name}", ""]
    out += ["```python", *_signature(value, f"{title}.{name}"), "```", ""]
    out += _docstring(value)
    op = getattr(value, "op", None)
    if isinstance(op, Op):
        spaces = [
            f"`{prefix}.{other}`"
            for prefix, space in (("mx.nd", mxnet.nd), ("mx.sym", mxnet.sym), ("mx.npx", mxnet.npx))
            for other in sorted({name, op.name, *op.aliases})
            if getattr(getattr(space, other, None), "op", None) is op
        ]
        out += ["", f"The same operator: {', '.join(spaces)}.", ""] if spaces else []
        out += [_GRADIENTS[_gradients()[op.name]], ""]
        if op.name in _differing():
            up = "../" * (folder.count("/") + 2)
            out += [f"[Differences from MXNet]({up}differences.md) name this operator.", ""]
    return "\n".join(out) + "\n"


def _search_boost(name: str, folder: str) -> float:
    """Return how a page of a single function ranks in searches, beside 1 for written pages.

    Old versions of operators and contributed ones are found after the operators themselves.
    """
    if folder != "operators" or name.endswith("_v1"):
        return 0.02
    return 0.8 if name[0].isupper() else 0.1


def _parent_page(title: str) -> str:
    path = next(page.path for page in PAGES if page.title == title)
    return path.removeprefix("reference/")


def _first_sentence(value: object) -> str:
    text = (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
    return text.replace("|", "&#124;")
