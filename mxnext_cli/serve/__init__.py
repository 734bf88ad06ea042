"""`mx serve`: models behind HTTP.

Granian owns HTTP: connections, parsing, TLS, processes. Here is what is our own. `server` starts
granian; `app` stands before every request; `predictions` and `descriptions` are the paths.
`decoding`, `encoding` and `open_inference` are what clients send and get. `repository`, `settings`
and `batching` hold the models and run them. All know `limits` and `monitoring`.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import os
import socket
import ssl
import sys
import time

from .. import CommandError, UsageError

NEEDED = ("granian", "starlette", "msgspec", "prometheus_client", "python_multipart")
LOOPBACK = ("127.0.0.1", "::1")


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; requests that were accepted are answered first."""
    try:
        for name in NEEDED:
            importlib.import_module(name)
    except ImportError as error:
        packages = " ".join(NEEDED).replace("_", "-")
        raise CommandError(
            f"{error}. Install what mx serve needs: pip install {packages}"
        ) from None
    from .app import read_token
    from .repository import find_sources
    from .settings import find_used

    args.token = read_token(args.token)
    if bool(args.certfile) != bool(args.keyfile):
        raise UsageError("--certfile and --keyfile belong together")
    if args.certfile:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(args.certfile, args.keyfile)
        except OSError as error:
            files = f"{args.certfile} and {args.keyfile}"
            raise CommandError(f"{files}: no certificate and its key: {error}") from None
    names = list(find_sources(args.model))
    if len(names) > 1 and (used := find_used(args)):
        options = ", ".join(f"--{name}" for name in used)
        raise UsageError(f"{options}: with several models, write it into PREFIX-serve.json")
    if args.workers > 1 and os.name != "posix":
        raise CommandError("--workers: several processes share an address on Linux and macOS only")
    from .server import serve, serve_in_processes

    address = find_address(args.host, args.port)
    announce_all = functools.partial(announce, args, address, names)
    count = (serve_in_processes if args.workers > 1 else serve)(args, address, announce_all)
    print(f"stopped; answered {count} requests")
    return 0


def announce(args: argparse.Namespace, address: tuple[str, int], names: list[str]) -> None:
    """Print where the server is when it accepts connections."""
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection(address).close()
            break
        time.sleep(0.01)
    host, port = address
    url = f"http{'s' if args.certfile else ''}://{f'[{host}]' if ':' in host else host}:{port}"
    paths = "(a page; POST /predict; GET /health /metrics /openapi.json)"
    print(f"{', '.join(names)} on {url}  {paths}", flush=True)
    if host not in LOOPBACK and args.token is None:
        print("mx serve: everybody who reaches this address may ask; --token limits it",
              file=sys.stderr)  # fmt: skip


def find_address(host: str, port: int) -> tuple[str, int]:
    """Return an address without a listener, or raise an error that says why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family) as probe:
            return probe.getsockname()[:2]
    except (OSError, OverflowError) as error:
        raise CommandError(f"cannot listen on {host}:{port}: {error}") from None
