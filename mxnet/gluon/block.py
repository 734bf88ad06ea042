"""`Block`: a part of a network, with parameters and child blocks, run eagerly.

`HybridBlock`, which can also be traced into a graph, lives in `hybrid`; `SymbolBlock`, made from
a graph, in `symbol_block`. All three are public here.
"""

from __future__ import annotations

import json
import re
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Any

from .. import ndarray
from ..context import Context
from ..error import FormatError, did_you_mean
from ..formats.atomic import one_commit, replacing
from ..formats.files import existing_file, local_path
from ..name import NameManager, Prefix
from ..ndarray import NDArray
from ..util import is_np_array
from ..visualization.notebook import block_html
from .error_report import SetByInit, report_failure, uninitialized, unknown_option
from .parameter import Parameter, ParameterDict, ParameterError
from .parameter.dictionary import load_all, named_arrays, without_kind
from .summary import summarize
from .utils import HookHandle, _brief_print_list, _check_all_np_ndarrays, _indent

__all__ = ["Block", "HybridBlock", "SymbolBlock"]


class _BlockScope:
    _current = threading.local()

    def __init__(self, block: Block | None) -> None:
        self._block: Any = block
        self._counter: dict[str, int] = {}
        self._outer: list[tuple[_BlockScope | None, Prefix | None]] = []

    @staticmethod
    def create(
        prefix: str | None, params: ParameterDict | None, hint: str
    ) -> tuple[str, ParameterDict]:
        scope = getattr(_BlockScope._current, "value", None)
        if scope is None:
            if prefix is None:
                name: str = NameManager.current.get(None, hint)
                prefix = name + "_"
            inside = outside = prefix
            shared = None
        else:
            if prefix is None:
                prefix = f"{hint}{scope._next(hint)}_"
            parent = scope._block.params
            inside, outside = parent.prefix + prefix, scope._block.prefix + prefix
            shared = parent._shared
        if params is not None:
            return outside, ParameterDict(params.prefix, params)
        return outside, ParameterDict(inside, shared)

    def _next(self, hint: str) -> int:
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return number

    def __enter__(self) -> _BlockScope:
        names = None
        previous = getattr(_BlockScope._current, "value", None)
        if not self._block._empty_prefix:  # without a prefix, children get no prefix either
            names = Prefix(self._block.prefix)
            names.__enter__()
            _BlockScope._current.value = self
        self._outer.append((previous, names))
        return self

    def __exit__(self, *exc: object) -> None:
        previous, names = self._outer.pop()
        if names is not None:
            names.__exit__(*exc)
            _BlockScope._current.value = previous

    def __getstate__(self) -> dict[str, Any]:
        return {"_block": self._block, "_counter": self._counter, "_outer": []}


class Block:
    """Base of all layers and networks.

    Child blocks that are assigned to attributes are registered; define `forward`.

    Parameters
    ----------
    prefix : str
        Prefix of the parameter names; by default the class name and a number.
    params : ParameterDict
        Parameters of another block, to share them.

    >>> class Net(mx.gluon.Block):
    ...     def __init__(self, **kwargs):
    ...         super().__init__(**kwargs)
    ...         with self.name_scope():
    ...             self.dense = mx.gluon.nn.Dense(3)
    ...     def forward(self, x):
    ...         return mx.nd.relu(self.dense(x))
    >>> net = Net(prefix="net_")
    >>> net.initialize()
    >>> net(mx.nd.ones((2, 4))).shape, list(net.collect_params())
    ((2, 3), ['net_dense0_weight', 'net_dense0_bias'])
    """

    _children = SetByInit()  # pyright: ignore[reportAssignmentType]

    def __init__(
        self, prefix: str | None = None, params: ParameterDict | None = None, **unknown: Any
    ) -> None:
        if unknown:
            raise unknown_option(type(self), next(iter(unknown)))
        self._empty_prefix = prefix == ""
        self._prefix, self._params = _BlockScope.create(prefix, params, self._alias())
        self._name = self._prefix.removesuffix("_")
        self._scope = _BlockScope(self)
        self._children: OrderedDict[str, Block] = OrderedDict()
        self._reg_params: dict[str, Parameter] = {}
        self._forward_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._forward_pre_hooks: OrderedDict[int, Callable] = OrderedDict()

    def __repr__(self) -> str:
        parts = [
            f"  ({key}): {_indent(repr(block), 2)}"
            for key, block in self.__dict__.items()
            if isinstance(block, Block)
        ]
        return f"{type(self).__name__}(\n" + "\n".join(parts) + "\n)"

    def _repr_html_(self) -> str:
        return block_html(self)

    def __setattr__(self, name: str, value: Any) -> None:
        existing = self.__dict__.get(name)
        is_part = existing is not None and isinstance(existing, (Parameter, Block))
        if is_part and not isinstance(value, type(existing)):
            raise TypeError(
                f"Changing attribute type for {name} from {type(existing)} to {type(value)} is not "
                "allowed."
            )
        if isinstance(value, Block):
            self.register_child(value, name)
        elif isinstance(value, Parameter):
            if "_reg_params" not in self.__dict__:
                raise uninitialized(self)
            registered = self._reg_params.get(name)
            if registered is not None and registered is not value:
                raise ParameterError(
                    f"Overriding Parameter attribute {name} is not allowed. If you want to share "
                    "parameters between blocks, please set 'params' at Block construction instead."
                )
            self._reg_params[name] = value
        super().__setattr__(name, value)

    def _alias(self) -> str:
        return type(self).__name__.lower()

    # -- names and parts ----------------------------------------------------------------------

    @property
    def prefix(self) -> str:
        """The prefix of the names of this block's parameters."""
        return self._prefix

    @property
    def name(self) -> str:
        """The prefix without its last underscore."""
        return self._name

    @property
    def params(self) -> ParameterDict:
        """The block's own parameters, without those of its children."""
        return self._params

    def name_scope(self) -> _BlockScope:
        """Return a scope in which child blocks get names under this block's prefix."""
        return self._scope

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make a block a child; assigning it to an attribute does the same.

        Parameters
        ----------
        block
            The block.
        name
            Name of the child; by default its number.
        """
        self._children[str(len(self._children)) if name is None else name] = block

    def apply(self, fn: Callable[[Block], Any]) -> Block:
        """Call a function on every descendant, children first, and then on this block.

        Parameters
        ----------
        fn
            The function.
        """
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    def _check_containers(self) -> None:
        """Warn of blocks in plain lists and dicts, which are not registered as children."""
        registered = set(map(id, self._children.values()))
        for name, value in self.__dict__.items():
            if isinstance(value, _CONTAINERS) and value and not name.startswith("__"):
                if name in ("_children", "_reg_params", "_forward_hooks", "_forward_pre_hooks"):
                    continue
                if _has_others(value, registered):
                    warnings.warn(
                        f'"{type(self).__name__}.{name}" is an unregistered container with Blocks. '
                        "Note that Blocks inside the list, tuple or dict will not be registered "
                        "automatically. Make sure to register them using register_child() or "
                        "switching to nn.Sequential/nn.HybridSequential instead.",
                        stacklevel=3,
                    )

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """Return the parameters of this block and all its children.

        Parameters
        ----------
        select : str
            A regular expression that the beginning of names must match, such as
            ``".*weight|.*bias"``.
        """
        self._check_containers()
        params = ParameterDict(self._params.prefix)
        if select is None:
            params.update(self.params)
        else:
            pattern = re.compile(select)
            params.update({n: p for n, p in self.params.items() if pattern.match(n)})
        for child in self._children.values():
            params.update(child.collect_params(select))
        return params

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Return all parameters by their path in the tree of blocks: ``features.0.weight``."""
        if prefix:
            prefix += "."
        params = {prefix + key: param for key, param in self._reg_params.items()}
        for name, child in self._children.items():
            params.update(child._collect_params_with_prefix(prefix + name))
        return params

    # -- parameters ---------------------------------------------------------------------------

    def initialize(
        self,
        init: Any = None,
        ctx: Context | Sequence[Context] | None = None,
        verbose: bool = False,
        force_reinit: bool = False,
    ) -> None:
        """Initialize all parameters, by default with ``Uniform(0.07)``.

        Parameters
        ----------
        init : Initializer
            Initializer of parameters that have none of their own.
        ctx : Context or list of them
            Device, or list of devices.
        verbose : bool
            Log every parameter.
        force_reinit : bool
            Initialize again parameters that have values.
        """
        self.collect_params().initialize(init, ctx, verbose, force_reinit)

    def cast(self, dtype: Any) -> None:
        """Convert the parameters of this block and its children to another type.

        Parameters
        ----------
        dtype
            The data type.
        """
        for child in self._children.values():
            child.cast(dtype)
        for param in self.params.values():
            param.cast(dtype)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Run all `HybridBlock` children as graphs; a plain block has no graph itself.

        Parameters
        ----------
        active
            Whether to run as a graph; with False, eagerly again.
        """
        for child in self._children.values():
            child.hybridize(active, **kwargs)

    # -- files --------------------------------------------------------------------------------

    def save_parameters(self, filename: str, deduplicate: bool = False) -> None:
        """Save the parameters by their path in the tree of blocks.

        Parameters
        ----------
        filename
            Path of the file.
        deduplicate : bool
            Write shared parameters once.
        """
        params = self._collect_params_with_prefix()
        if deduplicate:
            last_name = {param: name for name, param in params.items()}
            params = {name: param for param, name in last_name.items()}
        ndarray.save(filename, {name: param._reduce() for name, param in params.items()})

    def save_params(self, filename: str) -> None:
        """Save in the old format: full names without the block's prefix.

        Parameters
        ----------
        filename
            Path of the file.
        """
        warnings.warn(
            "save_params is deprecated. Please use save_parameters; to load the model without its "
            "class, use export.",
            stacklevel=2,
        )
        self.collect_params().save(filename, strip_prefix=self.prefix)

    def load_parameters(
        self,
        filename: str,
        ctx: Context | Sequence[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Load parameters from a file of `save_parameters`.

        Files of `export` and `ParameterDict.save`, which use full parameter names, work too. All
        mismatches are listed in one error, and then nothing is changed.

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
        cast_dtype : bool
            Convert the values if the data types differ.
        dtype_source : {'current', 'saved'}
            Which data type to use then: the parameter's or the file's.
        """
        loaded = named_arrays(filename)
        params = self._collect_params_with_prefix()
        if not loaded and not params:
            return
        if not any("." in name for name in loaded) and self._has_names(loaded, params):
            self._load_by_name(
                loaded, filename, ctx, allow_missing, ignore_extra, cast_dtype, dtype_source
            )
            return
        problems = self._compare_names(loaded, params, filename, allow_missing, ignore_extra)
        pairs = [(params[name], array) for name, array in loaded.items() if name in params]
        load_all(pairs, problems, f"file '{filename}'", ctx, cast_dtype, dtype_source)

    def _has_names(self, loaded: dict[str, NDArray], params: dict[str, Parameter]) -> bool:
        """Return whether a file has parameter names rather than attribute paths."""
        attributes = len(params.keys() & loaded.keys())
        own = self.collect_params()
        names = [without_kind(name) for name in loaded]
        named = sum(name in own or self.prefix + name in own for name in names)
        return named > attributes or not attributes

    def _load_by_name(self, loaded: dict[str, NDArray], filename: str, *rest: Any) -> None:
        """Load a file of parameter names, with the block's prefix or without it."""
        ctx, allow_missing, ignore_extra, cast_dtype, dtype_source = rest
        mine = self.collect_params()
        full = any(without_kind(name) in mine for name in loaded)
        if not full and not any(self.prefix + without_kind(name) in mine for name in loaded):
            params = self._collect_params_with_prefix()
            names = (loaded, params, filename, allow_missing, ignore_extra)
            load_all([], self._compare_names(*names), f"file '{filename}'", ctx, False, "current")
            return
        mine.load_dict(
            loaded,
            ctx,
            allow_missing,
            ignore_extra,
            "" if full else self.prefix,
            filename,
            cast_dtype,
            dtype_source,
        )

    def _compare_names(
        self,
        loaded: dict[str, NDArray],
        params: dict[str, Parameter],
        filename: str,
        allow_missing: bool,
        ignore_extra: bool,
    ) -> list[str]:
        """Return a message for each name that the file or the block does not have."""
        problems = []
        if not allow_missing:
            there = {id(params[name]) for name in loaded if name in params}
            contents = _brief_print_list(loaded)
            problems += [
                f"Parameter '{name}' ({param.name}) is missing in file '{filename}', which "
                f"contains parameters: {contents}. {did_you_mean(name, loaded)} "
                "Set allow_missing=True to ignore missing parameters."
                for name, param in params.items()
                if id(param) not in there  # one name of a shared parameter suffices
            ]
        if not ignore_extra:
            contents = _brief_print_list(params)
            problems += [
                f"Parameter '{name}' loaded from file '{filename}' is not present in "
                f"{type(self).__name__} '{self.name}', which contains parameters "
                f"{contents}. Set ignore_extra=True to ignore."
                for name in loaded
                if name not in params
            ]
        return problems

    def load_params(
        self,
        filename: str,
        ctx: Context | Sequence[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
    ) -> None:
        """Load parameters; the old name of `load_parameters`.

        Parameters
        ----------
        filename
            Path of the file.
        ctx
            Device, or list of devices.
        allow_missing
            Whether to keep parameters that the file does not have unchanged instead of raising an
            error.
        ignore_extra
            Whether arrays that are not parameters are ignored; otherwise they raise an error.
        """
        warnings.warn("load_params is deprecated. Please use load_parameters.", stacklevel=2)
        self.load_parameters(filename, ctx, allow_missing, ignore_extra)

    def save(self, prefix: str) -> None:
        """Save parameters and traced graphs to ``prefix-model.json`` and ``prefix-model.params``.

        `load` brings them back into a block of the same structure.

        Parameters
        ----------
        prefix
            Prefix of the file names.
        """
        described = json.dumps(self._describe({})).encode("utf-8")
        with one_commit():
            with replacing(local_path(f"{prefix}-model.json")) as file:
                file.write(described)
            self.save_parameters(f"{prefix}-model.params")

    def load(self, prefix: str) -> None:
        """Load files of `save` into this block, which must have the same structure.

        The block, its children and parameters are renamed to the saved names.

        Parameters
        ----------
        prefix
            Prefix of the file names.
        """
        path = existing_file(f"{prefix}-model.json")
        try:
            described = next(iter(json.loads(path.read_bytes()).values()))
        except (ValueError, AttributeError, StopIteration, RecursionError) as error:
            raise FormatError(f"{str(path)!r} does not describe a block: {error}.") from error
        try:
            self._restore(described)
        except (KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"{str(path)!r} does not describe a block: {error!r}.") from error
        self.load_parameters(f"{prefix}-model.params")

    def _describe(self, counts: dict[str, int]) -> dict[str, Any]:
        hint = type(self).__name__.lower()
        number = counts.setdefault("", 0)
        counts[""] += 1
        described: dict[str, Any] = {"orig_name": self.name, **self._traced()}
        described["children"] = {child.name: key for key, child in self._children.items()}
        for child in self._children.values():
            described.update(child._describe(counts))
        return {f"{hint}{number}": described}

    def _traced(self) -> dict[str, Any]:
        return {"hybridized": False}

    def _restore(self, described: dict[str, Any]) -> None:
        parts = [v for v in described.values() if isinstance(v, dict) and "orig_name" in v]
        if len(parts) != len(self._children):
            raise ParameterError(
                f"The file has {len(parts)} children of '{described.get('orig_name')}', but "
                f"'{self.name}' has {len(self._children)}."
            )
        for part, child in zip(parts, self._children.values(), strict=True):
            child._restore(part)
        self._rename(described["orig_name"], [part["orig_name"] for part in parts], described)

    def _rename(self, name: str, children: list[str], described: dict[str, Any]) -> None:
        """Restore saved names of the block, its parameters and children, but not the prefix."""
        keys = described.get("children", {})
        if len(keys) == len(children):
            pairs = zip(children, list(self._children.values()), strict=True)
            self._children = OrderedDict((keys[child], block) for child, block in pairs)
        before, self._name = self._name, name
        self._params._rename(before, name)

    # -- hooks --------------------------------------------------------------------------------

    def register_forward_hook(self, hook: Callable[[Block, tuple, Any], None]) -> HookHandle:
        """Call ``hook(block, inputs, outputs)`` after every forward; returns a handle.

        Parameters
        ----------
        hook
            The function.
        """
        handle = HookHandle()
        handle.attach(self._forward_hooks, hook)
        return handle

    def register_forward_pre_hook(self, hook: Callable[[Block, tuple], None]) -> HookHandle:
        """Call ``hook(block, inputs)`` before every forward; returns a handle.

        Parameters
        ----------
        hook
            The function.
        """
        handle = HookHandle()
        handle.attach(self._forward_pre_hooks, hook)
        return handle

    def register_op_hook(
        self, callback: Callable[[bytes, bytes, NDArray], None], monitor_all: bool = False
    ) -> None:
        """Call ``callback(name, operator, array)`` for operator results in hybridized children.

        Parameters
        ----------
        callback
            The function; both names are bytes, as in MXNet.
        monitor_all : bool
            Whether to call it for the operators' inputs too.
        """
        for child in self._children.values():
            child.register_op_hook(callback, monitor_all)

    # -- running ------------------------------------------------------------------------------

    def __call__(self, *args: Any) -> Any:
        """Run `forward`, with the hooks around it."""
        try:
            if self._forward_pre_hooks:
                for hook in list(self._forward_pre_hooks.values()):
                    hook(self, args)
            out = self.forward(*args)
        except Exception as error:
            report_failure(self, error)
            raise
        if self._forward_hooks:
            for hook in list(self._forward_hooks.values()):
                hook(self, args, out)
        if is_np_array():
            _check_all_np_ndarrays(out)
        return out

    def forward(self, *args: Any) -> Any:
        """Compute the outputs; subclasses define this.

        Parameters
        ----------
        args
            The inputs.
        """
        raise NotImplementedError(f"{type(self).__name__} must define forward(self, *args)")

    def as_torch(self) -> Any:
        """Return this block as a `torch.nn.Module` that shares its parameters' memory.

        The module takes and returns tensors and works with torch's optimizers, `torch.compile`,
        DistributedDataParallel and state dicts. Its parameters share the memory of the block's and
        are named by their path in the tree of blocks; moving averages are buffers. ``train()`` and
        ``eval()`` set MXNet's modes. Gradients are stored in the `grad` of the module's parameters,
        not in `Parameter.grad()`.

        Hooks of child modules are not called: the block calls its child blocks.

        >>> import torch
        >>> net = mx.gluon.nn.Dense(3, in_units=2)
        >>> net.initialize()
        >>> module = net.as_torch()
        >>> module(torch.ones(4, 2)).shape, list(module.state_dict())
        (torch.Size([4, 3]), ['weight', 'bias'])
        """
        from .torch_module import GluonModule  # lazy import: it imports this module

        return GluonModule(self)

    def summary(self, *inputs: NDArray) -> None:
        """Print a table of layers, their outputs and parameters, for these inputs.

        Total multiply-adds and memory follow; `mx.viz.print_costs` shows them by layer. The block
        must not be hybridized.

        Parameters
        ----------
        inputs
            The inputs.
        """
        summarize(self, inputs)


_CONTAINERS = (list, tuple, dict)  # for isinstance, which is twice as slow with a union type
_PLAIN = frozenset({bool, int, float, str, type(None)})


def _has_others(container: Any, registered: Collection[int]) -> bool:
    """Return whether a container holds blocks besides those with these identities."""
    for item in container.values() if isinstance(container, dict) else container:
        if type(item) in _PLAIN:
            continue
        if isinstance(item, _CONTAINERS):
            if _has_others(item, registered):
                return True
        elif isinstance(item, Block) and id(item) not in registered:
            return True
    return False


# Imported last, because they subclass Block. Downstream packages import the helpers from here.
from .hybrid import HybridBlock  # noqa: E402
from .hybrid import flatten as _flatten  # noqa: E402, F401
from .hybrid import regroup as _regroup  # noqa: E402, F401
from .symbol_block import SymbolBlock, _common_prefix  # noqa: E402, F401
