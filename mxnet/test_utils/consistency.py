"""Test environments, and consistency of a symbol over devices and types."""

from __future__ import annotations

import functools
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

import mxnet as mx

from .. import context
from ..context import Context, num_gpus
from ..executor import Executor
from ..ndarray import NDArray
from ..symbol import Symbol
from .comparison import assert_almost_equal, default_atols, default_rtols, effective_dtype


def default_context() -> Context:
    """Return the context that tests use.

    >>> mx.test_utils.default_context()
    cpu(0)
    """
    return context.current_context()


def set_default_context(ctx: Context) -> None:
    """Set the current context of this thread; inside ``with``, until that ends.

    Parameters
    ----------
    ctx
        Device; by default that of tests.

    >>> mx.test_utils.set_default_context(mx.cpu(0))
    """
    Context._default_ctx.value = ctx


def list_gpus() -> range:
    """Return the numbers of the GPUs that can be used.

    >>> len(mx.test_utils.list_gpus()) == mx.context.num_gpus()
    True
    """
    return range(num_gpus())


@contextmanager
def environment(*args: Any) -> Iterator[None]:
    """Set environment variables within a ``with`` block; None removes one.

    Takes a name and a value, or one dict of names to values.

    Parameters
    ----------
    args
        A name and a value, or a dict of names to values.

    >>> with environment("MY_SWITCH", "1"):
    ...     print(os.environ["MY_SWITCH"])
    1
    """
    if len(args) == 2:
        variables = {args[0]: args[1]}
    elif len(args) == 1 and isinstance(args[0], dict):
        variables = args[0]
    else:
        raise AssertionError("Expecting one dict arg or two args: env var name and value")
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = str(value)


@contextmanager
def discard_stderr() -> Iterator[None]:
    """Discard output to the standard error within a ``with`` block, also by C code.

    >>> with mx.test_utils.discard_stderr():
    ...     pass
    """
    sys.stderr.flush()
    number = 2
    saved = os.dup(number)
    try:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 (a device, not a path)
            os.dup2(nowhere.fileno(), number)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, number)
        os.close(saved)


def retry(n: int) -> Callable[[Callable], Callable]:
    """Run a test up to `n` times until its assertions hold; for tests with random numbers.

    Parameters
    ----------
    n
        How many times to try.

    >>> @retry(3)
    ... def sometimes():
    ...     assert np.random.rand() < 0.999
    >>> sometimes()
    """
    if n <= 0:
        raise AssertionError(f"retry needs a positive number of times, not {n}")

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def repeated(*args: Any, **kwargs: Any) -> Any:
            for attempt in range(1, n + 1):
                try:
                    return test(*args, **kwargs)
                except AssertionError:
                    if attempt == n:
                        raise
            return None

        return repeated

    return decorate


def has_tvm_ops() -> bool:
    """Return False: there are no operators made by TVM.

    >>> mx.test_utils.has_tvm_ops()
    False
    """
    return False


def is_op_runnable() -> bool:
    """Return True: all operators run on this device.

    >>> mx.test_utils.is_op_runnable()
    True
    """
    return True


def is_cd_run() -> bool:
    """Return whether the variable ``CD_JOB`` says that this is a release build.

    >>> mx.test_utils.is_cd_run() in (True, False)
    True
    """
    return os.environ.get("CD_JOB", "0") == "1"


def is_aarch64_run() -> bool:
    """Return whether this is a 64-bit ARM processor.

    >>> mx.test_utils.is_aarch64_run() in (True, False)
    True
    """
    return platform.machine() == "aarch64"


# -- equal results on all contexts ----------------------------------------------------------------


# ruff: noqa: NPY002 (np.random.seed has to rule these numbers)


def check_speed(
    sym: Symbol,
    location: Mapping[str, Any] | None = None,
    ctx: Context | None = None,
    N: int = 20,
    grad_req: Any = None,
    typ: str = "whole",
    **kwargs: Any,
) -> float:
    """Return the seconds that one run takes, the mean of `N`.

    Parameters
    ----------
    sym : Symbol
        The symbol.
    location
        Values of arguments by name; otherwise give shapes as keywords.
    ctx
        Device; by default that of tests.
    N
        Number of runs.
    grad_req
        How gradients are stored; by default written.
    typ : {'whole', 'forward'}
        Forward and backward, or forward in prediction mode only.

    >>> seconds = mx.test_utils.check_speed(mx.sym.relu(mx.sym.var("x")), N=1, x=(2, 2))
    >>> seconds > 0
    True
    """
    if typ not in ("whole", "forward"):
        raise ValueError('typ can only be "whole" or "forward".')
    ctx = ctx or default_context()
    grad_req = "write" if grad_req is None else grad_req
    if location is not None:
        kwargs = {name: np.shape(value) for name, value in location.items()}
    exe = sym.simple_bind(ctx, grad_req=grad_req, **kwargs)
    for name, array in exe.arg_dict.items():
        if location is not None and name in location:
            array[:] = location[name]
        else:
            array[:] = np.random.normal(size=array.shape)

    def run() -> None:
        if typ == "forward":
            exe.forward(is_train=False)
        else:
            exe.forward(is_train=True)
            exe.backward(exe.outputs)

    run()  # prepares the graph
    mx.nd.waitall()
    start = time.perf_counter()
    for _ in range(N):
        run()
    mx.nd.waitall()
    return (time.perf_counter() - start) / N


def check_consistency(
    sym: Symbol | Sequence[Symbol],
    ctx_list: Sequence[Mapping[str, Any]],
    scale: float = 1.0,
    grad_req: Any = "write",
    arg_params: Mapping[str, Any] | None = None,
    aux_params: Mapping[str, Any] | None = None,
    rtol: Any = None,
    atol: Any = None,
    raise_on_err: bool = True,
    ground_truth: Mapping[str, Any] | None = None,
    equal_nan: bool = False,
    use_uniform: bool = False,
    rand_type: Any = np.float64,
) -> dict[str, NDArray]:
    """Compare outputs and gradients of a symbol on several contexts and in several data types.

    Parameters
    ----------
    sym : Symbol
        Or one for each entry of `ctx_list`.
    ctx_list : list of dict
        Each has 'ctx', shapes of inputs by name, and perhaps 'type_dict'.
    scale
        The spread of random inputs.
    grad_req
        As in `Symbol.bind`; with 'null' only outputs are compared.
    arg_params, aux_params
        Values to use instead of random ones, and instead of zeros.
    rtol, atol : float or dict of dtype to float, optional
        By default those of the less exact of the two that are compared.
    raise_on_err
        Whether to raise, or only to print, what differs.
    ground_truth
        Values to compare with; by default those of the most exact entry.
    equal_nan
        Whether NaN equals NaN.
    use_uniform
        Whether random inputs are uniform rather than normal.
    rand_type
        The type in which random inputs are made.

    Returns
    -------
    dict of str to NDArray
        What everything was compared with: outputs, and gradients of arguments.

    >>> x = mx.sym.Variable("x")
    >>> row = {"ctx": mx.cpu(), "x": (2, 2)}
    >>> sorted(check_consistency(mx.sym.relu(x, name="r"), [
    ...     {**row, "type_dict": {"x": np.float32}}, {**row, "type_dict": {"x": np.float64}}]))
    ['r_output', 'x']
    """
    if len(ctx_list) < 2:
        raise AssertionError("check_consistency compares at least two entries of ctx_list")
    symbols = [sym] * len(ctx_list) if isinstance(sym, Symbol) else list(sym)
    _check_alike(symbols, ctx_list)
    executors = [
        s.simple_bind(grad_req=grad_req, **row) for s, row in zip(symbols, ctx_list, strict=True)
    ]
    _fill(executors, arg_params, aux_params, scale, use_uniform, np.dtype(rand_type))
    judge = _Judge(symbols[0], executors, rtol, atol, equal_nan, raise_on_err, ground_truth)
    judge.compare("Predict", training=False)
    if grad_req != "null":
        judge.compare("Train", training=True)
    return judge.truth


def _check_alike(symbols: Sequence[Symbol], ctx_list: Sequence[Mapping[str, Any]]) -> None:
    if len(symbols) != len(ctx_list):
        raise AssertionError(f"{len(symbols)} symbols for {len(ctx_list)} entries of ctx_list")
    for other in symbols[1:]:
        if other.list_arguments() != symbols[0].list_arguments():
            raise AssertionError("the symbols have different arguments")
        if other.list_outputs() != symbols[0].list_outputs():
            raise AssertionError("the symbols have different outputs")


def _fill(
    executors: Sequence[Executor],
    arg_params: Mapping[str, Any] | None,
    aux_params: Mapping[str, Any] | None,
    scale: float,
    use_uniform: bool,
    rand_type: np.dtype,
) -> None:
    arguments = dict(arg_params or {})
    for name, array in executors[0].arg_dict.items():
        if name in arguments:
            continue
        if use_uniform:
            values = np.random.uniform(-0.92 * scale, 0.92 * scale, size=array.shape)
        else:
            values = np.random.normal(size=array.shape, scale=scale)
        arguments[name] = values.astype(rand_type)
    for exe in executors:
        for name, array in exe.arg_dict.items():
            array[:] = arguments[name]
        for name, array in exe.aux_dict.items():
            array[:] = (aux_params or {}).get(name, 0)


class _Judge:
    """Compares every executor with the most exact one, or with expected values."""

    def __init__(
        self,
        symbol: Symbol,
        executors: Sequence[Executor],
        rtol: Any,
        atol: Any,
        equal_nan: bool,
        raise_on_err: bool,
        ground_truth: Mapping[str, Any] | None,
    ) -> None:
        self.outputs = symbol.list_outputs()
        self.executors = executors
        self.types = [_coarsest(exe.outputs) for exe in executors]
        self.best = int(np.argmax([t.itemsize for t in self.types]))
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan
        self.raise_on_err = raise_on_err
        self.expected = None if ground_truth is None else dict(ground_truth)
        self.truth: dict[str, Any] = {}

    def compare(self, phase: str, training: bool) -> None:
        outputs = [self._run(exe, training) for exe in self.executors]
        self.truth = outputs[self.best] if self.expected is None else self.expected
        for i, results in enumerate(outputs):
            if i == self.best and self.expected is None:
                continue
            for name, value in results.items():
                self._compare_one(phase, i, name, value)

    def _run(self, exe: Executor, training: bool) -> dict[str, NDArray]:
        outputs = exe.forward(is_train=training)
        results = {n: o.copy() for n, o in zip(self.outputs, outputs, strict=True)}
        if training:
            exe.backward([o.copy() for o in outputs])
            results |= {n: g.copy() for n, g in exe.grad_dict.items() if g is not None}
        return results

    def _compare_one(self, phase: str, number: int, name: str, value: NDArray) -> None:
        if name not in self.truth:
            raise KeyError(f"{name} is not in ground_truth, which has {', '.join(self.truth)}")
        expected = self.truth[name]
        rtol = _limit(self.rtol, default_rtols(), value, expected)
        atol = _limit(self.atol, default_atols(), value, expected)
        try:
            assert_almost_equal(value, expected, rtol, atol, equal_nan=self.equal_nan)
        except AssertionError as error:
            prefix = (
                f"{phase} Err: {self.types[number]} {self.executors[number]._ctx} ctx {number} vs "
                f"{self.types[self.best]} ctx {self.best} at {name}"
            )
            if self.raise_on_err:
                raise AssertionError(f"{prefix}{error}") from None
            print(f"{prefix}{error}")  # noqa: T201 (asked for instead of raising)


def _coarsest(arrays: Sequence[NDArray]) -> np.dtype:
    return min((effective_dtype(a) for a in arrays), key=lambda t: t.itemsize)


def _limit(tolerance: Any, defaults: Mapping[np.dtype, float], *values: Any) -> float:
    if tolerance is not None and not isinstance(tolerance, Mapping):
        return tolerance
    table = {**defaults, **(tolerance or {})}
    return max(table[effective_dtype(v)] for v in values)


def check_gluon_hybridize_consistency(
    net_builder: Callable[..., Any],
    data_l: Sequence[NDArray],
    numpy_func: Callable[..., Any] | None = None,
    test_grad: bool = True,
    rtol: float = 1e-4,
    atol: float = 1e-4,
) -> None:
    """Check that a block gives the same outputs and gradients hybridized and not.

    The block must not contain random numbers. Arrays of `mx.np` are run with NumPy semantics,
    classic ones with classic semantics.

    Parameters
    ----------
    net_builder : callable
        Makes the block; it is called twice, as ``net_builder(prefix='net_')``.
    data_l : list of arrays
        The inputs.
    numpy_func : callable, optional
        What the block computes, written with NumPy; it is compared too.
    test_grad : bool
        Whether gradients of parameters and inputs are compared.
    rtol, atol : float
        Relative and absolute tolerance.

    >>> def double(prefix):
    ...     return mx.gluon.nn.HybridLambda(lambda F, x: x * 2, prefix=prefix)
    >>> check_gluon_hybridize_consistency(double, [mx.nd.ones((2,))], lambda x: x * 2)
    """
    with ExitStack() as semantics:
        if any(type(x).__module__.startswith("mxnet.numpy") for x in data_l):
            semantics.enter_context(mx.util.np_shape(True))
            semantics.enter_context(mx.util.np_array(True))
        initial: dict[str, np.ndarray] = {}
        plain, hybrid = (
            _run_block(net_builder, active, data_l, initial, test_grad) for active in (False, True)
        )
    for name, value in plain.items():
        what = (f"{name}, not hybridized", f"{name}, hybridized")
        assert_almost_equal(value, hybrid[name], rtol=rtol, atol=atol, names=what)
    if numpy_func is not None:
        expected = numpy_func(*(x.asnumpy() for x in data_l))
        expected = expected if isinstance(expected, list | tuple) else [expected]
        for i, value in enumerate(expected):
            assert_almost_equal(plain[f"output {i}"], value, rtol=rtol, atol=atol)


def _run_block(
    net_builder: Callable[..., Any],
    hybridized: bool,
    data_l: Sequence[NDArray],
    initial: dict[str, np.ndarray],
    test_grad: bool,
) -> dict[str, np.ndarray]:
    """Return outputs and gradients by name; `initial` carries parameters from the first run."""
    net = net_builder(prefix="net_")
    net.initialize()
    if hybridized:
        net.hybridize()
    inputs = [x.copy() for x in data_l]
    if not initial:
        net(*inputs)  # parameters of open shapes come into being
        initial.update({n: p.data().asnumpy() for n, p in net.collect_params().items()})
    for name, parameter in net.collect_params().items():
        parameter.shape = initial[name].shape
        parameter.set_data(mx.nd.array(initial[name], dtype=initial[name].dtype))
    if not test_grad:
        return _name_values("output", _flat(net(*inputs)))
    for x in inputs:
        x.attach_grad()
    with mx.autograd.record():
        outputs = _flat(net(*inputs))
    mx.autograd.backward(outputs)
    trained = {n: p for n, p in net.collect_params().items() if p.grad_req != "null"}
    return {
        **_name_values("output", outputs),
        **_name_values("gradient of input", [x.grad for x in inputs]),
        **{f"gradient of {name}": p.grad().asnumpy() for name, p in trained.items()},
    }


def _flat(outputs: Any) -> list[NDArray]:
    if isinstance(outputs, list | tuple):
        return [array for part in outputs for array in _flat(part)]
    return [outputs]


def _name_values(what: str, arrays: Iterable[Any]) -> dict[str, np.ndarray]:
    return {f"{what} {i}": array.asnumpy() for i, array in enumerate(arrays)}
