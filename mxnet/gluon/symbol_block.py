"""`SymbolBlock`: a block around a graph, such as one read from a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .. import dtypes, symbol
from ..base import mx_real_t
from ..context import Context
from ..error import MXNetError
from ..ndarray import NDArray
from ..ndarray.ndarray import _STORAGE_TYPE_ID_TO_STR
from ..symbol import Symbol
from ..util import is_np_array
from .hybrid import HybridBlock, flatten, leaves, regroup
from .parameter import ParameterDict, ParameterError
from .utils import _indent

__all__ = ["SymbolBlock"]


class SymbolBlock(HybridBlock):
    """A block that runs a symbol; variables that are not inputs are its parameters.

    Parameters
    ----------
    outputs
        Output symbol, or list of symbols.
    inputs : Symbol or list of them
        Input variables.
    params : ParameterDict or dict of Parameters
        Values of the other variables: a `ParameterDict`, or a dict of arrays.

    >>> x = mx.sym.Variable("data")
    >>> net = mx.gluon.SymbolBlock(mx.sym.FullyConnected(x, num_hidden=3, name="fc"), x)
    >>> net.initialize()
    >>> net(mx.nd.ones((2, 4))).shape, list(net.collect_params())
    ((2, 3), ['fc_weight', 'fc_bias'])
    """

    def __init__(
        self,
        outputs: Symbol | Sequence[Symbol],
        inputs: Symbol | Sequence[Symbol],
        params: Any = None,
    ) -> None:
        super().__init__(prefix=None, params=None)
        self._prefix = ""
        if params is not None and not isinstance(params, ParameterDict):
            shared = ParameterDict("")
            shared.update(params)
            params = shared
        self._params = ParameterDict("", params)
        if isinstance(outputs, list | tuple) and len(outputs) == 1:
            outputs = outputs[0]
        variables, self._in_format = flatten(_as_group(inputs), "input")
        symbols, self._out_format = flatten(outputs, "output")
        for variable in variables:
            if len(variable) != 1 or variable._heads[0].node.op is not None:
                raise ParameterError(
                    f"Input symbols must be variable, but {variable} is an output of operators"
                )
        out = symbol.Group(symbols, type(symbols[0]))
        names = {v.name for v in variables}
        _refuse_sparse(out, names)
        self._declare(out, names)
        self._cached_graph = variables, out
        skip = len(_common_prefix(list(self._params.keys())))
        self._reg_params = {name[skip:]: param for name, param in self._params.items()}

    def _declare(self, out: Symbol, inputs: set[str]) -> None:
        arguments, _, auxiliary = out.infer_type_partial()
        rows = [
            *zip(out.list_arguments(), arguments, ["write"] * len(arguments), strict=True),
            *zip(out.list_auxiliary_states(), auxiliary, ["null"] * len(auxiliary), strict=True),
        ]
        for name, dtype, grad_req in rows:
            if name not in inputs:
                param_dtype = mx_real_t if dtype is None else dtype
                floating = dtypes.to_torch(param_dtype).is_floating_point
                shared = self._params._known(name)
                if shared is None:
                    self._params.get(
                        name,
                        allow_deferred_init=True,
                        grad_req=grad_req if floating else "null",
                        dtype=param_dtype,
                    )

    @staticmethod
    def imports(
        symbol_file: str | os.PathLike[str],
        input_names: str | Sequence[str],
        param_file: str | None = None,
        ctx: Context | Sequence[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
    ) -> SymbolBlock:
        """Load files of `HybridBlock.export` or a checkpoint, of MXNet or MXNext.

        Parameters
        ----------
        symbol_file : str
            The file ``*-symbol.json``.
        input_names : str or list of str
            Names of the input variables.
        param_file : str
            The file ``*-0000.params``; without it, call `initialize`.
        ctx
            Device, or list of devices.
        allow_missing : bool
            Accept parameters that are missing in the file.
        ignore_extra : bool
            Ignore arrays of the file that are not parameters.
        """
        graph = symbol.load(os.fspath(symbol_file))
        names = [input_names] if isinstance(input_names, str) else list(input_names)
        variables = [symbol.var(name) for name in names]
        if is_np_array():
            graph, variables = graph.as_np_ndarray(), [v.as_np_ndarray() for v in variables]
        block = SymbolBlock(graph, variables)
        if param_file is not None:
            block.collect_params().load(
                param_file,
                ctx,
                allow_missing,
                ignore_extra,
                cast_dtype=True,
                dtype_source="saved",
            )
        return block

    def __repr__(self) -> str:
        inputs, out = self._cached_graph
        summary = f"{out} : {len(inputs)} -> {len(out)}"
        return f"{type(self).__name__}(\n{_indent(summary, 2)}\n)"

    def forward(self, x: Any, *args: Any) -> Any:
        """Run the graph on arrays, or compose it with symbols.

        Parameters
        ----------
        x
            The first input.
        args
            The inputs.
        """
        items = [item for item in leaves((x, *args)) if item is not None]
        if all(isinstance(item, NDArray) for item in items):
            # States may be passed as a nested list, as to the traced layer.
            if len(items) > 1 + len(args) and self._in_format == [0] * len(items):
                return self._call_cached_op(*items)
            return self._call_cached_op(x, *args)
        if not all(isinstance(item, Symbol) for item in items):
            raise MXNetError(
                "SymbolBlock takes NDArrays or Symbols, not both: "
                f"{[type(item).__name__ for item in items]}."
            )
        inputs, out = self._cached_graph
        if len(items) != len(inputs):
            raise ParameterError(
                f"The graph has {len(inputs)} inputs ({', '.join(v.name for v in inputs)}), "
                f"but {len(items)} were given."
            )
        composed = out(**{v.name: item for v, item in zip(inputs, items, strict=True)})
        return regroup(list(composed), self._out_format)[0]

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Not supported: `forward` runs the graph.

        Parameters
        ----------
        F
            The functions to use: `mx.nd` for arrays, `mx.sym` for symbols.
        x
            The first input.
        args
            The inputs.
        """
        raise NotImplementedError("A SymbolBlock runs its graph; it has no hybrid_forward.")

    def _clear_cached_op(self) -> None:
        graph = self.__dict__.get("_cached_graph", ())  # the block cannot be traced again
        super()._clear_cached_op()
        self._cached_graph = graph

    def cast(self, dtype: Any) -> None:
        """Convert the parameters; in half precision those of BatchNorm stay float32.

        Parameters
        ----------
        dtype
            The data type.
        """
        self._clear_cached_op()
        half = dtypes.to_name(dtypes.to_torch(dtype)) in ("float16", "bfloat16")
        full_precision = set()
        for node in self._cached_graph[1]._graph.nodes if half else ():
            if node.op is not None and node.op.facts.full_precision_inputs:
                full_precision.update(entry.node.name for entry in node.inputs[1:])
        for name, param in self.params.items():
            param.cast("float32" if name in full_precision else dtype)

    def reset_ctx(self, ctx: Context | Sequence[Context]) -> None:
        """Move all parameters to other contexts.

        Parameters
        ----------
        ctx
            Device, or list of devices.
        """
        self.collect_params().reset_ctx(ctx)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_cached_graph": self._cached_graph}


def _refuse_sparse(out: Symbol, inputs: set[str]) -> None:
    """Raise if a parameter is sparse: a graph cannot pull its rows."""
    for node in out._graph.nodes:
        stype = node.extra.get("__storage_type__", "0") if node.op is None else "0"
        if stype != "0" and node.name not in inputs:
            raise ParameterError(
                f"SymbolBlock doesn't support Parameter {node.name!r} because its storage type is "
                f"{_STORAGE_TYPE_ID_TO_STR[int(stype)]!r}."
            )


def _as_group(inputs: Any) -> list:
    if isinstance(inputs, Symbol):
        return list(inputs)
    if not isinstance(inputs, list | tuple):
        return [inputs]  # flatten() raises the error
    return [part for item in inputs for part in _as_group(item)]


def _common_prefix(names: Sequence[str]) -> str:
    return os.path.commonprefix(list(names))  # noqa: RUF071 (letter by letter is meant)
