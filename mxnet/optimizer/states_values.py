"""Values that files of optimizer states may contain, and their construction.

Only these are constructed, and every field is checked: numbers, strings, containers, arrays,
imported optimizers and schedulers, and objects of the program's own classes without code for
construction, copying or deletion. A function named in a file is never called. Other attributes of a
scheduler (functions, objects of installed packages) are stored by name only; the object is taken
from the program's optimizer.
"""

from __future__ import annotations

import abc
import inspect
import math
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Number
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, cast

import numpy as np

from ..error import FormatError
from ..formats import params_file
from ..formats.pickle_reader import Call, Name, is_key
from ..lr_scheduler import LRScheduler
from ..ndarray import NDArray
from ..ndarray.sparse import from_stored
from .base import Optimizer

HEAP_TYPE = 1 << 9  # a class that Python code defined
RUN_BY_PICKLE = frozenset(
    ("__new__", "__del__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")
)
STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])
INSTALLED = frozenset(("site-packages", "dist-packages"))
REFERENCES = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


class Named(NamedTuple):
    """Placeholder of an object that is not stored: its name, or that of its class."""

    module: str
    name: str

    @classmethod
    def of(cls, value: Any) -> Named:
        """Return the placeholder of an object."""
        named = value if hasattr(value, "__qualname__") else type(value)
        return cls(str(named.__module__), str(named.__qualname__))


def is_data(kind: type) -> bool:
    """Return whether instances are plain data that can be constructed without running code.

    >>> is_data(type("Pair", (), {})), is_data(dict)
    (True, False)
    """
    if type(kind) not in (type, abc.ABCMeta) or not kind.__dictoffset__:
        return False
    return all(
        base.__flags__ & HEAP_TYPE
        and not base.__dict__.get("__slots__")
        and RUN_BY_PICKLE.isdisjoint(base.__dict__)
        for base in kind.__mro__[:-1]
    )


def program_class(module: str, name: str) -> type | None:
    """Return the class of this name if files may contain its instances, else None."""
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, "__dict__", {}).get(part)  # getattr might run code
    if not isinstance(value, type) or (value.__module__, value.__qualname__) != (module, name):
        return None
    return value if is_data(value) and _is_of_program(module) else None


def _is_of_program(module: str) -> bool:
    """Return whether a module belongs to the program, not to an installed package."""
    if module == "__main__":
        return True
    package = module.partition(".")[0]
    if package == __name__.partition(".")[0] or package in sys.stdlib_module_names:
        return False
    kinds = (*subclasses(Optimizer), *subclasses(LRScheduler))
    if any(kind.__module__.partition(".")[0] == package for kind in kinds):
        return True
    file = getattr(sys.modules[module], "__file__", None)
    if file is None or STANDARD_LIBRARY in Path(file).parents:
        return False
    return INSTALLED.isdisjoint(Path(file).parts)


def subclasses(base: type) -> Iterator[type]:
    """Return all subclasses of a class."""
    for kind in base.__subclasses__():
        yield kind
        yield from subclasses(kind)


def resolve(read: Any, live: Any, path: str = "") -> Any:
    """Return the values with placeholders replaced by the program's objects.

    Parameters
    ----------
    read
        A value from a file.
    live
        The program's value at this path.
    path
        Path of the value, for error messages.
    """
    if isinstance(read, Named):
        if live is None or Named.of(live) != read:
            raise FormatError(_advice(path.lstrip("."), read))
        if not isinstance(live, REFERENCES):
            warnings.warn(
                f"{path.lstrip('.')} keeps the program's value: files of optimizer states do not "
                f"contain objects of {read.module}.{read.name}.",
                stacklevel=2,
            )
        return live
    if isinstance(read, dict):
        others = live if isinstance(live, dict) else {}
        read.update({k: resolve(v, others.get(k), f"{path}[{k!r}]") for k, v in read.items()})
    elif isinstance(read, list | tuple):
        same = isinstance(live, list | tuple) and len(live) == len(read)
        pairs = zip(read, live if same else [None] * len(read), strict=True)
        resolved = [resolve(v, other, f"{path}[{i}]") for i, (v, other) in enumerate(pairs)]
        if isinstance(read, tuple):
            return tuple(resolved)
        read[:] = resolved
    elif isinstance(read, Optimizer | LRScheduler) or is_data(type(read)):
        others = getattr(live, "__dict__", {})
        fields = vars(read)
        fields.update({k: resolve(v, others.get(k), f"{path}.{k}") for k, v in fields.items()})
    return read


def _advice(path: str, missing: Named) -> str:
    return (
        f"Optimizer states: {path or 'a state'} was {missing.module}.{missing.name}, which files "
        "do not hold: only numbers, text, arrays, containers, and objects of the program's own "
        "classes that have no code for being copied or deleted. Make the optimizer with the same "
        "lr_scheduler as when the states were saved, then load them. Nothing was run."
    )


MAX_DEPTH = 40  # depth of nested containers
MAX_VALUES = 1_000_000  # number of values, counted once per reference
_NUMPY = ("numpy.core.multiarray", "numpy._core.multiarray")
_DTYPES = {
    name: np.dtype(name)
    for name in (
        *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
_DTYPE_CODES = {dtype.str[1:]: dtype for dtype in _DTYPES.values()}


def build(value: Any) -> Any:
    """Return the result of `read_pickle` with calls replaced by arrays and objects.

    Shared values stay shared. Cycles and exponentially growing references raise an error.
    """
    return _Builder().build(value)[0]


def find_class(module: str, name: str) -> Any:
    """Return the class of an optimizer, a scheduler or one of their values; raise for others.

    Classes of MXNet are looked up in MXNext, other classes only in imported modules.
    """
    if module.startswith("mxnet."):
        bases = {"mxnet.optimizer": Optimizer, "mxnet.lr_scheduler": LRScheduler}
        base = bases.get(".".join(module.split(".")[:2]))
        candidates = [] if base is None else [base, *subclasses(base)]
        for kind in candidates:
            if kind.__module__.startswith("mxnet.") and kind.__qualname__ == name:
                return kind
    for kind in (*subclasses(Optimizer), *subclasses(LRScheduler)):
        if (kind.__module__, kind.__qualname__) == (module, name):
            return kind
    kind = program_class(module, name)
    if kind is not None:
        return kind
    raise _refusal(module, name)


def _refusal(module: str, name: str) -> FormatError:
    return FormatError(
        f"Optimizer states may not hold {module}.{name}: only arrays, numbers, containers, "
        "optimizers and schedulers that are imported already, and objects of the program's own "
        "classes that have no code for being copied or deleted. Nothing was run."
    )


def make_object(module: str, name: str, fields: Any) -> Any:
    """Return an optimizer or scheduler with these fields, after checking them."""
    kind = find_class(module, name)
    fields = {} if fields is None else fields
    _check_fields(kind, fields)
    fields = {**_default_fields(kind), **fields}
    instance = kind.__new__(kind)
    restore = getattr(kind, "__setstate__", None)
    if restore is None:
        vars(instance).update(fields)
    else:
        restore(instance, fields)
    return instance


def _default_fields(kind: type) -> dict[str, Any]:
    """Return the default fields of one of our optimizers, for files that lack some."""
    if not issubclass(kind, Optimizer):
        return {}
    base = kind if kind.__module__.startswith("mxnet.") else Optimizer
    instance: Any = base.__new__(base)
    instance._announce = lambda: None  # LBSGD logs only if created by the program
    instance.__init__()
    left_out = ("param_dict", "_announce")
    return {name: value for name, value in vars(instance).items() if name not in left_out}


def make_array(record: Any) -> NDArray:
    """Return the array of one of MXNet's records."""
    if record is None:
        return NDArray(None)
    if not isinstance(record, bytes | bytearray | memoryview):
        raise FormatError(f"An array in optimizer states is bytes, not {type(record).__name__}.")
    stored, _ = params_file.load_record(record, "an array in optimizer states")
    if isinstance(stored, params_file.RowSparse | params_file.CSR):
        return from_stored(stored)
    array = NDArray(None)
    array.__setstate__({"handle": record})
    return array


def make_numpy(code: Any, shape: Any, data: Any) -> np.ndarray:
    """Return a NumPy array from its type code, shape and bytes; raise if they do not match."""
    dtype = _DTYPE_CODES.get(code[1:]) if isinstance(code, str) else None
    if dtype is None or code[0] not in "<>|=":
        raise FormatError(f"Optimizer states may not hold NumPy arrays of type {code!r}.")
    good = isinstance(shape, tuple | list) and all(type(s) is int and s >= 0 for s in shape)
    if not good or len(shape) > 32 or not isinstance(data, bytes | bytearray | memoryview):
        raise FormatError("A NumPy array in optimizer states has no valid shape or data.")
    if math.prod(shape) * dtype.itemsize != len(data):
        raise FormatError(
            f"A NumPy array {tuple(shape)} of {dtype} in optimizer states needs "
            f"{math.prod(shape) * dtype.itemsize} bytes, and {len(data)} are there."
        )
    return (
        np.frombuffer(bytes(data), dtype.newbyteorder(cast("Any", code[0])))
        .reshape(shape)
        .astype(dtype)
    )


# -- fields of optimizers and schedulers -----------------------------------------------------------

_FIELDS: dict[str, tuple] = {
    "lr": (Number, type(None)),
    "lr_scheduler": (LRScheduler, type(None)),
    "clip_gradient": (Number, type(None)),
    "num_update": (int,),
    "aggregate_num": (int,),
    "sym_info": (tuple, list),
    **dict.fromkeys(
        ("lr_mult", "wd_mult", "idx2name", "_all_index_update_counts", "_index_update_count"),
        (dict,),
    ),
}


def _check_fields(kind: type, fields: Any) -> None:
    """Raise unless the names and types of fields are valid for the class."""
    if not isinstance(fields, dict):
        raise FormatError(
            f"The fields of {kind.__name__} must be a dict, not {type(fields).__name__}."
        )
    expected = {**_default_types(kind), **_FIELDS}
    for name, value in fields.items():
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("__"):
            raise FormatError(f"{kind.__name__} in optimizer states has a field {name!r:.80}.")
        own = inspect.getattr_static(kind, name, None)
        if callable(own) or isinstance(own, property | staticmethod | classmethod):
            raise FormatError(
                f"Optimizer states may not replace {kind.__name__}.{name}, which is not data."
            )
        if name in expected and not isinstance(value, expected[name]):
            kinds = " or ".join(k.__name__ for k in expected[name])
            raise FormatError(
                f"{kind.__name__}.{name} in optimizer states is {kinds}, not "
                f"{type(value).__name__}."
            )


def _default_types(kind: type) -> dict[str, tuple]:
    types: dict[str, tuple] = {}
    for base in kind.__mro__[:-1]:
        if "__init__" not in vars(base):
            continue
        for name, parameter in inspect.signature(vars(base)["__init__"]).parameters.items():
            if isinstance(parameter.default, Number):
                types.setdefault(name, (Number, type(None)))
    return types


# -- pickled values --------------------------------------------------------------------------------


class _Builder:
    """Builds each value once."""

    def __init__(self) -> None:
        self.built: dict[int, tuple[Any, int]] = {}  # by identity: value and size
        self.under_way: set[int] = set()
        self.depth = 0

    def build(self, value: Any) -> tuple[Any, int]:
        if isinstance(value, Name):
            return _number_type(value), 1
        if not isinstance(value, list | tuple | dict | set | frozenset | Call):
            return value, 1
        key = id(value)
        if key in self.built:
            return self.built[key]
        if key in self.under_way or self.depth >= MAX_DEPTH:
            raise FormatError("Optimizer states contain a cycle, or are nested too deeply.")
        self.under_way.add(key)
        self.depth += 1
        built, size = self._container(value)
        self.depth -= 1
        self.under_way.discard(key)
        if size > MAX_VALUES:
            raise FormatError(f"Optimizer states have more than {MAX_VALUES} values.")
        self.built[key] = built, size
        return built, size

    def _container(self, value: Any) -> tuple[Any, int]:
        if isinstance(value, Call):
            return self._call(value)
        if isinstance(value, dict):
            built = {k: self.build(v) for k, v in value.items()}
            return {k: v for k, (v, _) in built.items()}, 1 + sum(n for _, n in built.values())
        if isinstance(value, set | frozenset):
            return value, 1 + len(value)
        parts = [self.build(v) for v in value]
        items = [v for v, _ in parts]
        return (tuple(items) if type(value) is tuple else items), 1 + sum(n for _, n in parts)

    def _call(self, call: Call) -> tuple[Any, int]:
        if call.function == Name("collections", "OrderedDict") and not call.args:
            return self._container(call.pairs)
        make = _CALLS.get(call.function)
        if make is None and call.function.module.startswith("mxnet.numpy"):
            make = _pickled_array
        if make is not None:
            return make(call), 2 + len(call.pairs)
        function, args = call.function, call.args
        if function in _RECONSTRUCTORS and args and isinstance(args[0], Name):
            function, args = args[0], ()
        find_class(*function)  # raise before building its parts
        if args or call.pairs:
            raise FormatError(f"{function.name} in optimizer states has constructor arguments.")
        state, size = self.build(call.state)
        return make_object(*function, state), 1 + size


_RECONSTRUCTORS = (Name("copyreg", "_reconstructor"), Name("copy_reg", "_reconstructor"))


def _number_type(name: Name) -> type:
    kind = name.name.rstrip("_")
    if name.module == "numpy" and kind in _DTYPES:
        return _DTYPES[kind].type
    raise _refusal(*name)


def _pickled_array(call: Call) -> NDArray:
    state = call.state
    if call.args not in ((None,), ()) or not isinstance(state, dict) or "handle" not in state:
        raise FormatError("An array in optimizer states has no record.")
    return make_array(state["handle"])


def _pickled_set(call: Call) -> set | frozenset:
    values = call.args[0] if call.args else []
    good = isinstance(values, list | tuple) and len(call.args) < 2
    if not good or any(not is_key(v) for v in values):
        raise FormatError(
            "A set in optimizer states contains something other than numbers and strings."
        )
    return set(values) if call.function.name == "set" else frozenset(values)


def _pickled_complex(call: Call) -> complex:
    if len(call.args) != 2 or not all(isinstance(v, int | float) for v in call.args):
        raise FormatError("A complex number in optimizer states does not have two parts.")
    return complex(float(call.args[0]), float(call.args[1]))


def _pickled_dtype(call: Any) -> str:
    """Return the type code of a pickled NumPy type, with its byte order."""
    if not isinstance(call, Call) or call.function != Name("numpy", "dtype") or not call.args:
        raise FormatError("A NumPy value in optimizer states has no type.")
    code, order = call.args[0], "<"
    if isinstance(call.state, tuple) and len(call.state) > 1:
        order = call.state[1]
    if not isinstance(code, str) or order not in ("<", ">", "|", "="):
        raise FormatError("A NumPy type in optimizer states is not a number type.")
    return order + code


def _pickled_numpy(call: Call) -> np.ndarray:
    """Return the array from the state of NumPy's ``_reconstruct``."""
    state = call.state
    if not isinstance(state, tuple) or len(state) != 5:
        raise FormatError("A NumPy array in optimizer states has no content.")
    _, shape, dtype, fortran, data = state
    return _ordered(_pickled_dtype(dtype), shape, data, "F" if fortran else "C")


def _pickled_buffer(call: Call) -> np.ndarray:
    if len(call.args) != 4:
        raise FormatError("A NumPy array in optimizer states has no content.")
    data, dtype, shape, order = call.args
    return _ordered(_pickled_dtype(dtype), shape, data, order)


def _ordered(code: str, shape: Any, data: Any, order: Any) -> np.ndarray:
    if order != "F":
        return make_numpy(code, shape, data)
    if not isinstance(shape, Sequence):
        raise FormatError("A NumPy array in optimizer states has no valid shape.")
    return make_numpy(code, tuple(shape)[::-1], data).T


def _pickled_scalar(call: Call) -> Any:
    if len(call.args) != 2:
        raise FormatError("A NumPy number in optimizer states has no content.")
    return make_numpy(_pickled_dtype(call.args[0]), (), call.args[1])[()]


_CALLS: Mapping[tuple, Callable[[Call], Any]] = {
    ("mxnet.ndarray.ndarray", "NDArray"): _pickled_array,
    ("mxnet.ndarray.core", "NDArray"): _pickled_array,
    ("mxnet.ndarray.sparse", "RowSparseNDArray"): _pickled_array,
    ("mxnet.ndarray.sparse", "CSRNDArray"): _pickled_array,
    **{
        (module, name): make
        for module in ("builtins", "__builtin__")
        for name, make in {
            "set": _pickled_set,
            "frozenset": _pickled_set,
            "complex": _pickled_complex,
        }.items()
    },
    ("numpy", "dtype"): lambda call: _DTYPE_CODES.get(_pickled_dtype(call)[1:]),
    **{(module, "_reconstruct"): _pickled_numpy for module in _NUMPY},
    **{(module, "scalar"): _pickled_scalar for module in _NUMPY},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _pickled_buffer for core in ("core", "_core")},
}
