"""`SymbolModule`: a symbol bound to devices, with parameters; it computes, `Module` trains it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..context import Context, cpu, listed_contexts
from ..error import InvalidType, MXNetError
from ..initializer import Initializer, Uniform
from ..io import DataDesc
from ..ndarray import NDArray
from ..symbol import Symbol
from . import parameters
from .base_module import BaseModule
from .binding import descs_of_batch, group_to_share, joined_batch, parse_descs
from .executor_group import DataParallelExecutorGroup
from .names import check_input_names
from .steps import Params


class SymbolModule(BaseModule):
    """A symbol with parameters, on one device or several; see `Module` for what it is made of."""

    def __init__(
        self,
        symbol: Symbol,
        data_names: Sequence[str] | None,
        label_names: Sequence[str] | None,
        logger: Any,
        context: Context | Sequence[Context] | None,
        work_load_list: Sequence[float] | None,
        fixed_param_names: Sequence[str] | None,
        state_names: Sequence[str] | None,
        group2ctxs: Any,
    ) -> None:
        super().__init__(logger=logger)
        if not hasattr(symbol, "list_arguments"):
            raise InvalidType(
                f"Module needs a Symbol, got a {type(symbol).__name__}. A Gluon block gives one: "
                "net(mx.sym.var('data'))."
            )
        self._context = listed_contexts(cpu() if context is None else context)
        self._work_load_list = list(work_load_list or [1] * len(self._context))
        if len(self._work_load_list) != len(self._context):
            raise AssertionError(
                f"work_load_list has {len(self._work_load_list)} entries for "
                f"{len(self._context)} contexts."
            )
        self._group2ctxs = group2ctxs
        self._symbol = symbol
        self._data_names = _name_list(data_names)
        self._label_names = _name_list(label_names)
        self._state_names = _name_list(state_names)
        self._fixed_param_names = _name_list(fixed_param_names)
        check_input_names(symbol, self._data_names, "data_names", True)
        check_input_names(symbol, self._label_names, "label_names", False)
        check_input_names(symbol, self._state_names, "state_names", True)
        check_input_names(symbol, self._fixed_param_names, "fixed_param_names", True)
        inputs = {*self._data_names, *self._label_names, *self._state_names}
        self._param_names = [name for name in symbol.list_arguments() if name not in inputs]
        self._aux_names = symbol.list_auxiliary_states()
        self._output_names = symbol.list_outputs()
        self._arg_params: Params | None = None
        self._aux_params: Params | None = None
        self._params_dirty = False
        self._grad_req: Any = None
        self._exec_group: DataParallelExecutorGroup | None = None
        self._data_shapes: list[DataDesc] | None = None
        self._label_shapes: list[DataDesc] | None = None

    @property
    def _total_exec_bytes(self) -> int:
        """Megabytes of the executors' results, as `Executor.debug_str` reports them."""
        found = self._exec_group.execs if self._exec_group is not None else []
        return sum(int(exe.debug_str().split("\n")[-3].split()[1]) for exe in found)

    # -- names and shapes ---------------------------------------------------------------------

    @property
    def data_names(self) -> list[str]:
        """Names of the inputs."""
        return self._data_names

    @property
    def label_names(self) -> list[str]:
        """Names of the labels."""
        return self._label_names

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return self._output_names

    @property
    def data_shapes(self) -> list[DataDesc]:
        """Descriptions of the inputs, after `bind`."""
        self._need_bind()
        return self._data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        """Descriptions of the labels, after `bind`; None if there are none."""
        self._need_bind()
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and shape of each output, after `bind`."""
        self._need_bind()
        return self._exec_group.get_output_shapes()

    # -- parameters ---------------------------------------------------------------------------

    def get_params(self) -> tuple[Params, Params]:
        """Return arguments and auxiliary states by name, averaged over the devices."""
        self._need_params()
        if self._params_dirty:
            self._sync_params_from_devices()
        return self._arg_params, self._aux_params

    def _sync_params_from_devices(self) -> None:
        self._exec_group.get_params(self._arg_params, self._aux_params)
        self._params_dirty = False

    def init_params(
        self,
        initializer: Initializer | None = Uniform(0.01),  # noqa: B008 (it holds no state)
        arg_params: Mapping[str, NDArray] | None = None,
        aux_params: Mapping[str, NDArray] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Give all parameters their first values.

        Parameters
        ----------
        initializer : Initializer
            Fills what is not given.
        arg_params, aux_params : dict of NDArray, optional
            Values by name; names that the symbol lacks are ignored.
        allow_missing : bool
            Whether the initializer fills what `arg_params` and `aux_params` lack.
        force_init : bool
            Do it even if it was done before.
        allow_extra : bool
            Accepted as in MXNet, where extra names are ignored here in any case.
        """
        if self.params_initialized and not force_init:
            parameters.warn_ignored("init_params")
            return
        if not self.binded:
            raise AssertionError("call bind before initializing the parameters")
        self._make_host_params()
        attributes = self._symbol.attr_dict()
        for arrays, given in ((self._arg_params, arg_params), (self._aux_params, aux_params)):
            parameters.give_values(arrays, given, initializer, attributes, allow_missing)
        self.params_initialized = True
        self._params_dirty = False
        self._exec_group.set_params(self._arg_params, self._aux_params, allow_extra=allow_extra)

    def _make_host_params(self) -> None:
        """Make the arrays that `get_params` gives, if they are not there yet."""
        group = self._exec_group
        if self._arg_params is None:
            self._arg_params = parameters.host_arrays(group.param_names, group.param_arrays)
        if self._aux_params is None:
            self._aux_params = parameters.host_arrays(group.aux_names, group.aux_arrays)

    def set_params(
        self,
        arg_params: Mapping[str, NDArray],
        aux_params: Mapping[str, NDArray],
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Set the parameters; with `allow_missing` those that are not given stay as they are."""
        if not allow_missing:
            super().set_params(arg_params, aux_params, False, force_init, allow_extra)
            return
        if self.params_initialized and not force_init:
            parameters.warn_ignored("set_params")
            return
        self._need_bind()
        self._make_host_params()
        self._exec_group.set_params(arg_params, aux_params, allow_extra=allow_extra)
        self._params_dirty = True
        self.params_initialized = True

    # -- binding ------------------------------------------------------------------------------

    def bind(
        self,
        data_shapes: Sequence,
        label_shapes: Sequence | None = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: SymbolModule | None = None,
        grad_req: Any = "write",
    ) -> None:
        """Get ready to compute on batches of these shapes.

        Parameters
        ----------
        data_shapes, label_shapes : list of DataDesc, or of (name, shape)
        for_training : bool
            Whether gradients will be needed.
        inputs_need_grad : bool
            Whether `get_input_grads` will be called.
        force_rebind : bool
            Bind again if that was done before.
        shared_module : Module, optional
            A module whose parameters are used.
        grad_req : {'write', 'add', 'null'}, or a list or dict of them
        """
        if force_rebind:
            self._reset_bind()
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if not for_training and inputs_need_grad:
            raise AssertionError("inputs_need_grad=True needs for_training=True")
        data, labels = parse_descs(
            self._symbol, self._data_names, self._label_names, data_shapes, label_shapes
        )
        shared_group = None
        if shared_module is not None:
            shared_group = group_to_share(shared_module, len(self._context))
        self._exec_group = DataParallelExecutorGroup(
            self._symbol,
            self._context,
            self._work_load_list,
            data,
            labels,
            self._param_names,
            for_training,
            inputs_need_grad,
            shared_group,
            logger=self.logger,
            fixed_param_names=self._fixed_param_names,
            grad_req=grad_req,
            state_names=self._state_names,
            group2ctxs=self._group2ctxs,
        )
        self._take_shapes()
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self._grad_req = grad_req
        self.binded = True
        if shared_module is not None:
            self._share_with(shared_module)
        elif self.params_initialized:  # a loaded module, or one that is bound again
            parameters.place(self._exec_group, self._arg_params, self._aux_params)

    def _share_with(self, module: SymbolModule) -> None:
        """Use another module's parameters."""
        self.params_initialized = True
        self._arg_params, self._aux_params = module._arg_params, module._aux_params

    def _take_shapes(self) -> None:
        group = self._exec_group
        self._data_shapes, self._label_shapes = group.data_shapes, group.label_shapes
        group.label_names = group.label_names or self._label_names

    def _reset_bind(self) -> None:
        self.binded = False
        if self._params_dirty:
            self._sync_params_from_devices()
        self._exec_group = None
        self._data_shapes = self._label_shapes = None

    def reshape(self, data_shapes: Sequence, label_shapes: Sequence | None = None) -> None:
        """Take batches of other shapes from now on; parameters stay."""
        self._need_bind()
        data, labels = parse_descs(
            self._symbol, self._data_names, self._label_names, data_shapes, label_shapes
        )
        self._exec_group.reshape(data, labels)
        self._take_shapes()

    # -- steps --------------------------------------------------------------------------------

    def prepare(self, data_batch: Any, sparse_row_id_fn: Callable | None = None) -> None:
        """Get ready for a batch that will come to `forward` next.

        In MXNet this fetches the rows of sparse parameters that the batch needs. Here every device
        has all rows at any time; `sparse_row_id_fn` is only checked to name parameters.
        """
        self._need_bind()
        if sparse_row_id_fn is None:
            return
        rows = sparse_row_id_fn(data_batch)
        if not isinstance(rows, Mapping):
            raise TypeError("sparse_row_id_fn must return a dict from parameter names to row ids")
        unknown = [name for name in rows if name not in self._param_names]
        if unknown:
            raise MXNetError(f"sparse_row_id_fn names no parameters: {', '.join(unknown)}")

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch, of whatever size it is.

        Parameters
        ----------
        data_batch : DataBatch, or a list with one for each device
        is_train : bool, optional
            By default what was said to `bind`.
        """
        self._need_params()
        if isinstance(data_batch, list):
            data_batch = joined_batch(data_batch)
        changed = descs_of_batch(data_batch, self._data_shapes, self._label_shapes)
        if changed is not None:
            self._exec_group.reshape(*changed)
            self._take_shapes()
        self._exec_group.forward(data_batch, is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients; `out_grads` are those of the outputs."""
        self._need_params()
        self._exec_group.backward(out_grads=out_grads)

    # -- results ------------------------------------------------------------------------------

    def get_outputs(self, merge_multi_context: bool = True) -> list:
        """Return the outputs of the last forward, joined over the devices or as lists."""
        self._need_params()
        return self._exec_group.get_outputs(merge_multi_context=merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list:
        """Return the gradients of the inputs, joined over the devices or as lists."""
        self._need_params()
        return self._exec_group.get_input_grads(merge_multi_context=merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> list:
        """Return the states, of each a list with one array for each device."""
        self._need_params()
        return self._exec_group.get_states(merge_multi_context=merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the states: from arrays as `get_states` gives them, or all to one number."""
        self._need_params()
        self._exec_group.set_states(states, value)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Let a metric take the outputs of the last forward."""
        self._exec_group.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """Let a monitor watch what is computed."""
        self._need_bind()
        self._exec_group.install_monitor(mon)


def _name_list(names: Sequence[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())
