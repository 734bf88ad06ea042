"""`Module`: a symbol with parameters and an optimizer, on one device or several."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from .. import optimizer as opt
from .._process.memory import return_gaps
from ..context import Context, cpu, listed_contexts
from ..error import InvalidType, MXNetError
from ..formats.atomic import one_commit, replacing
from ..formats.checkpoints.state import get_fields, set_fields, tensors_of
from ..formats.files import existing_file, local_path
from ..formats.model_files import (
    Params,
    load_checkpoint,
    params_name,
    write_params,
    write_symbol,
)
from ..initializer import Initializer, Uniform
from ..io import DataDesc
from ..kvstore.gradient_exchange import (
    _create_kvstore,
    _initialize_kvstore,
    _update_params,
    _update_params_on_kvstore,
)
from ..ndarray import NDArray
from ..symbol import Symbol
from . import inputs
from .base_module import SGD_DEFAULTS, BaseModule
from .executor_group import DataParallelExecutorGroup, copy_into
from .input_check import InputCheck

_shape_of = attrgetter("shape")


class Module(BaseModule):
    """A symbol that can be trained and used for prediction.

    Parameters
    ----------
    symbol : Symbol
        The network; it ends in an output layer such as `SoftmaxOutput`.
    data_names, label_names : list of str
        Names of the inputs and labels in each batch.
    logger : logging.Logger
        Logger of the training; by default Python's `logging`.
    context : Context or list of Context
        Device, or list of devices over which each batch is split.
    work_load_list : list of float, optional
        Relative size of each device's part of the batch.
    fixed_param_names : list of str, optional
        Parameters that are not trained.
    state_names : list of str, optional
        Arguments that are neither parameters nor inputs.
    group2ctxs : dict or list of dicts, optional
        Device of each ``ctx_group`` of the symbol.
    compression_params : dict, optional
        Compression of gradients between devices.

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
        if not hasattr(symbol, "list_arguments"):
            raise InvalidType(
                f"Module needs a Symbol, got a {type(symbol).__name__}. A Gluon block returns one: "
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
        inputs.check_input_names(symbol, self._data_names, "data_names", True)
        inputs.check_input_names(symbol, self._label_names, "label_names", False)
        inputs.check_input_names(symbol, self._state_names, "state_names", True)
        inputs.check_input_names(symbol, self._fixed_param_names, "fixed_param_names", True)
        fed = {*self._data_names, *self._label_names, *self._state_names}
        self._param_names = [name for name in symbol.list_arguments() if name not in fed]
        self._aux_names = symbol.list_auxiliary_states()
        self._output_names = symbol.list_outputs()
        self._arg_params: Any = None  # `Params` after initialization
        self._aux_params: Any = None
        self._params_dirty = False
        self._grad_req: Any = None
        self._exec_group: Any = None  # a DataParallelExecutorGroup after `bind`
        self._data_shapes: Any = None  # a list of DataDesc after `bind`
        self._label_shapes: list[DataDesc] | None = None
        self._compression_params = compression_params
        self._optimizer: Any = None
        self._kvstore: Any = None
        self._update_on_kvstore: bool | None = None
        self._updater: Any = None
        self._preload_opt_states: str | None = None
        check = InputCheck(symbol, [*self._data_names, *self._label_names])
        self._input_check = check if check.is_active else None  # checks the first batches

    @property
    def _total_exec_bytes(self) -> int:
        """Memory of the executors' outputs in megabytes, as reported by `Executor.debug_str`."""
        execs = self._exec_group.execs if self._exec_group is not None else []
        return sum(int(exe.debug_str().split("\n")[-3].split()[1]) for exe in execs)

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
        """Initialize all parameters.

        Parameters
        ----------
        initializer : Initializer
            Initializer of parameters without a value.
        arg_params, aux_params : dict of NDArray, optional
            Values by name; unknown names are ignored.
        allow_missing : bool
            Whether to initialize parameters that are missing in `arg_params` and `aux_params`.
        force_init : bool
            Whether to initialize again if already done.
        allow_extra : bool
            Accepted for compatibility; extra names are always ignored.
        """
        if self.params_initialized and not force_init:
            inputs.warn_ignored("init_params")
            return
        if not self.binded:
            raise AssertionError("call bind before initializing the parameters")
        self._make_host_params()
        attributes = self._symbol.attr_dict()
        for arrays, params in ((self._arg_params, arg_params), (self._aux_params, aux_params)):
            inputs.give_values(arrays, params, initializer, attributes, allow_missing)
        self.params_initialized = True
        self._params_dirty = False
        self._exec_group.set_params(self._arg_params, self._aux_params, allow_extra=allow_extra)

    def _make_host_params(self) -> None:
        group = self._exec_group
        if self._arg_params is None:
            self._arg_params = inputs.host_arrays(group.param_names, group.param_arrays)
        if self._aux_params is None:
            self._aux_params = inputs.host_arrays(group.aux_names, group.aux_arrays)

    def set_params(
        self,
        arg_params: Mapping[str, NDArray],
        aux_params: Mapping[str, NDArray],
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Set the parameters; with `allow_missing`, missing parameters are unchanged."""
        if not allow_missing:
            super().set_params(arg_params, aux_params, False, force_init, allow_extra)
            return
        if self.params_initialized and not force_init:
            inputs.warn_ignored("set_params")
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
        """Bind for batches of these shapes.

        Parameters
        ----------
        data_shapes, label_shapes : list of DataDesc, or of (name, shape)
        for_training : bool
            Whether to bind for training, with gradients.
        inputs_need_grad : bool
            Whether to compute gradients of the inputs, for `get_input_grads`.
        force_rebind : bool
            Whether to bind again if already bound.
        shared_module : Module, optional
            Module whose parameters are shared.
        grad_req : {'write', 'add', 'null'}, or a list or dict of them
        """
        if force_rebind:
            self._reset_bind()
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if not for_training and inputs_need_grad:
            raise AssertionError("inputs_need_grad=True needs for_training=True")
        data, labels = inputs.parse_data_desc(
            self._data_names, self._label_names, data_shapes, label_shapes, self._symbol
        )
        shared_group = None
        if shared_module is not None:
            shared_group = self._group_of(shared_module)
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
        elif self.params_initialized:  # loaded, or bound again
            inputs.copy_to_devices(self._exec_group, self._arg_params, self._aux_params)

    def _group_of(self, module: Module) -> DataParallelExecutorGroup:
        if not (module.binded and module.params_initialized):
            raise AssertionError("shared_module must be bound and have its parameters")
        if len(module._exec_group.execs) < len(self._context):
            raise AssertionError("shared_module has fewer contexts than this module")
        return module._exec_group

    def _share_with(self, module: Module) -> None:
        self.params_initialized = True
        self._arg_params, self._aux_params = module._arg_params, module._aux_params
        if module.optimizer_initialized:
            self.borrow_optimizer(module)

    def _take_shapes(self) -> None:
        group = self._exec_group
        self._data_shapes, self._label_shapes = group.data_shapes, group.label_shapes
        self._batch_shapes = [desc.shape for desc in group.data_shapes]
        group.label_names = group.label_names or self._label_names

    def _reset_bind(self) -> None:
        self.binded = False
        if self._params_dirty:
            self._sync_params_from_devices()
        self._exec_group = None
        self._data_shapes = self._label_shapes = None

    def reshape(self, data_shapes: Sequence, label_shapes: Sequence | None = None) -> None:
        """Rebind for batches of different shapes; parameters are kept."""
        self._need_bind()
        data, labels = inputs.parse_data_desc(
            self._data_names, self._label_names, data_shapes, label_shapes, self._symbol
        )
        self._exec_group.reshape(data, labels)
        self._take_shapes()

    # -- steps --------------------------------------------------------------------------------

    def prepare(self, data_batch: Any, sparse_row_id_fn: Callable | None = None) -> None:
        """Prepare for the batch of the next `forward`.

        In MXNet this fetches the rows of sparse parameters for the batch. Here every device has all
        rows; only the names returned by `sparse_row_id_fn` are checked.
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
        """Compute the outputs of a batch of any size.

        Parameters
        ----------
        data_batch : DataBatch, or a list with one for each device
        is_train : bool, optional
            Whether to run in training mode; by default the `for_training` of `bind`.
        """
        self._need_params()
        if isinstance(data_batch, list):
            data_batch = inputs.join_batches(data_batch)
        if [*map(_shape_of, data_batch.data)] != self._batch_shapes:
            changed = inputs.descs_of_batch(data_batch, self._data_shapes, self._label_shapes)
            if changed is not None:
                self._exec_group.reshape(*changed)
                self._take_shapes()
        check = self._input_check
        if check is not None and (self.for_training if is_train is None else is_train):
            named = inputs.name_arrays(data_batch, self._data_shapes, self._label_shapes)
            check(named, [shape for _, shape in self.output_shapes])
            self._input_check = check if check.is_active else None
        self._exec_group.forward(data_batch, is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients; `out_grads` are the gradients of the outputs."""
        self._need_params()
        self._exec_group.backward(out_grads=out_grads)

    # -- results ------------------------------------------------------------------------------

    def get_outputs(self, merge_multi_context: bool = True) -> list:
        """Return the outputs of the last forward, concatenated over devices or as lists."""
        self._need_params()
        return self._exec_group.get_outputs(merge_multi_context=merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list:
        """Return the gradients of the inputs, concatenated over devices or as lists."""
        self._need_params()
        return self._exec_group.get_input_grads(merge_multi_context=merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> list:
        """Return a list for each state, with one array for each device."""
        self._need_params()
        return self._exec_group.get_states(merge_multi_context=merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the states to arrays of `get_states`, or to a number."""
        self._need_params()
        self._exec_group.set_states(states, value)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Update a metric with the outputs of the last forward."""
        self._exec_group.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """Install a monitor on the executors."""
        self._need_bind()
        self._exec_group.install_monitor(mon)

    # -- optimizer ----------------------------------------------------------------------------

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = SGD_DEFAULTS,
        force_init: bool = False,
    ) -> None:
        """Create the optimizer and its states.

        Parameters
        ----------
        kvstore : str, KVStore or None
            Store that sums gradients over devices and machines, its name, or None.
        optimizer : str or Optimizer
            Optimizer, or its name. One created by name scales gradients by 1 / batch size.
        optimizer_params : dict, or pairs
            Arguments of the optimizer, as a dict or pairs.
        force_init : bool
            Whether to initialize again if already done.
        """
        self._need_params()
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        if self._params_dirty:
            self._sync_params_from_devices()
        kvstore, on_kvstore = _create_kvstore(kvstore, len(self._context), self._arg_params)
        self._optimizer = self._make_optimizer(optimizer, optimizer_params, kvstore, on_kvstore)
        self._kvstore, self._update_on_kvstore = kvstore, on_kvstore
        if kvstore is not None:
            if self._compression_params:
                kvstore.set_gradient_compression(self._compression_params)
            if on_kvstore:
                kvstore.set_optimizer(self._optimizer)
            arrays = self._exec_group.param_arrays
            _initialize_kvstore(kvstore, arrays, self._arg_params, self._param_names, on_kvstore)
        self._updater = None if on_kvstore else opt.get_updater(self._optimizer)
        self.optimizer_initialized = True
        if self._preload_opt_states is not None:
            self.load_optimizer_states(self._preload_opt_states)
            self._preload_opt_states = None

    def _make_optimizer(
        self, optimizer: Any, params: Any, kvstore: Any, on_kvstore: bool
    ) -> opt.Optimizer:
        batch_size = self._exec_group.batch_size
        if kvstore is not None and "dist" in kvstore.type and "_sync" in kvstore.type:
            batch_size *= kvstore.num_workers
        scale = 1.0 / batch_size
        count = 1 if on_kvstore else len(self._context)
        names = {
            i * count + k: name for k in range(count) for i, name in enumerate(self._param_names)
        }
        if isinstance(optimizer, str):
            settings = {"rescale_grad": scale, **dict(params)}
            return opt.create(optimizer, sym=self.symbol, param_idx2name=names, **settings)
        if not isinstance(optimizer, opt.Optimizer):
            raise TypeError(f"optimizer is a name or an Optimizer, not {type(optimizer).__name__}")
        if optimizer.rescale_grad != scale:
            warnings.warn(
                "Optimizer created manually outside Module but rescale_grad is not normalized to "
                f"1.0/batch_size/num_workers ({optimizer.rescale_grad} vs. {scale}). Is this "
                "intended?",
                stacklevel=3,  # attributed to the caller of init_optimizer
            )
        if not optimizer.idx2name:
            optimizer.idx2name = names
        return optimizer

    def borrow_optimizer(self, shared_module: Module) -> None:
        """Use the optimizer of another module that shares its parameters.

        Parameters
        ----------
        shared_module
            The other module.
        """
        if not shared_module.optimizer_initialized:
            raise AssertionError("shared_module has no optimizer yet: call its init_optimizer")
        self._optimizer = shared_module._optimizer
        self._kvstore = shared_module._kvstore
        self._update_on_kvstore = shared_module._update_on_kvstore
        self._updater = shared_module._updater
        self.optimizer_initialized = True

    def update(self) -> None:
        """Update the parameters by the gradients of the last backward."""
        if not (self.binded and self.params_initialized and self.optimizer_initialized):
            self._need_optimizer()
        self._params_dirty = True
        group, store = self._exec_group, self._kvstore
        if store is None and len(self._context) == 1:
            self._updater(*group.trained)
        elif self._update_on_kvstore:
            _update_params_on_kvstore(
                group.param_arrays, group.grad_arrays, store, group.param_names
            )
        else:
            _update_params(
                group.param_arrays,
                group.grad_arrays,
                self._updater,
                len(self._context),
                kvstore=store,
                param_names=group.param_names,
            )
        return_gaps()

    # -- files --------------------------------------------------------------------------------

    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """Return a module with the symbol and the parameters of a checkpoint.

        Parameters
        ----------
        prefix
            Prefix of the file names.
        epoch
            Number of the epoch.
        load_optimizer_states
            Whether to load the states of the optimizer too.
        """
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
        """Save the symbol, the parameters and optionally the optimizer's states atomically.

        Parameters
        ----------
        prefix
            Prefix of the file names.
        epoch
            Number of the epoch.
        save_optimizer_states
            Whether to save the states of the optimizer too.
        remove_amp_cast
            Whether to remove casts of mixed precision from the saved symbol.
        """
        with one_commit():
            text = write_symbol(f"{prefix}-symbol.json", self._symbol, remove_amp_cast)
            name = params_name(prefix, epoch)
            if type(self).save_params is BaseModule.save_params:
                write_params(name, *self.get_params(), text)
            else:  # a subclass may override the method
                self.save_params(name)
            if save_optimizer_states:
                self.save_optimizer_states(_states_name(prefix, epoch))
        logging.info('Saved checkpoint to "%s"', name)
        if save_optimizer_states:
            logging.info('Saved optimizer state to "%s"', _states_name(prefix, epoch))

    def save_optimizer_states(self, fname: str) -> None:
        """Save the states of the optimizer, such as momenta.

        Parameters
        ----------
        fname
            Path of the file.
        """
        self._need_optimizer()
        if self._update_on_kvstore:
            self._kvstore.save_optimizer_states(fname)
            return
        with replacing(local_path(fname)) as file:
            file.write(self._updater.get_states())

    def load_optimizer_states(self, fname: str) -> None:
        """Load a file of `save_optimizer_states`, of MXNext or MXNet.

        Parameters
        ----------
        fname
            Path of the file.
        """
        self._need_optimizer()
        if self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
        else:
            self._updater.set_states(existing_file(fname).read_bytes())

    # -- training state ------------------------------------------------------------

    def _training_state(self) -> dict[str, Any]:
        """Return parameters on every device, and the states and counters of the optimizer."""
        group = self._exec_group
        return {
            "arg": dict(zip(group.param_names, group.param_arrays, strict=True)),
            "aux": dict(zip(group.aux_names, group.aux_arrays, strict=True)),
            "optimizer": get_fields(self._optimizer),
            "states": self._states_holder().get_states(),
            "residuals": dict(self._residuals()),
        }

    def _restore_training_state(self, state: Mapping[str, Any]) -> None:
        group = self._exec_group
        for names, blocks, saved in (
            (group.param_names, group.param_arrays, state["arg"]),
            (group.aux_names, group.aux_arrays, state["aux"]),
        ):
            for name, block in zip(names, blocks, strict=True):
                if len(block) != len(saved[name]):
                    raise MXNetError(
                        f"The training state is of {len(saved[name])} device(s), this module has "
                        f"{len(block)}: batches would be split differently."
                    )
                for target, source in zip(block, saved[name], strict=True):
                    copy_into(target, source, name)
        self._sync_params_from_devices()
        self._states_holder().set_states(state["states"])
        set_fields(self._optimizer, state["optimizer"])
        if self._update_on_kvstore:  # the store has its own copy of the weights
            self._kvstore._replace({n: self._arg_params[n] for n in group.param_names})
        self._residuals().update(tensors_of(state["residuals"]))

    def _residuals(self) -> dict:
        return getattr(getattr(self._kvstore, "_compression", None), "residuals", {})

    def _states_holder(self) -> Any:
        """Return the updater with the optimizer's states: the module's or the store's."""
        store, holder = self._kvstore, self._updater
        if self._update_on_kvstore:
            holder = getattr(store, "_updater", None)
        if holder is None:
            raise MXNetError(
                f"fit(resume=...) cannot keep the optimizer's states of a {store.type!r} store: "
                "they are in other processes."
            )
        return holder


def _name_list(names: Sequence[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())


def _states_name(prefix: str, epoch: int) -> str:
    return f"{prefix}-{epoch:04d}.states"
