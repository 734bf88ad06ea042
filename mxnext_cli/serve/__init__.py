"""`mx serve`: a model behind HTTP, with batching, limits and metrics."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
from typing import Any

import numpy as np
import torch

from .. import CommandError
from ..models import Model, Predictor, Shapes, load_model, parse_shapes
from ..predict import preparation

BACKLOG = 1024  # connections that the system holds until they are accepted


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; requests that were accepted are answered first."""
    try:
        import uvicorn

        from .service import Decoder, Service, Settings
    except ImportError as error:
        raise CommandError(f"{error}; it is installed by: pip install 'mxnext[serve]'") from None
    settings = Settings(
        max_batch=args.max_batch,
        max_delay=args.max_delay / 1000,
        workers=args.workers,
        max_queue=args.max_queue,
        max_body=args.max_body << 20,
        timeout=args.timeout,
    )
    model = load_model(args)
    shapes = parse_shapes(args.shape, model.inputs)
    predictor = Predictor(model)
    decoder = Decoder(model.inputs, shapes, preparation(args), settings.max_body)
    listening = _listen(args.host, args.port)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // args.workers))
    warm_up(predictor, shapes, settings.max_batch)
    service = Service(predictor, predictor.output_names, decoder, _facts(model, shapes), settings)
    config = uvicorn.Config(
        service.app,
        log_level="warning",
        timeout_keep_alive=max(1, int(settings.timeout)),
        timeout_graceful_shutdown=max(1, int(settings.timeout)),
    )
    host, port = listening.getsockname()[:2]
    print(f"{model.name} on http://{host}:{port}  (POST /predict, GET /health /metrics /model)")
    sys.stdout.flush()
    # Uvicorn stops gracefully and then raises the signal again, which would be a failure.
    signal.signal(signal.SIGTERM, lambda *_: None)
    uvicorn.Server(config).run(sockets=[listening])
    print(f"stopped; answered {service.metrics.seconds.count} requests")
    return 0


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or say why there is none."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
        # With its protocol named, asyncio sends small packets without delay.
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
        except BaseException:
            listening.close()
            raise
        return listening
    except (OSError, OverflowError) as error:
        raise CommandError(f"cannot listen on {host}:{port}: {error}") from None


def warm_up(predictor: Predictor, shapes: Shapes, max_batch: int) -> None:
    """Run the model on zeros, so that the first request finds it prepared."""
    if any(name not in shapes for name in predictor.model.inputs):
        names = ", ".join(predictor.model.inputs)
        sys.stderr.write(f"mx serve: without --shape of {names} the first requests are slower\n")
        return
    for rows in dict.fromkeys((1, max_batch)):
        predictor({n: np.zeros((rows, *s), predictor.dtypes[n]) for n, s in shapes.items()})


def _facts(model: Model, shapes: Shapes) -> dict[str, Any]:
    return {
        "model": model.name,
        "inputs": {name: list(shapes[name]) if name in shapes else None for name in model.inputs},
        "outputs": model.symbol.list_outputs(),
        "parameters": sum(array.size for array in model.parameters.values()),
    }
