"""The command line of `mx`: every command, its arguments, and where its code is."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import inspect
import sys
from collections.abc import Callable
from typing import NamedTuple

from . import arguments

Runner = Callable[[argparse.Namespace], int | None]

EPILOG = """\
MODEL is a prefix of PREFIX-symbol.json and PREFIX-0000.params, one of these files, or an .onnx
file. Exit codes: 0 success, 1 failure or problems found, 2 wrong usage.
"""


class Command(NamedTuple):
    """One command: its help, what adds its arguments, and the function that runs it.

    Without `add_arguments` the module declares them itself, and is imported for that when the
    command is chosen.
    """

    summary: str
    runner: str  # "module:function"
    add_arguments: Callable[[argparse.ArgumentParser], None] | None = None


COMMANDS = {
    "info": Command(
        "say what files are: models, parameters, records, ONNX ...",
        "mxnet.tools.info:run",
        arguments.info,
    ),
    "summary": Command(
        "print the layers of a model: shapes, parameters, multiply-adds, memory, time",
        "mxnet.tools.summary:run",
        arguments.summary,
    ),
    "view": Command(
        "write a model as an HTML page to explore it in a browser",
        "mxnet.tools.view:run",
        arguments.view,
    ),
    "predict": Command(
        "run a model on images or arrays", "mxnet.tools.predict:run", arguments.predict
    ),
    "convert": Command(
        "convert a model to another format, and check that both compute the same",
        "mxnet.tools.convert:run",
        arguments.convert,
    ),
    "serve": Command("answer HTTP requests with a model", "mxnet.tools.serve:run", arguments.serve),
    "run": Command(
        "run an old program with names put back that newer libraries removed",
        "mxnext_cli.run:run",
        arguments.run,
    ),
    "check": Command(
        "report what a program uses that MXNext does not have",
        "mxnet.tools.check:run",
        arguments.check,
    ),
    "doctor": Command(
        "report on this installation and find common problems",
        "mxnet.tools.doctor:run",
        arguments.doctor,
    ),
    "launch": Command("start a program as the workers of a distributed job", "mxnet.launch:run"),
    "im2rec": Command("make lists and record files of images", "mxnet.tools.im2rec:run"),
    "rec": Command("look into record files, check and index them", "mxnet.tools.rec:run"),
    "completion": Command(
        "print the completion script of a shell",
        "mxnext_cli.completion:run",
        arguments.completion,
    ),
}


def build_parser(*, complete: bool = False) -> argparse.ArgumentParser:
    """Return the parser of `mx`; with `complete`, commands that need an import are included."""
    parser = argparse.ArgumentParser(
        prog="mx",
        description="Look into models, predict, convert, serve, and run old programs.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the versions")
    parser.add_argument("--traceback", action="store_true", help="show where an error comes from")
    commands = parser.add_subparsers(
        dest="mx_command", metavar="command", parser_class=_CommandParser
    )
    for name, command in COMMANDS.items():
        made = commands.add_parser(name, help=command.summary)
        made.set_defaults(runner=command.runner)
        made.declare(command, now=complete)
    return parser


def load_runner(args: argparse.Namespace) -> Runner:
    """Import the module of the chosen command and return its function."""
    module, _, function = args.runner.partition(":")
    return getattr(importlib.import_module(module), function)


class _CommandParser(argparse.ArgumentParser):
    """A parser that adds arguments of a module only when its command is chosen."""

    _pending: Command | None = None

    def declare(self, command: Command, *, now: bool) -> None:
        """Add the command's arguments now, or remember to do it before parsing."""
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        if command.add_arguments is not None:
            self.description = inspect.cleandoc(command.add_arguments.__doc__ or "")
            command.add_arguments(self)
            return
        self._pending = command
        if now:
            self._declare_pending()

    def _declare_pending(self) -> None:
        command, self._pending = self._pending, None
        if command is not None:
            module = importlib.import_module(command.runner.partition(":")[0])
            self.description = module.__doc__
            module.add_arguments(self)

    def parse_known_args(self, args=None, namespace=None):
        """Parse, with all arguments declared."""
        self._declare_pending()
        return super().parse_known_args(args, namespace)


class _PrintVersion(argparse.Action):
    """Print the versions and end; nothing is imported before it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        try:
            version = importlib.metadata.version("mxnext")
        except importlib.metadata.PackageNotFoundError:
            version = "(not installed, run from its sources)"
        print(f"MXNext {version}, Python {sys.version.split()[0]}")
        parser.exit()
