"""`mx run`: runs an old program, with names restored that libraries have removed."""

from __future__ import annotations

import argparse
import builtins
import sys
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import CommandError
from . import arithmetic
from .program import PACKAGE, Program, all_findings, hint, owns, print_report, write_report
from .restored_names import give_builtins, restored_names
from .rewriting import prepare_program

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Run the program; return its exit code."""
    script = Path(args.script)
    if not script.is_file():
        raise CommandError(f"{script}: there is no such file")
    program = Program(script)
    arithmetic.clear()
    error: BaseException | None = None
    with _as_main_program(script, args.arguments), restored_names(program):
        try:
            _execute(program)
        except SystemExit as ended:
            error = ended
        except BaseException as failed:  # of the program: it is shown as Python shows it
            error = failed
            _show_failure(failed, program)
        findings = all_findings(program)
    _flush()
    if not args.quiet:
        print_report(findings, program.translated)
    if args.report:
        message = None if error is None or isinstance(error, SystemExit) else repr(error)
        write_report(args.report, findings, message)
    return _exit_code(error)


def _execute(program: Program) -> None:
    path = program.script
    source = path.read_bytes()
    program.add_file(str(path), source)
    tree, _ = prepare_program(source, str(path))
    code = compile(tree, str(path), "exec", dont_inherit=True)
    module = types.ModuleType("__main__")
    vars(module).update(__file__=str(path), __builtins__=builtins)
    give_builtins(program, tree, vars(module))
    sys.modules["__main__"] = module
    exec(code, vars(module))


@contextmanager
def _as_main_program(script: Path, arguments: list[str]) -> Iterator[None]:
    """Set `sys.argv` and the like for a program, and restore them afterward."""
    argv, path, main = sys.argv, sys.path[:], sys.modules.get("__main__")
    before = set(sys.modules)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path
        if main is not None:
            sys.modules["__main__"] = main
        for name in set(sys.modules) - before:
            if owns(getattr(sys.modules[name], "__file__", None) or "<none>"):
                del sys.modules[name]


def _show_failure(error: BaseException, program: Program) -> None:
    """Print the traceback from the program's first frame on, and a hint if there is one."""
    _flush()
    if isinstance(error, KeyboardInterrupt):
        sys.stderr.write(f"\n{_describe_interrupt(error)}\n")
        return
    error.__traceback__ = _program_frames(error.__traceback__)
    sys.excepthook(type(error), error, error.__traceback__)  # hides the frames of the package
    if advice := hint(error):
        sys.stderr.write(f"mx run: hint: {advice}\n")


def _program_frames(trace: types.TracebackType | None) -> types.TracebackType | None:
    while trace is not None and not owns(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    entries = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(str(PACKAGE)):
            entries.append(trace)
        trace = trace.tb_next
    shown = None
    for entry in reversed(entries):
        shown = types.TracebackType(shown, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return shown


def _describe_interrupt(error: KeyboardInterrupt) -> str:
    """Return the package's explanation of an interrupt, or the program's line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if owns(frame.filename)]
    place = f" at {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    return getattr(error, "explanation", f"Interrupted{place}.")


def _flush() -> None:
    try:
        sys.stdout.flush()
    except (BrokenPipeError, ValueError):
        sys.stdout = sys.__stdout__


def _exit_code(error: BaseException | None) -> int:
    if error is None:
        return 0
    if isinstance(error, KeyboardInterrupt):
        return 130
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    sys.stderr.write(f"{error.code}\n")
    return 1
