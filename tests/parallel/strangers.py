"""Attacks on the sockets of a local job."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import time
from pathlib import Path

from mxnet.parallel import channel

FLOOD = 300  # connections at a time


def listening(pids: list[int]) -> list[tuple[int, str, int]]:
    """Return process, address and port of every TCP socket at which processes listen."""
    owners = {}
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(OSError):
                owners[str(link.readlink())] = pid
    sockets = []
    for family, name in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            owner = owners.get(f"socket:[{fields[9]}]")
            if fields[3] == "0A" and owner is not None:  # LISTEN
                host, _, port = fields[1].partition(":")
                words = [
                    struct.pack("=I", int(host[i : i + 8], 16)) for i in range(0, len(host), 8)
                ]
                address = socket.inet_ntop(family, b"".join(words))
                sockets.append((owner, address, int(port, 16)))
    return sorted(sockets)


def attack(port: int) -> bool:
    """Attack one port in all known ways; return whether it answers."""
    noise = random.Random(port)
    greeting = _greeting(port)
    flood = [_begin(port) for _ in range(FLOOD)]
    time.sleep(0.3)
    for sock in flood:
        _send(sock, noise.randbytes(20))
    waiting = []
    for data in (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        noise.randbytes(5000),
        b"\xff" * 64,
        struct.pack("<Q", 2**62) * 8,  # false lengths
        b"\x00" * 64,
        b"",
        *(struct.pack("<q", i) for i in range(4)),  # what Gloo's peers begin with
        _valid_proof_for_another_secret(greeting or b""),
        *_recorded(greeting or b""),
    ):
        sock = _begin(port)
        time.sleep(0.02)
        _send(sock, data)
        waiting.append(sock)  # stays half open
    time.sleep(0.2)
    for sock in (*waiting, *flood):
        sock.close()
    return greeting is not None


def _begin(port: int) -> socket.socket:
    """Begin to connect, without waiting for an answer."""
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex(("127.0.0.1", port))
    return sock


def _send(sock: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        sock.sendall(data)


def _greeting(port: int) -> bytes | None:
    """Return the first bytes from a port, or None if the connection is refused."""
    try:
        sock = socket.create_connection(("127.0.0.1", port), timeout=1)
    except OSError:
        return None
    with sock, contextlib.suppress(OSError):
        return sock.recv(100)
    return b""


def _valid_proof_for_another_secret(greeting: bytes) -> bytes:
    nonce = b"n" * channel.NONCE_BYTES
    nonces = greeting[len(channel.GREETING) :] + nonce
    return nonce + channel._prove(b"another secret", "client", nonces)


def _recorded(greeting: bytes) -> list[bytes]:
    """Return an answer that was valid for an earlier greeting, and a message after it."""
    answer = b"n" * channel.NONCE_BYTES + b"p" * channel.TAG_BYTES
    message = channel.PREFIX.pack(100, 2**40) + b"t" * channel.TAG_BYTES + b"{}" * 50
    return [answer + message, greeting + answer + message]
