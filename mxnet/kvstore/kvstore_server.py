"""The roles of servers and the scheduler in a job.

MXNet's launchers start the same program in every role. `mxnet._process.role` turns a process whose
``DMLC_ROLE`` is server or scheduler into ``python -m mxnet.kvstore``, which calls `run_role` and
exits with 0 when the workers are done.
"""

from __future__ import annotations

import datetime
import os
import sys
import time
from collections.abc import Callable
from typing import NoReturn

import torch.distributed as dist

from .._process import env
from ..error import MXNetError
from ..parallel.async_client import publish
from ..parallel.async_server import AsyncServer
from ..parallel.heartbeat import WorkerFailed, read_failure, silence_limit
from ..parallel.rendezvous import Job, open_store, read_job, serve_store
from ..parallel.store import JobStore
from .base import KVStoreBase

__all__ = ["KVStoreServer"]

POLL_SECONDS = 0.1


class KVStoreServer:
    """Server of a distributed store.

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
        """Not supported: a process becomes a server by DMLC_ROLE=server."""
        raise MXNetError(
            f"A store of type {self.kvstore.type!r} has no servers to run here. Servers are "
            "processes with DMLC_ROLE=server, which `mx launch -s` starts."
        )


def run_role() -> int:
    """Serve until the workers have finished; return the exit status of the process."""
    job = read_job()
    if job is None or job.role == "worker":
        raise MXNetError(
            "python -m mxnet.kvstore serves a job: DMLC_ROLE must be server or scheduler, and "
            "DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT and DMLC_NUM_WORKER must be set."
        )
    try:
        return _run_scheduler(job) if job.role == "scheduler" else _run_server(job)
    except (WorkerFailed, dist.DistNetworkError) as error:
        sys.stderr.write(f"mxnet {job.role}: {error}\n")
        return 1


def _run_scheduler(job: Job) -> int:
    server = serve_store(job)
    store = open_store(job, env.get("MXNET_KVSTORE_CONNECT_TIMEOUT"))
    status = await_workers(store, job.size)
    end = time.monotonic() + 10
    while time.monotonic() < end and store.add("served", 0) < job.servers:
        time.sleep(POLL_SECONDS)
    server.close()
    return status


def _run_server(job: Job) -> int:
    """Serve arrays if a worker uses `dist_async`; else wait for the end of the job."""
    store = open_store(job, env.get("MXNET_KVSTORE_CONNECT_TIMEOUT"))
    store.set_timeout(datetime.timedelta(seconds=silence_limit()))
    number = store.add("server arrivals", 1) - 1
    server: AsyncServer | None = None

    def start_on_request() -> None:
        nonlocal server
        if server is None and store.check(["async/requested"]):
            host = os.environ.get("DMLC_NODE_HOST") or store.own_host
            server = AsyncServer(host, job.size)
            publish(store, f"server{number}", server)

    status = await_workers(store, job.size, start_on_request)
    store.add("served", 1)
    return status


def await_workers(store: JobStore, size: int, each_time: Callable[[], None] | None = None) -> int:
    """Wait until all workers have left; return 0, or 1 if one failed or none joined."""
    limit = env.get("MXNET_KVSTORE_CONNECT_TIMEOUT")
    quiet = 2 * silence_limit()
    last, since = None, time.monotonic()
    while True:
        failure = read_failure(store)
        if store.check([f"left/{r}" for r in range(size)]):
            return 0 if failure is None else 1
        beats = [store.get(f"beat/{r}") for r in range(size) if store.check([f"beat/{r}"])]
        if beats != last:
            last, since = beats, time.monotonic()
        if time.monotonic() - since > (quiet if beats else limit):
            state = "have gone silent" if beats else f"have not arrived within {limit:g} s"
            sys.stderr.write(f"mxnet: the workers {state}; giving up.\n")
            return 1
        if each_time is not None:
            each_time()
        time.sleep(POLL_SECONDS)
