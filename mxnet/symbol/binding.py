"""Methods of a symbol that bind it to arrays or choose what runs it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from ..context import Context, current_context
from ..error import MXNetError
from ..quantization.fused_layers import fuse_layers

if TYPE_CHECKING:
    from ..executor import Executor
    from .symbol import Symbol

# Libraries that MXNet could hand parts of a graph to; here the executor fuses by itself.
BUILT_IN_BACKENDS = ("MKLDNN", "MKLDNN_QUANTIZE", "ONEDNN", "ONEDNN_QUANTIZE", "default")


def _symbol(mixin: Binding) -> Symbol:
    """Return the symbol that the methods below are called on; nothing else has them."""
    return cast("Symbol", mixin)


class Binding:
    """Running a symbol; the executors are in `mxnet.executor`."""

    __slots__ = ()

    def bind(
        self,
        ctx: Context,
        args: Any,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        group2ctx: Any = None,
        shared_exec: Executor | None = None,
    ) -> Executor:
        """Return an executor of the graph on the given arrays.

        Parameters
        ----------
        ctx
            Device of the arrays.
        args
            Arrays of all arguments: a list in order, or a dict by name.
        args_grad
            Arrays that receive gradients: a list in order, or a dict by name.
        grad_req
            How gradients are stored, for all or by name: ``'write'``, ``'add'`` or ``'null'``.
        aux_states
            Arrays of the auxiliary states.
        group2ctx
            Device of each ``ctx_group``.
        shared_exec
            Executor whose memory may be used again.
        """
        from ..executor import bind

        symbol = _symbol(self)
        return bind(symbol, ctx, args, args_grad, grad_req, aux_states, group2ctx, shared_exec)

    def simple_bind(
        self,
        ctx: Context,
        grad_req: Any = "write",
        type_dict: Any = None,
        stype_dict: Any = None,
        group2ctx: Any = None,
        shared_arg_names: Any = None,
        shared_exec: Executor | None = None,
        shared_buffer: Any = None,
        **kwargs: Any,
    ) -> Executor:
        """Return an executor with new arrays, their shapes inferred from those given.

        Parameters
        ----------
        ctx
            Device of the arrays.
        grad_req
            How gradients are stored, for all or by name: ``'write'``, ``'add'`` or ``'null'``.
        type_dict
            Data types by argument.
        stype_dict
            Storage types by argument.
        group2ctx
            Device of each ``ctx_group``.
        shared_arg_names
            Arguments whose arrays may be shared.
        shared_exec
            Executor whose memory may be used again.
        shared_buffer
            Arrays by name that may be used again.
        """
        from ..executor import simple_bind

        return simple_bind(
            _symbol(self),
            ctx,
            grad_req,
            type_dict,
            stype_dict,
            group2ctx,
            shared_arg_names,
            shared_exec,
            shared_buffer,
            **kwargs,
        )

    def eval(self, ctx: Context | None = None, **kwargs: Any) -> list:
        """Return the values of the outputs, given arrays for the arguments by name.

        Parameters
        ----------
        ctx
            Device of the arrays.
        """
        return self.bind(ctx or current_context(), kwargs, grad_req="null").forward()

    def gradient(self, wrt: Iterable[str]) -> Symbol:
        """Refuse, as MXNet does: gradients are taken by executors.

        Parameters
        ----------
        wrt
            Names of arguments.
        """
        raise MXNetError(
            "Symbol.gradient is not implemented. Bind the symbol with gradient arrays and call "
            "backward() of the executor."
        )

    def optimize_for(
        self,
        backend: str,
        args: Any = None,
        aux: Any = None,
        ctx: Context | None = None,
        shape_dict: Any = None,
        type_dict: Any = None,
        stype_dict: Any = None,
        skip_infer: bool = False,
        **kwargs: Any,
    ) -> Symbol:
        """Return the symbol to be run by an engine in inference, such as ``"openvino"``.

        For the names of MXNet's own backends it returns what `get_backend_symbol` does.

        Parameters
        ----------
        backend
            Name of the engine.
        args
            Shapes, types or arrays of the arguments, in order; others go by name.
        aux
            Arrays of the auxiliary states.
        ctx
            Device of the arrays.
        shape_dict
            Shapes by argument.
        type_dict
            Data types by argument.
        stype_dict
            Storage types by argument.
        skip_infer
            Whether to skip the inference of shapes and types.
        """
        from ..executor.backends import backend_names

        symbol = _symbol(self)
        if backend in backend_names():
            made = type(symbol)(symbol._heads)
            made._graph.backend = backend
            return made
        if backend in BUILT_IN_BACKENDS:
            return self.get_backend_symbol(backend)
        warnings.warn(
            f"Error optimizing for backend '{backend}' cannot be found; the symbol is "
            "returned unchanged.",
            stacklevel=2,
        )
        return symbol

    def get_backend_symbol(self, backend: str) -> Symbol:
        """Return the symbol with layers fused as that backend of MXNet does.

        The executor fuses by itself, so this is for programs that look for the fused nodes.

        Parameters
        ----------
        backend
            Name of the backend, such as ``"MKLDNN"``.
        """
        if backend not in BUILT_IN_BACKENDS:
            raise MXNetError(
                f"SubgraphProperty {backend} is not found in SubgraphBackendRegistry; known are "
                f"{', '.join(BUILT_IN_BACKENDS)}."
            )
        symbol = _symbol(self)
        if backend == "default":
            return symbol
        return type(symbol)(fuse_layers(symbol._graph))
