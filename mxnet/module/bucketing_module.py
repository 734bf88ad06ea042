"""`BucketingModule`: one module per bucket key, with shared parameters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import context as ctx
from .. import ndarray as nd
from ..context import Context
from ..formats.atomic import one_commit
from ..formats.model_files import load_params, params_name, write_params, write_symbol
from ..initializer import Initializer, Uniform
from ..name import NameManager
from ..ndarray import NDArray
from . import inputs
from .base_module import SGD_DEFAULTS, BaseModule
from .module import Module

SymGen = Callable[[Any], tuple]


class BucketingModule(BaseModule):
    """A module for inputs of different shapes, such as sentences of different lengths.

    Its methods have the same parameters as those of `Module`.

    Parameters
    ----------
    sym_gen : callable
        ``sym_gen(bucket_key)`` returns (symbol, data names, label names).
    default_bucket_key
        The largest bucket; it is bound first and has all parameters.
    logger, context, work_load_list, fixed_param_names, state_names, group2ctxs, compression_params
        See `Module`.

    >>> def network(length):
    ...     words = mx.sym.sum(mx.sym.var("data"), axis=1)
    ...     net = mx.sym.FullyConnected(words, num_hidden=2, name="fc")
    ...     return mx.sym.SoftmaxOutput(net, name="softmax"), ["data"], ["softmax_label"]
    >>> module = mx.mod.BucketingModule(network, default_bucket_key=10)
    >>> module.bind([("data", (4, 10, 3))], [("softmax_label", (4,))])
    >>> module.binded
    True
    """

    def __init__(
        self,
        sym_gen: SymGen,
        default_bucket_key: Any = None,
        logger: Any = logging,
        context: Context | Sequence[Context] | None = None,
        work_load_list: Sequence[float] | None = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(logger=logger)
        if default_bucket_key is None:
            raise AssertionError("default_bucket_key is needed: the key of the largest bucket")
        self._default_bucket_key = default_bucket_key
        self._sym_gen = sym_gen
        self._context = ctx.cpu() if context is None else context
        self._work_load_list = work_load_list
        self._fixed_param_names = list(fixed_param_names or ())
        self._state_names = list(state_names or ())
        self._group2ctxs = group2ctxs
        self._compression_params = compression_params
        self._buckets: dict[Any, Module] = {}
        self._curr_module: Any = None  # a Module after `bind`
        self._curr_bucket_key: Any = None
        self._last_run: Module | None = None  # the module of the last forward
        self._params_dirty = False
        self._monitor: Any = None
        self._grad_req: Any = None
        self._loaded: tuple[dict, dict] | None = None  # parameters to set in `bind`
        self._call_sym_gen(default_bucket_key)  # fail early if the generator fails

    def _call_sym_gen(self, key: Any) -> tuple:
        """Return symbol and names of a bucket; automatic names start from 0 in each."""
        with NameManager():
            bucket = self._sym_gen(key)
        if not isinstance(bucket, tuple | list) or len(bucket) != 3:
            raise TypeError("sym_gen(bucket_key) must return (symbol, data_names, label_names)")
        return tuple(bucket)

    def _make_module(self, key: Any) -> Module:
        symbol, data_names, label_names = self._call_sym_gen(key)
        return Module(
            symbol,
            data_names,
            label_names,
            logger=self.logger,
            context=self._context,
            work_load_list=self._work_load_list,
            fixed_param_names=self._fixed_param_names,
            state_names=self._state_names,
            group2ctxs=self._group2ctxs,
            compression_params=self._compression_params,
        )

    def _reset_bind(self) -> None:
        self.binded = False
        self._buckets = {}
        self._curr_module = self._curr_bucket_key = self._last_run = None

    # -- names and shapes ---------------------------------------------------------------------

    @property
    def data_names(self) -> list[str]:
        """Names of the inputs, of the current bucket or of the default one."""
        if self.binded:
            return self._curr_module.data_names
        return self._call_sym_gen(self._default_bucket_key)[1]

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs, of the current bucket or of the default one."""
        if self.binded:
            return self._curr_module.output_names
        return self._call_sym_gen(self._default_bucket_key)[0].list_outputs()

    @property
    def data_shapes(self) -> list:
        """Descriptions of the current bucket's inputs."""
        self._need_bind()
        return self._curr_module.data_shapes

    @property
    def label_shapes(self) -> list | None:
        """Descriptions of the current bucket's labels."""
        self._need_bind()
        return self._curr_module.label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and shape of each output of the current bucket."""
        self._need_bind()
        return self._curr_module.output_shapes

    @property
    def symbol(self) -> Any:
        """The current bucket's symbol."""
        self._need_bind()
        return self._curr_module.symbol

    # -- parameters ---------------------------------------------------------------------------

    def get_params(self) -> tuple[dict, dict]:
        """Return the parameters, which all buckets share."""
        self._need_params()
        self._curr_module._params_dirty = self._params_dirty
        params = self._curr_module.get_params()
        self._params_dirty = False
        return params

    def init_params(
        self,
        initializer: Initializer | None = Uniform(0.01),  # noqa: B008 (it holds no state)
        arg_params: Any = None,
        aux_params: Any = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Initialize the parameters."""
        if self.params_initialized and not force_init:
            return
        if not self.binded:
            raise AssertionError("call bind before initializing the parameters")
        self._curr_module.init_params(
            initializer=initializer,
            arg_params=arg_params,
            aux_params=aux_params,
            allow_missing=allow_missing,
            force_init=force_init,
            allow_extra=allow_extra,
        )
        self._params_dirty = False
        self.params_initialized = True

    def set_params(
        self,
        arg_params: Mapping[str, NDArray],
        aux_params: Mapping[str, NDArray],
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Set the parameters."""
        if not allow_missing:
            super().set_params(arg_params, aux_params, False, force_init, allow_extra)
            return
        if self.params_initialized and not force_init:
            inputs.warn_ignored("set_params")
            return
        self._curr_module.set_params(
            arg_params,
            aux_params,
            allow_missing=allow_missing,
            force_init=force_init,
            allow_extra=allow_extra,
        )
        self._params_dirty = True
        self.params_initialized = True

    def get_states(self, merge_multi_context: bool = True) -> list:
        """Return the states of the current bucket."""
        self._need_params()
        return self._curr_module.get_states(merge_multi_context=merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the states of the current bucket."""
        self._need_params()
        self._curr_module.set_states(states, value)

    # -- binding ------------------------------------------------------------------------------

    def bind(
        self,
        data_shapes: Sequence,
        label_shapes: Sequence | None = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        """Bind the default bucket; the others are bound at their first batch."""
        if shared_module is not None:
            raise AssertionError("shared_module for BucketingModule is not supported")
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        params = self.get_params() if self.params_initialized and self.binded else None
        params = params or self._loaded
        before = self._curr_module
        self._reset_bind()
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self._grad_req = grad_req
        module = self._make_module(self._default_bucket_key)
        module.bind(data_shapes, label_shapes, for_training, inputs_need_grad, grad_req=grad_req)
        self._curr_module, self._curr_bucket_key = module, self._default_bucket_key
        self._buckets[self._default_bucket_key] = module
        self.binded = True
        if params is not None:  # bound again or loaded
            self.set_params(*params)
        if before is not None and self.optimizer_initialized:
            module.borrow_optimizer(before)

    def switch_bucket(
        self, bucket_key: Any, data_shapes: Sequence, label_shapes: Sequence | None = None
    ) -> None:
        """Switch to a bucket, and bind it if necessary.

        Parameters
        ----------
        bucket_key
            Key of the bucket.
        data_shapes
            Names and shapes of the data.
        label_shapes
            Names and shapes of the labels.
        """
        if not self.binded:
            raise AssertionError("call bind before switching bucket")
        if bucket_key not in self._buckets:
            first = self._buckets[self._default_bucket_key]
            module = self._make_module(bucket_key)
            module.bind(
                data_shapes,
                label_shapes,
                self.for_training,
                self.inputs_need_grad,
                shared_module=first,
                grad_req=self._grad_req,
            )
            if self._monitor is not None:
                module.install_monitor(self._monitor)
            self._buckets[bucket_key] = module
        self._curr_module, self._curr_bucket_key = self._buckets[bucket_key], bucket_key

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = SGD_DEFAULTS,
        force_init: bool = False,
    ) -> None:
        """Create the optimizer, which all buckets share."""
        self._need_params()
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        self._curr_module._params_dirty = self._params_dirty
        self._curr_module.init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        for module in self._buckets.values():
            if module is not self._curr_module:
                module.borrow_optimizer(self._curr_module)
        self.optimizer_initialized = True

    # -- steps --------------------------------------------------------------------------------

    def prepare(self, data_batch: Any, sparse_row_id_fn: Callable | None = None) -> None:
        """Bind the bucket of the next batch."""
        self._need_params()
        current = self._curr_bucket_key
        self._switch_for(data_batch)
        self._curr_module.prepare(data_batch, sparse_row_id_fn=sparse_row_id_fn)
        self._curr_module, self._curr_bucket_key = self._buckets[current], current

    def _switch_for(self, batch: Any) -> None:
        key = getattr(batch, "bucket_key", None)
        if key is None:
            key = self._default_bucket_key
        if key in self._buckets:
            self._curr_module, self._curr_bucket_key = self._buckets[key], key
            return
        data: Any = batch.provide_data or _shapes_like(self._buckets, batch.data, "data")
        labels = batch.provide_label or _shapes_like(self._buckets, batch.label, "label")
        self.switch_bucket(key, data, labels)

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch in its bucket."""
        self._need_params()
        self._switch_for(data_batch)
        if self._last_run is not self._curr_module:  # buckets share memory
            if self._last_run is not None:
                self._last_run._exec_group.release_outputs()
            self._last_run = self._curr_module
        self._curr_module.forward(data_batch, is_train=is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients."""
        self._need_params()
        self._curr_module.backward(out_grads=out_grads)

    def update(self) -> None:
        """Update the parameters by the gradients of the last backward."""
        self._need_optimizer()
        self._params_dirty = True
        self._curr_module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list:
        """Return the outputs of the last forward."""
        self._need_params()
        return self._curr_module.get_outputs(merge_multi_context=merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list:
        """Return the gradients of the inputs."""
        self._need_params()
        return self._curr_module.get_input_grads(merge_multi_context=merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Update a metric with the outputs of the last forward."""
        self._need_params()
        self._curr_module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """Install a monitor on all buckets, including later ones."""
        self._need_bind()
        self._monitor = mon
        for module in self._buckets.values():
            module.install_monitor(mon)

    # -- files --------------------------------------------------------------------------------

    def save_checkpoint(self, prefix: str, epoch: int, remove_amp_cast: bool = False) -> None:
        """Write the parameters, the symbol of every bucket, and the list of buckets.

        Parameters
        ----------
        prefix
            Prefix of the file names.
        epoch
            Number of the epoch.
        remove_amp_cast
            Whether to remove casts of mixed precision from the saved symbol.
        """
        self._need_params()
        with one_commit():
            nd.save(f"{prefix}.buckets", nd.array(list(self._buckets), dtype="int32"))
            for key, module in self._buckets.items():
                write_symbol(f"{prefix}-{key}-symbol.json", module.symbol, remove_amp_cast)
            write_params(params_name(prefix, epoch), *self.get_params())

    @staticmethod
    def load(
        prefix: str,
        epoch: int,
        sym_gen: SymGen | None = None,
        default_bucket_key: Any = None,
        **kwargs: Any,
    ) -> BucketingModule:
        """Return a module with the parameters of a checkpoint.

        Parameters
        ----------
        prefix
            Prefix of the file names.
        epoch
            Number of the epoch.
        sym_gen
            Function of a bucket key that returns symbol, data names and label names.
        default_bucket_key
            The largest bucket.
        """
        if sym_gen is None:
            raise AssertionError("sym_gen is required for loading BucketingModule")
        if default_bucket_key is None:
            raise AssertionError("default_bucket_key is required for loading BucketingModule")
        args, auxes = load_params(prefix, epoch)
        return BucketingModule.load_dict(
            sym_gen=sym_gen,
            default_bucket_key=default_bucket_key,
            arg_params=args,
            aux_params=auxes,
            **kwargs,
        )

    @staticmethod
    def load_dict(
        sym_dict: Mapping[Any, Any] | None = None,
        sym_gen: SymGen | None = None,
        default_bucket_key: Any = None,
        arg_params: Mapping[str, NDArray] | None = None,
        aux_params: Mapping[str, NDArray] | None = None,
        **kwargs: Any,
    ) -> BucketingModule:
        """Return a module with these parameters; symbols come from `sym_gen`.

        Parameters
        ----------
        sym_dict
            Symbols by bucket key.
        sym_gen
            Function of a bucket key that returns symbol, data names and label names.
        default_bucket_key
            The largest bucket.
        arg_params, aux_params
            Parameters and auxiliary states by name.
        """
        if sym_gen is None:
            raise AssertionError("sym_gen is required for loading BucketingModule")
        module = BucketingModule(sym_gen, default_bucket_key, **kwargs)
        module._loaded = (dict(arg_params or {}), dict(aux_params or {}))
        module.params_initialized = True
        return module

    # -- training state ------------------------------------------------------------

    def _training_state(self) -> Mapping[str, Any]:
        return self._curr_module._training_state()

    def _restore_training_state(self, state: Mapping[str, Any]) -> None:
        self._curr_module._restore_training_state(state)


def _shapes_like(buckets: Mapping[Any, Module], arrays: Any, kind: str) -> list | None:
    """Describe a batch that has no descriptions, with the names of the first bucket."""
    if not arrays:
        return None
    first = next(iter(buckets.values()))
    names = first.data_names if kind == "data" else first.label_names
    return [(name, x.shape) for name, x in zip(names, arrays, strict=False)]
