"""Answers: JSON, errors, and bodies that are sent in pieces."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..limits import Refused, Share

PIECE = 64 << 10  # bytes of an answer that are sent at once


class Pieces(Response):
    """An answer that is sent in pieces, so that a slow reader does not fill a buffer.

    The bytes of `share` are counted until it is sent.
    """

    share: Share | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        try:
            if len(self.body) <= PIECE:
                await super().__call__(scope, receive, send)
            else:
                await self._send_pieces(send)
        finally:
            if self.share is not None:
                self.share.release()

    async def _send_pieces(self, send: Send) -> None:
        body = memoryview(self.body)
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        for start in range(0, len(body), PIECE):
            piece = bytes(body[start : start + PIECE])
            has_more = start + PIECE < len(body)
            await send({"type": "http.response.body", "body": piece, "more_body": has_more})


def json_response(content: Any, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer in JSON."""
    return Pieces(orjson.dumps(content), code, headers, "application/json")


def refuse(refused: Refused) -> Response:
    """Return the answer to a request that is refused."""
    return json_response({"error": str(refused)}, refused.code, refused.headers)
