"""`Program`: a graph that is prepared to run in one mode.

It is optimized and scheduled once: kernels, slots and last uses. The schedule becomes one Python
function without a loop: ``v5 = k3(v1, v4, axis=a3_axis); del v4`` line by line, at half the cost of
a loop. One line is one step, so a traceback shows which step failed.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from types import CodeType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ..error import MXNetError, memory_error
from ..graph.gradient_flow import nodes_behind_output_layers
from ..graph.graph import Graph
from ..graph.node import Entry, Node
from ..graph.optimize import IN_PLACE, SPECIALIZE, enabled_passes, optimize, select_passes
from ..graph.passes.simplify import resolve_sources
from ..graph.typed_graph import Inputs, Mode, TypedGraph
from ..ops import interpreters
from ..ops.attributes import to_string
from ..ops.declare import KERNEL_ERRORS, Op
from ..ops.fused.prepared_values import Fallback
from ..ops.gradients import keep_path
from ..ops.interpreters import Interpreter
from ..ops.kernel_errors import describe_kernel_error
from ..torch_private import is_view

if TYPE_CHECKING:
    from ..ndarray import NDArray


_UNWRAPPED = "{0}[0] if type({0}) is tuple else {0}"
_OF_KERNEL = "of_kernel"  # attribute of errors that a kernel raised, not an interpreter
FIRST_LINE = 3  # of the steps, after the signature and the inputs
ABSENT = 0  # the slot that always holds None, for missing optional inputs
Wrap = Callable[[Node, Callable, Sequence[Entry | None]], Callable]
# Inputs and outputs: tensors, or arrays if kernels are wrapped.
Value = TypeVar("Value", Tensor, "Tensor | NDArray")


class Step(NamedTuple):
    """One call: kernel, input slots, attributes and output slots."""

    kernel: Callable
    inputs: tuple[int, ...]
    attrs: dict[str, Any]
    first: int
    outputs: int
    dead: tuple[int, ...]
    wraps: bool = True  # whether a single result may be a tuple


class Scheduler:
    """Creates the steps of a graph.

    Parameters
    ----------
    graph : the graph to run.
    variables : the input nodes, in order. The graph may not use all of them.
    device : where operators run.
    devices : the device of each node, when there are several.
    kernels : what other programs of the same graph run; operators with memory share it.
    wrap : replaces the kernels of nodes that need more than tensors.
    enabled : names of the optimizations of `graph.optimize` that are enabled.
    """

    def __init__(
        self,
        graph: TypedGraph,
        variables: Sequence[Node],
        device: torch.device,
        devices: Mapping[Node, torch.device] | None,
        kernels: dict[Node, Callable],
        wrap: Wrap | None,
        enabled: Sequence[str],
    ) -> None:
        self.graph, self.device, self.devices = graph, device, devices
        self.kernels, self.wrap = kernels, wrap
        self.specializes, self.writes_in_place = SPECIALIZE in enabled, IN_PLACE in enabled
        self.nodes = [n for n in graph.nodes if n.op is not None]
        if not enabled:  # the order of eager calls also determines how gradients are summed
            self.nodes.sort(key=order_of_making(graph).__getitem__)
        self.first_slot = {node: slot for slot, node in enumerate(variables, ABSENT + 1)}
        self.first_result = slot = len(variables) + 1
        for node in self.nodes:
            self.first_slot[node] = slot
            slot += node.outputs
        self.heads = [self.slot(e) for e in graph.heads]
        self.shown = {e.node for e in graph.heads}
        self.behind = nodes_behind_output_layers(graph) if graph.mode.differentiable else {}

    def slot(self, entry: Entry | None) -> int:
        """Return the slot of an entry's value."""
        return ABSENT if entry is None else self.first_slot[entry[0]] + entry[1]

    def steps(self) -> list[Step]:
        """Return the steps, in order.

        A single result reuses the slot of an input after its last use, if there is one. That frees
        the input without a separate statement, and statements take long to compile.
        """
        inputs = [self._inputs(node) for node in self.nodes]
        slot = self.slot
        slots = [tuple([slot(e) for e in entries]) for entries in inputs]
        dead = self._last_uses(slots)
        steps, reused = [], {}
        for node, entries, read, dying in zip(self.nodes, inputs, slots, dead, strict=True):
            kernel, attrs = self._kernel(node, entries)
            if node in self.behind:
                kernel = _keep_paths(kernel, entries, self.behind[node])
            if self.devices is not None:
                kernel = _moving(kernel, self.devices[node])
            wraps = type(node.op) is not Op or not isinstance(node.op._outputs, int)
            first, count = self.first_slot[node], node.outputs
            read, dying = ([reused.get(s, s) for s in own] for own in (read, dying))
            if count == 1 and dying and first not in dying:
                reused[first] = dying[-1]
                first = dying.pop()
            steps.append(Step(kernel, tuple(read), attrs, first, count, tuple(dying), wraps))
        self.heads = [reused.get(slot, slot) for slot in self.heads]
        return steps

    def _inputs(self, node: Node) -> Sequence[Entry | None]:
        """Return one entry for each parameter of the operator, None for missing ones."""
        op = node.operator
        if op.variadic is not None or len(node.inputs) == len(op.inputs):
            return node.inputs
        by_name = dict(zip(node.input_names, node.inputs, strict=True))
        return [by_name.get(i.name) for i in op.inputs]

    def _last_uses(self, reads: Sequence[tuple[int, ...]]) -> list[list[int]]:
        """Return for each step the slots that are read for the last time.

        Heads and variables are excluded: heads are returned, and the caller holds the variables.
        """
        last: dict[int, int] = {}
        for position, (node, read) in enumerate(zip(self.nodes, reads, strict=True)):
            first = self.first_slot[node]
            for slot in (*range(first, first + node.outputs), *read):
                last[slot] = position
        for slot in (ABSENT, *self.heads):
            last.pop(slot, None)
        dying: list[list[int]] = [[] for _ in self.nodes]
        for slot, position in last.items():
            if slot >= self.first_result:
                dying[position].append(slot)
        return dying

    # -- kernels ------------------------------------------------------------------------------

    def _kernel(
        self, node: Node, entries: Sequence[Entry | None]
    ) -> tuple[Callable, dict[str, Any]]:
        op, mode = node.operator, self.graph.mode
        device = self.device if self.devices is None else self.devices[node]
        attrs = {**node.typed, **op.context_for(mode.training, device)}
        # Intermediate results are never modified, so copies can be replaced by views.
        view = None if node in self.shown else op.find_variant("view", attrs)
        if view is not None:
            kernel, attrs = view, {}
        else:
            kernel = self._instantiate(node) if op.has_memory else op.kernel
        if self.wrap is not None:
            return self.wrap(node, kernel, entries), attrs
        if self.writes_in_place and "in_place" in op.variants:
            written = self._in_place(node, kernel, attrs)
            if written is not None:
                return written, {}
        if self.specializes and kernel is op.kernel:
            narrow = op.find_variant("node", node.typed, mode.differentiable)
            if narrow is not None:
                return narrow, {}
        return kernel, attrs

    def _instantiate(self, node: Node) -> Callable:
        origin = self.graph.origin(node)
        if origin not in self.kernels:
            self.kernels[origin] = node.operator.instantiate(node.typed, node.subgraphs)
        return self.kernels[origin]

    def _in_place(self, node: Node, kernel: Callable, attrs: dict[str, Any]) -> Callable | None:
        """Return the kernel that overwrites an input which is not read afterward."""
        op = node.operator
        if not self._is_free(node.inputs[0]):
            if not op.facts.commutative or not self._is_free(node.inputs[1]):
                return None
            target = 1
        else:
            target = 0
        written = op.find_variant("in_place", node.typed)
        if written is None:
            return None
        if len(node.inputs) == 1:
            return _write_unary(written, kernel, attrs, len(op.inputs) == 1)
        return _write_binary(written, kernel, attrs, target)

    def _is_free(self, entry: Entry) -> bool:
        maker = entry.node
        return (
            maker.op is not None
            and maker.op.facts.overwritable
            and entry.index == 0
            and self.graph.uses[maker, 0] == 1
        )


def _moving(kernel: Callable, device: torch.device) -> Callable:
    """Return a kernel that moves its inputs to its device."""

    def run(*arguments: Any, **attrs: Any) -> Any:
        moved = [a.to(device) if isinstance(a, Tensor) else a for a in arguments]
        return kernel(*moved, **attrs)

    return run


def order_of_making(graph: Graph) -> dict[Node, int]:
    """Return sort keys of nodes for the order of creation, with inputs always first.

    Serial numbers do not suffice: a cast inserted before a node was created after it.
    """
    order: dict[Node, int] = {}
    for node in graph.nodes:
        order[node] = max(node.serial, *(order[e.node] for e in node.inputs), 0)
    return order


# Do not write into views that require a gradient: in backward, torch would allocate zeros for the
# base and copy twice. Results of dense layers on three axes are such views.


def _write_unary(
    written: Callable, kernel: Callable, attrs: dict[str, Any], has_one_input: bool
) -> Callable:
    def run(data: Tensor) -> Tensor:
        if data.dtype.is_floating_point and not (data.requires_grad and is_view(data)):
            return written(data)
        return kernel(data, **attrs)

    def run_with_absent(data: Tensor, *absent: None) -> Tensor:
        if data.dtype.is_floating_point and not (data.requires_grad and is_view(data)):
            return written(data)
        return kernel(data, *absent, **attrs)

    return run if has_one_input else run_with_absent


def _write_binary(
    written: Callable, kernel: Callable, attrs: dict[str, Any], target: int
) -> Callable:
    def run(lhs: Tensor, rhs: Tensor) -> Tensor:
        if lhs.shape != rhs.shape or lhs.dtype is not rhs.dtype:
            return kernel(lhs, rhs, **attrs)
        if target:
            lhs, rhs = rhs, lhs
        if lhs.requires_grad and is_view(lhs):
            return kernel(rhs, lhs, **attrs) if target else kernel(lhs, rhs, **attrs)
        return written(lhs, rhs)

    return run


def _keep_paths(
    kernel: Callable, entries: Sequence[Entry | None], sources: set[Node]
) -> Callable[..., Any]:
    """Return a kernel whose results stay connected to the graph of inputs from `sources`."""
    positions = [
        i for i, entry in enumerate(entries) if entry is not None and entry.node in sources
    ]

    def keeping(*arguments: Any, **attrs: Any) -> Any:
        output = kernel(*arguments, **attrs)
        inputs = [arguments[i] for i in positions if type(arguments[i]) is Tensor]
        inputs = [t for t in inputs if t.requires_grad]
        if not inputs:
            return output
        if isinstance(output, tuple | list):
            return tuple(_keep_member(each, inputs) for each in output)
        return _keep_member(output, inputs)

    return keeping


def _keep_member(output: Any, inputs: Sequence[Tensor]) -> Any:
    if type(output) is not Tensor or output.requires_grad or not output.is_floating_point():
        return output
    return keep_path(output, inputs)


def compile_steps(steps: Sequence[Step], variables: int, heads: Sequence[int]) -> Callable:
    """Return ``run(feed) -> heads`` for steps that all run on one device."""
    names: dict[str, Any] = {}  # globals of the function
    inputs = "".join(f"v{i}, " for i in range(1, variables + 1))
    lines = ["def run(feed):", f" [{inputs}] = feed"]
    lines += [_line(number, step, names) for number, step in enumerate(steps)]
    lines.append(f" return [{', '.join(_value(slot) for slot in heads)}]")
    exec(_compile("\n".join(lines)), names)
    return names["run"]


@lru_cache(maxsize=64)
def _compile(source: str) -> CodeType:
    """Compile source. Cached, because programs under interpreters request it in every run."""
    return compile(source, "<prepared graph>", "exec")


def _run_watched(
    stack: Sequence[Interpreter], node: Node, kernel: Callable, /, *tensors: Any, **attrs: Any
) -> Any:
    """Run a kernel through interpreters. Mark errors of the kernel."""

    def marking(*tensors: Any, **attrs: Any) -> Any:
        try:
            return kernel(*tensors, **attrs)
        except KERNEL_ERRORS as error:
            setattr(error, _OF_KERNEL, True)
            raise

    return interpreters.run_node(stack, node, marking, tensors, attrs)


def failed_step(error: BaseException, run: Callable) -> tuple[int, dict[int, Any]]:
    """Return the number of the step that raised an error, and the values of the slots."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not run.__code__:
        trace = trace.tb_next
    if trace is None:
        return -1, {}
    values = {int(n[1:]): v for n, v in trace.tb_frame.f_locals.items() if n[0] == "v"}
    return trace.tb_lineno - FIRST_LINE, values


def _value(slot: int) -> str:
    return f"v{slot}" if slot else "None"


def _line(number: int, step: Step, names: dict[str, Any]) -> str:
    names[f"k{number}"] = step.kernel
    arguments = [_value(slot) for slot in step.inputs]
    if all(name.isidentifier() and not keyword.iskeyword(name) for name in step.attrs):
        for name, value in step.attrs.items():
            names[f"a{number}_{name}"] = value
            arguments.append(f"{name}=a{number}_{name}")
    else:  # attributes of user-defined operators may have any name
        names[f"a{number}"] = step.attrs
        arguments.append(f"**a{number}")
    call = f"k{number}({', '.join(arguments)})"
    results = range(step.first, step.first + step.outputs)
    if step.outputs == 1:
        text = f" v{step.first} = {call}"
        if step.wraps:
            text += f"; v{step.first} = " + _UNWRAPPED.format(f"v{step.first}")
    else:
        text = f" {''.join(f'v{slot}, ' for slot in results)} = {call}"
    if step.dead:
        text += f"; del {', '.join(f'v{slot}' for slot in step.dead)}"
    return text


class Program:
    """A graph that is optimized, scheduled and run.

    Parameters
    ----------
    graph : what to run.
    mode : how it is run.
    device : where operators run.
    inputs : known shapes and types of the variables.
    devices : the device of each node, or None. Graphs on several devices are not optimized.
    kernels : what other programs of this graph run; operators with memory share it.
    wrap : replaces the kernels of nodes that need more than tensors.
    optimized : whether passes run and kernels are specialized.
    recompute : whether training computes results again for backward instead of keeping them, or
        the bytes that it may keep; by default ``MXNET_BACKWARD_DO_MIRROR`` decides.
    keeps_layout : whether results may stay in another order in memory, inside another program.
    """

    def __init__(
        self,
        graph: Graph,
        mode: Mode,
        device: torch.device,
        inputs: Inputs = Inputs(),  # noqa: B008 (immutable)
        *,
        devices: Mapping[Node, torch.device] | None = None,
        kernels: dict[Node, Callable] | None = None,
        wrap: Wrap | None = None,
        optimized: bool = True,
        recompute: int | bool | None = None,
        keeps_layout: bool = False,
    ) -> None:
        if not isinstance(graph, TypedGraph):
            graph = TypedGraph(graph.heads, mode, inputs)
        self.source = resolve_sources(graph)
        self.mode, self.device = mode, device
        self.variables = graph.variables
        self._devices, self._wrap = devices, wrap
        self._kernels = {} if kernels is None else kernels
        self._optimized = optimized and devices is None and wrap is None
        self._plain: Program | None = None
        enabled = enabled_passes() if self._optimized else ()
        self.graph = optimize(self.source, select_passes(mode, device, enabled, recompute))
        scheduler = Scheduler(
            self.graph, self.variables, device, devices, self._kernels, wrap, enabled
        )
        self.rearranged = self.graph.is_rearranged and not keeps_layout
        self.nodes, self.steps = scheduler.nodes, scheduler.steps()
        self.heads = scheduler.heads
        self.function = compile_steps(self.steps, len(self.variables), self.heads)

    @property
    def is_repeatable(self) -> bool:
        """Whether all runs make the same calls of torch; see `capture`."""
        operators = [node.op for node in self.nodes]
        return (
            self._devices is None
            and self._wrap is None
            and self.device.type == "cpu"
            and all(type(op) is Op and op.facts.repeatable for op in operators)
        )

    def run(self, feed: Sequence[Value], *watchers: Interpreter) -> list[Value]:
        """Return the heads' values for one tensor per variable, in the order of `variables`.

        Watchers are interpreters for this run only.
        """
        function = self.function
        if interpreters.graphs or watchers:
            function = self._watched((*interpreters.graphs, *watchers))
        try:
            heads = function(feed)
        except Fallback:
            return self._unoptimized().run(feed)
        except KERNEL_ERRORS as error:
            position, values = failed_step(error, function)
            if function is not self.function and not hasattr(error, _OF_KERNEL):
                raise  # raised by an interpreter
            raise self._explain(position, feed, values, error) from error
        return [h.contiguous() for h in heads] if self.rearranged else heads

    def _watched(self, stack: Sequence[Interpreter]) -> Callable:
        """Return the function that runs every kernel through interpreters."""
        steps = [
            step._replace(kernel=partial(_run_watched, stack, node, step.kernel), wraps=True)
            for node, step in zip(self.nodes, self.steps, strict=True)
        ]
        return compile_steps(steps, len(self.variables), self.heads)

    def _unoptimized(self) -> Program:
        """Return the program of the same graph with plain kernels."""
        if self._plain is None:
            self._plain = Program(
                self.source,
                self.mode,
                self.device,
                devices=self._devices,
                kernels=self._kernels,
                wrap=self._wrap,
                optimized=False,
            )
        return self._plain

    def _explain(
        self, position: int, feed: Sequence[Any], values: Any, error: Exception
    ) -> Exception:
        if position < 0:
            return memory_error(error, "a prepared graph") or error
        if self._optimized and not self.mode.training:
            self._unoptimized().run(feed)  # the original graph names the node that fails
        node, step = self.nodes[position], self.steps[position]
        tensors = [values[slot] if slot else None for slot in step.inputs]
        shapes = [
            f"{name} {tuple(value.shape)} {to_string(value.dtype)}"
            for name, value in zip(node.input_names, tensors, strict=False)
            if value is not None
        ]
        op = node.operator
        memory = memory_error(error, f"Error in operator {node.name} ({op.name})")
        if memory is not None:
            return memory
        made_at = f" The node was made at {node.source[0]}:{node.source[1]}." if node.source else ""
        described = describe_kernel_error(op, tensors, node.typed, error)
        text = str(described)
        prefix = "" if text.startswith("Error in operator") else f"Error in operator {node.name}: "
        kind = type(described) if isinstance(described, MXNetError) else MXNetError
        explained = kind(f"{prefix}{text} ({op.name}; inputs: {', '.join(shapes)}).{made_at}")
        explained.node = node.name
        return explained
