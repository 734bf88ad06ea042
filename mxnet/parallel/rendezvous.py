"""Rendezvous of processes: the launcher's variables, and the arrival of workers.

Supported are MXNet's variables (``DMLC_*``), torchrun's (``RANK``, ``WORLD_SIZE``,
``MASTER_ADDR``), and for the rank those of MPI, Slurm and Kubernetes. Processes meet at the job's
key-value service, which requires the job's secret.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import socket
import struct
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist

from .._process import env
from ..error import MXNetError
from .channel import SECRET, ChannelError, escape, is_loopback, read_secret
from .heartbeat import WorkerFailed, parse_record
from .store import JobStore, StoreServer

RANKS = (
    "RANK",
    "DMLC_WORKER_ID",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
    "JOB_COMPLETION_INDEX",  # index of a Kubernetes job
)
SIZES = ("WORLD_SIZE", "DMLC_NUM_WORKER", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
LOCAL_RANKS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
LOCAL_SIZES = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
ROLES = ("worker", "server", "scheduler")
QUIET_SECONDS = 10.0  # seconds of waiting after which a message is printed
REMINDER_SECONDS = 30.0
SIOCGIFADDR = 0x8915  # of Linux: the address of an interface


@dataclass(frozen=True)
class Job:
    """The role and rank of one process in a job."""

    role: str
    size: int  # number of workers
    servers: int
    rank: int | None  # None: ranks are assigned in the order of arrival
    local_rank: int | None
    local_size: int | None
    host: str  # address of the rendezvous
    port: int
    has_scheduler: bool  # whether the rendezvous is served by a process that is not a worker
    attempt: int  # number of restarts by the launcher
    has_agent: bool = False  # whether torchrun's agent is at that address

    def describe_rendezvous(self, first_host: str) -> str:
        """Describe the process that serves the rendezvous; `first_host` is rank 0's."""
        who = "the launcher or scheduler" if self.has_scheduler else f"rank 0 on {first_host}"
        return f"{who} at {self.host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether all processes are on this machine."""
        return is_loopback(self.host) or self.local_size == self.size

    @property
    def is_trusted(self) -> bool:
        """Whether the job has a secret, is local, or may be unsigned."""
        unsigned = env.get("MXNET_ALLOW_UNSIGNED_JOBS")
        return bool(read_secret()) or self.is_local or unsigned


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
        raise MXNetError(f"DMLC_ROLE={role!r} is not one of {', '.join(ROLES)}.")
    if rank is None and not by_scheduler:
        raise MXNetError("MASTER_ADDR is set, but RANK is not: every process needs a rank.")
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
        has_scheduler=by_scheduler,
        attempt=_number(("MXNET_LAUNCH_ATTEMPT", "TORCHELASTIC_RESTART_COUNT"), variables) or 0,
        has_agent=not by_scheduler and variables.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
    )


@dataclass(frozen=True)
class Members:
    """The workers of a job, known after all have arrived."""

    store: JobStore  # store of torch's process groups and of small messages
    rank: int
    hosts: list[str]  # of every rank
    server: StoreServer | None  # of the rendezvous, if this process serves it


def serve_store(job: Job) -> StoreServer:
    """Serve the job's key-value service from this process."""
    if not job.is_trusted:
        warnings.warn(
            f"This job has no secret: anybody who can reach {job.host} can join it, read its "
            f"weights and disturb it. Set for all of its processes the same {SECRET}, as `mx "
            "launch` does, "
            "or set MXNET_ALLOW_UNSIGNED_JOBS=1 on a network that you trust.",
            stacklevel=2,
        )
    host, port = job.host, job.port
    if job.has_agent:  # the agent uses that port; the store's is announced there
        host, port = "127.0.0.1" if job.is_local else find_own_address(job.host), 0
    try:
        server = StoreServer(host, port)
    except OSError as error:
        raise MXNetError(
            f"Cannot serve the rendezvous at {host}:{port}: {error.strerror or error}. Choose a "
            "free port."
        ) from None
    if job.has_agent:
        _agent_store(job, 60).set(_announcement(job), f"{host} {server.port}")
    return server


def find_own_address(toward: str) -> str:
    """Return this machine's address as seen from another host."""
    if is_loopback(toward):
        return "127.0.0.1"
    kind, *_, address = socket.getaddrinfo(toward.strip("[]"), 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(kind, socket.SOCK_DGRAM) as probe:
        probe.connect(address)  # no packet is sent
        return str(probe.getsockname()[0])


def _agent_store(job: Job, seconds: float) -> Any:
    limit = datetime.timedelta(seconds=seconds)
    return dist.TCPStore(job.host, job.port, timeout=limit, wait_for_workers=False)


def _announcement(job: Job) -> str:
    return f"mxnet/{job.attempt}/rendezvous"


def open_store(job: Job, seconds: float) -> JobStore:
    """Connect to the job's key-value service; print a message if it takes long."""
    prefix = f"mxnet/{job.attempt}/"
    host, port, end = job.host, job.port, time.monotonic() + seconds
    server = "scheduler" if job.has_scheduler else "worker of rank 0"
    patience = QUIET_SECONDS
    while True:
        left = end - time.monotonic()
        try:
            if job.has_agent:
                text = _agent_store(job, left).get(_announcement(job)).decode()
                host, port = text.rsplit(" ", 1)[0], int(text.rsplit(" ", 1)[1])
            store = JobStore(host, port, min(left, patience), prefix=prefix)
            store.set_timeout(datetime.timedelta(seconds=seconds))
            return store
        except (ChannelError, RuntimeError, ValueError) as error:
            why = escape(str(error).partition("\n")[0])
            left = end - time.monotonic()
            if left <= 0.1:
                raise WorkerFailed(
                    f"No rendezvous at {host}:{port} within {seconds:g} s: the {server} is "
                    f"missing. ({why})"
                ) from None
            _say(f"waiting for the {server} at {host}:{port} ({why}); giving up in {left:.0f} s")
            patience = REMINDER_SECONDS


def _say(text: str) -> None:
    sys.stderr.write(f"mxnet: {text}\n")
    sys.stderr.flush()


def choose_interface(job: Job, own_host: str) -> None:
    """Set the network interface of torch's libraries.

    It is DMLC_INTERFACE, loopback for a local job, or for Gloo that of `own_host`, the address used
    for the rendezvous: Gloo's default, the address of the host name, is often loopback.
    """
    name, libraries = os.environ.get("DMLC_INTERFACE"), ["GLOO", "NCCL"]
    if not name and job.is_local:
        names = [n for _, n in socket.if_nameindex()] if hasattr(socket, "if_nameindex") else []
        name = next((n for n in ("lo", "lo0") if n in names), None)
    elif not name:
        libraries, name = ["GLOO"], _interface_of(own_host)
    if name:
        for library in libraries:
            os.environ.setdefault(f"{library}_SOCKET_IFNAME", name)


def _interface_of(address: str) -> str | None:
    """Return the name of the interface with an IPv4 address; None if unknown."""
    if sys.platform != "linux":
        return None
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # the interface has no address
                request = struct.pack("256s", name.encode()[:15])
                answer = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, request)
                if socket.inet_ntoa(answer[20:24]) == address:
                    return name
    return None


def join(job: Job) -> Members:
    """Register as a worker, wait for all others, and return the members."""
    seconds = env.get("MXNET_KVSTORE_CONNECT_TIMEOUT")
    serves = not job.has_scheduler and job.rank == 0
    server = serve_store(job) if serves else None
    store = open_store(job, seconds)
    choose_interface(job, store.own_host)
    rank = store.add("arrivals", 1) - 1 if job.rank is None else job.rank
    if rank >= job.size:
        raise MXNetError(
            f"This worker is number {rank + 1} to arrive at {job.host}:{job.port}, but the job "
            f"has {job.size} workers. Is an older job still running there?"
        )
    store.set(f"here/{rank}", json.dumps({"host": socket.gethostname(), "pid": os.getpid()}))
    _await_all(store, job, rank, seconds)
    hosts = [_host_of(store, r) for r in range(job.size)]
    return Members(store, rank, hosts, server)


def _host_of(store: JobStore, rank: int) -> str:
    record = parse_record(store.get(f"here/{rank}")) or {}
    return escape(record.get("host", "unknown host"), 255)


def _await_all(store: JobStore, job: Job, rank: int, seconds: float) -> None:
    """Wait for all workers; the first one that gives up records the reason."""
    keys = [f"here/{r}" for r in range(job.size)]
    start = time.monotonic()
    next_word = start + QUIET_SECONDS
    try:
        while not store.check(keys):
            if store.check(["incomplete"]):
                raise WorkerFailed(escape(store.get("incomplete").decode(errors="replace")))
            now = time.monotonic()
            if now > start + seconds:
                message = _describe_missing(store, keys, seconds)
                store.set("incomplete", message)
                time.sleep(1.0)  # this process may serve the rendezvous: let the others read it
                raise WorkerFailed(message)
            if now > next_word:
                next_word = now + REMINDER_SECONDS
                missing = [r for r, key in enumerate(keys) if not store.check([key])]
                if set(range(rank)) <= set(missing):  # the lowest rank present prints
                    _say(_describe_wait(missing, job, start + seconds - now))
            time.sleep(0.02)
    except dist.DistNetworkError:
        raise WorkerFailed("The process that serves the rendezvous left it.") from None


def _describe_wait(missing: list[int], job: Job, left: float) -> str:
    """Describe the missing workers.

    >>> job = read_job({"RANK": "0", "WORLD_SIZE": "4", "MASTER_ADDR": "a", "MASTER_PORT": "9"})
    >>> _describe_wait([3], job, 290.0)
    'waiting for 1 of 4 workers: rank 3 has not joined a:9; giving up in 290 s'
    """
    ranks = ", ".join(map(str, missing))
    verb = "has" if len(missing) == 1 else "have"
    return (
        f"waiting for {len(missing)} of {job.size} workers: rank {ranks} {verb} not joined "
        f"{job.host}:{job.port}; giving up in {left:.0f} s"
    )


def _describe_missing(store: JobStore, keys: list[str], seconds: float) -> str:
    missing = [r for r, key in enumerate(keys) if not store.check([key])]
    present = [f"{r} on {_host_of(store, r)}" for r in range(len(keys)) if r not in missing]
    return (
        f"{len(missing)} of {len(keys)} workers did not arrive within {seconds:g} s: missing rank "
        f"{', '.join(map(str, missing))}; present rank {', '.join(present)}. "
        "MXNET_KVSTORE_CONNECT_TIMEOUT sets how long to wait."
    )
