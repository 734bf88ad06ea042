"""`Module`: a symbol with parameters and an optimizer, on one device or several."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import context as ctx
from .. import ndarray as nd
from .. import optimizer as opt
from ..context import Context
from ..error import MXNetError, ShapeError
from ..executor_manager import copy_into
from ..formats.atomic import replacing
from ..formats.location import existing_file, local_path
from ..initializer import InitDesc, Initializer, Uniform
from ..io import DataBatch, DataDesc
from ..model import (
    _create_kvstore,
    _initialize_kvstore,
    _update_params,
    _update_params_on_kvstore,
    load_checkpoint,
    params_name,
    write_symbol,
)
from ..ndarray import NDArray
from ..symbol import Symbol
from .base_module import SGD_DEFAULTS, BaseModule
from .executor_group import DataParallelExecutorGroup
from .names import check_input_names, not_presented, parse_descs
from .optimizing import made_optimizer, restore, state_of

Params = dict[str, NDArray]


class Module(BaseModule):
    """A symbol that can be trained and asked.

    Parameters
    ----------
    symbol : Symbol
    data_names, label_names : list of str
        The arguments that come with each batch.
    logger : logging.Logger
    context : Context or list of Context
        Where to compute; a batch is spread over several devices.
    work_load_list : list of float, optional
        How large each device's part is, in proportion.
    fixed_param_names : list of str, optional
        Parameters that are not trained.
    state_names : list of str, optional
        Arguments that are neither parameters nor come with a batch.
    group2ctxs : dict or list of dicts, optional
        Where each ``ctx_group`` of the symbol runs.
    compression_params : dict, optional
        How gradients are compressed between devices.

    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")
    >>> mod = mx.mod.Module(net, label_names=None)
    >>> mod.bind([("data", (1, 3))], for_training=False)
    >>> mod.init_params(mx.init.One())
    >>> mod.predict(mx.nd.array([[1, 2, 3]])).asnumpy()
    array([[6., 6.]], dtype=float32)
    """

    def __init__(
        self,
        symbol: Symbol,
        data_names: Sequence[str] | None = ("data",),
        label_names: Sequence[str] | None = ("softmax_label",),
        logger: Any = logging,
        context: Context | Sequence[Context] | None = None,
        work_load_list: Sequence[float] | None = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(logger=logger)
        context = ctx.cpu() if context is None else context
        self._context = [context] if isinstance(context, Context) else list(context)
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
        self._compression_params = compression_params
        self._optimizer: Any = None
        self._kvstore: Any = None
        self._update_on_kvstore: bool | None = None
        self._updater: Any = None
        self._preload_opt_states: str | None = None
        self._grad_req: Any = None
        self._exec_group: DataParallelExecutorGroup | None = None
        self._data_shapes: list[DataDesc] | None = None
        self._label_shapes: list[DataDesc] | None = None

    # -- files --------------------------------------------------------------------------------

    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """Return a module with the symbol and the parameters of a checkpoint."""
        symbol, args, auxes = load_checkpoint(prefix, epoch)
        mod = Module(symbol=symbol, **kwargs)
        mod._arg_params, mod._aux_params = args, auxes
        mod.params_initialized = True
        if load_optimizer_states:
            mod._preload_opt_states = _states_name(prefix, epoch)
        return mod

    def save_checkpoint(
        self,
        prefix: str,
        epoch: int,
        save_optimizer_states: bool = False,
        remove_amp_cast: bool = True,
    ) -> None:
        """Write symbol and parameters, and perhaps what the optimizer remembers."""
        write_symbol(f"{prefix}-symbol.json", self._symbol, remove_amp_cast)
        name = params_name(prefix, epoch)
        self.save_params(name)
        logging.info('Saved checkpoint to "%s"', name)
        if save_optimizer_states:
            name = _states_name(prefix, epoch)
            self.save_optimizer_states(name)
            logging.info('Saved optimizer state to "%s"', name)

    def save_optimizer_states(self, fname: str) -> None:
        """Write what the optimizer remembers, such as momenta."""
        self._need_optimizer()
        if self._update_on_kvstore:
            self._kvstore.save_optimizer_states(fname)
            return
        with replacing(local_path(fname)) as file:
            file.write(self._updater.get_states())

    def load_optimizer_states(self, fname: str) -> None:
        """Read what `save_optimizer_states` wrote, here or in MXNet."""
        self._need_optimizer()
        if self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
        else:
            self._updater.set_states(existing_file(fname).read_bytes())

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
            warnings.warn(
                "Parameters already initialized and force_init=False. init_params call ignored.",
                stacklevel=2,
            )
            return
        if not self.binded:
            raise AssertionError("call bind before initializing the parameters")
        self._make_host_params()
        attributes = self._symbol.attr_dict()
        for kind, given in ((self._arg_params, arg_params), (self._aux_params, aux_params)):
            missing = [] if given is None else [n for n in sorted(kind) if n not in given]
            if missing and not allow_missing:
                raise RuntimeError(not_presented(missing, given))
            for name, array in sorted(kind.items()):
                if given is not None and name in given:
                    _copy_param(name, given[name], array)
                elif initializer is not None:
                    initializer(InitDesc(name, attributes.get(name)), array)
        self.params_initialized = True
        self._params_dirty = False
        self._exec_group.set_params(self._arg_params, self._aux_params, allow_extra=allow_extra)

    def _make_host_params(self) -> None:
        """Make the arrays that `get_params` gives, if they are not there yet."""
        group = self._exec_group
        if self._arg_params is None:
            self._arg_params = _like(group.param_names, group.param_arrays)
        if self._aux_params is None:
            self._aux_params = _like(group.aux_names, group.aux_arrays)

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
            self.init_params(
                initializer=None,
                arg_params=arg_params,
                aux_params=aux_params,
                allow_missing=allow_missing,
                force_init=force_init,
                allow_extra=allow_extra,
            )
            return
        if self.params_initialized and not force_init:
            warnings.warn(
                "Parameters already initialized and force_init=False. set_params call ignored.",
                stacklevel=2,
            )
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
        shared_module: Module | None = None,
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
            self._data_names,
            self._label_names,
            data_shapes,
            label_shapes,
            self._symbol.list_arguments(),
        )
        shared_group = None
        if shared_module is not None:
            if not (shared_module.binded and shared_module.params_initialized):
                raise AssertionError("shared_module must be bound and have its parameters")
            shared_group = shared_module._exec_group
            if len(shared_group.execs) < len(self._context):
                raise AssertionError("shared_module has fewer contexts than this module")
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
            self.params_initialized = True
            self._arg_params = shared_module._arg_params
            self._aux_params = shared_module._aux_params
        elif self.params_initialized:  # a loaded module, or one that is bound again
            self._place_params()
        if shared_module is not None and shared_module.optimizer_initialized:
            self.borrow_optimizer(shared_module)

    def _take_shapes(self) -> None:
        group = self._exec_group
        self._data_shapes, self._label_shapes = group.data_shapes, group.label_shapes
        group.label_names = group.label_names or self._label_names

    def _place_params(self) -> None:
        """Copy the parameters that were there before to the executors."""
        given = {**self._arg_params, **self._aux_params}
        missing = [n for n in (*self._param_names, *self._aux_names) if n not in given]
        if missing:
            raise RuntimeError(not_presented(missing, given))
        args = {name: self._arg_params[name] for name in self._param_names}
        auxes = {name: self._aux_params[name] for name in self._aux_names}
        for names, blocks in (
            (self._param_names, self._exec_group.param_arrays),
            (self._aux_names, self._exec_group.aux_arrays),
        ):
            for name, block in zip(names, blocks, strict=True):
                _check_shape(name, given[name], block[0])
        self._exec_group.set_params(args, auxes)

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
            self._data_names,
            self._label_names,
            data_shapes,
            label_shapes,
            self._symbol.list_arguments(),
        )
        self._exec_group.reshape(data, labels)
        self._take_shapes()

    # -- optimizer ----------------------------------------------------------------------------

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = SGD_DEFAULTS,
        force_init: bool = False,
    ) -> None:
        """Get ready to update.

        Parameters
        ----------
        kvstore : str, KVStore or None
            How devices and machines exchange gradients; one device needs none.
        optimizer : str or Optimizer
            One that is made here scales gradients by 1 / batch size.
        optimizer_params : dict, or pairs
        force_init : bool
            Do it even if it was done before.
        """
        self._need_params()
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        if self._params_dirty:
            self._sync_params_from_devices()
        kvstore, on_kvstore = _create_kvstore(kvstore, len(self._context), self._arg_params)
        self._optimizer = made_optimizer(self, optimizer, optimizer_params, kvstore, on_kvstore)
        self._kvstore, self._update_on_kvstore = kvstore, on_kvstore
        self._updater = None
        if kvstore is not None:
            if self._compression_params:
                kvstore.set_gradient_compression(self._compression_params)
            if on_kvstore:
                kvstore.set_optimizer(self._optimizer)
            group = self._exec_group
            _initialize_kvstore(
                kvstore, group.param_arrays, self._arg_params, self._param_names, on_kvstore
            )
        if not on_kvstore:
            self._updater = opt.get_updater(self._optimizer)
        self.optimizer_initialized = True
        if self._preload_opt_states is not None:
            self.load_optimizer_states(self._preload_opt_states)
            self._preload_opt_states = None

    def borrow_optimizer(self, shared_module: Module) -> None:
        """Use another module's optimizer; both must share their parameters."""
        if not shared_module.optimizer_initialized:
            raise AssertionError("shared_module has no optimizer yet: call its init_optimizer")
        self._optimizer = shared_module._optimizer
        self._kvstore = shared_module._kvstore
        self._update_on_kvstore = shared_module._update_on_kvstore
        self._updater = shared_module._updater
        self.optimizer_initialized = True

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
            data_batch = _joined(data_batch)
        self._fit_shapes(data_batch)
        self._exec_group.forward(data_batch, is_train)

    def _fit_shapes(self, batch: Any) -> None:
        """Reshape if the batch has other shapes than the last one."""
        shapes = [desc.shape for desc in self._data_shapes]
        now = [x.shape for x in batch.data]
        if shapes == now[: len(shapes)]:
            return
        if len(now) < len(shapes):
            raise MXNetError(
                f"The batch has {len(now)} data array(s), but {len(shapes)} are needed: "
                f"{', '.join(d.name for d in self._data_shapes)}."
            )
        given = getattr(batch, "provide_data", None)
        data = given or [
            DataDesc(d.name, shape, d.dtype, d.layout)
            for d, shape in zip(self._data_shapes, now, strict=False)
        ]
        labels = getattr(batch, "provide_label", None)
        arrays = getattr(batch, "label", None)
        if not labels and arrays and self._label_shapes:
            labels = [
                DataDesc(d.name, x.shape, d.dtype, d.layout)
                for d, x in zip(self._label_shapes, arrays, strict=False)
            ]
        self._exec_group.reshape(data, labels or None)
        self._take_shapes()

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients; `out_grads` are those of the outputs."""
        self._need_params()
        self._exec_group.backward(out_grads=out_grads)

    def update(self) -> None:
        """Change the parameters by the gradients of the last backward."""
        self._need_optimizer()
        self._params_dirty = True
        group = self._exec_group
        if self._update_on_kvstore:
            _update_params_on_kvstore(
                group.param_arrays, group.grad_arrays, self._kvstore, group.param_names
            )
        else:
            _update_params(
                group.param_arrays,
                group.grad_arrays,
                updater=self._updater,
                num_device=len(self._context),
                kvstore=self._kvstore,
                param_names=group.param_names,
            )

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

    # -- all that training changes ------------------------------------------------------------

    def _training_state(self) -> dict[str, Any]:
        return state_of(self)

    def _restore_training_state(self, state: Mapping[str, Any]) -> None:
        restore(self, state)


def _name_list(names: Sequence[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())


def _states_name(prefix: str, epoch: int) -> str:
    return f"{prefix}-{epoch:04d}.states"


def _like(names: Sequence[str], blocks: Sequence[Sequence[NDArray]]) -> Params:
    """Return new arrays in the host's memory, like the first device's."""
    return {
        name: nd.zeros(block[0].shape, ctx=ctx.cpu(), dtype=block[0].dtype)
        for name, block in zip(names, blocks, strict=True)
    }


def _check_shape(name: str, given: NDArray, needed: NDArray) -> None:
    if given.shape != needed.shape:
        raise ShapeError(
            f"Shape inconsistent: parameter {name!r} is given as {given.shape}, but the network "
            f"needs {needed.shape}."
        )


def _copy_param(name: str, given: NDArray, target: NDArray) -> None:
    if given is not target:
        _check_shape(name, given, target)
        copy_into(target, given, name)


def _joined(batches: Sequence[Any]) -> Any:
    """Return one batch from those of several devices."""

    def joined(kind: str) -> list | None:
        lists = [getattr(batch, kind) for batch in batches]
        if not lists[0]:
            return None
        here = lists[0][0].context
        return [
            nd.concat(*(part.as_in_context(here) for part in parts), dim=0)
            for parts in zip(*lists, strict=True)
        ]

    return DataBatch(joined("data"), joined("label"))
