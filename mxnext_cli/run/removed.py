"""Names that libraries removed since 2016, and their replacements.

A row is the old name and the new one, ``module:attribute`` where the object is; a pair adds what
to write instead, where that is another expression. Names that still exist are not replaced.
"""

from __future__ import annotations

import importlib.util
import inspect
import io
import os
import platform
import re
import shutil
import sys
import sysconfig
import types
from collections import namedtuple
from functools import total_ordering
from pathlib import Path
from typing import Any

Row = str | tuple[str, str]

_OWN = "mxnext_cli.run.removed"
_MISC = "mxnext_cli.run.scipy_misc"

NUMPY: dict[str, Row] = {
    **{
        name: (f"builtins:{name}", name)
        for name in ("bool", "int", "float", "complex", "object", "str", "long", "unicode")
    },
    "long": ("builtins:int", "int"),
    "unicode": ("builtins:str", "str"),
    "float_": "numpy:float64",
    "int0": "numpy:intp",
    "cfloat": "numpy:complex128",
    "complex_": "numpy:complex128",
    "string_": "numpy:bytes_",
    "unicode_": "numpy:str_",
    "bool8": "numpy:bool_",
    "object0": "numpy:object_",
    "Inf": "numpy:inf",
    "Infinity": "numpy:inf",
    "infty": "numpy:inf",
    "PINF": "numpy:inf",
    "NINF": (f"{_OWN}:NEGATIVE_INFINITY", "-np.inf"),
    "NaN": "numpy:nan",
    "NAN": "numpy:nan",
    "PZERO": (f"{_OWN}:ZERO", "0.0"),
    "NZERO": (f"{_OWN}:NEGATIVE_ZERO", "-0.0"),
    "product": "numpy:prod",
    "cumproduct": "numpy:cumprod",
    "sometrue": "numpy:any",
    "alltrue": "numpy:all",
    "in1d": "numpy:isin",
    "row_stack": "numpy:vstack",
    "trapz": "numpy:trapezoid",
    "round_": "numpy:round",
    "asscalar": (f"{_OWN}:asscalar", "x.item()"),
    "asfarray": (f"{_OWN}:asfarray", "np.asarray(x, dtype=float)"),
    "msort": (f"{_OWN}:msort", "np.sort(x, axis=0)"),
    "rank": (f"{_OWN}:rank", "np.ndim(x)"),
    "find_common_type": (f"{_OWN}:find_common_type", "np.result_type(...)"),
    "issubclass_": ("builtins:issubclass", "issubclass"),
    "loads": ("pickle:loads", "pickle.loads"),
    "float128": "numpy:longdouble",
}
# Functions of NumPy that `scipy` exported before 1.12.
_SCIPY_FROM_NUMPY = (
    "array zeros ones arange linspace dot sqrt exp log sin cos pi mean std sum prod abs floor ceil "
    "power real imag asarray vstack hstack concatenate unique where transpose eye reshape sign"
)
SCIPY: dict[str, Row] = {name: f"numpy:{name}" for name in _SCIPY_FROM_NUMPY.split()}
SCIPY_MISC: dict[str, Row] = {
    "imread": (f"{_MISC}:imread", "cv2.imread or imageio.imread"),
    "imsave": (f"{_MISC}:imsave", "cv2.imwrite or imageio.imwrite"),
    "imresize": (f"{_MISC}:imresize", "cv2.resize or PIL.Image.resize"),
    "toimage": (f"{_MISC}:toimage", "PIL.Image.fromarray"),
    "logsumexp": "scipy.special:logsumexp",
    "factorial": "scipy.special:factorial",
    "comb": "scipy.special:comb",
    "derivative": ("scipy.differentiate:derivative", "scipy.differentiate.derivative"),
}
_WINDOWS = "hann hamming blackman bartlett gaussian kaiser boxcar triang tukey"
SCIPY_SIGNAL: dict[str, Row] = {
    **{name: f"scipy.signal.windows:{name}" for name in _WINDOWS.split()},
    "hanning": "scipy.signal.windows:hann",
}
_ABSTRACT = (
    "Awaitable Callable Container Generator Hashable ItemsView Iterable Iterator KeysView Mapping "
    "MappingView MutableMapping MutableSequence MutableSet Reversible Sequence Set Sized ValuesView"
)
COLLECTIONS: dict[str, Row] = {name: f"collections.abc:{name}" for name in _ABSTRACT.split()}

# Names of modules: module -> old name -> new one.
ATTRIBUTES: dict[str, dict[str, Row]] = {
    "numpy": NUMPY,
    "numpy.random": {"random_integers": (f"{_OWN}:random_integers", "np.random.randint(a, b + 1)")},
    "scipy": SCIPY,
    "scipy.misc": SCIPY_MISC,
    "scipy.signal": SCIPY_SIGNAL,
    "scipy.integrate": {
        "simps": "scipy.integrate:simpson",
        "trapz": "scipy.integrate:trapezoid",
        "cumtrapz": "scipy.integrate:cumulative_trapezoid",
    },
    "collections": COLLECTIONS,
    "time": {"clock": "time:perf_counter"},
    "fractions": {"gcd": "math:gcd"},
    "inspect": {"getargspec": (f"{_OWN}:getargspec", "inspect.getfullargspec")},
    "platform": {"linux_distribution": (f"{_OWN}:linux_distribution", "the package distro")},
    "cgi": {"escape": "html:escape"},
    "base64": {"encodestring": "base64:encodebytes", "decodestring": "base64:decodebytes"},
    "os": {"getcwdu": "os:getcwd", "errno": ("errno:", "import errno")},
    "sys": {"maxint": "sys:maxsize"},
    "string": {
        "letters": "string:ascii_letters",
        "lowercase": "string:ascii_lowercase",
        "uppercase": "string:ascii_uppercase",
        "maketrans": ("builtins:str.maketrans", "str.maketrans"),
        "join": (f"{_OWN}:join", "separator.join(words)"),
    },
    "itertools": {
        "izip": ("builtins:zip", "zip"),
        "imap": ("builtins:map", "map"),
        "ifilter": ("builtins:filter", "filter"),
        "izip_longest": "itertools:zip_longest",
    },
    "urllib": {
        "urlretrieve": "urllib.request:urlretrieve",
        "urlopen": "urllib.request:urlopen",
        "urlencode": "urllib.parse:urlencode",
        "quote": "urllib.parse:quote",
        "unquote": "urllib.parse:unquote",
    },
    "PIL.Image": {
        "ANTIALIAS": ("PIL.Image:Resampling.LANCZOS", "Image.LANCZOS"),
        "LINEAR": ("PIL.Image:Resampling.BILINEAR", "Image.BILINEAR"),
        "CUBIC": ("PIL.Image:Resampling.BICUBIC", "Image.BICUBIC"),
    },
    "pandas": {
        "rolling_mean": (f"{_OWN}:rolling_mean", "x.rolling(window).mean()"),
        "rolling_std": (f"{_OWN}:rolling_std", "x.rolling(window).std()"),
        "np": ("numpy:", "import numpy as np"),
        "datetime": ("datetime:datetime", "from datetime import datetime"),
    },
    "sklearn.datasets": {
        "fetch_mldata": (f"{_OWN}:fetch_mldata", "sklearn.datasets.fetch_openml"),
    },
    "cv2": {"CV_AA": "cv2:LINE_AA"},
}

# Methods: module -> class -> old name -> new one.
METHODS: dict[str, dict[str, dict[str, Row]]] = {
    "threading": {"Thread": {"isAlive": ("threading:Thread.is_alive", "is_alive()")}},
    "xml.etree.ElementTree": {
        "Element": {"getchildren": (f"{_OWN}:getchildren", "list(element)")},
    },
    "PIL.ImageDraw": {"ImageDraw": {"textsize": (f"{_OWN}:textsize", "draw.textbbox")}},
    "PIL.ImageFont": {
        "FreeTypeFont": {"getsize": (f"{_OWN}:getsize", "font.getbbox")},
        "ImageFont": {"getsize": (f"{_OWN}:getsize", "font.getbbox")},
    },
    "pandas": {
        "DataFrame": {
            "append": (f"{_OWN}:append", "pd.concat([a, b])"),
            "as_matrix": (f"{_OWN}:as_matrix", "frame.to_numpy()"),
            "iteritems": ("pandas:DataFrame.items", "frame.items()"),
            "ix": (f"{_OWN}:ix", "frame.loc or frame.iloc"),
            "get_value": (f"{_OWN}:get_value", "frame.at[row, column]"),
        },
        "Series": {
            "append": (f"{_OWN}:append", "pd.concat([a, b])"),
            "as_matrix": (f"{_OWN}:as_matrix", "series.to_numpy()"),
            "iteritems": ("pandas:Series.items", "series.items()"),
        },
    },
}

# Functions that refuse calls which they took before: module -> function -> what the program calls,
# with the real function as its first argument. It returns the result, and what to write instead or
# an empty string.
CALLS: dict[str, dict[str, str]] = {
    "yaml": {"load": f"{_OWN}:load_yaml", "load_all": f"{_OWN}:load_yaml"},
    "pickle": {"load": f"{_OWN}:load_pickle", "loads": f"{_OWN}:load_pickle"}
    | {"dump": f"{_OWN}:dump_pickle"},
}

# Modules under new names.
MODULES: dict[str, str] = {
    "cPickle": "pickle",
    "Queue": "queue",
    "ConfigParser": "configparser",
    "StringIO": "io",
    "cStringIO": "io",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
    "commands": "subprocess",
    "thread": "_thread",
    "HTMLParser": "html.parser",
    "Tkinter": "tkinter",
    "__builtin__": "builtins",
    "xml.etree.cElementTree": "xml.etree.ElementTree",
    "sklearn.cross_validation": "sklearn.model_selection",
    "sklearn.grid_search": "sklearn.model_selection",
    "sklearn.externals.joblib": "joblib",
    "pandas.tools.plotting": "pandas.plotting",
    "scipy.ndimage.filters": "scipy.ndimage",
    "scipy.ndimage.interpolation": "scipy.ndimage",
    "scipy.ndimage.morphology": "scipy.ndimage",
    "scipy.ndimage.measurements": "scipy.ndimage",
    "numpy.core.umath_tests": "numpy._core.umath_tests",
    "numpy.linalg.linalg": "numpy.linalg",
}
# Modules that were removed and are recreated: module -> (what to write, names -> objects).
MADE_MODULES: dict[str, tuple[str, dict[str, str]]] = {
    "sklearn.externals": ("import joblib", {}),
    "scipy.misc": ("scipy.special, cv2 or imageio", {}),
    "distutils": ("setuptools, packaging or shutil", {}),
    "distutils.version": (
        "packaging.version.Version",
        {"LooseVersion": f"{_OWN}:LooseVersion", "StrictVersion": f"{_OWN}:LooseVersion"},
    ),
    "distutils.util": (
        "a comparison with 'true', 'yes', '1'",
        {"strtobool": f"{_OWN}:strtobool", "get_platform": "sysconfig:get_platform"},
    ),
    "distutils.dir_util": (
        "os.makedirs, shutil.copytree, shutil.rmtree",
        {
            "mkpath": f"{_OWN}:mkpath",
            "copy_tree": f"{_OWN}:copy_tree",
            "remove_tree": "shutil:rmtree",
        },
    ),
    "distutils.spawn": ("shutil.which", {"find_executable": "shutil:which"}),
    "distutils.sysconfig": (
        "sysconfig",
        {
            "get_config_var": "sysconfig:get_config_var",
            "get_python_lib": f"{_OWN}:get_python_lib",
            "get_python_inc": f"{_OWN}:get_python_inc",
        },
    ),
    "imp": (
        "importlib",
        {
            "reload": "importlib:reload",
            "load_source": f"{_OWN}:load_source",
            "new_module": "types:ModuleType",
            "find_module": f"{_OWN}:find_module",
            "load_module": f"{_OWN}:load_module",
        },
    ),
}

# Builtins of Python 2.
BUILTINS: dict[str, Row] = {
    "xrange": ("builtins:range", "range"),
    "unicode": ("builtins:str", "str"),
    "basestring": ("builtins:str", "str"),
    "long": ("builtins:int", "int"),
    "unichr": ("builtins:chr", "chr"),
    "raw_input": ("builtins:input", "input"),
    "reduce": "functools:reduce",
    "reload": "importlib:reload",
    "intern": "sys:intern",
    "cmp": (f"{_OWN}:cmp", "(a > b) - (a < b)"),
    "execfile": (f"{_OWN}:execfile", "exec(open(path).read())"),
    "file": ("builtins:open", "open"),
}


def needs_loader(function: Any) -> bool:
    """Return whether PyYAML's function cannot be called without a loader."""
    parameter = inspect.signature(function).parameters.get("Loader")
    return parameter is not None and parameter.default is parameter.empty


NEGATIVE_INFINITY = float("-inf")
ZERO, NEGATIVE_ZERO = 0.0, -0.0


def read_row(row: Row) -> tuple[str, str]:
    """Return the location of a row's object, and what to write instead."""
    if isinstance(row, tuple):
        return row
    return row, row.replace(":", ".").replace("numpy.", "np.")


# -- NumPy and SciPy ---------------------------------------------------------------------------


def asscalar(a: Any) -> Any:
    """Return the only element of an array."""
    return a.item()


def asfarray(a: Any, dtype: Any = float) -> Any:
    """Return an array of a floating-point type."""
    import numpy as np

    return np.asarray(a, dtype=dtype if np.issubdtype(dtype, np.inexact) else float)


def msort(a: Any) -> Any:
    """Return a copy sorted along the first axis."""
    import numpy as np

    return np.sort(a, axis=0)


def rank(a: Any) -> int:
    """Return the number of dimensions."""
    import numpy as np

    return np.ndim(a)


def find_common_type(array_types: list, scalar_types: list) -> Any:
    """Return the type that all of these can be cast to."""
    import numpy as np

    return np.result_type(*array_types, *scalar_types)


def random_integers(low: int, high: int | None = None, size: Any = None) -> Any:
    """Return random integers from `low` to `high`, both included; from 1 without `high`."""
    import numpy as np

    first, last = (1, low) if high is None else (low, high)
    return np.random.randint(first, last + 1, size)  # noqa: NPY002 (the old program seeds it)


# -- pandas, PIL, scikit-learn ------------------------------------------------------------------


def rolling_mean(arg: Any, window: int, *args: Any, **options: Any) -> Any:
    """Return the mean of a moving window."""
    return arg.rolling(window, *args, **options).mean()


def rolling_std(arg: Any, window: int, *args: Any, **options: Any) -> Any:
    """Return the standard deviation of a moving window."""
    return arg.rolling(window, *args, **options).std()


def append(self: Any, other: Any, ignore_index: bool = False, **options: Any) -> Any:
    """Return this frame or series with another one below it."""
    import pandas as pd  # pyright: ignore[reportMissingImports] (the old program has it)

    if isinstance(other, dict) or (self.ndim == 2 and getattr(other, "ndim", 0) == 1):
        other = pd.DataFrame([other])
    others = list(other) if isinstance(other, list | tuple) else [other]
    return pd.concat([self, *others], ignore_index=ignore_index, **options)


def as_matrix(self: Any, columns: Any = None) -> Any:
    """Return the values as an array."""
    return (self if columns is None else self[columns]).to_numpy()


def get_value(self: Any, index: Any, col: Any, takeable: bool = False) -> Any:
    """Return one value of a frame."""
    return self.iat[index, col] if takeable else self.at[index, col]


class _LabelOrPosition:
    """Indexes by label where the label exists, else by position."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._frame.loc[key]
        except (KeyError, TypeError):
            return self._frame.iloc[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._frame.loc[key] = value


ix = property(_LabelOrPosition)


def textsize(self: Any, text: str, font: Any = None, **options: Any) -> tuple[int, int]:
    """Return width and height of a text."""
    left, top, right, bottom = self.textbbox((0, 0), text, font=font, **options)
    return right - min(left, 0), bottom - min(top, 0)


def getsize(self: Any, text: str, **options: Any) -> tuple[int, int]:
    """Return width and height of a text in this font."""
    _, _, right, bottom = self.getbbox(text, **options)
    return right, bottom


def fetch_mldata(dataname: str, **options: Any) -> Any:
    """Download a data set of mldata.org, which is gone, from openml.org."""
    from sklearn.datasets import fetch_openml

    names = {"MNIST original": "mnist_784"}
    options = {k: v for k, v in options.items() if k == "data_home"}
    return fetch_openml(names.get(dataname, dataname), as_frame=False, **options)


# -- calls that are refused today ---------------------------------------------------------------


def load_yaml(function: Any, *args: Any, **options: Any) -> tuple[Any, str]:
    """Call ``yaml.load`` without a loader. Its old default ran code that a file named."""
    if len(args) != 1 or options or not needs_loader(function):
        return function(*args, **options), ""
    import yaml

    name = f"safe_{function.__name__}"
    return getattr(yaml, name)(*args), f"yaml.{name}"


def load_pickle(function: Any, source: Any, **options: Any) -> tuple[Any, str]:
    """Call ``pickle.load`` on a file that was opened as text, or that Python 2 wrote."""
    binary, instead = _binary_file(source, "rb")
    is_bytes = isinstance(binary, bytes | bytearray)
    can_rewind = hasattr(binary, "seekable") and binary.seekable()
    start = binary.tell() if can_rewind else 0
    try:
        return function(binary, **options), instead
    except UnicodeDecodeError:
        if "encoding" in options or not (is_bytes or can_rewind):
            raise
    if can_rewind:
        binary.seek(start)
    call = f"pickle.{function.__name__}(x, encoding='latin1')"
    return function(binary, encoding="latin1", **options), f"{instead}; {call}".lstrip("; ")


def dump_pickle(function: Any, value: Any, file: Any, *args: Any, **options: Any) -> Any:
    """Call ``pickle.dump`` on a file that was opened as text."""
    binary, instead = _binary_file(file, "wb")
    return function(value, binary, *args, **options), instead


def _binary_file(file: Any, mode: str) -> tuple[Any, str]:
    """Return the file of bytes below a file of text, and how to open it."""
    if not isinstance(file, io.TextIOWrapper):
        return file, ""
    file.flush()
    return file.buffer, f"open(path, {mode!r})"


# -- Python -------------------------------------------------------------------------------------


def getargspec(func: Any) -> Any:
    """Return names and defaults of a function's arguments."""
    spec = inspect.getfullargspec(func)
    return namedtuple("ArgSpec", "args varargs keywords defaults")(*spec[:4])


def linux_distribution(*_: Any, **__: Any) -> tuple[str, str, str]:
    """Return name, version and code name of the distribution."""
    try:
        facts = platform.freedesktop_os_release()
    except OSError:
        return "", "", ""
    return facts.get("NAME", ""), facts.get("VERSION_ID", ""), facts.get("VERSION_CODENAME", "")


def getchildren(self: Any) -> list:
    """Return the children of an element."""
    return list(self)


def join(words: Any, separator: str = " ") -> str:
    """Return words joined by a separator."""
    return separator.join(words)


def cmp(a: Any, b: Any) -> int:
    """Return -1, 0 or 1 for less, equal and greater."""
    return (a > b) - (a < b)


def execfile(path: str, variables: dict | None = None, local: dict | None = None) -> None:
    """Run a file in the namespace of the caller."""
    frame = sys._getframe(1)
    code = compile(Path(path).read_bytes(), path, "exec")
    exec(code, frame.f_globals if variables is None else variables, local)


@total_ordering
class LooseVersion:
    """A version that compares its numbers as numbers: ``1.10`` is after ``1.9``."""

    def __init__(self, vstring: str = "0") -> None:
        self.vstring = str(vstring)
        parts = [p for p in re.split(r"(\d+|[a-z]+|\.)", self.vstring) if p and p != "."]
        self.version = [int(p) if p.isdigit() else p for p in parts]

    def __str__(self) -> str:
        return self.vstring

    def __repr__(self) -> str:
        return f"LooseVersion ('{self.vstring}')"

    def _key(self) -> list[tuple[bool, str, int]]:
        """Return the sort key of versions: letters come before numbers."""
        return [
            (True, "", part) if isinstance(part, int) else (False, part, 0) for part in self.version
        ]

    def __eq__(self, other: object) -> bool:
        return self._key() == _version(other)._key()

    def __lt__(self, other: Any) -> bool:
        return self._key() < _version(other)._key()

    __hash__ = None  # type: ignore[assignment]


def _version(value: Any) -> LooseVersion:
    return value if isinstance(value, LooseVersion) else LooseVersion(value)


def strtobool(val: str) -> int:
    """Return 1 for yes, true, on, 1 and 0 for their opposites."""
    if val.lower() in ("y", "yes", "t", "true", "on", "1"):
        return 1
    if val.lower() in ("n", "no", "f", "false", "off", "0"):
        return 0
    raise ValueError(f"invalid truth value {val!r}")


def mkpath(name: str, mode: int = 0o777, **_: Any) -> list[str]:
    """Make a folder and those above it."""
    Path(name).mkdir(mode, parents=True, exist_ok=True)
    return [name]


def copy_tree(src: str, dst: str, **_: Any) -> list[str]:
    """Copy the content of a folder into another."""
    shutil.copytree(src, dst, dirs_exist_ok=True)
    return [os.fspath(p) for p in Path(dst).rglob("*") if p.is_file()]


def get_python_lib(*_: Any, **__: Any) -> str:
    """Return the folder of installed packages."""
    return sysconfig.get_path("purelib")


def get_python_inc(*_: Any, **__: Any) -> str:
    """Return the folder of Python's C headers."""
    return sysconfig.get_path("include")


def load_source(name: str, pathname: str, file: Any = None) -> types.ModuleType:
    """Import a module from a file."""
    spec = importlib.util.spec_from_file_location(name, pathname)
    if spec is None or spec.loader is None:
        raise ImportError(f"{pathname} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def find_module(name: str, path: list[str] | None = None) -> tuple[Any, str, tuple]:
    """Return the location of a module, as `load_module` takes it."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec(name, path)
    if spec is None or spec.origin is None:
        raise ImportError(f"No module named {name!r}")
    return None, spec.origin, (".py", "r", 1)


def load_module(name: str, file: Any, filename: str, details: tuple) -> types.ModuleType:
    """Import what `find_module` found."""
    return load_source(name, filename)
