"""How processes find each other: the job's key-value service, ranks, and who is missing."""

from __future__ import annotations

import datetime
import json
import os
import socket
import time
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist

from .. import env
from ..error import MXNetError
from .environment import Job
from .heartbeat import WorkerFailed


@dataclass(frozen=True)
class Members:
    """The workers of a job as this process sees them after all have arrived."""

    store: Any  # for torch's process groups and for our own small facts
    monitor_store: Any  # a second connection, for the thread that watches
    rank: int
    hosts: list[str]  # of every rank
    serves: bool  # whether this process serves the rendezvous


def open_store(job: Job, serves: bool, timeout: float) -> Any:
    """Connect to the job's key-value service, or serve it."""
    limit = datetime.timedelta(seconds=timeout)
    try:
        store = dist.TCPStore(
            job.host, job.port, is_master=serves, timeout=limit, wait_for_workers=False
        )
    except (RuntimeError, ValueError) as error:
        if serves:
            raise MXNetError(
                f"Cannot serve the rendezvous at {job.host}:{job.port}: {_first_line(error)} "
                "Choose a free port."
            ) from None
        server = "scheduler" if job.has_scheduler else "worker of rank 0"
        raise WorkerFailed(
            f"No rendezvous at {job.host}:{job.port} within {timeout:g} s: the {server} is "
            f"missing. ({_first_line(error)})"
        ) from None
    return dist.PrefixStore(f"mxnet/{job.attempt}", store)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def choose_interface() -> None:
    """Let torch's libraries use the network interface that MXNet's DMLC_INTERFACE names."""
    name = os.environ.get("DMLC_INTERFACE")
    if name:
        for library in ("GLOO", "NCCL", "TP"):
            os.environ.setdefault(f"{library}_SOCKET_IFNAME", name)


def join(job: Job) -> Members:
    """Arrive as a worker, wait for all others, and return who they are."""
    choose_interface()
    timeout = env.get("MXNET_KVSTORE_CONNECT_TIMEOUT")
    serves = not job.has_scheduler and job.rank == 0
    store = open_store(job, serves, timeout)
    rank = store.add("arrivals", 1) - 1 if job.rank is None else job.rank
    if rank >= job.size:
        raise MXNetError(
            f"This worker is number {rank + 1} to arrive at {job.host}:{job.port}, but the job "
            f"has {job.size} workers. Is an older job still running there?"
        )
    me = {"host": socket.gethostname(), "pid": os.getpid()}
    store.set(f"here/{rank}", json.dumps(me))
    _await_all(store, job, timeout)
    hosts = [json.loads(store.get(f"here/{r}"))["host"] for r in range(job.size)]
    return Members(store, open_store(job, False, timeout), rank, hosts, serves)


def _await_all(store: Any, job: Job, timeout: float) -> None:
    """Wait until all workers are here; whoever gives up first writes down why."""
    keys = [f"here/{r}" for r in range(job.size)]
    end = time.monotonic() + timeout
    try:
        while not store.check(keys):
            if store.check(["incomplete"]):
                raise WorkerFailed(store.get("incomplete").decode())
            if time.monotonic() > end:
                message = _describe_missing(store, keys, timeout)
                store.set("incomplete", message)
                time.sleep(1.0)  # this process may serve the rendezvous: let the others read
                raise WorkerFailed(message)
            time.sleep(0.02)
    except dist.DistNetworkError:
        raise WorkerFailed("The process that serves the rendezvous left it.") from None


def _describe_missing(store: Any, keys: list[str], timeout: float) -> str:
    missing = [r for r, key in enumerate(keys) if not store.check([key])]
    present = [
        f"{r} on {json.loads(store.get(key))['host']}"
        for r, key in enumerate(keys)
        if r not in missing
    ]
    return (
        f"{len(missing)} of {len(keys)} workers did not arrive within {timeout:g} s: missing rank "
        f"{', '.join(map(str, missing))}; present rank {', '.join(present)}. "
        "MXNET_KVSTORE_CONNECT_TIMEOUT sets how long to wait."
    )
