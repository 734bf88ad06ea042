"""`ParameterDict`: parameters by name, with methods that apply to all of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ... import initializer, ndarray
from ...context import Context
from ...error import did_you_mean
from ...ndarray import NDArray
from ..utils import _brief_print_list, _indent
from .parameter import Constant, Parameter, ParameterError, merged

_NAMING = "Source and target networks must have the same prefix."


class ParameterDict:
    """Parameters by name, under a common prefix.

    Parameters
    ----------
    prefix : str
        Prefix of all names.
    shared : ParameterDict
        Dictionary whose parameters this one may share.

    >>> params = mx.gluon.ParameterDict("net_")
    >>> params.get("w", shape=(2,))
    Parameter net_w (shape=(2,), dtype=<class 'numpy.float32'>)
    """

    def __init__(self, prefix: str = "", shared: ParameterDict | None = None) -> None:
        self._prefix = prefix
        self._params: OrderedDict[str, Parameter] = OrderedDict()
        self._shared = shared

    def __repr__(self) -> str:
        name = self._prefix + " " if self._prefix else ""
        content = "\n".join(_indent(f"  {v}", 2) for v in self.values())
        return f"{name}(\n{content}\n)"

    def __getitem__(self, key: str) -> Parameter:
        return self._params[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __contains__(self, key: object) -> bool:
        return key in self._params

    def items(self) -> Any:
        """Return names with parameters."""
        return self._params.items()

    def keys(self) -> Any:
        """Return the names."""
        return self._params.keys()

    def values(self) -> Any:
        """Return the parameters."""
        return self._params.values()

    @property
    def prefix(self) -> str:
        """The prefix that `get` adds to names."""
        return self._prefix

    # -- making and sharing -------------------------------------------------------------------

    def _known(self, name: str) -> Parameter | None:
        if name not in self._params and self._shared is not None and name in self._shared._params:
            self._params[name] = self._shared._params[name]
        return self._params.get(name)

    _get_impl = _known

    def get(self, name: str, **kwargs: Any) -> Parameter:
        """Return the parameter ``prefix + name``; create it with the keywords if it does not exist.

        An existing parameter must agree with the keywords; its unknown sizes are filled in.

        Parameters
        ----------
        name
            The name.
        """
        name = self._prefix + name
        param = self._known(name)
        if param is None:
            param = self._params[name] = Parameter(name, **kwargs)
            return param
        for key, value in kwargs.items():
            stored = getattr(param, key, None)
            if stored is None:
                setattr(param, key, value)
            elif key == "shape" and value is not None:
                value = (value,) if isinstance(value, int) else tuple(value)
                assert param._shape is not None  # `stored` derives from it
                shape = merged(param._shape, value)
                if shape is None:
                    raise _mismatch(name, key, value, param._shape)
                param._shape = shape
            elif key == "dtype" and np.dtype(value) == np.dtype(stored):
                continue
            elif value is not None and value != stored:
                raise _mismatch(name, key, value, stored)
        return param

    def get_constant(self, name: str, value: Any = None) -> Constant:
        """Return the constant ``prefix + name``; create it with the value if it does not exist.

        Parameters
        ----------
        name
            The name.
        value
            The value.
        """
        name = self._prefix + name
        param = self._known(name)
        if param is None:
            if value is None:
                raise KeyError(
                    f"No constant named '{name}'. Please specify value if you want to create a "
                    "new constant."
                )
            param = self._params[name] = Constant(name, value)
        elif not isinstance(param, Constant):
            raise ParameterError(f"Parameter '{name}' already exists but it is not a constant.")
        elif value is not None:
            value = value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
            stored = param.value.asnumpy()
            if value.shape != stored.shape or not (value == stored).all():
                raise ParameterError(
                    f"Constant '{name}' already exists but its value doesn't match new value: "
                    f"{stored} vs {value}."
                )
        return param

    def update(self, other: ParameterDict | Mapping[str, Parameter]) -> None:
        """Add the parameters of another dictionary; equal names must be the same objects.

        Parameters
        ----------
        other
            The other dictionary.
        """
        for name, param in other.items():
            mine = self._params.setdefault(name, param)
            if mine is not param:
                raise ParameterError(
                    "Cannot update self with other because they have different Parameters with "
                    f"the same name '{name}'. Give the blocks different prefixes, or share the "
                    "parameters with params=."
                )

    # -- all at once --------------------------------------------------------------------------

    def initialize(
        self,
        init: Any = None,
        ctx: Context | Sequence[Context] | None = None,
        verbose: bool = False,
        force_reinit: bool = False,
    ) -> None:
        """Initialize all parameters; a parameter's own initializer takes precedence.

        Parameters
        ----------
        init
            Initializer of parameters that have none of their own.
        ctx
            Device, or list of devices.
        verbose
            Whether to log every parameter.
        force_reinit
            Whether to initialize again parameters that have values.
        """
        init = initializer.Uniform() if init is None else init
        if verbose:
            init.set_verbosity(verbose=verbose)
        for param in self.values():
            param.initialize(None, ctx, init, force_reinit=force_reinit)

    def zero_grad(self) -> None:
        """Set all gradients to zero."""
        for param in self.values():
            param.zero_grad()

    def reset_ctx(self, ctx: Context | Sequence[Context]) -> None:
        """Move all parameters to other contexts.

        Parameters
        ----------
        ctx
            Device, or list of devices.
        """
        for param in self.values():
            param.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """Return the contexts of all parameters."""
        contexts: dict[Context, None] = {}
        for param in self.values():
            contexts.update(dict.fromkeys(param.list_ctx()))
        return list(contexts)

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute of all parameters, such as grad_req or lr_mult.

        Parameters
        ----------
        name
            The name.
        value
            The value.

        >>> params = mx.gluon.ParameterDict()
        >>> w = params.get("w", shape=(1,))
        >>> params.setattr("grad_req", "null")
        >>> w.grad_req
        'null'
        """
        for param in self.values():
            setattr(param, name, value)

    # -- files --------------------------------------------------------------------------------

    def _rename(self, before: str, after: str) -> None:
        renamed = OrderedDict()
        for name, param in self._params.items():
            if not name.startswith(before):  # another block's
                renamed[name] = param
                continue
            param.name = after + name[len(before) :]
            param._var = None
            renamed[param.name] = param
        self._params = renamed

    def save(self, filename: str, strip_prefix: str = "") -> None:
        """Save all parameters under their names.

        Parameters
        ----------
        filename
            Path of the file.
        strip_prefix
            Prefix to remove from the names.
        """
        arrays = {}
        for param in self.values():
            if not param.name.startswith(strip_prefix):
                raise ValueError(
                    f"Prefix '{strip_prefix}' is to be stripped before saving, but Parameter's "
                    f"name '{param.name}' does not start with it. The block may share parameters "
                    "of another one, or its children were made outside name_scope()."
                )
            arrays[param.name[len(strip_prefix) :]] = param._reduce()
        ndarray.save(filename, arrays)

    def load(
        self,
        filename: str,
        ctx: Context | Sequence[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Load parameters from a file of `save`, an exported file or a checkpoint.

        All mismatches are listed in one error; then nothing is changed.

        Parameters
        ----------
        filename
            Path of the file.
        ctx
            Device of the loaded values; by default that of the parameters, or the CPU.
        allow_missing : bool
            Keep parameters that the file does not have unchanged.
        ignore_extra : bool
            Ignore arrays that are not parameters of this block.
        restore_prefix : str
            Prefix to add to the file's names.
        cast_dtype : bool
            Convert the values if the data types differ.
        dtype_source : {'current', 'saved'}
            Which data type to use then: the parameter's or the file's.
        """
        loaded = named_arrays(filename)
        self.load_dict(
            loaded,
            ctx,
            allow_missing,
            ignore_extra,
            restore_prefix,
            filename,
            cast_dtype,
            dtype_source,
        )

    def load_dict(
        self,
        param_dict: Mapping[str, NDArray],
        ctx: Context | Sequence[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        filename: str | None = None,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Load parameters from a dictionary of arrays; see `load`.

        Parameters
        ----------
        param_dict
            Arrays by name.
        ctx
            Device, or list of devices.
        allow_missing
            Whether to keep parameters that the file does not have unchanged instead of raising an
            error.
        ignore_extra
            Whether arrays that are not parameters are ignored; otherwise they raise an error.
        restore_prefix
            Prefix to add to the names.
        filename
            Name of the source in error messages.
        cast_dtype
            Whether to convert the values if the data types differ.
        dtype_source
            Which data type to use then: ``'current'`` or ``'saved'``.
        """
        source = "the dictionary" if filename is None else f"file: {filename}"
        for name in self.keys():
            if not name.startswith(restore_prefix):
                raise ParameterError(
                    f"restore_prefix is '{restore_prefix}' but Parameters name '{name}' does not "
                    f"start with '{restore_prefix}'."
                )
        arrays = {restore_prefix + without_kind(k): v for k, v in param_dict.items()}
        problems = []
        if not allow_missing:
            contents = _brief_print_list(arrays)
            problems += [
                f"Parameter '{name}' is missing in {source}, which contains parameters: "
                f"{contents}. {did_you_mean(name, arrays)} {_NAMING} "
                "Set allow_missing=True to leave it as it is."
                for name in self.keys()
                if name not in arrays
            ]
        if not ignore_extra:
            contents = _brief_print_list(self.keys())
            problems += [
                f"Parameter '{name}' loaded from {source} is not present in ParameterDict, "
                f"choices are: {contents}. Set ignore_extra to True to ignore. {_NAMING}"
                for name in arrays
                if name not in self._params
            ]
        pairs = [(self._params[n], array) for n, array in arrays.items() if n in self._params]
        load_all(pairs, problems, source, ctx, cast_dtype, dtype_source)


def load_all(
    pairs: Sequence[tuple[Parameter, NDArray]],
    problems: Sequence[str],
    source: str,
    ctx: Any,
    cast_dtype: bool,
    dtype_source: str,
) -> None:
    """Set the arrays of parameters, or raise if there are problems or mismatches.

    Parameters
    ----------
    pairs
        Parameters and their new arrays.
    problems
        Problems found in the names.
    source
        Name of the source in error messages.
    ctx, cast_dtype, dtype_source
        See `Block.load_parameters`.
    """
    problems = list(problems)
    for param, array in pairs:
        try:
            param._check_loading(array, ctx, cast_dtype, dtype_source)
        except ParameterError as error:
            problems.append(str(error))
    if len(problems) == 1:
        raise ParameterError(problems[0])
    if problems:
        listed = "".join(f"\n  {number}. {text}" for number, text in enumerate(problems, 1))
        raise ParameterError(
            f"{len(problems)} parameters do not fit {source}, and none was changed:{listed}"
        )
    for param, array in pairs:
        param._load_init(array, ctx, cast_dtype, dtype_source)


def named_arrays(filename: str) -> dict[str, NDArray]:
    """Read a parameter file; raise for a list without names."""
    loaded = ndarray.load(filename)
    if not isinstance(loaded, dict):
        if not loaded:
            return {}
        raise ParameterError(
            f"{filename} holds {len(loaded)} arrays without names, which cannot be assigned to "
            "parameters. Save them as a dictionary."
        )
    return loaded


def without_kind(name: str) -> str:
    """Return a name of a checkpoint without its ``arg:`` or ``aux:``."""
    return name[4:] if name.startswith(("arg:", "aux:")) else name


def _mismatch(name: str, key: str, desired: Any, stored: Any) -> ParameterError:
    return ParameterError(
        f"Cannot retrieve Parameter '{name}' because desired attribute does not match with stored "
        f"for attribute '{key}': desired '{desired}' vs stored '{stored}'."
    )
