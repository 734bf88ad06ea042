"""`Initializer`: fills a parameter according to its name.

Subclasses override `_init_weight`, and optionally the other ``_init_`` hooks, whose names
downstream libraries use.
"""

from __future__ import annotations

import json
import logging
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from .. import registry
from ..error import InvalidValue
from ..ndarray import NDArray


class InitDesc(str):
    """The name of a parameter, with attributes.

    Parameters
    ----------
    name
        The parameter's name.
    attrs
        Its attributes; ``__init__`` names its own initializer.
    global_init
        The model's initializer, for initializers that delegate to it.

    >>> InitDesc("fc_weight", {"__init__": "zeros"}).attrs
    {'__init__': 'zeros'}
    """

    attrs: Mapping[str, Any]
    global_init: Initializer | None

    def __new__(
        cls,
        name: str,
        attrs: Mapping[str, Any] | None = None,
        global_init: Initializer | None = None,
    ) -> InitDesc:
        """Create the string, with the other arguments as attributes."""
        desc = super().__new__(cls, name)
        desc.attrs = attrs or {}
        desc.global_init = global_init
        return desc

    def __getnewargs__(self) -> tuple:
        return str(self), self.attrs, self.global_init


def _size_of(values: NDArray) -> str:
    """Return the root mean square, for verbose initializers."""
    flat = values.asnumpy().ravel()
    return str(np.linalg.norm(flat) / np.float32(np.sqrt(flat.size)))


class Initializer:
    """Base class of all initializers.

    Call it with an `InitDesc` and an array. A parameter with an ``__init__`` attribute is filled by
    that initializer. Otherwise names ending in ``weight`` are filled by this initializer, ``bias``,
    ``beta`` and ``min`` with 0, ``gamma`` and ``max`` with 1; other names raise an error.

    >>> fc = mx.nd.array([[1, 2]])
    >>> mx.init.One()(mx.init.InitDesc("fc_weight"), fc)
    >>> fc.asnumpy()
    array([[1., 1.]], dtype=float32)
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self._verbose = False
        self._print_func: Callable[[NDArray], Any] | None = None

    def set_verbosity(
        self, verbose: bool = False, print_func: Callable[[NDArray], Any] | None = None
    ) -> Initializer:
        """Log every initialized parameter, with ``print_func`` of its values."""
        self._verbose = verbose
        self._print_func = print_func or _size_of
        return self

    def _verbose_print(self, desc: str, init: str, arr: NDArray) -> None:
        if self._verbose and self._print_func:
            logging.getLogger().info("Initialized %s as %s: %s", desc, init, self._print_func(arr))

    def dumps(self) -> str:
        """Return JSON from which `create` restores the initializer.

        >>> mx.init.Normal(0.5).dumps()
        '["normal", {"sigma": 0.5}]'
        """
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self._kwargs == other._kwargs

    __hash__ = None  # type: ignore[assignment]  # initializers are mutable

    def __call__(self, desc: InitDesc | str, arr: NDArray) -> None:
        """Fill an array by its own initializer, or according to its name."""
        if not isinstance(desc, InitDesc):
            self._legacy_init(desc, arr)
            return
        if desc.global_init is None:
            desc.global_init = self
        own = desc.attrs.get("__init__", "")
        if own:
            create(own)._init_weight(desc, arr)
            used = own.dumps() if isinstance(own, Initializer) else own
        else:
            used = self._init_by_name(desc, arr, _SUFFIXES)
        self._verbose_print(desc, used, arr)

    def _init_by_name(self, name: str, arr: NDArray, suffixes: Sequence[tuple[str, str]]) -> str:
        """Call the hook of the first matching suffix; return the suffix."""
        for suffix, hook in suffixes:
            if name.endswith(suffix):
                getattr(self, hook)(name, arr)
                return suffix
        self._init_default(name, arr)
        return "default"

    def _legacy_init(self, name: str, arr: NDArray) -> None:
        """Fill an array with a plain string as name; supports a few more suffixes."""
        if not isinstance(name, str):
            raise TypeError(f"name must be string, got {type(name).__name__}")
        if not isinstance(arr, NDArray):
            raise TypeError(f"arr must be NDArray, got {type(arr).__name__}")
        warnings.warn(
            "Calling initializer with init(str, NDArray) has been deprecated. "
            "Please use init(mx.init.InitDesc(...), NDArray) instead.",
            DeprecationWarning,
            stacklevel=3,
        )
        if name.startswith("upsampling"):
            self._init_bilinear(name, arr)
        elif name.startswith("stn_loc") and name.endswith("weight"):
            self._init_zero(name, arr)
        elif name.startswith("stn_loc") and name.endswith("bias"):
            self._init_loc_bias(name, arr)
        else:
            self._init_by_name(name, arr, _LEGACY_SUFFIXES)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        raise NotImplementedError(f"{type(self).__name__} must override _init_weight(name, arr)")

    def _init_bias(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_gamma(self, name: str, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_beta(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_zero(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_one(self, name: str, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_quantized_bias(self, name: str, arr: NDArray) -> None:
        arr[:] = 0

    def _init_quantized_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = nd.random.randint(-127, 127, arr.shape, ctx=arr.ctx)

    def _init_bilinear(self, name: str, arr: NDArray) -> None:
        arr[:] = bilinear_kernel(arr.shape)

    def _init_loc_bias(self, name: str, arr: NDArray) -> None:
        if arr.shape != (6,):
            raise ValueError(f"{name} is an affine transformation of shape (6,), got {arr.shape}")
        arr[:] = np.array([1.0, 0, 0, 0, 1.0, 0])

    def _init_default(self, name: str, arr: NDArray) -> None:
        raise ValueError(
            f"Unknown initialization pattern for {name}. Default initialization is limited to "
            'names that end in "weight", "bias", "gamma" (1.0) and "beta" (0.0). Please use '
            "mx.sym.Variable(init=mx.init.*) to set an initializer for it."
        )


_SUFFIXES = (
    ("weight", "_init_weight"),
    ("bias", "_init_bias"),
    ("gamma", "_init_gamma"),
    ("beta", "_init_beta"),
    ("min", "_init_zero"),
    ("max", "_init_one"),
    ("weight_quantize", "_init_quantized_weight"),
    ("bias_quantize", "_init_quantized_bias"),
)
_LEGACY_SUFFIXES = (
    *_SUFFIXES[:6],
    ("moving_mean", "_init_zero"),
    ("moving_var", "_init_one"),
    ("moving_inv_var", "_init_zero"),
    ("moving_avg", "_init_zero"),
)


def bilinear_kernel(shape: tuple[int, ...]) -> np.ndarray:
    """Return a (…, height, width) kernel for bilinear interpolation.

    >>> bilinear_kernel((1, 1, 1, 4)).round(4).tolist()
    [[[[0.0625, 0.1875, 0.1875, 0.0625]]]]
    """
    if len(shape) < 4:
        raise ValueError(f"A bilinear kernel has 4 dimensions, got shape {tuple(shape)}")
    height, width = shape[2], shape[3]
    half = np.ceil(width / 2.0)
    center = (2 * half - 1 - half % 2) / (2.0 * half)
    along_y = 1 - np.abs(np.arange(height) / half - center)
    along_x = 1 - np.abs(np.arange(width) / half - center)
    return np.broadcast_to(np.outer(along_y, along_x), shape).astype(np.float32)


register = registry.get_register_func(Initializer, "initializer")
alias = registry.get_alias_func(Initializer, "initializer")
create = registry.get_create_func(Initializer, "initializer")
create.__doc__ = (
    (create.__doc__ or "")
    + """
    >>> mx.init.create("normal", sigma=0.5).sigma
    0.5
    """
)


class Load:
    """Initialize from a file or a dict of arrays, or by a default for missing names.

    Parameters
    ----------
    param
        File of `mx.nd.save` or a checkpoint, or a dict; prefixes "arg:" and "aux:" are removed.
    default_init
        Initializer of missing parameters; by default they raise an error.
    verbose
        Whether to log the source of every parameter.

    >>> w = mx.nd.zeros(2)
    >>> mx.init.Load({"arg:fc_weight": mx.nd.ones(2)})("fc_weight", w)
    >>> w.asnumpy()
    array([1., 1.], dtype=float32)
    """

    def __init__(
        self,
        param: str | Mapping[str, NDArray],
        default_init: Initializer | str | None = None,
        verbose: bool = False,
    ) -> None:
        arrays = nd.load(param) if isinstance(param, str) else param
        if not isinstance(arrays, Mapping):
            raise TypeError(f"param must have named arrays, got {type(arrays).__name__}")
        self.param = {
            name[4:] if name.startswith(("arg:", "aux:")) else name: array
            for name, array in arrays.items()
        }
        self.default_init = create(default_init) if isinstance(default_init, str) else default_init
        self.verbose = verbose

    def __call__(self, name: str, arr: NDArray) -> None:
        """Fill an array according to its name."""
        if name in self.param:
            loaded = self.param[name]
            if loaded.shape != arr.shape:
                raise InvalidValue(
                    f"Parameter {name} cannot be initialized from loading. Shape mismatch, "
                    f"target {arr.shape} vs loaded {loaded.shape}"
                )
            arr[:] = loaded
            self._tell(name, "loading")
            return
        if self.default_init is None:
            raise InvalidValue(
                f"Cannot Initialize {name}. Not found in loaded param and no default Initializer "
                "is provided."
            )
        self.default_init(name, arr)
        self._tell(name, "default")

    def _tell(self, name: str, source: str) -> None:
        if self.verbose:
            logging.getLogger().info("Initialized %s by %s", name, source)


class Mixed:
    """Select the initializer by the first pattern that matches the beginning of the name.

    Parameters
    ----------
    patterns
        Regular expressions.
    initializers
        The initializer of each pattern.

    >>> init = mx.init.Mixed(["bias", ".*"], [mx.init.Zero(), mx.init.One()])
    >>> w = mx.nd.array([5])
    >>> init(mx.init.InitDesc("fc_weight"), w)
    >>> w.asnumpy()
    array([1.], dtype=float32)
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Initializer]) -> None:
        if len(patterns) != len(initializers):
            raise InvalidValue(
                f"Mixed needs one initializer per pattern, got {len(patterns)} patterns and "
                f"{len(initializers)} initializers"
            )
        self.map = [
            (re.compile(pattern), init)
            for pattern, init in zip(patterns, initializers, strict=True)
        ]

    def __call__(self, name: str, arr: NDArray) -> None:
        """Fill an array according to its name."""
        for pattern, init in self.map:
            if pattern.match(name):
                init(name, arr)
                return
        raise ValueError(
            f"Parameter name {name} did not match any pattern. Consider adding a "
            '".*" pattern at the end with a default Initializer.'
        )
