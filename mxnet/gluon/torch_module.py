"""`GluonModule`: a Gluon block as a `torch.nn.Module`, created by `Block.as_torch`.

The module's parameters share the memory of the block's. While the module runs, they replace the
block's in this thread (`state.substitutes`): the graph is torch's, its leaves are the module's
parameters, and gradients are stored in their `grad`.
"""

from __future__ import annotations

import inspect
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from .. import autograd
from .._compat.companions import call_after_import
from ..dtypes import BY_TORCH
from ..error import DTypeError, InvalidValue, MXNetError
from ..ndarray import NDArray
from ..runtime.array import current, new_object, plain, set_plain, wrap_plain, wrap_shared
from ..runtime.recording import TORCH_LEAF, Member, Source, state
from ..torch_private import DYNAMO, has_backward_hooks, tree_map
from ..util import is_np_array
from .block import Block
from .hybrid import HybridBlock
from .parameter import Parameter
from .torch_graph import register_block, run_graph

__all__ = ["GluonModule"]


class GluonModule(nn.Module):
    """A Gluon block as a torch module on the same memory, created by `Block.as_torch`.

    Inputs and outputs are tensors. ``train()`` and ``eval()`` set the mode of MXNet's layers;
    torch's grad mode decides whether a graph is built, without `mx.autograd.record`.

    Parameters
    ----------
    block
        The block, initialized.

    >>> import torch
    >>> net = mx.gluon.nn.Dense(1, in_units=2)
    >>> net.initialize()
    >>> module = net.as_torch()
    >>> optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    >>> module(torch.ones(3, 2)).sum().backward()
    >>> optimizer.step()
    >>> bool((net.weight.data().to_torch() == module.weight).all())
    True
    """

    def __init__(self, block: Block, _modules: dict[int, nn.Module] | None = None) -> None:
        super().__init__()
        modules = {} if _modules is None else _modules
        modules[id(block)] = self
        self.block = block
        self._block_key = register_block(block)
        self._tensors: dict[Parameter, tuple[dict[str, Any], str]] = {}
        for name, param in _own_parameters(block).items():
            self._register(name, param)
        for name, child in block._children.items():
            module = modules.get(id(child))
            if module is None:
                module = modules[id(child)] = _module_of(child, modules)
            self.add_module(name, module)
        for child in block._children.values():
            module = modules[id(child)]
            if isinstance(module, GluonModule):
                self._tensors.update(module._tensors)
            else:
                self._tensors.update(_tensors_of(child))
        self._names = [param.name for param in self._tensors]
        self._parts = [m for m in self.modules() if isinstance(m, GluonModule) and m is not self]

    def _register(self, path: str, param: Parameter) -> None:
        *folders, name = path.split(".")
        owner: nn.Module = self
        for folder in folders:
            if folder not in owner._modules:
                owner.add_module(folder, nn.Module())
            owner = owner.get_submodule(folder)
        tensor = param.as_torch()
        if isinstance(tensor, nn.Parameter):
            owner.register_parameter(name, tensor)
            self._tensors[param] = owner._parameters, name
        else:
            owner.register_buffer(name, tensor)
            self._tensors[param] = owner._buffers, name

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the block on tensors, in the structure of its forward's arguments."""
        inputs = _arrange(self.block, args, kwargs)
        tensors = [registry[name] for registry, name in self._tensors.values()]
        if torch.compiler.is_compiling() and isinstance(self.block, HybridBlock):
            return run_graph(self._block_key, self.training, self._names, tensors, inputs)
        return self._run(tensors, inputs)

    def _run(self, tensors: Sequence[Tensor], inputs: Sequence[Any]) -> Any:
        scope = autograd.record if torch.is_grad_enabled() else autograd.pause
        substitutes = dict(zip(self._tensors, tensors, strict=True))
        with scope(self.training), substituting(substitutes), calling_hooks(self):
            return to_tensors(self.block(*to_arrays(inputs)))

    def extra_repr(self) -> str:
        """Return the kind and name of the block."""
        return f"{type(self.block).__name__} '{self.block.name}'"

    def _apply(self, fn: Any, recurse: bool = True) -> GluonModule:
        """Convert or move all tensors, and the block's parameters with them."""
        super()._apply(fn, recurse)
        for param, (registry, name) in self._tensors.items():
            tensor = registry[name]
            if tensor.data_ptr() != plain(param.data()).data_ptr():
                param._adopt(tensor)
        return self

    def __reduce_ex__(self, protocol: Any) -> tuple:
        """Copy and pickle the block: a copy's tensors share the memory of the copied block."""
        flags = {name: module.training for name, module in self.named_modules()}
        frozen = [name for name, p in self.named_parameters() if not p.requires_grad]
        return _rebuild, (self.block, flags, frozen)


def _prepare_dynamo(dynamo: Any) -> None:
    """Configure `torch.compile`: hybrid blocks are opaque calls, other blocks are not compiled."""
    dynamo.allow_in_graph(run_graph)
    GluonModule._run = dynamo.disable(GluonModule._run, recursive=True)


# Importing Dynamo is slow: leave it to `torch.compile`.
call_after_import(DYNAMO, _prepare_dynamo)


def _rebuild(block: Block, flags: dict[str, bool], frozen: list[str]) -> nn.Module:
    module = block.as_torch()
    for name, flag in flags.items():
        module.get_submodule(name).training = flag
    for name in frozen:
        module.get_parameter(name).requires_grad_(False)
    return module


def _module_of(block: Block, modules: dict[int, nn.Module]) -> nn.Module:
    module = getattr(block, "module", None)  # the module of a TorchBlock
    if isinstance(module, nn.Module) and block.as_torch() is module:
        return module
    return GluonModule(block, modules)


def _own_parameters(block: Block) -> dict[str, Parameter]:
    params = dict(block._reg_params)
    registered = set(map(id, params.values()))
    for name, param in block.params.items():
        if id(param) not in registered:
            params[name.removeprefix(block.params.prefix)] = param
    return params


def _tensors_of(block: Block) -> dict[Parameter, tuple[dict[str, Any], str]]:
    module, places = block.as_torch(), {}
    for path, param in block._reg_params.items():
        folder, _, name = path.rpartition(".")
        owner = module.get_submodule(folder)
        places[param] = (owner._parameters if name in owner._parameters else owner._buffers), name
    return places


def _arrange(block: Block, args: tuple, kwargs: Mapping[str, Any]) -> list[Any]:
    """Convert keyword arguments to positional ones, which blocks require."""
    if not kwargs:
        return list(args)
    if isinstance(block, HybridBlock) and type(block).forward is HybridBlock.forward:
        names = list(inspect.signature(block.hybrid_forward).parameters)[1:]  # without F
    else:
        names = list(inspect.signature(block.forward).parameters)
    rest = dict(kwargs)
    arranged = list(args)
    for name in names[len(args) :]:
        if name not in rest:
            break
        arranged.append(rest.pop(name))
    if rest:
        raise InvalidValue(
            f"{type(block).__name__} '{block.name}' does not take {', '.join(rest)}: its inputs "
            f"are {', '.join(names)}, without gaps."
        )
    return arranged


@contextmanager
def substituting(tensors: Mapping[Parameter, Tensor]) -> Iterator[None]:
    """Return a scope that substitutes tensors for parameters in this thread."""
    previous = state.substitutes
    state.substitutes = {**(previous or {}), **{p: _stand_in(p, t) for p, t in tensors.items()}}
    try:
        yield
    finally:
        state.substitutes = previous


@contextmanager
def calling_hooks(module: GluonModule) -> Iterator[None]:
    """Return a scope that calls the forward hooks of inner modules with the values of their blocks.

    Blocks call each other, not the modules, so hooks are registered on the blocks, for this thread.
    A graph calls no blocks, so hybridized blocks run eagerly meanwhile.
    """
    watched = [m for m in module._parts if m._forward_pre_hooks or m._forward_hooks]
    if any(map(has_backward_hooks, module._parts)):
        warnings.warn(
            "backward hooks of modules inside as_torch() are not called: call output.register_hook "
            "in a forward hook, or register them on the whole module.",
            stacklevel=6,
        )
    if not watched:
        yield
        return
    thread = threading.get_ident()
    handles = [handle for m in watched for handle in _attach(m, thread)]
    blocks = [m.block for m in (module, *module._parts)]
    hybridized = [b for b in blocks if isinstance(b, HybridBlock) and b._active]
    try:
        for block in hybridized:
            block._active = False
        yield
    finally:
        for block in hybridized:
            block._active = True
        for handle in handles:
            handle.detach()


def _attach(module: GluonModule, thread: int) -> list[Any]:
    """Register the module's hooks on its block; return handles that remove them."""

    def call(hook: Any, *values: Any) -> None:
        if hook(module, *to_tensors(values)) is not None:
            raise MXNetError(
                f"A hook of {type(module.block).__name__} '{module.block.name}' returned a value: "
                "hooks of modules inside as_torch() cannot replace values."
            )

    def before(block: Block, args: tuple) -> None:
        if threading.get_ident() == thread:
            for key, hook in list(module._forward_pre_hooks.items()):
                keywords = ({},) if key in module._forward_pre_hooks_with_kwargs else ()
                call(hook, args, *keywords)

    def after(block: Block, args: tuple, output: Any) -> None:
        if threading.get_ident() == thread:
            for key, hook in list(module._forward_hooks.items()):
                keywords = ({},) if key in module._forward_hooks_with_kwargs else ()
                call(hook, args, *keywords, output)

    block = module.block
    return [block.register_forward_pre_hook(before), block.register_forward_hook(after)]


def _stand_in(param: Parameter, tensor: Tensor) -> NDArray:
    """Return an array for a parameter, with `tensor` as its leaf in torch's graph."""
    array = new_object(type(param._data[0]))
    shaped = tensor if tensor.ndim else tensor.reshape(1)  # arrays have at least one axis
    set_plain(array, shaped.detach(), param._data[0]._ctx)
    if tensor.requires_grad:
        array._member = Member(shaped, None, Source(), TORCH_LEAF)
    return array


def to_arrays(values: Any) -> Any:
    """Convert nested tensors to arrays on the same memory and in the same graph.

    While recording, a tensor that does not require grad is data.
    """
    cls = NDArray.numpy_class if is_np_array() else NDArray
    assert cls is not None
    return tree_map(lambda v: _to_array(cls, v) if isinstance(v, Tensor) else v, values)


def _to_array(cls: type[NDArray], tensor: Tensor) -> NDArray:
    if tensor.dtype not in BY_TORCH:
        raise DTypeError(
            f"A tensor of {tensor.dtype} cannot be an array: MXNet's types are "
            f"{', '.join(row.name for row in BY_TORCH.values())}. Convert it: t.float()."
        )
    if tensor.is_inference():
        return wrap_plain(cls, tensor.contiguous())
    return wrap_shared(cls, tensor)


def to_tensors(values: Any) -> Any:
    """Convert nested arrays to tensors, which track gradients while recording."""
    return tree_map(lambda v: _to_tensor(v) if isinstance(v, NDArray) else v, values)


def _to_tensor(array: NDArray) -> Tensor:
    if array.stype != "default":
        raise MXNetError(
            f"A {array.stype} array cannot go to torch: convert it, x.tostype('default')."
        )
    return current(array)
