"""Torch's private API: the only module that uses it.

Each part has a name, a line that says what it is for, a probe, and a public alternative with the
same result, which may be slower. The probe looks whether the part exists and does what is expected
of it; if not, the alternative takes its place. ``MXNET_WITHOUT_TORCH_PRIVATE=NAME,...`` does the
same for the parts named, or for ``all``: try it if a new torch gives wrong results.

`UNAVAILABLE` has the names of the parts that are not used here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._process import env

PARTS: dict[str, str] = {}  # what each part is for
UNAVAILABLE: dict[str, str] = {}  # why a part is not used


def is_wanted(name: str) -> bool:
    """Return whether the user's settings allow a part."""
    named = {part.strip() for part in env.get("MXNET_WITHOUT_TORCH_PRIVATE").split(",")}
    return not named & {name, "all"}


def choose(
    name: str,
    purpose: str,
    find: Callable[[], Any],
    works: Callable[[Any], object],
    otherwise: Any,
) -> Any:
    """Return a private part of torch if it works here, else its public alternative.

    Parameters
    ----------
    name : of the part.
    purpose : what it is for.
    find : gets it from torch.
    works : calls it with small arguments, and checks the result.
    otherwise : the alternative.
    """
    PARTS[name] = purpose
    if not is_wanted(name):
        UNAVAILABLE[name] = "MXNET_WITHOUT_TORCH_PRIVATE"
        return otherwise
    try:
        part = find()
        if works(part):
            return part
        UNAVAILABLE[name] = "gives another result than expected"
    except Exception as error:  # whatever a new torch does with it
        UNAVAILABLE[name] = f"{type(error).__name__}: {error}"
    return otherwise


# -- autograd -------------------------------------------------------------------------------------


def _set_grad_mode(mode: bool) -> None:
    torch.set_grad_enabled(mode)


set_grad_enabled: Callable[[bool], object] = choose(
    "set_grad_enabled",
    "switch grad mode without making an object",
    lambda: torch._C._set_grad_enabled,
    lambda switch: switch(torch.is_grad_enabled()) is None,
    _set_grad_mode,
)


def _run_publicly(
    heads: Sequence[Tensor],
    starts: Sequence[Tensor],
    keep: bool,
    create: bool,
    leaves: Sequence[Tensor],
    allow_unreachable: bool,
    accumulate_grad: bool,
) -> Sequence[Tensor | None] | None:
    options: dict[str, Any] = {"retain_graph": keep, "create_graph": create}
    if accumulate_grad:
        return torch.autograd.backward(heads, starts, **options)
    return torch.autograd.grad(heads, leaves, starts, allow_unused=allow_unreachable, **options)


def _doubles(run: Callable) -> bool:
    with torch.enable_grad():
        leaf = torch.ones(2, requires_grad=True)
        heads, starts = (leaf * 2,), (torch.ones(2),)
        (gradient,) = run(heads, starts, False, False, (leaf,), True, accumulate_grad=False)
    return gradient.tolist() == [2, 2] and leaf.grad is None


# Heads and their gradients, whether to keep the graph and to record, leaves, whether these may be
# out of reach, whether gradients are accumulated instead of returned.
run_backward: Callable[..., Sequence[Tensor | None] | None] = choose(
    "run_backward",
    "run torch's engine without the checks and imports of torch.autograd",
    lambda: torch.autograd.Variable._execution_engine.run_backward,  # type: ignore[attr-defined]
    _doubles,
    _run_publicly,
)


def is_freed_error(error: RuntimeError) -> bool:
    """Return whether torch's error is about a graph that backward has freed."""
    return "second time" in str(error)


def is_overwritten_error(error: RuntimeError) -> bool:
    """Return whether torch's error is about a saved value that was overwritten."""
    return "modified by an inplace operation" in str(error)


@lru_cache(maxsize=1024)
def _saved_names(kind: type) -> tuple[str, ...]:
    names = [name for name in dir(kind) if name.startswith("_saved_")]
    return (*names, *(["saved_tensors"] if hasattr(kind, "saved_tensors") else []))


def _find_freed(node: Any) -> bool | None:
    """Return whether torch has freed a node of its graph; None if the node does not show it."""
    if (freed := getattr(node, "is_freed", None)) is not None:
        return freed
    for name in _saved_names(type(node)):
        try:
            saved = getattr(node, name)
        except RuntimeError as error:
            if is_freed_error(error):
                return True
            continue
        if isinstance(saved, Tensor):
            return False
        if isinstance(saved, tuple) and any(isinstance(each, Tensor) for each in saved):
            return False
    return None


def _sees_freed_nodes(find: Callable[[Any], bool | None]) -> bool:
    with torch.enable_grad():
        result = torch.ones(1, requires_grad=True).exp()
    before = find(result.grad_fn)
    run_backward((result,), (torch.ones(1),), False, False, (), True, accumulate_grad=True)
    return before is False and find(result.grad_fn) is True


is_freed: Callable[[Any], bool | None] = choose(
    "is_freed",
    "ask a node of torch's graph whether backward has freed it",
    lambda: _find_freed,
    _sees_freed_nodes,
    lambda node: None,
)


def _always(*_: object) -> bool:
    return True


has_backward_hooks: Callable[[torch.nn.Module], bool] = choose(
    "has_backward_hooks",
    "ask a module for backward hooks, which a graph would not call",
    lambda: lambda module: bool(module._backward_hooks or module._backward_pre_hooks),
    lambda ask: ask(torch.nn.Module()) is False,
    _always,
)


# -- memory ---------------------------------------------------------------------------------------


def _no_count(tensor: Tensor) -> int:
    raise NotImplementedError("this torch does not count writes")


def _counts(count: Callable[[Tensor], int]) -> bool:
    tensor = torch.zeros(2)
    before = count(tensor)
    tensor[:1].fill_(1)
    return count(tensor) == before + 1


count_writes: Callable[[Tensor], int] = choose(
    "count_writes",
    "see whether a tensor was written since a packed weight was made of it",
    lambda: vars(torch._C.TensorBase)["_version"].__get__,
    _counts,
    _no_count,
)


is_view: Callable[[Tensor], bool] = choose(
    "is_view",
    "see whether a tensor is a view, which must not be returned as a copy",
    lambda: Tensor._is_view,
    lambda ask: ask(torch.ones(2)[:1]) and not ask(torch.ones(2)),
    _always,  # who asks makes a copy, or marks the memory as shared
)


def _may_be_zero_tensor(tensor: Tensor) -> bool:
    return not tensor.data_ptr() and tensor.numel() > 0


is_zero_tensor: Callable[[Tensor], bool] = choose(
    "is_zero_tensor",
    "see whether torch returned a gradient of zeros that has no memory",
    lambda: Tensor._is_zerotensor,
    lambda ask: not ask(torch.zeros(1)),
    _may_be_zero_tensor,
)


def _count_users(storage: torch.UntypedStorage) -> int:
    return torch._C._storage_Use_Count(storage._cdata)


def _counts_users(count: Callable[[torch.UntypedStorage], int]) -> bool:
    tensor = torch.zeros(2)
    alone = count(tensor.untyped_storage())
    part = tensor[1:]
    return part.dim() == 1 and alone == 2 and count(tensor.untyped_storage()) == 3


# The Python object of the storage is a user as well. None: torch does not tell.
count_users: Callable[[torch.UntypedStorage], int] | None = choose(
    "count_users",
    "see whether arrays of the program are still on shared memory, before it is used again",
    lambda: _count_users,
    _counts_users,
    None,
)


def _has_one_owner(tensor: Tensor) -> bool:
    """Return whether no other tensor or NumPy array is on a tensor's memory.

    >>> import torch
    >>> x = torch.zeros(4)
    >>> part = x[1:]
    >>> has_one_owner(torch.zeros(4)), has_one_owner(x)
    (True, False)
    """
    storage = tensor.untyped_storage()  # whose Python object, while it is held, is a user as well
    return torch._C._storage_Use_Count(storage._cdata) <= 2


def _sees_owners(ask: Callable[[Tensor], bool]) -> bool:
    tensor = torch.zeros(2)
    alone = ask(tensor)
    part = tensor[1:]
    return alone and part.dim() == 1 and not ask(tensor)


has_one_owner: Callable[[Tensor], bool] = choose(
    "has_one_owner",
    "see whether anything else is on a tensor's memory, before it is written early",
    lambda: _has_one_owner,
    _sees_owners,
    lambda tensor: False,
)


# -- modes and interception -----------------------------------------------------------------------


class _NoDispatchMode:
    """Replaces torch's class if there is none; then nothing is captured."""


_DispatchMode: Any = choose(
    "TorchDispatchMode",
    "see every kernel below autograd, to capture training steps",
    lambda: import_module("torch.utils._python_dispatch").TorchDispatchMode,
    lambda mode: isinstance(mode, type),
    _NoDispatchMode,
)


class KernelWatcher(_DispatchMode):
    """Base class of observers of each kernel call."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Torch would import its compiler at the first kernel, to keep it from compiling this: two
        # seconds and 70 MB. Nothing here runs in compiled code.
        return False


def schema_of(kernel: Any) -> Any:
    """Return the schema of a kernel: its arguments, and which of them it writes."""
    return kernel._schema


def find_functions(kernel: Any) -> list[Callable]:
    """Return Python functions that may call a kernel, the fastest first."""
    name = kernel._schema.name.removeprefix("aten::")
    holders = (torch._C._VariableFunctions, torch._C._nn, Tensor)  # type: ignore[attr-defined]
    functions = [getattr(holder, name, None) for holder in holders]
    return [*(f for f in functions if f is not None), kernel._op]


def _finds_add(_: object) -> bool:
    add = torch.ops.aten.add_.Tensor
    return schema_of(add).is_mutable and callable(find_functions(add)[-1])


can_capture: bool = choose(
    "find_functions",
    "call captured kernels by torch's fastest functions",
    lambda: _DispatchMode is not _NoDispatchMode,
    _finds_add,
    False,
)

# Without these functions modes are taken to be active, and nothing is cached or captured.
count_dispatch_modes: Callable[[], int] = choose(
    "count_dispatch_modes",
    "see whether torch.compile or another mode takes the place of kernels",
    lambda: torch._C._len_torch_dispatch_stack,
    lambda count: count() == 0,
    lambda: 1,
)
count_function_modes: Callable[[], int] = choose(
    "count_function_modes",
    "see whether a mode of torch's Python functions is active",
    lambda: torch._C._len_torch_function_stack,
    lambda count: count() == 0,
    lambda: 1,
)

record_function: Callable[[str], Any] = choose(
    "record_function",
    "name a range in the profile in a fifth of the time of torch.profiler.record_function",
    lambda: import_module("torch._C._profiler")._RecordFunctionFast,
    lambda record: hasattr(record("name"), "__enter__"),
    torch.profiler.record_function,
)

DYNAMO = "torch._dynamo"  # the module that torch.compile imports


# -- lists of tensors -----------------------------------------------------------------------------


def _one_by_one(name: str) -> Callable[..., Any]:
    method = torch.linalg.vector_norm if name == "norm" else getattr(Tensor, name)
    if name in ("addcdiv_", "addcmul_"):  # the number is an operand here, a keyword of the method
        with_value = method

        def method(tensor: Tensor, first: Tensor, second: Tensor, value: float = 1) -> Tensor:
            return with_value(tensor, first, second, value=value)

    def each(tensors: Sequence[Tensor], *operands: Any, **numbers: Any) -> list[Tensor]:
        rows = [
            [o[i] if isinstance(o, list | tuple) else o for o in operands]
            for i in range(len(tensors))
        ]
        return [method(t, *row, **numbers) for t, row in zip(tensors, rows, strict=True)]

    return each


def _adds(call: Callable[..., Any]) -> bool:
    (total,) = call("add")([torch.ones(1)], [torch.ones(1)], alpha=2)
    return total.item() == 3


_find_foreach: Callable[[str], Callable[..., Any]] = choose(
    "foreach",
    "do the same to many tensors in one call, which is one kernel on a GPU",
    lambda: lambda name: getattr(torch, f"_foreach_{name}"),
    _adds,
    _one_by_one,
)


@cache
def foreach(name: str) -> Callable[..., Any]:
    """Return the function that calls a tensor method on each tensor of a list.

    >>> import torch
    >>> list(foreach("mul")([torch.ones(1), torch.ones(2)], 2))
    [tensor([2.]), tensor([2., 2.])]
    """
    return _find_foreach(name)


class FusedOptimizers(NamedTuple):
    """Steps of optimizers over many weights, each in one pass through memory."""

    sgd_: Callable[..., None]
    adam_: Callable[..., None]
    adamw_: Callable[..., None]


def _find_fused_optimizers() -> FusedOptimizers:
    functions: Any = torch._C._VariableFunctions  # type: ignore[attr-defined]
    return FusedOptimizers(functions._fused_sgd_, functions._fused_adam_, functions._fused_adamw_)


def _descends(fused: FusedOptimizers) -> bool:
    weight, grad = torch.ones(1), torch.ones(1)
    settings = {"weight_decay": 0.0, "momentum": 0.0, "lr": 0.5, "dampening": 0.0}
    flags = {"nesterov": False, "maximize": False, "is_first_step": False}
    fused.sgd_([weight], [grad], [], **settings, **flags)
    return weight.item() == 0.5


fused_optimizers: FusedOptimizers | None = choose(
    "fused_optimizers",
    "step over all weights in one pass through memory",
    _find_fused_optimizers,
    _descends,
    None,
)


# -- kernels --------------------------------------------------------------------------------------


def _batch_norm(
    data: Tensor,
    scale: Tensor | None,
    bias: Tensor | None,
    eps: float,
    moving_mean: Tensor | None = None,
    moving_var: Tensor | None = None,
    momentum: float = 0.0,
) -> Sequence[Tensor]:
    states = moving_mean, moving_var
    return torch._batch_norm_impl_index(data, scale, bias, *states, True, momentum, eps, True)[:3]


def _native_batch_norm(
    data: Tensor,
    scale: Tensor | None,
    bias: Tensor | None,
    eps: float,
    moving_mean: Tensor | None = None,
    moving_var: Tensor | None = None,
    momentum: float = 0.0,
) -> Sequence[Tensor]:
    return torch.native_batch_norm(data, scale, bias, moving_mean, moving_var, True, momentum, eps)


# With states of torch's kind: `momentum` is the part of the batch, the variance is unbiased.
normalize_batch: Callable[..., Sequence[Tensor]] = choose(
    "normalize_batch",
    "normalize a batch by the kernel that torch.batch_norm picks, and get its statistics",
    lambda: _batch_norm,
    lambda run: run(torch.tensor([[1.0], [3.0]]), None, None, 0.0)[1].tolist() == [2.0],
    _native_batch_norm,
)


def _draw_gamma(alpha: Tensor) -> Tensor:
    return torch.distributions.Gamma(alpha, torch.ones_like(alpha), validate_args=False).rsample()


standard_gamma: Callable[[Tensor], Tensor] = choose(
    "standard_gamma",
    "draw from gamma distributions without the checks of torch.distributions",
    lambda: torch._standard_gamma,
    lambda draw: draw(torch.zeros(0)).shape == (0,),
    _draw_gamma,
)


def _bag_maximum(rows: Tensor, index: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    out, _, sizes, winner = torch._embedding_bag(rows, index, offsets, False, 2)
    return out, sizes, winner


def _bag_maximum_publicly(
    rows: Tensor, index: Tensor, offsets: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    out = torch.nn.functional.embedding_bag(index, rows, offsets, mode="max")
    sizes = torch.diff(offsets, append=offsets.new_tensor([len(index)]))
    bags = torch.repeat_interleave(torch.arange(len(offsets), device=index.device), sizes)
    place = torch.arange(len(index), device=index.device).unsqueeze(1)
    place = torch.where(rows[index] == out[bags], place, len(index))
    first = place.new_full(out.shape, len(index))
    first.scatter_reduce_(0, bags.unsqueeze(1).expand_as(place), place, "amin")
    padded = torch.cat([index, index.new_zeros(1)])
    return out, sizes, padded[first]


bag_maximum: Callable[..., tuple[Tensor, Tensor, Tensor]] = choose(
    "bag_maximum",
    "find the largest row of each bag, and which one it was",
    lambda: _bag_maximum,
    lambda run: run(torch.ones(2, 1), torch.tensor([0, 1]), torch.tensor([0]))[1].tolist() == [2],
    _bag_maximum_publicly,
)


def _refuse_check(condition: Tensor, message: str) -> None:
    raise NotImplementedError("this torch cannot check values in a recorded program")


assert_async: Callable[[Tensor, str], None] = choose(
    "assert_async",
    "check values when a recorded program runs",
    lambda: torch._assert_async,
    lambda check: check(torch.tensor(True), "") is None,
    _refuse_check,
)


@contextmanager
def _switch_onednn_off() -> Iterator[None]:
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def _switches(scope: Callable[[], Any]) -> bool:
    with scope():
        inside = torch.backends.mkldnn.enabled
    return not inside


without_onednn: Callable[[], Any] = choose(
    "without_onednn",
    "run kernels without oneDNN inside torch.compile, which refuses to change other settings",
    lambda: _switch_onednn_off,
    _switches,
    lambda: torch.backends.mkldnn.flags(enabled=False),
)


class DenseKernels(NamedTuple):
    """oneDNN's dense layers with packed weights."""

    transform: Callable[..., Tensor]
    pack: Callable[..., Tensor]


class ConvolutionKernels(NamedTuple):
    """oneDNN's convolutions with packed weights."""

    fused: Callable[..., Tensor]
    fused_with_sum: Callable[..., Tensor]
    pack: Callable[..., Tensor]


class Int8Kernels(NamedTuple):
    """oneDNN's 8-bit layers."""

    convolve: Callable[..., Tensor]
    convolve_and_add: Callable[..., Tensor]
    pack_convolution: Callable[..., Tensor]
    transform: Callable[..., Tensor]
    pack_dense: Callable[..., Tensor]


def _has_onednn(_: object) -> bool:
    return torch.backends.mkldnn.is_available()


def _packs_dense(kernels: DenseKernels) -> bool:
    data, weight = torch.ones(4, 8), torch.ones(8, 8)
    out = kernels.transform(data, kernels.pack(weight, 4), None, "none", [], "")
    return _has_onednn(kernels) and bool((out == 8).all())


def _packs_convolutions(kernels: ConvolutionKernels) -> bool:
    data, weight = torch.ones(1, 2, 3, 3), torch.ones(2, 2, 1, 1)
    windows = ([0, 0], [1, 1], [1, 1], 1)
    packed = kernels.pack(weight, *windows, list(data.shape))
    out = kernels.fused(data, packed, None, *windows, "none", [], "")
    return _has_onednn(kernels) and bool((out == 2).all())


@cache
def dense_kernels() -> DenseKernels | None:
    """Return oneDNN's dense layers, or None to use plain ones."""
    return choose(
        "dense_kernels",
        "multiply by weights that are packed once",
        lambda: DenseKernels(
            torch.ops.mkldnn._linear_pointwise.default,
            torch.ops.mkldnn._reorder_linear_weight.default,
        ),
        _packs_dense,
        None,
    )


@cache
def convolution_kernels() -> ConvolutionKernels | None:
    """Return oneDNN's convolutions, or None to use plain ones."""
    return choose(
        "convolution_kernels",
        "convolve, add and activate in one pass, with weights that are packed once",
        lambda: ConvolutionKernels(
            torch.ops.mkldnn._convolution_pointwise.default,
            torch.ops.mkldnn._convolution_pointwise.binary,
            torch.ops.mkldnn._reorder_convolution_weight.default,
        ),
        _packs_convolutions,
        None,
    )


@cache
def int8_kernels() -> Int8Kernels | None:
    """Return oneDNN's 8-bit layers, or None to use float kernels."""
    return choose(
        "int8_kernels",
        "compute 8-bit layers",
        lambda: Int8Kernels(
            torch.ops.onednn.qconv_pointwise.default,
            torch.ops.onednn.qconv2d_pointwise.binary,
            torch.ops.onednn.qconv_prepack.default,
            torch.ops.onednn.qlinear_pointwise.default,
            torch.ops.onednn.qlinear_prepack.default,
        ),
        _has_onednn,
        None,
    )


# -- data loading, modules, export ----------------------------------------------------------------


def collate_functions() -> dict[type, Callable]:
    """Return how torch's own `DataLoader` makes batches, by the type of the samples."""
    return choose(
        "collate_functions",
        "have torch's own DataLoader collate arrays",
        lambda: import_module("torch.utils.data._utils.collate").default_collate_fn_map,
        lambda table: Tensor in table,
        {},
    )


class WorkerParts(NamedTuple):
    """The parts with which torch's `DataLoader` iterates over its workers."""

    iterator: type
    watch: Callable[[int, tuple[int, ...]], None]
    forget: Callable[[int], None]


def find_worker_parts() -> WorkerParts:
    """Return how torch's `DataLoader` monitors its workers. There is no public alternative."""
    signals = import_module("torch.utils.data._utils.signal_handling")
    loader: Any = import_module("torch.utils.data.dataloader")
    return WorkerParts(
        loader._MultiProcessingDataLoaderIter,
        signals._set_worker_pids,
        signals._remove_worker_pids,
    )


def tree_leaves(value: Any) -> list[Any]:
    """Return the leaves of nested containers, as torch's exporters see them."""
    return import_module("torch.utils._pytree").tree_leaves(value)


def tree_map(function: Callable[[Any], Any], value: Any) -> Any:
    """Return nested containers with a function applied to each leaf."""
    return import_module("torch.utils._pytree").tree_map(function, value)


def is_view_kernel(kernel: Any) -> bool:
    """Return whether a kernel is `view`, under the name that exporters write."""
    return kernel in (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)


@cache
def data_dependent_errors() -> tuple[type[Exception], ...]:
    """Return torch's exceptions for programs that depend on values while they are traced."""

    def find() -> tuple[type[Exception], ...]:
        errors = import_module("torch._subclasses.fake_tensor")
        return errors.DataDependentOutputException, errors.DynamicOutputShapeException

    return choose(
        "data_dependent_errors",
        "explain which operator depends on values in an exported program",
        find,
        lambda errors: all(issubclass(error, Exception) for error in errors),
        (),
    )


def compile_package(program: Any, path: str) -> Callable[..., Any]:
    """Compile an exported program into a file, and return what runs the file."""
    inductor: Any = import_module("torch._inductor")
    return inductor.aoti_load_package(inductor.aoti_compile_and_package(program, package_path=path))
