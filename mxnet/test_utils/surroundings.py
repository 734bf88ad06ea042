"""What a test runs in: context, environment variables, error output, repetition."""

from __future__ import annotations

import functools
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import context
from ..context import Context, num_gpus


def default_context() -> Context:
    """Return the context that tests use.

    >>> mx.test_utils.default_context()
    cpu(0)
    """
    return context.current_context()


def set_default_context(ctx: Context) -> None:
    """Make a context the one in force, in this thread; inside ``with``, until that ends.

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
        wanted = {args[0]: args[1]}
    elif len(args) == 1 and isinstance(args[0], dict):
        wanted = args[0]
    else:
        raise AssertionError("Expecting one dict arg or two args: env var name and value")
    before = {name: os.environ.get(name) for name in wanted}
    _set(wanted)
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
    """Throw away what is written to the standard error within a ``with`` block, also by C code.

    >>> with mx.test_utils.discard_stderr():
    ...     pass
    """
    sys.stderr.flush()
    number = 2
    kept = os.dup(number)
    try:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 (a device, not a path)
            os.dup2(nowhere.fileno(), number)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, number)
        os.close(kept)


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
    """Return whether there are operators made by TVM: never.

    >>> mx.test_utils.has_tvm_ops()
    False
    """
    return False


def is_op_runnable() -> bool:
    """Return whether operators run on this device: always.

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
