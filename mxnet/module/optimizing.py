"""A module's optimizer: how it is made and attached, how it updates, and what is kept of it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from .. import optimizer as opt
from ..checkpoint.state import get_fields, set_fields, tensors_of
from ..error import MXNetError
from ..executor_manager import copy_into
from ..formats.atomic import replacing
from ..formats.files import existing_file, local_path
from ..memory import return_gaps
from ..model import (
    _create_kvstore,
    _initialize_kvstore,
    _update_params,
    _update_params_on_kvstore,
)


def attach_optimizer(module: Any, kvstore: Any, optimizer: Any, params: Any) -> None:
    """Make store and optimizer, and put the optimizer where gradients meet parameters."""
    kvstore, on_kvstore = _create_kvstore(kvstore, len(module._context), module._arg_params)
    module._optimizer = _made_optimizer(module, optimizer, params, kvstore, on_kvstore)
    module._kvstore, module._update_on_kvstore = kvstore, on_kvstore
    if kvstore is not None:
        if module._compression_params:
            kvstore.set_gradient_compression(module._compression_params)
        if on_kvstore:
            kvstore.set_optimizer(module._optimizer)
        arrays = module._exec_group.param_arrays
        _initialize_kvstore(kvstore, arrays, module._arg_params, module._param_names, on_kvstore)
    module._updater = None if on_kvstore else opt.get_updater(module._optimizer)


def _made_optimizer(
    module: Any, optimizer: Any, params: Any, kvstore: Any, on_kvstore: bool
) -> opt.Optimizer:
    """Return an optimizer by name, scaled by the batch size, or the given one with names."""
    batch_size = module._exec_group.batch_size
    if kvstore is not None and "dist" in kvstore.type and "_sync" in kvstore.type:
        batch_size *= kvstore.num_workers
    scale = 1.0 / batch_size
    count = 1 if on_kvstore else len(module._context)
    names = {
        i * count + k: name for k in range(count) for i, name in enumerate(module._param_names)
    }
    if isinstance(optimizer, str):
        settings = {"rescale_grad": scale, **dict(params)}
        return opt.create(optimizer, sym=module.symbol, param_idx2name=names, **settings)
    if not isinstance(optimizer, opt.Optimizer):
        raise TypeError(f"optimizer is a name or an Optimizer, not {type(optimizer).__name__}")
    if optimizer.rescale_grad != scale:
        warnings.warn(
            "Optimizer created manually outside Module but rescale_grad is not normalized to "
            f"1.0/batch_size/num_workers ({optimizer.rescale_grad} vs. {scale}). Is this "
            "intended?",
            stacklevel=4,  # the caller of init_optimizer
        )
    if not optimizer.idx2name:
        optimizer.idx2name = names
    return optimizer


def update_params(module: Any) -> None:
    """Change the parameters by their gradients, in the store or here."""
    group, store = module._exec_group, module._kvstore
    params, grads, names = group.param_arrays, group.grad_arrays, group.param_names
    if module._update_on_kvstore:
        _update_params_on_kvstore(params, grads, store, names)
    else:
        devices = len(module._context)
        _update_params(params, grads, module._updater, devices, kvstore=store, param_names=names)
    return_gaps()


# -- files: what the optimizer remembers, such as momenta -------------------------------------


def write_states(module: Any, fname: str) -> None:
    """Write the optimizer's states as MXNet does."""
    if module._update_on_kvstore:
        module._kvstore.save_optimizer_states(fname)
        return
    with replacing(local_path(fname)) as file:
        file.write(module._updater.get_states())


def read_states(module: Any, fname: str) -> None:
    """Read what `write_states` wrote, here or in MXNet."""
    if module._update_on_kvstore:
        module._kvstore.load_optimizer_states(fname)
    else:
        module._updater.set_states(existing_file(fname).read_bytes())


# -- all of training that `fit(resume=...)` keeps ---------------------------------------------


def state_of(module: Any) -> dict[str, Any]:
    """Return parameters on every device, what the optimizer remembers, and its numbers."""
    group = module._exec_group
    return {
        "arg": dict(zip(group.param_names, group.param_arrays, strict=True)),
        "aux": dict(zip(group.aux_names, group.aux_arrays, strict=True)),
        "optimizer": get_fields(module._optimizer),
        "states": _keeper(module).get_states(),
        "residuals": dict(_residuals(module)),
    }


def restore(module: Any, state: Mapping[str, Any]) -> None:
    """Take over what `state_of` gave."""
    group = module._exec_group
    for names, blocks, saved in (
        (group.param_names, group.param_arrays, state["arg"]),
        (group.aux_names, group.aux_arrays, state["aux"]),
    ):
        for name, block in zip(names, blocks, strict=True):
            if len(block) != len(saved[name]):
                raise MXNetError(
                    f"The training state is of {len(saved[name])} device(s), this module has "
                    f"{len(block)}: their batches would be split in another way."
                )
            for target, source in zip(block, saved[name], strict=True):
                copy_into(target, source, name)
    module._sync_params_from_devices()
    _keeper(module).set_states(state["states"])
    set_fields(module._optimizer, state["optimizer"])
    if module._update_on_kvstore:  # the store has weights of its own
        module._kvstore._replace({n: module._arg_params[n] for n in group.param_names})
    _residuals(module).update(tensors_of(state["residuals"]))


def _residuals(module: Any) -> dict:
    """Return what the compression of gradients left for the next ones."""
    return getattr(getattr(module._kvstore, "_compression", None), "residuals", {})


def _keeper(module: Any) -> Any:
    """Return what holds the optimizer's states: the module's updater, or the store's."""
    store, keeper = module._kvstore, module._updater
    if module._update_on_kvstore:
        keeper = getattr(store, "_updater", None)
    if keeper is None:
        raise MXNetError(
            f"fit(resume=...) cannot keep the optimizer's states of a {store.type!r} store: they "
            "are in other processes."
        )
    return keeper
