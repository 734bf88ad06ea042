"""The roles of a job that are not workers: servers and the scheduler.

MXNet's launchers start the same program in every role. A process whose ``DMLC_ROLE`` is server or
scheduler serves from inside ``import mxnet``, and exits with 0 when the workers are done.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any, NoReturn

from .. import env
from ..error import MXNetError
from .base import KVStoreBase

__all__ = ["KVStoreServer"]

POLL_SECONDS = 0.2


class KVStoreServer:
    """Serves a distributed store.

    Parameters
    ----------
    kvstore : KVStore
        The store to serve.

    >>> server = mx.kvstore.kvstore_server.KVStoreServer(mx.kvstore.create("local"))
    """

    def __init__(self, kvstore: KVStoreBase) -> None:
        self.kvstore = kvstore
        self.init_logging = False

    def run(self) -> NoReturn:
        """Refuse: a process becomes a server by DMLC_ROLE=server, before it has a store."""
        raise MXNetError(
            f"A store of type {self.kvstore.type!r} has no servers to run here. Servers are "
            "processes with DMLC_ROLE=server, which `mx launch -s` starts."
        )


def serve_role() -> None:
    """Serve until the workers are done and exit, if this process is a server or scheduler."""
    if os.environ.get("DMLC_ROLE", "worker").lower() not in ("server", "scheduler"):
        return
    from ..distributed.rendezvous import read_job

    job = read_job()
    if job is not None and job.role != "worker":
        sys.exit(_run_scheduler(job) if job.role == "scheduler" else _run_server(job))


def _run_scheduler(job: Any) -> int:
    """Serve the rendezvous."""
    from ..distributed.rendezvous import open_store

    store = open_store(job, True, env.get("MXNET_KVSTORE_CONNECT_TIMEOUT"))
    status = await_workers(store, job.size)
    end = time.monotonic() + 10
    while time.monotonic() < end and store.add("served", 0) < job.servers:
        time.sleep(POLL_SECONDS)
    return status


def _run_server(job: Any) -> int:
    """Hold arrays of `dist_async` if a worker wants it; else wait for the end."""
    from ..distributed.rendezvous import choose_interface, open_store
    from . import async_server

    choose_interface()
    store = open_store(job, False, env.get("MXNET_KVSTORE_CONNECT_TIMEOUT"))
    number = store.add("server arrivals", 1) - 1
    joined = False

    def join_when_wanted() -> None:
        nonlocal joined
        if not joined and store.check(["rpc"]):
            async_server.connect(store, f"server{number}", job.size + number, job.size, job.servers)
            joined = True

    status = await_workers(store, job.size, join_when_wanted)
    async_server.disconnect()
    store.add("served", 1)
    return status


def await_workers(store: Any, size: int, each_time: Any = None) -> int:
    """Wait until all workers have left; return 0, or 1 if one failed or none is to be seen."""
    limit = env.get("MXNET_KVSTORE_CONNECT_TIMEOUT")
    quiet = 2 * env.get("MXNET_KVSTORE_HEARTBEAT")
    last, since = None, time.monotonic()
    while True:
        if store.check([f"left/{r}" for r in range(size)]):
            return 1 if store.check(["failure"]) else 0
        beats = [store.get(f"beat/{r}") for r in range(size) if store.check([f"beat/{r}"])]
        if beats != last:
            last, since = beats, time.monotonic()
        if time.monotonic() - since > (quiet if beats else limit):
            return 1
        if each_time is not None:
            each_time()
        time.sleep(POLL_SECONDS)
