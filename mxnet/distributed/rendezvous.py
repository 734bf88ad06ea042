"""How processes meet: which job the launcher's variables describe, and who has arrived.

Understood are MXNet's own variables (``DMLC_*``), torchrun's (``RANK``, ``WORLD_SIZE``,
``MASTER_ADDR``), and for the rank those of MPI and Slurm. Processes meet at the job's key-value
service.
"""

from __future__ import annotations

import datetime
import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist

from .. import env
from ..error import MXNetError
from .heartbeat import WorkerFailed

RANKS = ("RANK", "DMLC_WORKER_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
SIZES = ("WORLD_SIZE", "DMLC_NUM_WORKER", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
LOCAL_RANKS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
LOCAL_SIZES = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
ROLES = ("worker", "server", "scheduler")


@dataclass(frozen=True)
class Job:
    """The role and rank of one process in a job."""

    role: str
    size: int  # number of workers
    servers: int
    rank: int | None  # None: ranks are given in the order of arrival
    local_rank: int | None
    local_size: int | None
    host: str  # of the rendezvous
    port: int
    has_scheduler: bool  # whether the rendezvous is served by a process that is not a worker
    attempt: int  # how often the launcher has restarted the job


def _number(names: tuple[str, ...], variables: Mapping[str, str]) -> int | None:
    for name in names:
        text = variables.get(name, "")
        if text:
            try:
                return int(text)
            except ValueError:
                raise MXNetError(f"{name}={text!r} is not an integer.") from None
    return None


def read_job(variables: Mapping[str, str] | None = None) -> Job | None:
    """Return the job of this process, or None if no launcher has set one.

    >>> job = read_job({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "9"})
    >>> job.rank, job.size, job.host, job.has_scheduler
    (1, 2, 'a', False)
    """
    variables = os.environ if variables is None else variables
    by_scheduler = bool(variables.get("DMLC_PS_ROOT_URI"))
    if not by_scheduler and not variables.get("MASTER_ADDR"):
        return None
    address = ("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT")
    if not by_scheduler:
        address = ("MASTER_ADDR", "MASTER_PORT")
    size, port = _number(SIZES, variables), _number((address[1],), variables)
    role = variables.get("DMLC_ROLE", "worker").lower()
    rank = _number(RANKS, variables)
    if size is None or port is None:
        missing = "DMLC_NUM_WORKER or WORLD_SIZE" if size is None else address[1]
        raise MXNetError(f"{address[0]} is set, but {missing} is not: the job is incomplete.")
    if role not in ROLES:
        raise MXNetError(f"DMLC_ROLE={role!r} is none of {', '.join(ROLES)}.")
    if rank is None and not by_scheduler:
        raise MXNetError("MASTER_ADDR is set, but RANK is not: every process needs its number.")
    if role == "worker" and rank is not None and not 0 <= rank < size:
        raise MXNetError(f"The rank {rank} is not among {size} workers, 0 to {size - 1}.")
    return Job(
        role=role,
        size=size,
        servers=_number(("DMLC_NUM_SERVER",), variables) or 0,
        rank=rank if role == "worker" else None,
        local_rank=_number(LOCAL_RANKS, variables),
        local_size=_number(LOCAL_SIZES, variables),
        host=variables[address[0]],
        port=port,
        has_scheduler=by_scheduler or variables.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
        attempt=_number(("MXNET_LAUNCH_ATTEMPT", "TORCHELASTIC_RESTART_COUNT"), variables) or 0,
    )


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
    """Set the network interface of torch's libraries to the one that DMLC_INTERFACE names."""
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
