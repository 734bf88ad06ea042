"""Where the modules come from that a program imports: its project, a package, or nowhere."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path

MODULE_SUFFIXES = (".py", ".pyx", ".so", ".pyd")
MAX_PARENTS = 4  # folders above a program in which its project may begin

# Packages that MXNet programs import. Other names are never proposed: anybody may own them.
_SAME_NAME = (
    "bokeh boto3 colorlog dill easydict editdistance flask future gluoncv gluonnlp gluonts gym "
    "h5py horovod imageio imgaug jieba joblib keras librosa lmdb lxml matplotlib mxboard networkx "
    "nltk numba onnx onnxruntime pandas plotly psutil pyarrow pycocotools pytest redis requests "
    "sacrebleu scipy seaborn sentencepiece shapely simplejson six soundfile spacy sympy tabulate "
    "tensorboard tensorboardX tensorflow termcolor torch torchvision tornado tqdm transformers "
    "visdom xgboost"
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
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
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
}


class Project:
    """The modules of a project: all below the folders that were named, and beside single files."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._names: set[str] = set()
        for path in files:
            if path.name.endswith(MODULE_SUFFIXES):
                self._names.add(path.name.partition(".")[0])
                self._names.update(path.resolve().parent.parts[-MAX_PARENTS - 4 :])

    def has_module(self, root: str, importer: Path) -> bool:
        """Return whether a program finds a module in its project, as Python or `sys.path` would."""
        if root in self._names:
            return True
        folder = importer.resolve().parent
        return any(_has_module(f, root) for f in [folder, *folder.parents][: MAX_PARENTS + 1])


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
    """Return the lines of imports whose failure the program handles."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any(_handles_import(h) for h in node.handlers):
            for part in [*node.body, *(n for h in node.handlers for n in h.body)]:
                lines |= {n.lineno for n in ast.walk(part) if isinstance(n, ast.stmt)}
        elif isinstance(node, ast.If) and _is_about_version(node.test):
            lines |= {n.lineno for n in ast.walk(node) if isinstance(n, ast.stmt)}
    return lines


def _handles_import(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = {n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)}
    expected = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException", "NameError"}
    return bool(names & (expected | {"AttributeError"}))


def _is_about_version(test: ast.expr) -> bool:
    """Return whether a condition asks for the version of Python or for a type checker."""
    text = ast.unparse(test)
    return any(part in text for part in ("version_info", "sys.version", "PY2", "PY3", "TYPE_CHECK"))


def is_gone(module: str, name: str) -> bool:
    """Return whether a module that is installed, or a removed one, does not have a name."""
    if not is_installed(module.partition(".")[0]):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return not hasattr(importlib.import_module(module), name)
    except ImportError:
        return True
