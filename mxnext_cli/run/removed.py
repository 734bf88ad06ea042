"""What libraries removed since 2016, and what took its place.

A row is the old name and the new one, ``module:attribute`` where the object is; a pair adds what
to write instead, where that is another expression. Names that are still there are left alone.
"""

from __future__ import annotations

Row = str | tuple[str, str]

_OWN = "mxnext_cli.run.replacements"

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
    "imread": (f"{_OWN}:imread", "cv2.imread or imageio.imread"),
    "imsave": (f"{_OWN}:imsave", "cv2.imwrite or imageio.imwrite"),
    "imresize": (f"{_OWN}:imresize", "cv2.resize or PIL.Image.resize"),
    "toimage": (f"{_OWN}:toimage", "PIL.Image.fromarray"),
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
