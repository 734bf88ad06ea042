"""`mx serve`: models behind HTTP.

Granian owns HTTP: connections, parsing, TLS. Here is what is our own. `server` runs one process or
several; `app` stands before every request; `predictions` and `descriptions` are the paths.
`decoding`, `arrays`, `encoding` and `open_inference` are what clients send and get. `repository`,
`settings` and `batching` hold the models and run them. All know `limits` and `monitoring`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import socket
import sys

from .. import CommandError, UsageError

NEEDED = ("granian", "starlette", "msgspec", "prometheus_client", "python_multipart")
LOOPBACK = ("127.0.0.1", "::1")


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; requests that were accepted are answered first."""
    try:
        for name in NEEDED:
            importlib.import_module(name)
    except ImportError as error:
        raise CommandError(f"{error}; it is installed by: pip install 'mxnext[serve]'") from None
    from .app import read_token
    from .repository import find_sources

    args.token = read_token(args.token)
    if bool(args.certfile) != bool(args.keyfile):
        raise UsageError("--certfile and --keyfile belong together")
    names = list(find_sources(args.model))
    if len(names) > 1:
        _refuse_model_options(args)
    if args.workers > 1 and os.name != "posix":
        raise CommandError("--workers: several processes share an address on Linux and macOS only")
    address = find_address(args.host, args.port)
    from .server import serve, supervise

    count = (supervise if args.workers > 1 else serve)(args, address, names)
    print(f"stopped; answered {count} requests")
    return 0


def announce(args: argparse.Namespace, address: tuple[str, int], names: list[str]) -> None:
    """Print where the server is."""
    host, port = address
    shown = f"[{host}]" if ":" in host else host
    scheme = "https" if args.certfile else "http"
    print(f"{', '.join(names)} on {scheme}://{shown}:{port}  (a page; POST /predict; "
          "GET /health /metrics /openapi.json)")  # fmt: skip
    if host not in LOOPBACK and args.token is None:
        print("mx serve: everybody who reaches this address may ask; --token limits it",
              file=sys.stderr)  # fmt: skip
    sys.stdout.flush()


def _refuse_model_options(args: argparse.Namespace) -> None:
    from .settings import has_image_options

    names = ("epoch", "params", "labels", "top")
    used = [f"--{name}" for name in names if getattr(args, name) is not None]
    used += ["--shape"] * bool(args.shape) + ["--softmax"] * bool(args.softmax)
    used += ["the options of images"] * has_image_options(args)
    if used:
        raise UsageError(
            f"{', '.join(used)}: with several models, write it into PREFIX-serve.json beside each"
        )


def find_address(host: str, port: int) -> tuple[str, int]:
    """Return an address without a listener, or raise an error that says why there is none."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            if os.name == "posix":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            return probe.getsockname()[:2]
    except (OSError, OverflowError) as error:
        raise CommandError(f"cannot listen on {host}:{port}: {error}") from None
