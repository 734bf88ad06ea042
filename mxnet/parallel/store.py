"""The job's key-value service for the rendezvous: `StoreServer` and `JobStore`.

torch's TCPStore has the same methods, but no access control.
"""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch.distributed as dist

from .channel import Channel, ChannelError, Listener, connect

DEFAULT_SECONDS = 300.0


class StoreServer(Listener):
    """Key-value server for the processes that know the job's secret.

    >>> server = StoreServer("127.0.0.1", 0, b"secret")
    >>> store = JobStore("127.0.0.1", server.port, 10, b"secret")
    >>> store.set("rank 0", "here")
    >>> store.get("rank 0")
    b'here'
    >>> store.close()
    >>> server.close()
    """

    def __init__(self, host: str, port: int, secret: bytes | None = None) -> None:
        self._values: dict[str, bytes] = {}
        self._changed = threading.Condition()
        super().__init__(host, port, self._answer, secret)

    def _answer(self, channel: Channel) -> None:
        while True:
            request, data = channel.receive()
            answer, values = CALLS[request.pop("call")](self, *data, **request)
            channel.send({"answer": answer}, values)

    # Each call returns a JSON value and byte strings.

    def _set(self, value: memoryview, keys: Sequence[str]) -> tuple[None, list[bytes]]:
        with self._changed:
            self._values[keys[0]] = bytes(value)
            self._changed.notify_all()
        return None, []

    def _get(self, keys: Sequence[str], seconds: float) -> tuple[bool, list[bytes]]:
        """Wait until all keys have values, and return them."""
        with self._changed:
            is_complete = self._changed.wait_for(
                lambda: all(key in self._values for key in keys), seconds
            )
            return is_complete, [self._values[key] for key in keys] if is_complete else []

    def _check(self, keys: Sequence[str]) -> tuple[bool, list[bytes]]:
        return all(key in self._values for key in keys), []

    def _add(self, keys: Sequence[str], amount: int) -> tuple[int, list[bytes]]:
        with self._changed:
            total = int(self._values.get(keys[0], b"0")) + amount
            self._values[keys[0]] = str(total).encode()
            self._changed.notify_all()
        return total, []

    def _compare_set(
        self, expected: memoryview, value: memoryview, keys: Sequence[str]
    ) -> tuple[None, list[bytes]]:
        (key,) = keys
        with self._changed:
            if self._values.get(key, b"") == bytes(expected):
                self._values[key] = bytes(value)
                self._changed.notify_all()
            return None, [self._values.get(key, bytes(expected))]

    def _delete(self, keys: Sequence[str]) -> tuple[bool, list[bytes]]:
        with self._changed:
            return self._values.pop(keys[0], None) is not None, []


CALLS: dict[str, Callable[..., tuple[Any, list[bytes]]]] = {
    "set": StoreServer._set,
    "get": StoreServer._get,
    "check": StoreServer._check,
    "add": StoreServer._add,
    "compare_set": StoreServer._compare_set,
    "delete": StoreServer._delete,
}


class JobStore(dist.Store):
    """A connection to a `StoreServer`, usable by torch's process groups.

    It waits up to `seconds` for the server. All keys get a `prefix`.
    """

    def __init__(
        self, host: str, port: int, seconds: float, secret: bytes | None = None, prefix: str = ""
    ) -> None:
        super().__init__()
        self._address = (host, port, seconds, secret, prefix)
        self._prefix = prefix
        self._seconds = DEFAULT_SECONDS
        self._lock = threading.Lock()
        self._channel = connect(host, port, seconds, secret)

    @property
    def own_host(self) -> str:
        """The address of this process as seen by the server."""
        return self._channel.own_host

    def _request(
        self, call: str, keys: Sequence[str], *data: bytes, patience: float = 0.0, **settings: Any
    ) -> tuple[Any, list[memoryview]]:
        names = [self._prefix + key for key in keys]
        with self._lock:
            try:
                self._channel.set_timeout(self._seconds + patience)
                self._channel.send({"call": call, "keys": names, **settings}, data)
                content, values = self._channel.receive()
            except ChannelError as error:
                # After a truncated message, the next ones cannot be parsed.
                self._channel.close()
                raise dist.DistNetworkError(f"The job's key-value service: {error}") from None
        return content["answer"], values

    def set(self, key: str, value: str | bytes) -> None:
        """Set the value of a key."""
        self._request("set", [key], _as_bytes(value))

    def get(self, key: str) -> bytes:
        """Return the value of a key, after waiting for it."""
        (value,) = self._get([key], self._seconds)
        return bytes(value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the values of keys, after waiting for them."""
        return [bytes(value) for value in self._get(keys, self._seconds)]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set the values of keys."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def _get(self, keys: Sequence[str], seconds: float) -> list[memoryview]:
        is_complete, values = self._request("get", keys, patience=seconds, seconds=seconds)
        if not is_complete:
            raise dist.DistStoreError(f"{', '.join(keys)} did not come within {seconds:g} s.")
        return values

    def wait(self, keys: Sequence[str], timeout: datetime.timedelta | None = None) -> None:
        """Wait until all keys have values."""
        seconds = self._seconds if timeout is None else timeout.total_seconds()
        self._get(keys, seconds)

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys have values."""
        return self._request("check", keys)[0]

    def add(self, key: str, value: int) -> int:
        """Add to the number of a key, initially 0, and return the sum."""
        return self._request("add", [key], amount=value)[0]

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        """Replace a value if it equals the expected one ("" if missing); return the current one."""
        parts = (_as_bytes(expected_value), _as_bytes(desired_value))
        return bytes(self._request("compare_set", [key], *parts)[1][0])

    def delete_key(self, key: str) -> bool:
        """Remove a key; return whether it existed."""
        return self._request("delete", [key])[0]

    def has_extended_api(self) -> bool:
        """Return False: the store does not support queues and append."""
        return False

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Set the timeout of `get`."""
        self._seconds = timeout.total_seconds()

    @property
    def timeout(self) -> datetime.timedelta:
        """The timeout of `get`."""
        return datetime.timedelta(seconds=self._seconds)

    def close(self) -> None:
        """End the connection."""
        self._channel.close()

    def clone(self) -> JobStore:
        """Return another connection to the same service."""
        return JobStore(*self._address)


def _as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
