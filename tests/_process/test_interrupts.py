"""Ctrl-C during imports ends a program with one line of output."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from mxnet._process.interrupts import postpone_interrupt

# Ctrl-C is sent when Python looks for this module, in the middle of the import.
PROGRAM = """
import signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # some test runners ignore it
sys.meta_path.insert(0, Finder())
{statement}
"""
COMMAND = "sys.argv = ['mx', 'info', 'absent']; from mxnext_cli import main; sys.exit(main())"
CATCH = "try:\n    import mxnet\nexcept KeyboardInterrupt:\n    print('caught', signal.SIGINT)"


def interrupt(module: str, statement: str) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(module=module, statement=statement)
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize("module", ["torch.nn", "mxnet.gluon"])
def test_interrupt_during_import_prints_one_line(module):
    done = interrupt(module, "import mxnet\nprint('not reached')")
    assert (done.stdout, done.stderr) == ("", "\nInterrupted during import mxnet.\n")
    assert done.returncode == -signal.SIGINT  # shells report it as 130


def test_interrupt_during_import_can_be_caught():
    done = interrupt("torch.nn", CATCH + "\nimport mxnet as mx; print(mx.nd.ones(1).asscalar())")
    assert (done.stdout, done.stderr) == ("caught 2\n1.0\n", "")


@pytest.mark.parametrize("module", ["mxnext_cli.commands", "mxnext_cli.info", "torch"])
def test_interrupt_of_a_command_prints_one_line(module):
    done = interrupt(module, COMMAND)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nmx: interrupted\n")


def test_custom_sigint_handlers_and_other_threads_are_unaffected():
    seen: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with postpone_interrupt():
            signal.raise_signal(signal.SIGINT)
            assert seen == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, previous)

    def enter() -> None:
        with postpone_interrupt():
            seen.append(0)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join(timeout=60)
    assert seen == [signal.SIGINT, 0]


def test_second_interrupt_is_raised_immediately():
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    reached = []
    try:
        with pytest.raises(KeyboardInterrupt), postpone_interrupt():
            signal.raise_signal(signal.SIGINT)
            reached.append("first")
            signal.raise_signal(signal.SIGINT)
            reached.append("second")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, previous)
    assert reached == ["first"]
