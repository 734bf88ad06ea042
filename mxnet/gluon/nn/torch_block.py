"""`TorchBlock`: a torch module as a layer of a Gluon network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ... import autograd, dtypes
from ...context import Context, listed_contexts
from ...error import MXNetError
from ...ndarray import NDArray
from ...runtime.array import current, plain, wrap
from ...runtime.recording import Step, StepKind, record_step
from ...symbol import Symbol
from ...torch_private import tree_leaves, tree_map
from ...util import is_np_shape
from ..block import HybridBlock
from ..parameter import Parameter, ParameterDict
from ..torch_module import to_tensors
from ..utils import _indent

__all__ = ["TorchBlock"]


class TorchParameter(Parameter):
    """A parameter that shares memory with a torch module and is initialized by it."""

    def initialize(
        self,
        init: Any = None,
        ctx: Context | Sequence[Context] | None = None,
        default_init: Any = None,
        force_reinit: bool = False,
    ) -> None:
        """Keep the module's values, on the given context; reinitialize them with `force_reinit`.

        Parameters
        ----------
        init
            Initializer, for `force_reinit`.
        ctx
            Device; by default the current one.
        default_init
            Used if `init` is None.
        force_reinit
            Whether to replace the values.
        """
        if force_reinit:
            super().initialize(init, ctx, default_init, force_reinit)
        elif ctx is not None and listed_contexts(ctx) != self.list_ctx():
            self.reset_ctx(ctx)


class TorchBlock(HybridBlock):
    """A `torch.nn.Module` as a layer; its parameters are Gluon parameters on the same memory.

    A Trainer updates them, `save_parameters` writes them under the names of the module's state
    dict, and `summary` counts them. `initialize` keeps the module's values unless
    ``force_reinit=True``. Each call sets the module to training or evaluation mode, following
    `mx.autograd.is_training`; to keep a part of it in evaluation mode, override `train` of that
    part. Buffers, such as running means, are parameters without a gradient.

    A torch module has no symbol. In a hybridized network, blocks with a TorchBlock run eagerly, the
    others as graphs, and `export` raises an error; `mx.convert.from_torch` converts a module to a
    block that can be exported.

    Parameters
    ----------
    module : torch.nn.Module
        The module. Its in-place operations change their input, as in torch.
    prefix : str
        Prefix of the parameter names; by default the class name and a number.
    params : ParameterDict
        Accepted for compatibility; the parameters are the module's own.

    >>> import torch
    >>> net = mx.gluon.nn.HybridSequential()
    >>> net.add(mx.gluon.nn.Dense(4), mx.gluon.nn.TorchBlock(torch.nn.Linear(4, 2)))
    >>> net.initialize()
    >>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    >>> with mx.autograd.record():
    ...     loss = (net(mx.nd.ones((3, 5))) ** 2).sum()
    >>> loss.backward()
    >>> trainer.step(3)
    """

    _has_graph = False

    def __init__(self, module: nn.Module, prefix: str | None = None, params: Any = None) -> None:
        if not isinstance(module, nn.Module) or isinstance(module, torch.jit.ScriptModule):
            raise TypeError(
                f"TorchBlock takes a torch.nn.Module that is not scripted, not "
                f"{type(module).__name__}."
            )
        super().__init__(prefix=prefix, params=params)
        self.module = module
        self._adopt_tensors()

    def _adopt_tensors(self) -> None:
        """Declare a Gluon parameter on the memory of each tensor of the module."""
        tensors: dict[str, Tensor] = dict(self.module.named_parameters(remove_duplicate=False))
        tensors.update(self.module.named_buffers(remove_duplicate=False))
        for name, tensor in tensors.items():
            if tensor.dtype not in dtypes.BY_TORCH:
                raise MXNetError(
                    f"TorchBlock: {name} of {type(self.module).__name__} has type {tensor.dtype}, "
                    "which arrays do not have."
                )
        declared: dict[int, Parameter] = {}
        for name, tensor in tensors.items():
            if id(tensor) not in declared:
                declared[id(tensor)] = self._declare(name, tensor)
            self._reg_params[name] = declared[id(tensor)]

    def _declare(self, name: str, tensor: Tensor) -> Parameter:
        trained = isinstance(tensor, nn.Parameter)
        param = TorchParameter(
            self.params.prefix + name.replace(".", "_"),
            grad_req="write" if tensor.requires_grad else "null",
            shape=tuple(tensor.shape) or (1,),
            dtype=dtypes.to_numpy(tensor.dtype),
            differentiable=trained,
        )
        self.params.update({param.name: param})
        param._adopt(tensor)
        return param

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n  {_indent(repr(self.module), 2)}\n)"

    def as_torch(self) -> nn.Module:
        """Return the module itself."""
        return self.module

    def cast(self, dtype: Any) -> None:
        """Convert the floating-point parameters; counters stay integers.

        Parameters
        ----------
        dtype
            The data type.
        """
        self._clear_cached_op()
        for param in self.params.values():
            if dtypes.to_torch(param.dtype).is_floating_point:
                param.cast(dtype)

    def forward(self, *args: Any) -> Any:
        """Run the module on arrays.

        Parameters
        ----------
        args
            The inputs: arrays, or other arguments of the module.
        """
        if any(isinstance(arg, Symbol) for arg in args):
            raise TypeError(
                f"TorchBlock '{self.name}' runs a torch module, which has no symbol. Leave the "
                "network eager, or convert the module: mx.convert.from_torch(module, ...)."
            )
        self._check_memory()
        self.module.train(autograd.is_training())
        inputs = to_tensors(list(args))
        if not autograd.is_recording():
            with torch.no_grad():
                outputs = self._call(inputs)
        else:
            outputs = self._call(inputs)
        self._restore_buffers()
        return self._wrap(outputs, args, inputs)

    def _call(self, inputs: Sequence[Any]) -> Any:
        tensors = {}
        for name, param in self._reg_params.items():
            if param._differentiable:
                leaf, held = current(param.data()), param.as_torch()
                if autograd.is_recording() or leaf.data_ptr() != held.data_ptr():
                    tensors[name] = leaf.reshape(held.shape)
        if not tensors:
            return self.module(*inputs)
        return functional_call(self.module, tensors, tuple(inputs), tie_weights=False)

    def _check_memory(self) -> None:
        """Rebind parameters whose tensors torch code has moved, converted or replaced."""
        for name, param in self._reg_params.items():
            registry, key = _find(self.module, name)
            tensor = registry.get(key)
            if tensor is None:
                raise MXNetError(
                    f"TorchBlock '{self.name}': {name} has been removed from the module. Create a "
                    "new TorchBlock from it."
                )
            if tensor is not param._torch or not _shares(tensor, param):
                param._adopt(tensor)

    def _restore_buffers(self) -> None:
        for name, param in self._reg_params.items():
            if param._differentiable:
                continue
            registry, key = _find(self.module, name)
            tensor, held = registry[key], param.as_torch()
            if tensor is held and _shares(tensor, param):
                continue
            if tensor.shape == held.shape and tensor.dtype == held.dtype:
                held.data.copy_(tensor.detach())
                registry[key] = held
            else:
                param._adopt(tensor)

    def _wrap(self, outputs: Any, args: Sequence[Any], inputs: Sequence[Any]) -> Any:
        arrays = [a for a in tree_leaves(list(args)) if isinstance(a, NDArray)]
        cls = type(arrays[0]) if arrays else NDArray
        ctx = arrays[0]._ctx if arrays else None
        taken = {_address(t) for t in tree_leaves(inputs) if isinstance(t, Tensor)}
        taken.update(_address(param.as_torch()) for param in self._reg_params.values())
        results: list[NDArray] = []

        def convert(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            tensor = value.contiguous()
            if _address(tensor) in taken:
                tensor = tensor.clone()
            taken.add(_address(tensor))
            has_shape = tensor.ndim or is_np_shape()  # classic arrays have at least one axis
            results.append(wrap(cls, tensor if has_shape else tensor.reshape(1), ctx))
            return results[-1]

        converted = tree_map(convert, outputs)
        sources = [*arrays, *(p.data() for p in self._reg_params.values() if p._differentiable)]
        step = Step(StepKind.FUNCTION, [a.shape for a in results])
        record_step(results[0] if len(results) == 1 else results, step, sources)
        return converted

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_reg_params": {}, "_params": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._params = ParameterDict(self._prefix)
        self._adopt_tensors()


def _find(module: nn.Module, path: str) -> tuple[dict[str, Any], str]:
    folder, _, name = path.rpartition(".")
    for part in folder.split(".") if folder else ():
        module = module._modules[part]  # type: ignore[assignment] (quicker than get_submodule)
    return (module._parameters if name in module._parameters else module._buffers), name


def _shares(tensor: Tensor, param: Parameter) -> bool:
    array = plain(param._data[0])
    return tensor.data_ptr() == array.data_ptr() and tensor.dtype == array.dtype


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
