"""The origin of the modules that a program imports: its project, a package, or none."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path

from ..run.python2 import future_imports
from ..run.rewriting import has_sibling, is_only_python_3

_IMPORTS = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#;]+)"
    r"|import[ \t]+([^\n#;]+))",
    re.MULTILINE,
)
# Where a project names the versions of Python that it runs on.
METADATA_FILES = frozenset({"setup.py", "setup.cfg", "pyproject.toml", "METADATA", "PKG-INFO"})
_REQUIRES_PYTHON_3 = re.compile(
    r"(?:python_requires|requires-python|Requires-Python)\s*[=:]\s*[\"']?\s*(?:>=|~=|\^)\s*3"
)
_QUOTED = re.compile(r"[\"']([^\"']*)[\"']")
MODULE_SUFFIXES = (".py", ".pyx", ".so", ".pyd")
VERSION_WORDS = ("version_info", "sys.version", "py2", "py3", "type_check")
IMPORT_ERRORS = frozenset(
    {"ImportError", "ModuleNotFoundError", "Exception", "BaseException", "NameError"}
    | {"AttributeError"}
)
MAX_PARENTS = 4  # folders above a program in which its project may begin

# Packages that MXNet programs import. Other names are never proposed: anybody may own them.
_SAME_NAME = (
    "bokeh boto3 colorlog dill easydict editdistance flask future gluoncv gluonts gym "
    "h5py horovod imageio jieba joblib librosa lmdb lxml matplotlib networkx "
    "nltk numba onnx onnxruntime pandas plotly psutil pyarrow pycocotools pytest redis requests "
    "sacrebleu scipy seaborn sentencepiece shapely simplejson six soundfile spacy sympy tabulate "
    "tensorboard tensorboardX tensorflow tensorpack termcolor torch torchvision tornado tqdm "
    "transformers unidecode visdom xgboost"
)
PACKAGES = {name: name for name in _SAME_NAME.split()} | {
    "Cython": "cython",
    "IPython": "ipython",
    "PIL": "pillow",
    "absl": "absl-py",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "past": "future",
    "pkg_resources": "'setuptools<81'",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
    # Versions that import beside today's NumPy and protobuf.
    "gluonnlp": "gluonnlp==0.10.0",
    "mxboard": "mxboard 'protobuf<3.21' (in an environment without onnx, which needs a newer one)",
}
UNKNOWN = (
    "not in this project and not installed; its README may say where it comes from. Names that are "
    "not known are not to be installed from an index: strangers may own them"
)
# Names that mean something else on the index.
OTHER_HINTS = {
    "mxnext": "a folder of SimpleDet, which has the name of this package by chance: copy it into "
    "the project, because `pip install mxnext` brings this package",
    "mxnet": "",
    "imgaug": "its last version needs NumPy 1: use albumentations, mx.image or torchvision",
    "keras": "install keras and torch, and set KERAS_BACKEND=torch; its MXNet backend is gone",
}


class Project:
    """The modules of a project: all below the folders that were named, and beside single files."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._names: set[str] = set()
        files = list(files)
        self._programs = {p.resolve() for p in files if p.suffix == ".py"}
        self._metadata = [p for p in files if p.name in METADATA_FILES]
        for path in files:
            if path.name.endswith(MODULE_SUFFIXES):
                self._names.add(path.name.partition(".")[0])
                self._names.update(path.resolve().parent.parts[-MAX_PARENTS - 4 :])

    def has_module(self, root: str, importer: Path) -> bool:
        """Return whether a program finds a module in its project, as Python or `sys.path` would."""
        folder = importer.resolve().parent
        if is_installed(root):  # a folder of this name elsewhere in the project does not hide it
            return _has_module(folder, root) and not (folder / "__init__.py").is_file()
        if root in self._names:
            return True
        return any(_has_module(f, root) for f in [folder, *folder.parents][: MAX_PARENTS + 1])

    @cached_property
    def is_python_3(self) -> bool:
        """Whether the project was written only for Python 3, so that ``/`` is true division."""
        if any(_REQUIRES_PYTHON_3.search(_read(path)) for path in self._metadata):
            return True
        trees = [_parse(path) for path in self._programs]
        # Files that are Python 2, or cared for it, against those of Python 3.
        older = sum(tree is None or bool(future_imports(tree) - {"annotations"}) for tree in trees)
        return sum(tree is not None and is_only_python_3(tree) for tree in trees) > older

    def is_in_package(self, program: Path) -> bool:
        """Return whether other programs import this one as a part of its package."""
        return program.resolve() in self._members

    @cached_property
    def _members(self) -> set[Path]:
        imported = {p: list(_read_imports(p)) for p in self._programs}
        members: set[Path] = set()
        for path, modules in imported.items():
            for level, module in modules:
                folders = [path.parents[level - 1]] if level else _folders_of(path)
                members |= self._find_all(folders, module, is_relative=level > 0)
        members |= {path for path in self._programs if path.name == "__init__.py"}
        scripts = {p.parent for p in self._programs - members if "__main__" in _read(p)}
        waiting = list(members)
        while waiting:  # siblings of members are members as well
            path = waiting.pop()
            for level, module in imported.get(path, []):
                siblings = self._find_all([path.parent], module.partition(".")[0])
                new = {s for s in siblings if not level and s.parent == path.parent} - members
                members |= new
                waiting += new
        return {m for m in members if m.parent not in scripts} - self._on_path

    def _find_all(self, folders: list[Path], module: str, *, is_relative: bool = True) -> set[Path]:
        parts = [part for part in module.split(".") if part]
        for folder in folders if parts else ():
            path = folder.joinpath(*parts[:-1], f"{parts[-1]}.py")
            is_inside = len(parts) > 1 and (path.parent / "__init__.py").is_file()
            if path in self._programs and (is_relative or is_inside):
                return {path}
            if (package := folder.joinpath(*parts, "__init__.py")) in self._programs:
                return {package}
        return set()

    @cached_property
    def _on_path(self) -> set[Path]:
        """The programs in folders that some program puts on `sys.path`."""
        texts = [_read(p) for p in self._programs]
        changing = [t for t in texts if "sys.path" in t or "PYTHONPATH" in t]
        names = {w for t in changing for line in t.splitlines() for w in _quoted_words(line)}
        return {p for p in self._programs if p.parent.name in names}

    def is_sibling(self, module: str, importer: Path, *, prefers: bool) -> bool:
        """Return whether a module is beside the importer and found by Python 2 only."""
        root, path = module.partition(".")[0], importer.resolve()
        if not has_sibling(path.parent, root) or path == path.parent / f"{root}.py":
            return False
        if prefers:
            return True
        own = {program.parent for program in self._programs}  # not what lies around the project
        return not is_installed(root) and not any(
            has_sibling(f, root) for f in _folders_of(path)[1:] if f in own
        )


def _parse(path: Path) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _folders_of(path: Path) -> list[Path]:
    return [path.parent, *path.parent.parents][: MAX_PARENTS + 1]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _quoted_words(line: str) -> list[str]:
    return [word for text in _QUOTED.findall(line) for word in re.split(r"[/\\]", text)]


def _read_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the level and the dotted name of each module that a program may import."""
    for dots, module, names, plain in _IMPORTS.findall(_read(path)):
        if plain:
            for part in plain.split(","):
                yield 0, part.split()[0] if part.split() else ""
            continue
        if module:
            yield len(dots), module
        for part in names.replace("(", " ").replace(")", " ").split(","):
            if part.split():
                yield len(dots), f"{module}.{part.split()[0]}".lstrip(".")


def _has_module(folder: Path, root: str) -> bool:
    if any((folder / f"{root}{suffix}").is_file() for suffix in MODULE_SUFFIXES):
        return True
    package = folder / root
    return package.is_dir() and any(p.suffix in MODULE_SUFFIXES for p in package.iterdir())


@cache
def is_installed(root: str) -> bool:
    """Return whether a top-level module can be imported."""
    if root in sys.builtin_module_names or root in sys.stdlib_module_names:
        return importlib.util.find_spec(root) is not None if root != "__main__" else True
    try:
        return importlib.util.find_spec(root) is not None
    except (ImportError, ValueError):
        return False


def advise(root: str) -> str:
    """Return how to get a package that is missing."""
    if root in OTHER_HINTS:
        return OTHER_HINTS[root]
    return f"pip install {PACKAGES[root]}" if root in PACKAGES else UNKNOWN


def optional_imports(tree: ast.AST) -> set[int]:
    """Return the lines of statements that handle a missing module, or ask for Python's version."""
    guarded = guarded_nodes(tree, VERSION_WORDS, IMPORT_ERRORS)
    return {n.lineno for n in ast.walk(tree) if isinstance(n, ast.stmt) and id(n) in guarded}


def guarded_nodes(tree: ast.AST, words: tuple[str, ...], errors: frozenset[str]) -> set[int]:
    """Return the ids of nodes that run under a condition with one of the words, or in a `try`.

    A bare ``except`` handles every error.
    """
    guarded: set[int] = set()
    words = (*words, *_names_of_values(tree, words))
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any(_handles(h, errors) for h in node.handlers):
            parts: list[ast.AST] = [*node.body, *node.handlers]
        elif _is_condition(node, words):
            parts = [node]
        else:
            continue
        guarded |= {id(inner) for part in parts for inner in ast.walk(part)}
    return guarded


def _names_of_values(tree: ast.AST, words: tuple[str, ...]) -> set[str]:
    """Return the longer names that are assigned a value in which one of the words occurs."""
    return {
        target.id.lower()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _mentions(node.value, words)
        for target in node.targets
        if isinstance(target, ast.Name) and len(target.id) > 2
    }


def _is_condition(node: ast.AST, words: tuple[str, ...]) -> bool:
    if isinstance(node, ast.If | ast.IfExp):
        return _mentions(node.test, words)
    return isinstance(node, ast.BoolOp) and any(_mentions(v, words) for v in node.values)


def _mentions(test: ast.expr, words: tuple[str, ...]) -> bool:
    text = ast.unparse(test).lower()
    return any(word in text for word in words)


def _handles(handler: ast.ExceptHandler, errors: frozenset[str]) -> bool:
    if handler.type is None:
        return True
    nodes = list(ast.walk(handler.type))
    names = {n.id for n in nodes if isinstance(n, ast.Name)}
    return bool(errors & (names | {n.attr for n in nodes if isinstance(n, ast.Attribute)}))


def is_gone(module: str, name: str) -> bool:
    """Return whether the package is installed but the module is gone or lacks the name."""
    if not is_installed(module.partition(".")[0]):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return not hasattr(importlib.import_module(module), name)
    except ImportError:
        return True
