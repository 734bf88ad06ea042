"""`mx serve`: models behind HTTP.

`server` runs; `door` accepts connections and `protocol` bounds them; `app` finds the handler of a
request, if `guard` allows it. `service` lists the paths: those of `predictions`, for which
`decoding` turns bodies into arrays and `encoding` arrays into answers, and those of
`descriptions`. `repository` holds the models, and `batching` runs them. `processes` starts several
servers on one address.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import socket
import sys

from .. import CommandError, UsageError

NEEDED = ("uvicorn", "starlette", "httptools", "msgspec", "orjson", "python_multipart")
LOOPBACK = ("127.0.0.1", "::1")


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; requests that were accepted are answered first."""
    try:
        for name in NEEDED:
            importlib.import_module(name)
    except ImportError as error:
        raise CommandError(f"{error}; it is installed by: pip install 'mxnext[serve]'") from None
    from .guard import read_token
    from .repository import find_sources

    args.token = read_token(args.token)
    if bool(args.certfile) != bool(args.keyfile):
        raise UsageError("--certfile and --keyfile belong together")
    names = [source.name for source in find_sources(args.model)]
    if len(names) > 1:
        _refuse_model_options(args)
    listening = listen(args.host, args.port)
    try:
        if args.workers > 1:
            from .processes import supervise

            return supervise(args, listening, names)
        return serve(args, listening, names)
    finally:
        listening.close()


def serve(args: argparse.Namespace, listening: socket.socket, names: list[str]) -> int:
    """Serve in this process."""
    from .guard import Guard
    from .metrics import Metrics
    from .server import build_server, short_pauses

    metrics = Metrics(models=names)
    guard = Guard(allowed_hosts(args), args.token)
    with short_pauses():
        server = build_server(args, read_limits(args), guard, metrics, model_options(args, names))
        for line in server.hints():
            sys.stderr.write(f"mx serve: {line}\n")
        announce(args, listening, names)
        # Uvicorn stops gracefully and then raises the signal again, which would be a failure.
        signal.signal(signal.SIGTERM, lambda *_: None)
        server.run(sockets=[listening])
    print(f"stopped; answered {int(metrics.requests.total())} requests")
    return 0


def announce(args: argparse.Namespace, listening: socket.socket, names: list[str]) -> None:
    """Print where the server is."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    scheme = "https" if args.certfile else "http"
    print(f"{', '.join(names)} on {scheme}://{shown}:{port}  (a page; POST /predict; "
          "GET /health /metrics /openapi.json)")  # fmt: skip
    if host not in LOOPBACK and args.token is None:
        print("mx serve: everybody who reaches this address may ask; --token limits it",
              file=sys.stderr)  # fmt: skip
    sys.stdout.flush()


def read_limits(args: argparse.Namespace):  # imported when it is needed
    """Return the limits that the options say."""
    from .limits import MIB, Limits
    from .server import SPARE_FILES, raise_file_limit

    files = raise_file_limit(args.max_connections + SPARE_FILES)
    target = args.target_latency_ms
    return Limits(
        max_batch=args.max_batch,
        max_delay=args.max_delay / 1000,
        target_latency=target / 1000 if target is not None else None,
        max_rows=args.max_rows,
        max_queue=args.max_queue,
        max_body=args.max_body * MIB,
        max_json=min(args.max_json, args.max_body) * MIB,
        max_pixels=args.max_pixels,
        max_in_flight=args.max_in_flight * MIB,
        max_connections=max(1, min(args.max_connections, files - SPARE_FILES)),
        header_timeout=args.header_timeout,
        idle_timeout=args.idle_timeout,
        timeout=args.timeout,
    )


def allowed_hosts(args: argparse.Namespace) -> list[str]:
    """Return the names of hosts that are served."""
    return [args.host, socket.gethostname(), *args.allow_host]


def model_options(args: argparse.Namespace, names: list[str]) -> argparse.Namespace | None:
    """Return the options of the model, if there is one."""
    return args if len(names) == 1 else None


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


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or say why there is none."""
    from .limits import BACKLOG

    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
        # With its protocol named, asyncio sends small packets without delay.
        listening = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
        except BaseException:
            listening.close()
            raise
        return listening
    except (OSError, OverflowError) as error:
        raise CommandError(f"cannot listen on {host}:{port}: {error}") from None
