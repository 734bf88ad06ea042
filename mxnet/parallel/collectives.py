"""Horovod's collectives of arrays and objects.

Workers compare their arguments first: if they do not match, all raise the same error.
"""

from __future__ import annotations

import hmac
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .. import profiler
from ..error import InvalidValue, MXNetError
from ..ndarray import NDArray
from ..runtime.array import plain, wrap_plain
from .channel import SECRET, read_secret
from .group import Disagreement, Group, ranks_of
from .membership import ProcessSet, global_process_set, group_of, rank
from .reduction import Reducer

__all__ = [
    "Adasum",
    "Average",
    "Max",
    "Min",
    "Product",
    "Sum",
    "allgather",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "alltoall",
    "broadcast",
    "broadcast_",
    "broadcast_object",
    "grouped_allgather",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_reducescatter",
    "reducescatter",
    "start_timeline",
    "stop_timeline",
]

Average, Sum, Adasum, Min, Max, Product = range(6)  # Horovod's numbers
_OTHER_OPS = {Min: dist.ReduceOp.MIN, Max: dist.ReduceOp.MAX, Product: dist.ReduceOp.PRODUCT}
_OVER_ROWS = {Min: torch.amin, Max: torch.amax, Product: torch.prod}
_TAG_BYTES = 32
_counts: dict[str, int] = {}


def _name(kind: str, name: str | None) -> str:
    """Return the name of a collective, by default numbered."""
    if name is not None:
        return f"{kind}.{name}"
    _counts[kind] = _counts.get(kind, 0) + 1
    return f"{kind}.{_counts[kind]}"


def _agree(group: Group, kind: str, facts: str, problem: str | None = None) -> None:
    """Raise on all workers unless all make the same, valid call."""
    own = f"{kind} of {facts}" if problem is None else problem
    texts = group.gather_text(own, f"a comparison of {kind}")
    if problem is not None:
        raise InvalidValue(f"{kind}: {problem}")
    if len(set(texts)) > 1:
        raise Disagreement(f"Workers differ in {kind}: {ranks_of(texts)}.")


def _describe(tensor: Tensor, rows: bool = True) -> str:
    shape = tuple(tensor.shape) if rows else ("any", *tensor.shape[1:])
    return f"{shape} {str(tensor.dtype).removeprefix('torch.')}"


def _choose_op(kind: str, average: bool | None, op: int | None) -> int:
    if average is not None and op is not None:
        raise InvalidValue(f"{kind}: pass average or op, not both.")
    if op is None:
        return Sum if average is False else Average
    if op == Adasum:
        raise MXNetError(f"{kind}: Adasum is not supported; use Average or Sum.")
    if op not in (Average, Sum, *_OTHER_OPS):
        raise InvalidValue(f"{kind}: op {op!r} is not one of Average, Sum, Min, Max, Product.")
    return op


def _scale(tensor: Tensor, factor: float, divisor: int = 1) -> Tensor:
    """Return a tensor times a factor; integers are scaled as floats, and truncated."""
    if factor == 1.0 and divisor == 1:
        return tensor
    if tensor.is_floating_point():
        return tensor * (factor / divisor)
    return (tensor.double() * factor / divisor).to(tensor.dtype)


def allreduce_in_place(
    names: Sequence[str],
    arrays: Sequence[NDArray],
    op: int,
    scales: tuple[float, float],
    process_set: ProcessSet,
) -> None:
    """Reduce arrays over the workers of a set, in place.

    Parameters
    ----------
    names
        Names of the collectives, equal on all workers.
    arrays
        One array per name.
    op
        `Average`, `Sum`, `Min`, `Max` or `Product`.
    scales
        Factors before and after the collective.
    process_set
        Workers that participate.
    """
    group = group_of(process_set)
    before, after = scales
    targets = {name: plain(array) for name, array in zip(names, arrays, strict=True)}
    values = [_scale(target, before) for target in targets.values()]
    if op in _OTHER_OPS:
        _agree(group, "a reduction", f"{list(names)} {op} {[_describe(v) for v in values]}")
        for (name, target), value in zip(targets.items(), values, strict=True):
            copied = value.clone(memory_format=torch.contiguous_format)
            group.finish(group.start_sum(copied, _OTHER_OPS[op]), name)
            target.copy_(_scale(copied, after))
        return
    if group.reducer is None:
        group.reducer = Reducer(group)
    for name, total in group.reducer.sums(names, values):
        targets[name].copy_(_scale(total, after, group.size if op == Average else 1))


def allreduce_(
    tensor: NDArray,
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    op: int | None = None,
) -> NDArray:
    """Average an array in place over all workers, and return it.

    Parameters
    ----------
    tensor
        The array.
    average
        Old form of `op`: False means `Sum`.
    name, priority
        Accepted for compatibility: collectives are matched by their order.
    prescale_factor, postscale_factor
        Factors before and after the collective.
    process_set
        Workers that participate.
    op
        `Average` (the default), `Sum`, `Min`, `Max` or `Product`.

    >>> mx.distributed.init()
    >>> mx.distributed.allreduce_(mx.nd.array([1, 2])).asnumpy()
    array([1., 2.], dtype=float32)
    """
    scales = (prescale_factor, postscale_factor)
    op = _choose_op("allreduce", average, op)
    allreduce_in_place([_name("allreduce", name)], [tensor], op, scales, process_set)
    return tensor


def allreduce(
    tensor: NDArray,
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    op: int | None = None,
) -> NDArray:
    """Return the average of an array over all workers.

    Parameters
    ----------
    tensor
        The array.
    average
        Old form of `op`: False means `Sum`.
    name, priority
        Accepted for compatibility: collectives are matched by their order.
    prescale_factor, postscale_factor
        Factors before and after the collective. Integers are scaled as floats, and truncated.
    process_set
        Workers that participate.
    op
        `Average` (the default), `Sum`, `Min`, `Max` or `Product`.

    >>> mx.distributed.init()
    >>> mx.distributed.allreduce(mx.nd.array([1, 2]), op=mx.distributed.Max).asnumpy()
    array([1., 2.], dtype=float32)
    """
    scales = (prescale_factor, postscale_factor)
    return allreduce_(tensor.copy(), average, name, priority, *scales, process_set, op)


def grouped_allreduce_(
    tensors: Sequence[NDArray],
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    op: int | None = None,
) -> list[NDArray]:
    """Average arrays in place over all workers in one collective, and return them.

    Parameters
    ----------
    tensors
        The arrays.
    average, name, priority, prescale_factor, postscale_factor, process_set, op
        See `allreduce`.

    >>> mx.distributed.init()
    >>> len(mx.distributed.grouped_allreduce_([mx.nd.ones(2), mx.nd.ones(3)]))
    2
    """
    prefix, scales = _name("grouped_allreduce", name), (prescale_factor, postscale_factor)
    names = [f"{prefix}.{i}" for i in range(len(tensors))]
    op = _choose_op("grouped_allreduce", average, op)
    allreduce_in_place(names, tensors, op, scales, process_set)
    return list(tensors)


def grouped_allreduce(
    tensors: Sequence[NDArray],
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    op: int | None = None,
) -> list[NDArray]:
    """Return the averages of arrays over all workers in one collective.

    Parameters
    ----------
    tensors
        The arrays.
    average, name, priority, prescale_factor, postscale_factor, process_set, op
        See `allreduce`.

    >>> mx.distributed.init()
    >>> [x.shape for x in mx.distributed.grouped_allreduce([mx.nd.ones(2), mx.nd.ones(3)])]
    [(2,), (3,)]
    """
    copies, scales = [t.copy() for t in tensors], (prescale_factor, postscale_factor)
    return grouped_allreduce_(copies, average, name, priority, *scales, process_set, op)


def allgather(
    tensor: NDArray,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> NDArray:
    """Concatenate the arrays of all workers along the first axis, whose size may differ.

    Parameters
    ----------
    tensor
        The array.
    name, priority
        Accepted for compatibility: collectives are matched by their order.
    process_set
        Workers that participate.

    >>> mx.distributed.init()
    >>> mx.distributed.allgather(mx.nd.array([1, 2])).shape
    (2,)
    """
    return grouped_allgather([tensor], name, priority, process_set)[0]


def grouped_allgather(
    tensors: Sequence[NDArray],
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> list[NDArray]:
    """Concatenate each of several arrays of all workers along the first axis.

    Parameters
    ----------
    tensors
        The arrays.
    name, priority, process_set
        See `allgather`.

    >>> mx.distributed.init()
    >>> [x.shape for x in mx.distributed.grouped_allgather([mx.nd.ones(2), mx.nd.ones((3, 1))])]
    [(2,), (3, 1)]
    """
    group, data = group_of(process_set), [plain(tensor) for tensor in tensors]
    problem = _find_scalar(data)
    _agree(group, "allgather", str([_describe(one, rows=False) for one in data]), problem)
    what = _name("allgather", name)
    return [
        wrap_plain(NDArray, torch.cat(group.gather_ragged(one, what)), tensor._ctx)
        for tensor, one in zip(tensors, data, strict=True)
    ]


def _find_scalar(tensors: Sequence[Tensor]) -> str | None:
    has_scalar = any(tensor.dim() == 0 for tensor in tensors)
    return "an array of no dimensions has no rows" if has_scalar else None


def broadcast_(
    tensor: NDArray,
    root_rank: int,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> NDArray:
    """Broadcast an array from a worker in place, and return it.

    Parameters
    ----------
    tensor
        The array.
    root_rank
        Rank of the worker whose value is broadcast.
    name, priority
        Accepted for compatibility: collectives are matched by their order.
    process_set
        Workers that participate.

    >>> mx.distributed.init()
    >>> mx.distributed.broadcast_(mx.nd.array([1]), root_rank=0).asnumpy()
    array([1.], dtype=float32)
    """
    group, data = group_of(process_set), plain(tensor)
    _agree(group, "broadcast", f"{_describe(data)} from rank {root_rank}")
    group.broadcast(data, find_root(group, root_rank), _name("broadcast", name))
    return tensor


def broadcast(
    tensor: NDArray,
    root_rank: int,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> NDArray:
    """Return the array of a worker, the root.

    Parameters
    ----------
    tensor
        The array.
    root_rank
        Rank of the worker whose value is broadcast.
    name, priority
        Accepted for compatibility: collectives are matched by their order.
    process_set
        Workers that participate.

    >>> mx.distributed.init()
    >>> mx.distributed.broadcast(mx.nd.array([1]), root_rank=0).asnumpy()
    array([1.], dtype=float32)
    """
    return broadcast_(tensor.copy(), root_rank, name, priority, process_set)


def find_root(group: Group, root_rank: int) -> int:
    """Return a worker's rank in a group from its rank among all workers."""
    if root_rank not in group.ranks:
        raise InvalidValue(f"root_rank {root_rank} is not among the workers {group.ranks}.")
    return group.ranks.index(root_rank)


def alltoall(
    tensor: NDArray,
    splits: Any = None,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Send a part of an array to each worker, and return the received parts.

    Parameters
    ----------
    tensor : NDArray
        Array whose rows are sent to the workers in order.
    splits : list of int or NDArray, optional
        Number of rows for each worker; by default equal. If given, a pair is returned: the parts,
        and the number of rows from each worker.
    name, priority
        Accepted for compatibility: collectives are matched by their order.
    process_set
        Workers that participate.

    >>> mx.distributed.init()
    >>> rows, counts = mx.distributed.alltoall(mx.nd.array([1, 2]), splits=[2])
    >>> rows.asnumpy(), counts.asnumpy()
    (array([1., 2.], dtype=float32), array([2], dtype=int32))
    """
    group, data = group_of(process_set), plain(tensor)
    counts, problem = _read_splits(data, splits, group.size)
    _agree(group, "alltoall", _describe(data, rows=False), problem or _find_scalar([data]))
    what = _name("alltoall", name)
    received = group.gather(torch.tensor(counts), what)[:, group.rank].tolist()
    parts = _exchange_rows(group, data, counts, received, what)
    output = wrap_plain(NDArray, parts, tensor._ctx)
    if splits is None:
        return output
    return output, wrap_plain(NDArray, torch.tensor(received, dtype=torch.int32))


def _read_splits(data: Tensor, splits: Any, size: int) -> tuple[list[int], str | None]:
    rows = len(data) if data.dim() else 0
    if splits is None:
        problem = f"{rows} rows cannot be split evenly over {size} workers" if rows % size else None
        return [rows // size] * size, problem
    values = plain(splits) if isinstance(splits, NDArray) else torch.as_tensor(splits)
    if values.is_floating_point() or values.is_complex():
        return [], f"splits must be integers, got {str(values.dtype).removeprefix('torch.')}"
    counts = values.flatten().tolist()
    if len(counts) != size or min(counts, default=0) < 0 or sum(counts) > rows:
        return [], f"{rows} rows cannot be split as {counts} over {size} workers"
    return counts, None


def _exchange_rows(
    group: Group, data: Tensor, counts: Sequence[int], received: Sequence[int], what: str
) -> Tensor:
    """Send consecutive rows to the workers; return the received rows, in the order of workers."""
    row = data[0].numel() if len(data) else data.new_empty(data.shape[1:]).numel()
    sent = data[: sum(counts)].reshape(-1)
    output = data.new_empty((sum(received), *data.shape[1:]))
    sizes, received_sizes = [n * row for n in counts], [n * row for n in received]
    group.finish(group.start_exchange(output.view(-1), sent, received_sizes, sizes), what)
    return output


def reducescatter(
    tensor: NDArray,
    op: int = Average,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> NDArray:
    """Reduce an array over all workers, and return this worker's rows of the result.

    Rows are divided evenly; the first workers may get one more.

    Parameters
    ----------
    tensor
        The array.
    op
        `Average`, `Sum`, `Min`, `Max` or `Product`.
    name, priority
        Accepted for compatibility: collectives are matched by their order.
    process_set
        Workers that participate.
    prescale_factor, postscale_factor
        Factors before and after the collective.

    >>> mx.distributed.init()
    >>> mx.distributed.reducescatter(mx.nd.array([1, 2])).asnumpy()
    array([1., 2.], dtype=float32)
    """
    scales = (prescale_factor, postscale_factor)
    return grouped_reducescatter([tensor], op, name, priority, process_set, *scales)[0]


def grouped_reducescatter(
    tensors: Sequence[NDArray],
    op: int = Average,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[NDArray]:
    """Reduce several arrays over all workers, and return this worker's rows of each.

    Parameters
    ----------
    tensors
        The arrays.
    op, name, priority, process_set, prescale_factor, postscale_factor
        See `reducescatter`.

    >>> mx.distributed.init()
    >>> len(mx.distributed.grouped_reducescatter([mx.nd.ones(2), mx.nd.ones(3)]))
    2
    """
    group, data = group_of(process_set), [plain(tensor) for tensor in tensors]
    op = _choose_op("reducescatter", None, op)
    facts = f"{[_describe(one) for one in data]} by {op}"
    _agree(group, "reducescatter", facts, _find_scalar(data))
    what, divisor = _name("reducescatter", name), group.size if op == Average else 1
    outputs = []
    for tensor, one in zip(tensors, data, strict=True):
        each, more = divmod(len(one), group.size)
        counts = [each + (r < more) for r in range(group.size)]
        own = counts[group.rank]
        rows = _exchange_rows(group, _scale(one, prescale_factor), counts, [own] * group.size, what)
        stacked = rows.view(group.size, own, *one.shape[1:])
        reduce = _OVER_ROWS.get(op, torch.sum)
        total = reduce(stacked, 0) if own else stacked[0]
        scaled = _scale(total.to(one.dtype), postscale_factor, divisor)
        outputs.append(wrap_plain(NDArray, scaled, tensor._ctx))
    return outputs


def _dump_object(group: Group, obj: Any) -> bytes:
    """Return a pickled object, signed by the job's secret."""
    if group.job is not None and not group.job.is_trusted:
        raise MXNetError(
            "Received objects are unpickled, which can run code, and this job on several machines "
            f"has no secret: set for all of its processes the same {SECRET}, as `mx launch` "
            "does, or set MXNET_ALLOW_UNSIGNED_JOBS=1 on a network that you trust."
        )
    data = pickle.dumps(obj)
    return hmac.digest(read_secret(), data, "sha256") + data


def _load_object(group: Group, signed: bytes) -> Any:
    tag, data = signed[:_TAG_BYTES], signed[_TAG_BYTES:]
    if not hmac.compare_digest(tag, hmac.digest(read_secret(), data, "sha256")):
        raise MXNetError("A received object does not have the signature of this job.")
    return pickle.loads(data)


def broadcast_object(
    obj: Any = None,
    root_rank: int = 0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the object of a worker, sent as a pickle signed by the job's secret.

    Parameters
    ----------
    obj
        The object; anything that can be pickled.
    root_rank
        Rank of the worker whose value is broadcast.
    name
        Accepted for compatibility: collectives are matched by their order.
    process_set
        Workers that participate.

    >>> mx.distributed.init()
    >>> mx.distributed.broadcast_object("settings")
    'settings'
    """
    group, what = group_of(process_set), _name("broadcast_object", name)
    _agree(group, "broadcast_object", f"an object from rank {root_rank}")
    root = find_root(group, root_rank)
    data = _dump_object(group, obj) if group.rank == root else b""
    return _load_object(group, group.gather_bytes(data, what)[root])


def allgather_object(
    obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """Return the objects of all workers.

    Parameters
    ----------
    obj
        The object; anything that can be pickled.
    name
        Accepted for compatibility: collectives are matched by their order.
    process_set
        Workers that participate.

    >>> mx.distributed.init()
    >>> mx.distributed.allgather_object("me")
    ['me']
    """
    group, what = group_of(process_set), _name("allgather_object", name)
    gathered = group.gather_bytes(_dump_object(group, obj), what)
    return [_load_object(group, data) for data in gathered]


def start_timeline(file_path: str | Path, mark_cycles: bool = False) -> None:
    """Start profiling operators and collectives of rank 0; `stop_timeline` writes the trace.

    Parameters
    ----------
    file_path
        Path of the trace.
    mark_cycles
        Accepted for compatibility; has no effect.

    >>> mx.distributed.init()
    >>> mx.distributed.start_timeline("timeline.json")
    >>> mx.distributed.stop_timeline()
    """
    if rank() == 0:
        profiler.set_config(filename=str(file_path), profile_all=True)
        profiler.set_state("run")


def stop_timeline() -> None:
    """Write the trace recorded since `start_timeline`.

    >>> mx.distributed.init()
    >>> mx.distributed.start_timeline("timeline.json")
    >>> mx.distributed.stop_timeline()
    """
    if rank() == 0:
        profiler.dump()
