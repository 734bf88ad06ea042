"""Who may ask: names of hosts, origins of pages, and a token."""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ... import UsageError
from ..limits import Refused

TOKEN_VARIABLE = "MX_SERVE_TOKEN"
OPEN_PATHS = frozenset(
    {"/health", "/v2/health/live", "/v2/health/ready", "/", "/page.css", "/page.js", "/favicon.ico"}
)
HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.%]+\]|[^:\[\]/@\s]+)(?::\d{1,5})?")


def read_token(option: str | None) -> str | None:
    """Return the token of the option ``--token``, a text or ``@FILE``, or of the environment."""
    token = option if option is not None else os.environ.get(TOKEN_VARIABLE)
    if token is not None and token.startswith("@"):
        token = Path(token[1:]).read_text(encoding="utf-8").strip()
    if token is not None and not token.isascii():
        raise UsageError("--token: it has characters that are not ASCII")
    if token == "":
        raise UsageError("--token: it is empty")
    return token


def host_name(host: str) -> str | None:
    """Return the name in a Host header, without its port; None if there is none.

    >>> host_name("Example.com:8080"), host_name("[::1]:80"), host_name("a/b")
    ('example.com', '::1', None)
    """
    match = HOST.fullmatch(host.strip())
    return match["name"].strip("[]").lower().rstrip(".") if match else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


class Guard:
    """Refuses requests that other web pages or strangers send.

    A page of another site can let its own name point at this machine (DNS rebinding): so names
    must be known. Addresses in numbers cannot be used that way.
    """

    def __init__(self, hosts: Iterable[str] = (), token: str | None = None) -> None:
        self._hosts = {"localhost", *(host.lower() for host in hosts)}
        self._allows_all = "*" in self._hosts
        self._token = f"Bearer {token}".encode() if token is not None else None

    @property
    def needs_token(self) -> bool:
        """Whether requests must have a token."""
        return self._token is not None

    def check(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a request that must not be answered."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._allows_all and host and not self._is_known(host):
            raise Refused(
                421,
                f"the host {host[:100]!r} is not served here; mx serve --allow-host NAME adds it",
            )
        self._check_origin(headers, host)
        if self._token is None or path in OPEN_PATHS:
            return
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._token):
            raise Refused(401, "the token is missing or wrong", www_authenticate="Bearer")

    def _is_known(self, host: str) -> bool:
        name = host_name(host)
        return name is not None and (
            name in self._hosts or name.endswith(".localhost") or _is_address(name)
        )

    @staticmethod
    def _check_origin(headers: Mapping[bytes, bytes], host: str) -> None:
        """Refuse what a browser sends for a page of another site."""
        if (
            headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site")
            and headers.get(b"sec-fetch-mode") != b"navigate"
        ):
            raise Refused(403, "pages of other sites may not ask this server")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").partition("://")[2] != host:
            raise Refused(403, "pages of other sites may not ask this server")
