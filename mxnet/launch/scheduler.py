"""The launcher as the scheduler of a job: it serves the rendezvous and reports failures."""

from __future__ import annotations

import contextlib
import datetime
import json
import socket
from typing import Any

import torch.distributed as dist


class Scheduler:
    """Serves the key-value service at which workers and servers meet.

    Parameters
    ----------
    host : str
        The address by which the workers reach this process.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self._store = dist.TCPStore(
            host,
            0,
            is_master=True,
            wait_for_workers=False,
            timeout=datetime.timedelta(seconds=60),
        )
        self.port = self._store.port

    def environment(self, workers: int, servers: int, attempt: int) -> dict[str, str]:
        """Return the variables that describe the job."""
        return {
            "DMLC_PS_ROOT_URI": self.host,
            "DMLC_PS_ROOT_PORT": str(self.port),
            "DMLC_NUM_WORKER": str(workers),
            "DMLC_NUM_SERVER": str(servers),
            "DMLC_ROLE": "worker",
            "MXNET_LAUNCH_ATTEMPT": str(attempt),
            "WORLD_SIZE": str(workers),
            "PYTHONUNBUFFERED": "1",
        }

    def _job(self, attempt: int) -> Any:
        return dist.PrefixStore(f"mxnet/{attempt}", self._store)

    def failure(self, attempt: int) -> str:
        """Return what the workers found out about a failure, or nothing."""
        store = self._job(attempt)
        if not store.check(["failure"]):
            return ""
        found = json.loads(store.get("failure"))
        return f"rank {found['rank']} on {found['host']} {found['why']}"

    def report_failure(self, attempt: int, rank: int, host: str, why: str) -> None:
        """Write down for all workers that one has failed."""
        text = json.dumps({"rank": rank, "host": host, "pid": 0, "why": why})
        with contextlib.suppress(RuntimeError):
            self._job(attempt).compare_set("failure", "", text)


def own_address(toward: str | None = None) -> str:
    """Return an address of this machine at which another host reaches it."""
    if toward in (None, "localhost", "127.0.0.1"):
        return "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((toward, 9))  # no packet is sent
        return probe.getsockname()[0]
