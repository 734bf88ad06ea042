"""Save and load a training run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from ...error import FormatError, MXNetError
from ...ndarray import NDArray
from ...runtime.array import plain, wrap_plain
from .. import params_file, tree_file
from ..files import local_path
from . import background
from .files import (
    find_newest,
    path_of,
    remove_old,
    scale_position,
    seed_worker,
    steps,
    worker_folder,
)
from .state import get_fields, get_random_states, set_fields, set_random_states

KIND = "MXNext checkpoint"
VERSION = 1


class Checkpoint(NamedTuple):
    """Result of `load`.

    Parameters
    ----------
    path
        Path of the checkpoint.
    step
        Step of the checkpoint.
    extra
        The `extra` of `save`.

    >>> net = mx.gluon.nn.Dense(1, in_units=2)
    >>> net.initialize()
    >>> _ = mx.checkpoint.save("loaded_run", step=7, net=net)
    >>> type(mx.checkpoint.load("run", net=net)).__name__
    'Checkpoint'
    """

    path: Path
    step: int
    extra: Any


def save(
    folder: str | os.PathLike[str],
    step: int,
    *,
    net: Any = None,
    trainer: Any = None,
    data: Any = None,
    metric: Any = None,
    scaler: Any = None,
    extra: Any = None,
    keep: int = 3,
    wait: bool = True,
) -> Path:
    """Save a checkpoint of a training run and return its path.

    Parameters
    ----------
    folder : str
        Folder of the checkpoints; created if missing. The workers of a distributed job save at the
        same steps, each into its own subfolder.
    step : int
        An increasing number, such as that of the batch or epoch.
    net : Block
        Network; its parameters on every device are saved.
    trainer : Trainer
        Trainer; its optimizer with states, scheduler and, with AMP, loss scaler are saved.
    data : object with ``state_dict`` and ``load_state_dict``
        Data whose position is saved; see `track`.
    metric : EvalMetric
        Metric; its sums and counts are saved.
    scaler : object
        A loss scaler of your own.
    extra : numbers, text, arrays and containers of them
        Other values of the program, such as the epoch.
    keep : int
        Number of checkpoints to keep; older ones are removed.
    wait : bool
        Whether to wait for the write. If False, the state is copied and written in the background,
        one checkpoint at a time: the next `save`, `load` or `mx.checkpoint.wait` waits for it and
        raises its error. The end of the process waits for at most five minutes, and warns of an
        error.

    >>> net = mx.gluon.nn.Dense(1, in_units=2)
    >>> net.initialize()
    >>> path = mx.checkpoint.save("saved_run", step=7, net=net, extra={"epoch": 1})
    >>> mx.checkpoint.load("saved_run", net=net).extra
    {'epoch': 1}
    """
    if keep < 1:
        raise ValueError(f"keep must be at least 1, got {keep}.")
    background.wait()
    own_folder = worker_folder(local_path(folder))
    if own_folder != local_path(folder):
        keep = max(keep, 2)  # a worker may fail before it has saved the newest step
    own_folder.mkdir(parents=True, exist_ok=True)
    state = {
        "kind": KIND,
        "version": VERSION,
        "step": int(step),
        "net": None if net is None else _network_state(net),
        "trainer": None if trainer is None else _trainer_state(trainer, net),
        "data": None if data is None else _with_position(data).state_dict(),
        "metric": None if metric is None else get_fields(metric),
        "scaler": None if scaler is None else get_fields(scaler),
        "extra": extra,
        "random": get_random_states(),
    }
    path = path_of(own_folder, step)
    tensors = tree_file.pack(state)
    if wait:
        _write(path, tensors, keep)
    else:
        copies = {name: tensor.clone() for name, tensor in tensors.items()}
        background.start(lambda: _write(path, copies, keep), path)
    return path


def _write(path: Path, tensors: Mapping[str, Tensor], keep: int) -> None:
    params_file.write(path, tensors)
    remove_old(path.parent, keep)


def load(
    place: str | os.PathLike[str],
    *,
    net: Any = None,
    trainer: Any = None,
    data: Any = None,
    metric: Any = None,
    scaler: Any = None,
) -> Checkpoint | None:
    """Load a training run from a checkpoint, or from the newest one in a folder.

    Pass the same objects as to `save`, created in the same way. The random generators are restored
    too. A damaged checkpoint in a folder warns, and the previous one is used. If there is none, the
    result is None and nothing is changed.

    All workers of a distributed job must call it, and get the newest step that all of them have. If
    the number of workers has changed, all of them load the network and the trainer from rank 0's
    checkpoint, and train the rest of the epoch with new parts of the data.

    Parameters
    ----------
    place
        A checkpoint, or a folder of checkpoints.
    net
        The network.
    trainer
        The trainer.
    data
        The result of `track`.
    metric
        The metric.
    scaler
        A loss scaler of your own.

    >>> net = mx.gluon.nn.Dense(1, in_units=2)
    >>> net.initialize()
    >>> _ = mx.checkpoint.save("loaded_run", step=7, net=net)
    >>> mx.checkpoint.load("loaded_run", net=net).step
    7
    """
    background.wait()
    path, state, writers = _read_newest(local_path(place))
    if state is None:
        return None
    parts = {"net": net, "trainer": trainer, "data": data, "metric": metric, "scaler": scaler}
    for name, thing in parts.items():
        if thing is not None and state[name] is None:
            raise MXNetError(f"{str(path)!r} was saved without {name}=, so it cannot be restored.")
    if net is not None:
        _restore_network(net, state["net"], str(path))
    if trainer is not None:
        _restore_trainer(trainer, net, state["trainer"], str(path))
    position = state["data"] if writers is None else scale_position(state["data"], writers)
    if data is not None and position is not None:
        _with_position(data).load_state_dict(position)
    for thing, fields in ((metric, state["metric"]), (scaler, state["scaler"])):
        if thing is not None:
            set_fields(thing, fields)
    if writers is None:
        set_random_states(state["random"])
    else:
        seed_worker(state["step"])
    return Checkpoint(path, state["step"], state["extra"])


def _read_newest(place: Path) -> tuple[Path, dict[str, Any] | None, int | None]:
    """Return the state in a file, or in the newest file of a folder that all workers can read.

    The last value is the number of workers that wrote it, if it differs from the current one.
    """
    if place.is_file():
        return place, _read(place), None
    own = steps(worker_folder(place))
    newest, state, problem = None, None, None
    for step, path in reversed(own.items()):
        try:
            newest, state = step, _read(path)
            break
        except FormatError as error:
            warnings.warn(f"{error} The previous checkpoint is used.", stacklevel=3)
            problem = error
    readable = [step for step in own if newest is not None and step <= newest]
    path, writers = find_newest(place, readable)
    if path is None and problem is not None:
        raise problem
    if path is None:
        return place, None, None
    if newest is None or path != own[newest]:
        state = _read(path)
    return path, state, None if path.parent == worker_folder(place) else writers


def _read(path: Path) -> dict[str, Any]:
    state = tree_file.read(path)
    if not isinstance(state, dict) or state.get("kind") != KIND:
        raise FormatError(f"{str(path)!r} is not a checkpoint of a training run.")
    if state.get("version") != VERSION:
        raise FormatError(f"{str(path)!r} is a checkpoint of a different version of MXNext.")
    return state


def _with_position(data: Any) -> Any:
    if not (hasattr(data, "state_dict") and hasattr(data, "load_state_dict")):
        raise MXNetError(
            f"data is a {type(data).__name__}, which does not track its position: use data = "
            "mx.checkpoint.track(loader) and iterate over data."
        )
    return data


# -- the network -----------------------------------------------------------------------------------


def _network_state(net: Any) -> dict[str, list]:
    return {
        name: [plain(array) for array in param.list_data()]
        for name, param in net._collect_params_with_prefix().items()
    }


def _restore_network(net: Any, saved: Mapping[str, list], path: str) -> None:
    """Set all parameters, or raise if a name or a number of devices differs."""
    params = net._collect_params_with_prefix()
    problems = [f"{name!r} is only in the file" for name in saved if name not in params]
    problems += [f"{name!r} is not in the file" for name in params if name not in saved]
    arrays = {n: [wrap_plain(NDArray, t) for t in saved[n]] for n in params if n in saved}
    for name, copies in arrays.items():
        param = params[name]
        devices = len(param.list_ctx()) if param._data is not None or param._deferred_init else 1
        if len(copies) != devices:
            problems.append(f"{name!r} is on {devices} devices here, on {len(copies)} in the file")
            continue
        try:
            param._check_loading(copies[0], None, False, "current")
        except MXNetError as error:
            problems.append(str(error))
    if problems:
        listed = "; ".join(problem.rstrip(".") for problem in problems)
        raise MXNetError(f"{path!r} is of a different network, and nothing was changed: {listed}.")
    for name, copies in arrays.items():
        params[name]._load_init(copies[0], None)
        for target, source in zip(params[name].list_data(), copies, strict=True):
            target[:] = source


# -- the trainer -----------------------------------------------------------------------------------


def _updaters(trainer: Any) -> list:
    trainer._prepare()
    if trainer._kvstore is not None and trainer._update_on_kvstore:
        return [trainer._kvstore._updater]
    return trainer._updaters


def _places(trainer: Any, net: Any) -> list[str] | None:
    """Return the path of each trainer parameter in the network; None if not found.

    A trainer sorts parameters by name, and automatic names differ between processes: `dense9` comes
    after `dense10`. Paths in the network are the same in every process.
    """
    if net is None:
        return None
    by_id = {id(p): name for name, p in net._collect_params_with_prefix().items()}
    results = [by_id[id(p)] for p in trainer._params if id(p) in by_id]
    return results if len(results) == len(trainer._params) else None


def _trainer_state(trainer: Any, net: Any) -> dict[str, Any]:
    scaler = getattr(trainer, "_amp_loss_scaler", None)
    return {
        "states": [updater.get_states() for updater in _updaters(trainer)],
        "optimizer": get_fields(trainer._optimizer),
        "kind": type(trainer._optimizer).__name__,
        "scale": trainer._scale,
        "scaler": None if scaler is None else get_fields(scaler),
        "places": _places(trainer, net),
    }


def _restore_trainer(trainer: Any, net: Any, saved: Mapping[str, Any], path: str) -> None:
    updaters, kind = _updaters(trainer), type(trainer._optimizer).__name__
    if kind != saved["kind"] or len(updaters) != len(saved["states"]):
        raise MXNetError(
            f"{path!r} is of a Trainer with {saved['kind']} on {len(saved['states'])} devices; "
            f"this one has {kind} on {len(updaters)}."
        )
    for updater, states in zip(updaters, saved["states"], strict=True):
        updater.set_states(states)
    set_fields(trainer._optimizer, saved["optimizer"])
    positions, old = _places(trainer, net), saved.get("places")
    if positions is not None and old is not None and positions != old:
        if sorted(positions) != sorted(old):
            odd = sorted({*positions} ^ {*old})
            raise MXNetError(
                f"{path!r} was saved from a Trainer with different parameters: {', '.join(odd)}."
            )
        _reorder(trainer._optimizer, updaters, {i: positions.index(p) for i, p in enumerate(old)})
    trainer._scale = saved["scale"]
    scaler = getattr(trainer, "_amp_loss_scaler", None)
    if scaler is not None and saved["scaler"] is not None:
        set_fields(scaler, saved["scaler"])


def _reorder(optimizer: Any, updaters: list, index: Mapping[int, int]) -> None:
    for updater in updaters:
        updater.states = {index.get(i, i): state for i, state in updater.states.items()}
        updater.states_synced = dict.fromkeys(updater.states, False)
    counts = optimizer._all_index_update_counts
    for device, by_index in counts.items():
        counts[device] = {index.get(i, i): count for i, count in by_index.items()}
