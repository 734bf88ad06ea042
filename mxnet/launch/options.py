"""The command line of `mx launch`, which takes what MXNet's launch.py took."""

from __future__ import annotations

import argparse

EPILOG = """\
examples:
  mx launch -n 4 python train.py --kv-store dist_sync
  mx launch -n 8 -H hosts --launcher ssh --sync-dst-dir /tmp/job python train.py
  mx launch -n 4 --max-restarts 3 python train.py      (with fit(resume=...) or mx.checkpoint)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `mx launch` to a parser."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    add = parser.add_argument
    add("-n", "--num-workers", type=int, required=True, help="number of workers")
    add("-s", "--num-servers", type=int, default=0, help="servers of dist_async; default: none")
    add("-H", "--hostfile", help="file with one host a line, for ssh and mpi")
    add(
        "--launcher",
        choices=("local", "ssh", "mpi", "slurm"),
        default="local",
        help="how processes are started; default: local",
    )
    add("--sync-dst-dir", help="ssh: copy the current folder there on every host, and run there")
    add("--env", action="append", default=[], help="NAME=VALUE, or NAME to pass on")
    add("--env-worker", action="append", default=[], help="likewise, for workers only")
    add("--env-server", action="append", default=[], help="likewise, for servers only")
    add("--max-restarts", type=int, default=0, help="start again so often after a failure")
    add("--min-workers", type=int, help="restarts may go on with fewer workers, down to this")
    add("--log-dir", help="also keep the output of each worker there")
    add("--dry-run", action="store_true", help="show the commands of a remote launcher only")
    add("program", nargs=argparse.REMAINDER, help="the program and its arguments")


def parse_assignments(texts: list[str], environment: dict[str, str]) -> dict[str, str]:
    """Return variables given as NAME=VALUE, NAME:VALUE, or NAME alone.

    >>> parse_assignments(["A=1", "HOME", "B:2"], {"HOME": "/root"})
    {'A': '1', 'HOME': '/root', 'B': '2'}
    """
    found = {}
    for text in texts:
        cut = min((i for i in (text.find("="), text.find(":")) if i > 0), default=-1)
        if cut > 0:
            found[text[:cut]] = text[cut + 1 :]
        elif text in environment:
            found[text] = environment[text]
    return found
