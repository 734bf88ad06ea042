"""`Trainer`: applies an optimizer to parameters, on one device or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from .. import kvstore as kvs
from .. import optimizer as opt
from .. import parallel as hvd
from .._process import env
from .._process.memory import return_gaps
from ..context import Context
from ..error import MXNetError
from ..formats.atomic import replacing
from ..formats.files import existing_file, local_path
from ..kvstore.exchange import KeyedExchange, exchange_with
from ..kvstore.gradient_exchange import LARGE_WEIGHT
from ..ndarray import NDArray
from ..visualization.notebook import facts_html
from .parameter import Generation, Parameter, ParameterDict, ParameterError

__all__ = ["Trainer"]

_record, _is_fresh = attrgetter("_grad"), attrgetter("fresh")


class Trainer:
    """Updates parameters by their gradients, once per `step`.

    Parameters
    ----------
    params : ParameterDict, dict or list of Parameters
        Parameters to update; those of a dict are ordered by name.
    optimizer : str or Optimizer
        An optimizer, or its name, such as ``'adam'``.
    optimizer_params : dict
        Arguments of the optimizer, if it is given by name.
    kvstore : str
        Store that sums gradients over devices and machines, its name, or None.
    compression_params : dict
        Compression of gradients for transfer, such as ``{'type': '2bit'}``.
    update_on_kvstore : bool
        Whether the store updates the weights; otherwise it only sums gradients.

    >>> w = mx.gluon.Parameter("w", shape=(2,), init="ones")
    >>> w.initialize()
    >>> trainer = mx.gluon.Trainer([w], "sgd", {"learning_rate": 0.5})
    >>> with mx.autograd.record():
    ...     loss = (w.data() * 2).sum()
    >>> loss.backward()
    >>> trainer.step(batch_size=1)
    >>> w.data().asnumpy()
    array([0., 0.], dtype=float32)
    """

    def __init__(
        self,
        params: ParameterDict | Mapping[str, Parameter] | Sequence[Parameter],
        optimizer: str | opt.Optimizer,
        optimizer_params: Mapping[str, Any] | None = None,
        kvstore: Any = "device",
        compression_params: Mapping[str, Any] | None = None,
        update_on_kvstore: bool | None = None,
    ) -> None:
        self._params = _list_parameters(params)
        self._param2idx = {param.name: i for i, param in enumerate(self._params)}
        for param in self._params:
            param._set_trainer(self)
        self._contains_sparse_weight = any(p._stype != "default" for p in self._params)
        self._contains_sparse_grad = any(p._grad_stype != "default" for p in self._params)
        self._compression_params = compression_params
        self._contexts = self._check_contexts()
        self._init_optimizer(optimizer, dict(optimizer_params or {}))
        self._scale = self._optimizer.rescale_grad
        self._kvstore_params = {"kvstore": kvstore, "update_on_kvstore": update_on_kvstore}
        self._plan: tuple = ()
        self._reset_kvstore()

    # -- setting up ---------------------------------------------------------------------------

    def _check_contexts(self) -> list[Context]:
        """Return the contexts of the parameters, which must be the same for all."""
        contexts: list[Context] | None = None
        for param in self._params:
            own = param.list_ctx()
            if contexts is not None and contexts != own:
                raise ParameterError(
                    "All Parameters must be initialized on the same set of contexts, but Parameter "
                    f"{param.name} is initialized on {own} while previous Parameters are "
                    f"initialized on {contexts}."
                )
            contexts = own
        return contexts or []

    def _init_optimizer(self, optimizer: str | opt.Optimizer, arguments: dict[str, Any]) -> None:
        by_index = dict(enumerate(self._params))
        if isinstance(optimizer, opt.Optimizer):
            if arguments:
                raise ParameterError(
                    "optimizer_params must be None if optimizer is an instance of Optimizer "
                    "instead of str"
                )
            self._optimizer = optimizer
            self._optimizer.param_dict = by_index
        else:
            self._optimizer = opt.create(optimizer, param_dict=by_index, **arguments)
        self._updaters = [opt.get_updater(self._optimizer) for _ in self._contexts]

    def _reset_kvstore(self) -> None:
        """Drop the store; the next step makes a new one from the current weights."""
        self._kvstore: Any = None
        if getattr(self, "_early", None):
            self._early.close()
        self._early: Any = None  # sends gradients during backward; False if not applicable
        self._early_failures = 0
        self._kv_initialized = False
        self._distributed: bool | None = None
        self._update_on_kvstore: bool | None = None
        self._params_to_init = list(self._params)
        self._overwritten: dict[int, Parameter] = {}  # since the last step

    def _repr_html_(self) -> str:
        optimizer = self._optimizer
        trained = [p for p in self._params if p.grad_req != "null"]
        scheduler = optimizer.lr_scheduler
        facts = {
            "optimizer": type(optimizer).__name__,
            "learning rate": optimizer.learning_rate,
            "scheduler": "none" if scheduler is None else type(scheduler).__name__,
            "weight decay": optimizer.wd,
            "updates": optimizer.num_update,
            "parameters": f"{len(trained)} trained, {len(self._params) - len(trained)} fixed",
            "devices": ", ".join(map(str, self._contexts)),
        }
        return facts_html(type(self).__name__, facts)

    def _forget_weight(self, param: Parameter) -> None:
        """Mark a parameter that is about to be overwritten; a store may hold a copy."""
        if not (self._kv_initialized and self._update_on_kvstore) or param in self._params_to_init:
            return
        if not self._distributed:
            self._reset_kvstore()
        elif self._is_async():
            raise MXNetError(
                f"Cannot reset distributed KVStore: Parameter '{param.name}' is kept by the "
                f"servers of the {self._kvstore.type!r} store, which other workers update. Load "
                "parameters before the first step, or use a synchronous store."
            )
        else:
            self._overwritten[self._params.index(param)] = param

    def _init_kvstore(self) -> None:
        kvstore = self._kvstore_params["kvstore"]
        on_store = self._kvstore_params["update_on_kvstore"]
        self._contexts = self._check_contexts()
        if len(self._updaters) != len(self._contexts):
            self._updaters = [opt.get_updater(self._optimizer) for _ in self._contexts]
        store = self._make_kvstore(kvstore)
        if store is None:
            self._kvstore, self._distributed, self._update_on_kvstore = None, False, None
            self._kv_initialized = True
            return
        self._distributed = kvs.is_distributed(store.type)
        self._check_custom_store(store)
        update = _updates_by_default(store, self._params) if on_store is None else on_store
        if update and not store.is_capable(kvs.KVStoreBase.OPTIMIZER):
            raise ValueError(
                f"Please set update_on_kvstore=False when training with {type(store)}, which "
                "cannot update weights."
            )
        if self._contains_sparse_weight and not update:
            raise ValueError(
                "A row_sparse Parameter is kept and updated by the store: update_on_kvstore=False "
                "is not possible."
            )
        if "async" in store.type and not update:
            raise ValueError("Please set update_on_kvstore=True when training in async mode.")
        if self._compression_params:
            store.set_gradient_compression(dict(self._compression_params))
        if update:
            store.set_optimizer(self._optimizer)
        self._kvstore, self._update_on_kvstore, self._kv_initialized = store, bool(update), True

    def _check_custom_store(self, store: Any) -> None:
        """Raise for sparse parameters in a store that supports dense `pushpull` only."""
        if exchange_with(store).takes_sparse:
            return
        if self._contains_sparse_weight:
            raise TypeError(
                f"Cannot create '{store}' KVStore with row_sparse parameters. The type must be "
                "KVStore or str."
            )
        if self._contains_sparse_grad:
            raise ValueError(
                f"Cannot use {type(store)} for multi-device training with sparse gradients. Use "
                "kvstore='device', or Parameters with dense gradients."
            )

    def _make_kvstore(self, kvstore: Any) -> Any:
        if kvstore is None:
            if self._contains_sparse_weight:
                raise TypeError(
                    "Cannot create 'None' KVStore with row_sparse parameters, which need a store. "
                    "Pass kvstore='local' or a KVStore."
                )
            return None
        if not isinstance(kvstore, str):
            if not hasattr(kvstore, "type"):
                raise TypeError(f"kvstore must be KVStore, str or None, got {kvstore!r}.")
            return kvstore
        alone = len(self._contexts) <= 1 and not kvs.is_distributed(kvstore)
        if alone and not self._contains_sparse_weight:
            return None
        return kvs.create(kvstore)

    def _init_params(self) -> None:
        waiting = [param for param in self._params_to_init if param._deferred_init]
        ready = [param for param in self._params_to_init if not param._deferred_init]
        if self._kvstore is not None and ready:
            keys = [self._params.index(param) for param in ready]
            arrays = [_arrays_of(param) for param in ready]
            exchange = exchange_with(self._kvstore)
            exchange.init(keys, [on_devices[0] for on_devices in arrays], arrays)
            dense = [i for i, param in enumerate(ready) if param._stype == "default"]
            exchange.pull([keys[i] for i in dense], [arrays[i] for i in dense])
        self._params_to_init = waiting

    def _prepare(self) -> None:
        if not self._kv_initialized:
            self._init_kvstore()
        if self._params_to_init:
            self._init_params()
        if self._overwritten:
            self._overwrite()

    def _overwrite(self) -> None:
        """Send the weights set by the program to the store; all workers must do the same."""
        overwritten, self._overwritten = dict(sorted(self._overwritten.items())), {}
        arrays = [_arrays_of(param)[0] for param in overwritten.values()]
        self._kvstore.overwrite(list(overwritten), arrays)

    # -- facts --------------------------------------------------------------------------------

    @property
    def optimizer(self) -> opt.Optimizer:
        """The optimizer."""
        return self._optimizer

    @property
    def learning_rate(self) -> float:
        """The current learning rate."""
        return self._optimizer.learning_rate

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate; this raises an error if the optimizer has a scheduler.

        Parameters
        ----------
        lr
            The learning rate.
        """
        self._optimizer.set_learning_rate(lr)

    # -- stepping -----------------------------------------------------------------------------

    def step(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Sum the gradients over devices and update the parameters.

        Call it after `backward` and outside `record`.

        Parameters
        ----------
        batch_size : int
            Gradients are divided by it.
        ignore_stale_grad : bool
            Skip parameters that backward has not reached since the last step, instead of raising
            UserWarning.
        """
        try:
            scale = self._scale / batch_size
        except ZeroDivisionError:
            raise ZeroDivisionError(
                "Trainer.step: gradients are divided by batch_size, which is 0; give the number "
                "of samples of the batch."
            ) from None
        self._check_and_rescale_grad(scale)
        self._prepare()
        self._allreduce_grads()
        self._update(ignore_stale_grad)
        return_gaps()

    def allreduce_grads(self) -> None:
        """Sum the gradients over devices without updating; `update` follows.

        Between the two, gradients can be clipped or inspected.
        """
        self._prepare()
        self._refuse_on_kvstore("allreduce_grads")
        self._allreduce_grads()

    def update(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Update the parameters by gradients that `allreduce_grads` summed; see `step`.

        Parameters
        ----------
        batch_size
            Number of samples; gradients are divided by it.
        ignore_stale_grad
            Whether to skip parameters that backward has not reached.
        """
        self._prepare()
        self._refuse_on_kvstore("update")
        self._check_and_rescale_grad(self._scale / batch_size)
        self._update(ignore_stale_grad)

    def _refuse_on_kvstore(self, call: str) -> None:
        if self._kvstore is not None and self._update_on_kvstore:
            raise ParameterError(
                f"{call}() when parameters are updated on kvstore is not supported. Try setting "
                "`update_on_kvstore` to False when creating trainer."
            )

    def _check_and_rescale_grad(self, scale: float) -> None:
        fixed = self._update_on_kvstore and self._kv_initialized and self._is_async()
        if fixed and self._optimizer.rescale_grad != scale:
            raise UserWarning(
                "Possible change in the `batch_size` from previous `step` detected. The optimizer "
                "is on the servers of the distributed store, where the factor of gradients does "
                "not change. Use a synchronous store."
            )
        # A batch size may be an array of one element, such as a number of tokens.
        self._optimizer.rescale_grad = scale.item() if isinstance(scale, NDArray) else scale

    def _is_async(self) -> bool:
        return self._kvstore is not None and "async" in self._kvstore.type

    def _trained(self) -> Iterator[tuple[int, Parameter]]:
        return ((i, p) for i, p in enumerate(self._params) if p.grad_req != "null")

    def _allreduce_grads(self) -> None:
        store = self._kvstore
        if store is None:
            return
        keys, grads = [], []
        for i, param in self._trained():
            keys.append(i)
            grads.append(param.list_grad())
        if not keys:
            return
        exchange, update = exchange_with(store), self._update_on_kvstore
        if not self._push_early(exchange, keys):
            weights = [_arrays_of(self._params[i]) for i in keys] if update else None
            exchange.push(keys, grads, weights, priorities=[-key for key in keys])
        if not update:
            exchange.pull(keys, grads, ignore_sparse=False)

    def _push_early(self, exchange: KeyedExchange, keys: list[int]) -> bool:
        """Push the sums that began during backward; return False if `push` is needed.

        All workers must take the same path: the program decides whether gradients are watched, and
        all workers agree on whether the sums can be used.
        """
        if self._early is False or self._early_failures > 1:
            return False
        weights = [_arrays_of(self._params[i]) for i in keys]
        if self._early is None:
            self._watch_gradients(exchange, keys, weights)
            return False
        if self._kvstore.push_watched(self._early, keys, [arrays[0] for arrays in weights]):
            return True
        # On some worker gradients were changed before the step, or parameters were replaced.
        self._early.close()
        self._early = None
        self._early_failures += 1
        return False

    def _watch_gradients(
        self, exchange: KeyedExchange, keys: list[int], weights: list[list[NDArray]]
    ) -> None:
        self._early = False
        if all(len(on_devices) == 1 for on_devices in weights):
            single = [on_devices[0] for on_devices in weights]
            self._early = exchange.watch_gradients(keys, single) or False

    def _update(self, ignore_stale_grad: bool = False) -> None:
        if self._kvstore is not None and self._update_on_kvstore:
            dense = [(i, p.list_data()) for i, p in self._trained() if p._stype == "default"]
            exchange = exchange_with(self._kvstore)
            exchange.pull([i for i, _ in dense], [arrays for _, arrays in dense])
            if not ignore_stale_grad:
                self._refuse_unused()
            return
        plan = self._arrays()
        updaters = self._updaters[: len(plan)]
        for updater, (indices, weights, grads) in zip(updaters, plan, strict=True):
            records = list(map(_record, weights))
            if not all(map(_is_fresh, records)):
                stale = [k for k, r in enumerate(records) if not r.fresh]
                if not ignore_stale_grad:
                    raise self._stale(indices[stale[0]], weights[stale[0]])
                skipped = set(stale)
                fresh = [k for k in range(len(indices)) if k not in skipped]
                indices, weights, grads, records = (
                    [part[k] for k in fresh] for part in (indices, weights, grads, records)
                )
            updater(indices, grads, weights)
            for record in records:
                record.fresh = False

    def _arrays(self) -> list[tuple[list[int], list[NDArray], list[NDArray]]]:
        """Return indices, weights and gradients of each context, cached until they change."""
        if self._plan and self._plan[0] == Generation.number:
            return self._plan[1]
        rows = [(i, p.list_data(), p.list_grad()) for i, p in self._trained()]
        indices = [i for i, _, _ in rows]
        # After reset_ctx() the parameters may be on fewer contexts than before.
        devices = min([len(self._contexts), *(len(data) for _, data, _ in rows)])
        plan = [
            (indices, [data[k] for _, data, _ in rows], [grads[k] for _, _, grads in rows])
            for k in range(devices)
        ]
        self._plan = (Generation.number, plan)
        return plan

    def _refuse_unused(self) -> None:
        """Raise the error of `_stale` for a parameter that backward has never reached."""
        for index, parameter in self._trained():
            for weight in parameter._data or ():
                if not weight._fresh_grad:
                    raise self._stale(index, weight)

    def _stale(self, index: int, weight: NDArray) -> UserWarning:
        return UserWarning(
            f"Gradient of Parameter `{self._params[index].name}` on context {weight.context} has "
            "not been updated by backward since last `step`. This could mean a bug in your model "
            "that made it only use a subset of the Parameters (Blocks) for this iteration. If you "
            "are intentionally only using a subset, call step with ignore_stale_grad=True to "
            "suppress this warning and skip updating of Parameters with stale gradient"
        )

    def _row_sparse_pull(
        self, parameter: Parameter, out: Sequence[NDArray], row_id: NDArray, full_idx: bool = False
    ) -> None:
        self._prepare()
        i = self._params.index(parameter)
        self._kvstore.row_sparse_pull(i, out=list(out), row_ids=row_id, priority=-i)

    # -- files --------------------------------------------------------------------------------

    def save_states(self, fname: str) -> None:
        """Save the optimizer with its states, such as momentum; `load_states` reads it.

        Parameters
        ----------
        fname
            Path of the file.
        """
        self._prepare()
        if self._kvstore is not None and self._update_on_kvstore:
            if self._params_to_init:
                raise MXNetError(
                    "Cannot save trainer states when some parameters are not yet initialized in "
                    f"kvstore: {[p.name for p in self._params_to_init]}. Run a step first."
                )
            self._kvstore.save_optimizer_states(fname, dump_optimizer=True)
            return
        with replacing(local_path(fname)) as file:
            file.write(self._updaters[0].get_states(dump_optimizer=True))

    def load_states(self, fname: str) -> None:
        """Load a file of `save_states`, of MXNext or MXNet.

        Parameters
        ----------
        fname
            Path of the file.
        """
        self._prepare()
        if self._kvstore is not None and self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
            self._optimizer = self._kvstore._updater.optimizer
        else:
            states = existing_file(fname).read_bytes()
            for updater in self._updaters:
                updater.set_states(states)
                updater.optimizer = self._updaters[0].optimizer
            self._optimizer = self._updaters[0].optimizer
        self._optimizer.param_dict = dict(enumerate(self._params))


def _list_parameters(params: Any) -> list[Parameter]:
    items = getattr(params, "items", None)
    if items is not None:
        params = [param for _, param in sorted(items(), key=lambda item: item[0])]
    if not isinstance(params, list | tuple):
        raise ValueError(
            f"First argument must be a list or dict of Parameters, got {type(params)}. For a "
            "block, pass block.collect_params()."
        )
    for param in params:
        if not isinstance(param, Parameter):
            raise ValueError(
                f"First argument must be a list or dict of Parameters, got list of {type(param)}."
            )
    return list(params)


def _arrays_of(param: Parameter) -> list[NDArray]:
    return list(param._data if param._data is not None else param.list_data())


def _updates_by_default(store: Any, params: Sequence[Parameter]) -> bool:
    if not store.is_capable(kvs.KVStoreBase.OPTIMIZER):
        return False
    if not env.get("MXNET_UPDATE_ON_KVSTORE"):
        return False
    sparse = {p._stype for p in params} == {"default"} and {p._grad_stype for p in params}
    if sparse and sparse != {"default"} and not kvs.is_distributed(store.type):
        return False  # each device updates only the rows that it used
    if store.type != "local":
        return True
    return all(p._data is None or p._data[0].size <= LARGE_WEIGHT for p in params)


class DistributedTrainer(Trainer):
    """A Trainer that averages gradients over all workers; ``step(batch_size)`` is the local size.

    Parameters
    ----------
    params, optimizer, optimizer_params
        See `mx.gluon.Trainer`.
    compression_params : dict, optional
        ``{'type': 'fp16'}``, 'bf16' or '2bit': compression of gradients for transfer.
    gradient_predivide_factor, prefix, num_groups
        Accepted for compatibility; have no effect.
    compression : Compression
        Horovod's form of `compression_params`.
    process_set : ProcessSet
        Workers that participate.
    """

    def __init__(
        self,
        params: Mapping[str, Any] | Sequence[Any],
        optimizer: str | opt.Optimizer,
        optimizer_params: Mapping[str, Any] | None = None,
        compression_params: Mapping[str, Any] | None = None,
        gradient_predivide_factor: float = 1.0,
        prefix: str | None = None,
        num_groups: int = 0,
        compression: Any = hvd.Compression.none,
        process_set: hvd.ProcessSet = hvd.global_process_set,
    ) -> None:
        if isinstance(optimizer, hvd.DistributedOptimizer):
            optimizer = optimizer._optimizer  # average only once
        self._process_set = process_set
        is_partial = process_set is not hvd.global_process_set
        size = process_set.size() if is_partial else hvd.size()
        store = kvs.create("dist_sync") if hvd.size() > 1 and not is_partial else None
        how = (compression_params or compression.params) if store is not None else None
        super().__init__(params, optimizer, optimizer_params, store, how, update_on_kvstore=False)
        self._scale /= size

    def _allreduce_grads(self) -> None:
        if self._process_set is hvd.global_process_set:
            super()._allreduce_grads()
            return
        for _, param in self._trained():
            hvd.allreduce_(param.list_grad()[0], op=hvd.Sum, process_set=self._process_set)
