"""`DataParallelExecutorGroup`: one executor for each device, each on its part of the batch."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from threading import RLock
from typing import Any, cast

from .. import ndarray as nd
from ..context import Context
from ..error import InvalidValue, MXNetError, ShapeError, did_you_mean
from ..executor import Executor, simple_bind
from ..io import DataDesc
from ..io.batches import described
from ..ndarray import NDArray
from ..runtime.array import plain, writable
from ..runtime.binding import requirements
from ..runtime.executor import shared_by_threads
from ..runtime.recording import state
from ..symbol import Symbol

MAX_SHAPES = 8  # executors for this many batch shapes stay ready
Targets = Sequence[tuple[slice | None, NDArray]]  # the part of the batch for each device


def _split_input_slice(batch_size: int, work_load_list: Sequence[float]) -> list[slice]:
    """Return each device's part of the batch, in proportion to its work load.

    >>> _split_input_slice(8, [1, 3])
    [slice(0, 2, None), slice(2, 8, None)]
    """
    total = sum(work_load_list)
    sizes = [round(load * batch_size / total) for load in work_load_list]
    sizes[-1] += max(0, batch_size - sum(sizes))
    slices, end = [], 0
    for size in sizes:
        begin, end = min(end, batch_size), min(end + size, batch_size)
        if begin >= end:
            raise ValueError("Too many slices. Some splits are empty.")
        slices.append(slice(begin, end))
    return slices


def copy_into(target: NDArray, source: Any, what: str = "array") -> None:
    """Copy an array into another one of the same shape, on any device and of any type."""
    if isinstance(source, NDArray) and state.session is None:  # else a graph may need the values
        memory, data = target._data, source._data
        if memory is not None and data is not None and memory.shape == data.shape:
            memory.copy_(data, non_blocking=not memory.is_cpu)
            return
    if source.shape != target.shape:
        raise ShapeError(f"Shape inconsistent: {what} is {source.shape}, but needs {target.shape}.")
    if target.stype != "default" or source.stype != "default":
        target[:] = source
        return
    tensor = writable(target)
    tensor.copy_(plain(source), non_blocking=tensor.device.type != "cpu")


def sliced(array: NDArray, axis: int, part: slice) -> NDArray:
    """Return one device's part of a batch; rows of a csr matrix stay csr."""
    if array.stype == "csr" and axis == 0:
        return array[part]
    return array.slice_axis(axis, part.start, part.stop)


def _load_general(
    data: Sequence[Any],
    targets: Sequence[Targets | NDArray],
    major_axis: Iterable[int] | None = None,
) -> None:
    """Copy the parts of each array to the devices.

    `major_axis` is the batch axis of each array: 0 by default, -1 for none.
    """
    major_axis = repeat(0) if major_axis is None else major_axis
    for source, slots, axis in zip(data, targets, major_axis, strict=False):
        if isinstance(slots, NDArray):
            copy_into(slots, source)
            continue
        if isinstance(source, list | tuple):  # one part for each device already
            for part, (_, target) in zip(source, slots, strict=True):
                copy_into(target, part)
            continue
        for part, target in slots:
            if axis < 0 or part is None or len(slots) == 1:
                copy_into(target, source)
            else:
                copy_into(target, sliced(source, axis, part))


def _load_data(
    batch: Any, targets: Sequence[Targets], major_axis: Sequence[int] | None = None
) -> None:
    _load_general(batch.data, targets, major_axis)


def _load_label(
    batch: Any, targets: Sequence[Targets], major_axis: Sequence[int] | None = None
) -> None:
    _load_general(batch.label, targets, major_axis)


class DataParallelExecutorGroup:
    """Runs a symbol on several devices in parallel.

    Parameters
    ----------
    symbol : Symbol
    contexts : list of Context
    workload : list of float
        How large each device's part of the batch is, in proportion.
    data_shapes, label_shapes : list of DataDesc
        Descriptions of data and labels; labels are optional.
    param_names : list of str
        The arguments that are parameters.
    for_training, inputs_need_grad : bool
    shared_group : DataParallelExecutorGroup, optional
        A group whose parameters and input buffers are used.
    logger : logging.Logger
    fixed_param_names : list of str, optional
        Parameters that are not trained.
    grad_req : str, list or dict
    state_names : list of str, optional
        Arguments that are neither parameters nor inputs.
    group2ctxs : dict of str to Context or list of them, or a list of dicts, optional
        Device of each ``ctx_group`` of the symbol.
    """

    def __init__(
        self,
        symbol: Symbol,
        contexts: Sequence[Context],
        workload: Sequence[float],
        data_shapes: Sequence[DataDesc],
        label_shapes: Sequence[DataDesc] | None,
        param_names: Sequence[str],
        for_training: bool,
        inputs_need_grad: bool,
        shared_group: DataParallelExecutorGroup | None = None,
        logger: Any = logging,
        fixed_param_names: Sequence[str] | None = None,
        grad_req: Any = "write",
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
    ) -> None:
        self.symbol, self.contexts, self.workload = symbol, list(contexts), list(workload)
        self.arg_names = symbol.list_arguments()
        self.aux_names = symbol.list_auxiliary_states()
        self.output_names = symbol.list_outputs()
        self.param_names = list(param_names)
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self.logger = logger
        self.fixed_param_names = list(fixed_param_names or ())
        self.state_names = list(state_names or ())
        self.group2ctxs = _contexts_of_groups(group2ctxs, len(self.contexts))
        if not for_training:
            grad_req = "null"
        data_names = [desc.name for desc in map(described, data_shapes)]
        self.grad_req = self._requirements(grad_req, data_names)
        self.shared_data_arrays = (
            [{} for _ in self.contexts] if shared_group is None else shared_group.shared_data_arrays
        )
        self.output_layouts = [
            DataDesc.get_batch_axis(symbol[name].attr("__layout__")) for name in self.output_names
        ]
        self._known = set(self.arg_names)
        self._in_use = RLock()
        self._monitors: list[Any] = []
        self._ready: OrderedDict[tuple, list[Executor]] = OrderedDict()
        self.execs: list[Executor] = []
        self.batch_size: Any = None  # an int after binding
        self.bind_exec(data_shapes, label_shapes, shared_group)

    def _requirements(self, grad_req: Any, data_names: Sequence[str]) -> dict[str, str]:
        """Return the grad_req of every argument: 'null' except for parameters and maybe inputs."""
        fixed = set(self.fixed_param_names)
        trained = {name for name in self.param_names if name not in fixed}
        if self.inputs_need_grad:
            trained.update(data_names)
        if isinstance(grad_req, Mapping):
            return {n: "write" if n in trained else "null" for n in self.arg_names} | dict(grad_req)
        pairs = zip(self.arg_names, requirements(grad_req, self.arg_names), strict=True)
        return {name: req if name in trained else "null" for name, req in pairs}

    # -- binding ------------------------------------------------------------------------------

    def decide_slices(self, data_shapes: Sequence[DataDesc]) -> list[int]:
        """Set each device's slice of the batch; return the batch axis of every input."""
        axes = [DataDesc.get_batch_axis(desc.layout) for desc in data_shapes]
        for desc, axis in zip(data_shapes, axes, strict=True):
            if axis < 0:
                continue
            size = desc.shape[axis]
            if self.batch_size is None:
                self.batch_size = size
                self.slices = _split_input_slice(size, self.workload)
            elif size != self.batch_size:
                raise InvalidValue(
                    f"all data must have the same batch size: batch_size = {self.batch_size}, but "
                    f"{desc.name} has shape {tuple(desc.shape)}"
                )
        return axes

    def bind_exec(
        self,
        data_shapes: Sequence[DataDesc],
        label_shapes: Sequence[DataDesc] | None,
        shared_group: DataParallelExecutorGroup | None = None,
        reshape: bool = False,
    ) -> None:
        """Create the executors for these shapes, or reuse existing ones."""
        self.data_shapes = [described(desc) for desc in data_shapes]
        self.label_shapes = [described(desc) for desc in label_shapes] if label_shapes else None
        self.batch_size = None
        self.data_layouts = self.decide_slices(self.data_shapes)
        self.label_layouts = self.decide_slices(self.label_shapes or [])
        self.data_names = [desc.name for desc in self.data_shapes]
        self.label_names = [desc.name for desc in self.label_shapes or []] or None
        key = self._key()
        if key not in self._ready:
            self._ready[key] = [
                self._reshape(i) if reshape else self._bind(i, shared_group)
                for i in range(len(self.contexts))
            ]
        self._ready.move_to_end(key)
        if len(self._ready) > MAX_SHAPES:
            self._ready.popitem(last=False)
        before, self.execs = self.execs, self._ready[key]
        self._show_to_monitors(before)
        self._collect_arrays()

    def _key(self) -> tuple:
        descs = [*self.data_shapes, *(self.label_shapes or ())]
        return tuple((d.name, tuple(d.shape), str(d.dtype), d.layout) for d in descs)

    def reshape(
        self, data_shapes: Sequence[DataDesc], label_shapes: Sequence[DataDesc] | None
    ) -> None:
        """Rebind for batches of a different shape; parameters are kept."""
        before = self.data_shapes, self.label_shapes
        if [described(d) for d in data_shapes] == before[0] and label_shapes == before[1]:
            return
        try:
            self.bind_exec(data_shapes, label_shapes, reshape=True)
        except Exception:
            self.bind_exec(*before, reshape=True)
            raise

    def _shapes_of(self, device: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of one device's inputs; labels that the symbol lacks are omitted."""
        part = self.slices[device]
        shapes = {}
        for descs, axes in (
            (self.data_shapes, self.data_layouts),
            (self.label_shapes or [], self.label_layouts),
        ):
            for desc, axis in zip(descs, axes, strict=True):
                shape = list(desc.shape)
                if axis >= 0:
                    shape[axis] = part.stop - part.start
                if desc.name in self._known:
                    shapes[desc.name] = tuple(shape)
        return shapes

    def _bind(self, device: int, shared_group: DataParallelExecutorGroup | None) -> Executor:
        descs = [*self.data_shapes, *(self.label_shapes or ())]
        shared = None if shared_group is None else shared_group.execs[device]
        shapes = self._shapes_of(device)
        if shared is not None:
            self._check_shared(shared, shapes)
        executor = simple_bind(
            self.symbol,
            self.contexts[device],
            grad_req=self.grad_req,
            type_dict={d.name: d.dtype for d in descs if d.name in self._known},
            group2ctx=self.group2ctxs[device],
            shared_arg_names=self.param_names,
            shared_exec=shared,
            shared_buffer=None if shared is None else self.shared_data_arrays[device],
            **cast("Any", shapes),
        )
        if shared is None:  # shared with groups that use this one's input buffers
            arrays = executor.arg_dict
            self.shared_data_arrays[device].update((name, arrays[name]) for name in shapes)
        for monitor in self._monitors:
            monitor.install(executor)
        return executor

    def _check_shared(self, shared: Executor, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raise unless the shared group has every parameter, with the same shape."""
        theirs = shared.arg_dict
        missing = [name for name in self.param_names if name not in theirs]
        if missing:
            raise MXNetError(
                f"The shared module has no parameter {missing[0]!r}: it has "
                f"{', '.join(sorted(theirs))}. {did_you_mean(missing[0], theirs)} Modules that "
                "share, such as buckets, must have their parameters in the first one."
            )
        inferred, _, _ = self.symbol.infer_shape_partial(**shapes)
        for name, shape in zip(self.arg_names, inferred, strict=True):
            if name in self.param_names and shape and 0 not in shape:
                copy_shape = theirs[name].shape
                if shape != copy_shape:
                    raise ShapeError(
                        f"Shape inconsistent: parameter {name!r} is {copy_shape} in the shared "
                        f"module, but {shape} here. Shared parameters cannot depend on the input "
                        "shape."
                    )

    def _reshape(self, device: int) -> Executor:
        old = self.execs[device]
        shapes = self._shapes_of(device)
        executor = old.reshape(partial_shaping=True, allow_up_sizing=True, **shapes)
        before, after = old.arg_dict, executor.arg_dict
        for name in self.param_names:
            if after[name] is not before[name]:
                raise ShapeError(
                    f"Shape of unspecified arg: {name} changed from {before[name].shape} to "
                    f"{after[name].shape} with the inputs {shapes}. Parameters keep their shape if "
                    "a batch has a different one: pass data of the bound size, or bind again with "
                    "force_rebind=True and new parameters."
                )
        for monitor in self._monitors:
            monitor.install(executor)
        return executor

    def _collect_arrays(self) -> None:
        """Collect the executors' arrays by kind, name and device."""
        args = [exe.arg_dict for exe in self.execs]
        grads = [exe.grad_dict for exe in self.execs]
        auxes = [exe.aux_dict for exe in self.execs]

        def targets(descs: Sequence[DataDesc] | None) -> list:
            return [
                [(part, a[d.name]) for part, a in zip(self.slices, args, strict=True)]
                if d.name in self._known
                else []
                for d in descs or []
            ]

        self.data_arrays = targets(self.data_shapes)
        self.label_arrays = targets(self.label_shapes) if self.label_shapes else None
        self.param_arrays = [[a[name] for a in args] for name in self.param_names]
        self.state_arrays = [[a[name] for a in args] for name in self.state_names]
        self.grad_arrays = [[g[name] for g in grads] for name in self.param_names]
        self.aux_arrays = [[x[name] for x in auxes] for name in self.aux_names]
        # Indices, weights and gradients of parameters with gradients, on the first device.
        rows = enumerate(zip(self.grad_arrays, self.param_arrays, strict=True))
        trained = [(i, g[0], weights[0]) for i, (g, weights) in rows if g[0] is not None]
        self.trained = [[row[k] for row in trained] for k in range(3)]
        self.input_grad_arrays = (
            [[g[name] for g in grads] for name in self.data_names] if self.inputs_need_grad else []
        )

    # -- parameters ---------------------------------------------------------------------------

    def set_params(
        self,
        arg_params: Mapping[str, NDArray],
        aux_params: Mapping[str, NDArray] | None,
        allow_extra: bool = False,
    ) -> None:
        """Copy parameters to all devices."""
        for exe in self.execs:
            exe.copy_params_from(arg_params, aux_params, allow_extra_params=allow_extra)

    def get_params(self, arg_params: Mapping[str, NDArray], aux_params: Mapping) -> None:
        """Copy the parameters, averaged over the devices, into these arrays."""
        for names, blocks, into in (
            (self.param_names, self.param_arrays, arg_params),
            (self.aux_names, self.aux_arrays, aux_params),
        ):
            for name, block in zip(names, blocks, strict=True):
                copy_into(into[name], _average(block, into[name]), name)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the states to arrays of `get_states`, or to a number."""
        if (states is None) == (value is None):
            raise InvalidValue("set_states takes exactly one of states and value.")
        if states is not None:
            _load_general(states, [[(None, x) for x in b] for b in self.state_arrays], repeat(-1))
            return
        for block in self.state_arrays:
            for array in block:
                array[:] = value

    def get_states(self, merge_multi_context: bool = True) -> list:
        """Return a list for each state, with one array for each device."""
        if merge_multi_context:
            raise AssertionError(
                "merge_multi_context=True is not supported for get_states yet: states need not "
                "have a batch axis. Use get_states(merge_multi_context=False)."
            )
        return self.state_arrays

    # -- running ------------------------------------------------------------------------------

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Copy the batch to the devices and compute the outputs."""
        if not self._in_use.acquire(blocking=False):
            raise shared_by_threads("forward of a Module")
        try:
            _load_general(data_batch.data, self.data_arrays, self.data_layouts)
            labels = getattr(data_batch, "label", None)
            if self.label_arrays is not None and labels:
                _load_general(labels, self.label_arrays, self.label_layouts)
            training = self.for_training if is_train is None else is_train
            for exe in self.execs:
                exe.forward(is_train=training)
        finally:
            self._in_use.release()

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients; `out_grads` are those of the outputs, for the whole batch."""
        if not self.for_training:
            raise AssertionError("re-bind with for_training=True to run backward")
        if out_grads is None or len(self.execs) == 1:
            for exe in self.execs:
                exe.backward(out_grads)
            return
        out_grads = [out_grads] if isinstance(out_grads, NDArray) else out_grads
        for exe, part in zip(self.execs, self.slices, strict=True):
            exe.backward(
                [
                    _part_of(grad, axis, part)
                    for grad, axis in zip(out_grads, self.output_layouts, strict=True)
                ]
            )

    # -- results ------------------------------------------------------------------------------

    def get_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Return name and shape of each output, for the whole batch."""
        shapes = [out.shape for out in self.execs[0].outputs]
        whole = []
        for name, shape, axis in zip(self.output_names, shapes, self.output_layouts, strict=True):
            sizes = list(shape)
            if axis >= 0 and len(self.execs) > 1:
                sizes[axis] = self.batch_size
            whole.append((name, tuple(sizes)))
        return whole

    def release_outputs(self) -> None:
        """Free the outputs of the last forward, unless they are referenced elsewhere."""
        for executor in self.execs:
            executor.release_outputs()

    def get_outputs(
        self, merge_multi_context: bool = True, begin: int = 0, end: int | None = None
    ) -> list:
        """Return the outputs of the last forward, concatenated over devices or as lists."""
        per_device = [exe.outputs[begin:end] for exe in self.execs]
        outputs = [list(block) for block in zip(*per_device, strict=True)]
        if not merge_multi_context:
            return outputs
        return _merge_multi_context(outputs, self.output_layouts[begin:end])

    def get_input_grads(self, merge_multi_context: bool = True) -> list:
        """Return the gradients of the inputs, concatenated over devices or as lists."""
        if not self.inputs_need_grad:
            raise AssertionError("bind with inputs_need_grad=True to get gradients of the inputs")
        if not merge_multi_context:
            return self.input_grad_arrays
        return _merge_multi_context(self.input_grad_arrays, self.data_layouts)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Update a metric with the outputs and labels of the last batch, device by device."""
        for device, (exe, part) in enumerate(zip(self.execs, self.slices, strict=True)):
            if pre_sliced:
                mine = labels[device]
            elif len(self.execs) == 1:
                mine = labels or []
            else:
                axes = self.label_layouts or [0] * len(labels)
                mine = [
                    _part_of(label, axis, part)
                    for label, axis in zip(labels or [], axes, strict=False)
                ]
            names = self.label_names or [f"label{i}" for i in range(len(mine))]
            eval_metric.update_dict(
                OrderedDict(zip(names, mine, strict=False)),
                OrderedDict(zip(self.output_names, exe.outputs, strict=True)),
            )

    def install_monitor(self, mon: Any) -> None:
        """Install a monitor on all executors, including later ones for other shapes."""
        self._monitors.append(mon)
        for execs in self._ready.values():
            for exe in execs:
                mon.install(exe)
        for execs in list(self._ready.values()):
            self._show_to_monitors(execs)

    def _show_to_monitors(self, before: list[Executor]) -> None:
        """Install monitors on the current executors only, not on those for other shapes."""
        for monitor in self._monitors:
            shown = getattr(monitor, "exes", None)
            if shown is not None:
                ours = {id(exe) for exe in (*before, *self.execs)}
                shown[:] = [exe for exe in shown if id(exe) not in ours] + self.execs


def _part_of(array: NDArray, axis: int, part: slice) -> NDArray:
    """Return the description of one device's slice of the batch."""
    return array if axis < 0 else sliced(array, axis, part)


def _average(block: Sequence[NDArray], like: NDArray) -> NDArray:
    if len(block) == 1:
        return block[0]
    return nd.add_n(*(array.as_in_context(like.context) for array in block)) / len(block)


def _merge_multi_context(outputs: Sequence[Sequence[Any]], major_axis: Sequence[int]) -> list:
    """Concatenate outputs along the batch axis on the first device; for axis -1 use the first."""
    merged = []
    for parts, axis in zip(outputs, major_axis, strict=True):
        if axis < 0 or len(parts) == 1:
            merged.append(parts[0])
            continue
        here = parts[0].context
        merged.append(nd.concat(*(part.as_in_context(here) for part in parts), dim=axis))
    return merged


def _contexts_of_groups(group2ctxs: Any, count: int) -> list[dict[str, Context] | None]:
    if group2ctxs is None:
        return [None] * count
    if isinstance(group2ctxs, list | tuple):
        if len(group2ctxs) != count:
            raise ValueError(f"group2ctxs has {len(group2ctxs)} entries for {count} contexts.")
        return [dict(one) for one in group2ctxs]
    spread: list[Any] = [{} for _ in range(count)]
    for group, where in group2ctxs.items():
        listed = [where] if isinstance(where, Context) else list(where)
        if len(listed) == 1:
            listed *= count
        if len(listed) != count:
            raise ValueError(
                f"group2ctxs[{group!r}] has {len(listed)} contexts, the module has {count}."
            )
        for one, context in zip(spread, listed, strict=True):
            one[group] = context
    return spread
