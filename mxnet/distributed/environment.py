"""Where this process stands in a job, read from the variables of any launcher.

Understood are MXNet's own (``DMLC_*``), torchrun's (``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR``),
and for the rank those of MPI and Slurm.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ..error import MXNetError

RANKS = ("RANK", "DMLC_WORKER_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
SIZES = ("WORLD_SIZE", "DMLC_NUM_WORKER", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
LOCAL_RANKS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
LOCAL_SIZES = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
ROLES = ("worker", "server", "scheduler")


@dataclass(frozen=True)
class Job:
    """The place of one process in a job."""

    role: str
    size: int  # number of workers
    servers: int
    rank: int | None  # None: ranks are given in the order of arrival
    local_rank: int | None
    local_size: int | None
    host: str  # of the rendezvous
    port: int
    has_scheduler: bool  # whether the rendezvous is served by a process that is no worker
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
    """Return the place of this process, or None if no launcher has set one.

    >>> job = read_job({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "9"})
    >>> job.rank, job.size, job.host, job.has_scheduler
    (1, 2, 'a', False)
    """
    given = os.environ if variables is None else variables
    by_scheduler = bool(given.get("DMLC_PS_ROOT_URI"))
    if not by_scheduler and not given.get("MASTER_ADDR"):
        return None
    address = ("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT")
    if not by_scheduler:
        address = ("MASTER_ADDR", "MASTER_PORT")
    size, port = _number(SIZES, given), _number((address[1],), given)
    role = given.get("DMLC_ROLE", "worker").lower()
    rank = _number(RANKS, given)
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
        servers=_number(("DMLC_NUM_SERVER",), given) or 0,
        rank=rank if role == "worker" else None,
        local_rank=_number(LOCAL_RANKS, given),
        local_size=_number(LOCAL_SIZES, given),
        host=given[address[0]],
        port=port,
        has_scheduler=by_scheduler or given.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
        attempt=_number(("MXNET_LAUNCH_ATTEMPT", "TORCHELASTIC_RESTART_COUNT"), given) or 0,
    )
