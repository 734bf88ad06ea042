"""Emulate several machines on one computer: network namespaces with a switch (Linux, root).

A link can be cut, slowed down, or made to lose packets in one direction while processes use it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

CLONE_NEWUTS, CLONE_NEWNET = 0x04000000, 0x40000000
NOWHERE = "02:00:00:00:00:99"  # an unused hardware address


def run_ip(*arguments: str) -> None:
    """Run ``ip`` with arguments."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=20)


def why_not() -> str:
    """Return why no namespaces can be created here; empty if they can."""
    if shutil.which("ip") is None:
        return "iproute2 is not installed"
    name = f"mx{os.getpid()}-try"
    try:
        run_ip("netns", "add", name)
        run_ip("netns", "del", name)
    except subprocess.CalledProcessError as error:
        return f"network namespaces cannot be made: {error.stderr.decode().strip()}"
    return ""


class Network:
    """Machines ``node0``, ``node1`` ... with the addresses 10.77.0.1, 10.77.0.2 ...

    Parameters
    ----------
    size : int
        How many.
    """

    def __init__(self, size: int) -> None:
        self.size, self.name = size, f"mx{os.getpid()}"
        self._switch = f"{self.name}-s"

    def __enter__(self) -> Network:
        run_ip("netns", "add", self._switch)
        run_ip("-n", self._switch, "link", "add", "switch", "type", "bridge")
        run_ip("-n", self._switch, "link", "set", "switch", "up")
        for number in range(self.size):
            self._add(number)
        return self

    def _add(self, number: int) -> None:
        host, port = self.namespace(number), f"port{number}"
        run_ip("netns", "add", host)
        run_ip(
            *("-n", host, "link", "add", "eth0", "type", "veth"),
            *("peer", "name", port, "netns", self._switch),
        )
        run_ip("-n", host, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            run_ip("-n", host, "link", "set", device, "up")
        run_ip("-n", self._switch, "link", "set", port, "master", "switch", "up")

    def __exit__(self, *_: object) -> None:
        for name in (*map(self.namespace, range(self.size)), self._switch):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20)

    def namespace(self, number: int) -> str:
        """Return the name of a machine's namespace."""
        return f"{self.name}-{number}"

    def address(self, number: int) -> str:
        """Return the address of a machine."""
        return f"10.77.0.{number + 1}"

    def cut(self, number: int) -> None:
        """Disconnect a machine from the switch."""
        run_ip("-n", self._switch, "link", "set", f"port{number}", "nomaster")

    def mend(self, number: int) -> None:
        """Reconnect a machine."""
        run_ip("-n", self._switch, "link", "set", f"port{number}", "master", "switch")

    def lose_from(self, number: int, to: int) -> None:
        """Drop packets from one machine to another; the other direction stays open."""
        entry = (self.address(to), "lladdr", NOWHERE, "dev", "eth0", "nud", "permanent")
        run_ip("-n", self.namespace(number), "neigh", "replace", *entry)

    def slow(self, number: int, rate: str) -> None:
        """Limit the bandwidth of a machine, for example to "1mbit"."""
        limit = ("tbf", "rate", rate, "burst", "4kb", "latency", "2s")
        command = ["tc", "-n", self.namespace(number), "qdisc", "add", "dev", "eth0", "root"]
        subprocess.run([*command, *limit], check=True, capture_output=True, timeout=20)


def on_machine(name: str, function: Callable[..., None], *arguments: Any) -> None:
    """Run a function on the machine of this process's rank.

    MACHINE_VARIABLES names the variables that tell a worker its rank and how many there are.
    """
    rank = os.environ.pop("RANK")
    names = os.environ.get("MACHINE_VARIABLES", "RANK WORLD_SIZE").split()
    os.environ.update(zip(names, (rank, os.environ.pop("WORLD_SIZE")), strict=True))
    library = ctypes.CDLL(None, use_errno=True)
    with Path(f"/run/netns/{name}-{rank}").open() as namespace:
        if library.setns(namespace.fileno(), CLONE_NEWNET) or library.unshare(CLONE_NEWUTS):
            raise OSError(ctypes.get_errno(), f"cannot enter {name}-{rank}")
    socket.sethostname(f"node{rank}")
    function(*arguments)
