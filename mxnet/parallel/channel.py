"""Authenticated connections between the processes of a job.

Both ends of a new connection prove by HMAC-SHA256 that they know the job's secret, without sending
it. Every message has a keyed checksum (BLAKE2) of its content and number, so that none can be
forged, changed, repeated or dropped; on loopback, which cannot be intercepted, the checksum
excludes arrays. A message is JSON and byte strings; nothing is unpickled. Before the proof, a peer
can send only a few bytes within a few seconds.

Messages are not encrypted: whoever can read the network can read them.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import hmac
import ipaddress
import json
import os
import select
import socket
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .._process import env
from ..error import MXNetError

SECRET = "MXNET_JOB_SECRET"
GREETING = b"MXNext1\n"
PREFIX = struct.Struct("<IQ")  # maximum bytes of the JSON, and of all byte strings
TAG_BYTES = 32
NONCE_BYTES = 32
MAX_TEXT_BYTES = 64 << 20
MAX_DATA_BYTES = 64 << 30
CHUNK_BYTES = 64 << 20  # allocate by received bytes, not by the declared length
PROOF_SECONDS = 5.0
SO_ATTACH_FILTER = 26  # of Linux
MAX_UNPROVEN = 256  # maximum number of connections without proof of the secret


class ChannelError(MXNetError, ConnectionError):
    """Raised if a connection of the job breaks, or its other end is not part of the job."""

    __str__ = MXNetError.__str__


def read_secret() -> bytes:
    """Return the secret of this process's job; empty if the job has none."""
    return env.get(SECRET).encode()


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine's loopback address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("10.0.0.1")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def escape(text: object, limit: int = 1000) -> str:
    r"""Sanitize text of another process: one truncated line without control characters.

    >>> escape("no\x1b[2J file")
    'no\\x1b[2J file'
    """
    whole = str(text)
    cut = whole if len(whole) <= limit else f"{whole[:limit]}..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


class Channel:
    """An authenticated connection of `connect` or a `Listener`; each direction has a key."""

    def __init__(self, sock: socket.socket, send_key: bytes, receive_key: bytes) -> None:
        self._socket = sock
        self._keys = [send_key, receive_key]
        self._counts = [0, 0]  # messages sent and received
        # On loopback only the system could change arrays in transit.
        self._is_local = is_loopback(str(sock.getpeername()[0]))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    @property
    def own_host(self) -> str:
        """The address of this end."""
        return self._socket.getsockname()[0]

    def _tag(self, direction: int, parts: Sequence[Any]) -> bytes:
        number = self._counts[direction].to_bytes(8, "little")
        digest = hashlib.blake2b(number, digest_size=TAG_BYTES, key=self._keys[direction])
        for part in parts:
            digest.update(part)
        self._counts[direction] += 1
        return digest.digest()

    def send(self, content: Mapping[str, Any], data: Sequence[bytes | memoryview] = ()) -> None:
        """Send a message."""
        text = json.dumps({**content, "sizes": [len(part) for part in data]}).encode()
        size = sum(len(part) for part in data)
        if len(text) > MAX_TEXT_BYTES or size > MAX_DATA_BYTES:
            raise MXNetError(f"A message of {len(text) + size} bytes is too large to be sent.")
        prefix = PREFIX.pack(len(text), size)
        tag = self._tag(0, [prefix, text, *(() if self._is_local else data)])
        try:
            self._socket.sendall(prefix + tag + text)
            for part in data:
                self._socket.sendall(part)
        except OSError as error:
            raise _lost(error) from None

    def receive(self) -> tuple[dict[str, Any], list[memoryview]]:
        """Return the next message: its content, and its byte strings."""
        try:
            head = _read(self._socket, PREFIX.size + TAG_BYTES)
            prefix, tag = head[: PREFIX.size], head[PREFIX.size :]
            length, size = PREFIX.unpack(prefix)
            if length > MAX_TEXT_BYTES or size > MAX_DATA_BYTES:
                raise ChannelError(f"A message claims {length + size} bytes, which is too many.")
            text, data = _read(self._socket, length), _read(self._socket, size)
        except OSError as error:
            raise _lost(error) from None
        if not hmac.compare_digest(
            tag, self._tag(1, [prefix, text, *(() if self._is_local else [data])])
        ):
            raise ChannelError("A message has a wrong checksum: it was forged or damaged.")
        content = json.loads(bytes(text))
        parts, start, view = [], 0, memoryview(data)
        for part in content.pop("sizes"):
            parts.append(view[start : start + part])
            start += part
        return content, parts

    def has_input(self, seconds: float) -> bool:
        """Wait for a message or the end of the connection."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def set_timeout(self, seconds: float | None) -> None:
        """Set the timeout for each part of a message."""
        try:
            self._socket.settimeout(seconds)
        except OSError as error:  # the socket is closed
            raise _lost(error) from None

    def close(self) -> None:
        """Close the connection; waiting calls at both ends raise an error."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _lost(error: OSError) -> ChannelError:
    if isinstance(error, ChannelError):
        return error
    return ChannelError(f"the connection broke ({error or type(error).__name__})")


def _read(sock: socket.socket, size: int) -> bytearray:
    buffer, filled = bytearray(min(size, CHUNK_BYTES)), 0
    while filled < size:
        if filled == len(buffer):
            buffer += bytes(min(size - filled, CHUNK_BYTES))
        with memoryview(buffer) as view:
            count = sock.recv_into(view[filled:])
        if not count:
            raise ChannelError("the other end closed the connection")
        filled += count
    return buffer


def _prove(secret: bytes, role: str, nonces: bytes) -> bytes:
    return hmac.digest(secret, f"MXNext {role} ".encode() + nonces, "sha256")


def connect(host: str, port: int, seconds: float, secret: bytes | None = None) -> Channel:
    """Connect to a `Listener` of the job; retry for up to `seconds`."""
    secret = read_secret() if secret is None else secret
    end = time.monotonic() + seconds
    while True:
        left = max(0.1, end - time.monotonic())
        try:
            sock = socket.create_connection((host.strip("[]"), port), timeout=left)
            try:
                return _prove_as_client(sock, secret, min(left, 2 * PROOF_SECONDS))
            except BaseException:
                sock.close()
                raise
        except OSError as error:
            if time.monotonic() >= end:
                raise _lost(error) from None
            time.sleep(0.05)


def _prove_as_client(sock: socket.socket, secret: bytes, seconds: float) -> Channel:
    sock.settimeout(seconds)
    if sock.getsockname() == sock.getpeername():  # TCP has connected a free port to itself
        raise ChannelError("nothing listens there")
    hello = _read(sock, len(GREETING) + NONCE_BYTES)
    if not hello.startswith(GREETING):
        raise ChannelError("the listener is not part of an MXNext job")
    nonce = os.urandom(NONCE_BYTES)
    nonces = bytes(hello[len(GREETING) :]) + nonce
    sock.sendall(nonce + _prove(secret, "client", nonces))
    try:
        proof = _read(sock, TAG_BYTES)
    except ChannelError:
        proof = b""
    if not hmac.compare_digest(bytes(proof), _prove(secret, "server", nonces)):
        raise ChannelError(f"it is not part of this job: its {SECRET} differs")
    sock.settimeout(None)
    return Channel(sock, _prove(secret, "key client", nonces), _prove(secret, "key server", nonces))


def _prove_as_server(sock: socket.socket, secret: bytes) -> Channel:
    sock.settimeout(PROOF_SECONDS)
    nonce = os.urandom(NONCE_BYTES)
    sock.sendall(GREETING + nonce)
    answer = bytes(_read(sock, NONCE_BYTES + TAG_BYTES))
    nonces = nonce + answer[:NONCE_BYTES]
    if not hmac.compare_digest(answer[NONCE_BYTES:], _prove(secret, "client", nonces)):
        raise ChannelError("the other end does not know the secret")
    sock.sendall(_prove(secret, "server", nonces))
    sock.settimeout(None)
    return Channel(sock, _prove(secret, "key server", nonces), _prove(secret, "key client", nonces))


class Listener:
    """Accepts connections; each one that proves the secret is served by its own thread.

    If `host` is not an address of this machine (but of a proxy, for example), it listens on all
    interfaces. Port 0 means any free port. The default secret is that of this process's job.
    """

    def __init__(
        self, host: str, port: int, serve: Callable[[Channel], None], secret: bytes | None = None
    ) -> None:
        self._serve, self._secret = serve, read_secret() if secret is None else secret
        self._socket = _bind(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.strangers = 0  # connections without proof of the secret
        self._unproven: dict[socket.socket, None] = {}  # oldest first
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, name="mxnet-listener", daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._socket.accept()
            except OSError:
                if self._socket.fileno() < 0:
                    return
                time.sleep(0.05)  # too many open files, for example
                continue
            with self._lock:
                if len(self._unproven) >= MAX_UNPROVEN:
                    oldest = next(iter(self._unproven))
                    del self._unproven[oldest]
                    with contextlib.suppress(OSError):
                        oldest.shutdown(socket.SHUT_RDWR)  # ends the thread of that connection
                self._unproven[sock] = None
            try:
                threading.Thread(target=self._welcome, args=(sock,), daemon=True).start()
            except RuntimeError:  # no more threads
                self._forget(sock)
                sock.close()

    def _forget(self, sock: socket.socket) -> None:
        with self._lock:
            self._unproven.pop(sock, None)

    def _welcome(self, sock: socket.socket) -> None:
        with sock:
            try:
                channel = _prove_as_server(sock, self._secret)
            except OSError:
                self.strangers += 1
                return
            finally:
                self._forget(sock)
            with contextlib.suppress(ChannelError):
                self._serve(channel)


def _bind(host: str, port: int) -> socket.socket:
    family, *_, address = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    try:
        return socket.create_server(address[:2], family=family, backlog=1024)
    except OSError as error:
        if is_loopback(str(address[0])) or not _is_foreign(str(address[0]), family):
            raise
        del error
        return socket.create_server(("", port), backlog=1024)


@contextlib.contextmanager
def closing_listeners() -> Iterator[None]:
    """At the end of the block, refuse new connections to sockets opened in it.

    Gloo keeps listening while its process group lives, although its members are connected after
    creation, and aborts the process if strangers exhaust its file descriptors. A socket filter that
    accepts nothing makes Linux drop new connections.
    """
    before = _listening_descriptors()
    yield
    for descriptor in _listening_descriptors() - before:
        instruction = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # return 0
        program = struct.pack("HL", 1, ctypes.addressof(instruction))
        with socket.socket(fileno=os.dup(descriptor)) as sock:
            sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


def _listening_descriptors() -> set[int]:
    if sys.platform != "linux":
        return set()
    descriptors = set()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 (numbers, not paths)
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as sock:
                is_listening = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                if is_listening and sock.family in (socket.AF_INET, socket.AF_INET6):
                    descriptors.add(int(name))
    return descriptors


def _is_foreign(host: str, family: int) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return True
    return False
