"""Answers are sent in pieces that are taken in time, and refused clients can read why."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from starlette.responses import Response

from mxnext_cli.serve.app import PIECE, Front, Guard, json_response
from mxnext_cli.serve.limits import Limits, Refused
from mxnext_cli.serve.monitoring import Metrics

LIMIT = 60


class Client:
    """What an HTTP server passes to the application, and what it gets."""

    def __init__(self, pieces: list[bytes] | None = None, takes: int = 10**6, **headers: str):
        self.pieces, self.takes = pieces or [], takes
        self.messages: list[dict] = []
        pairs = {"host": "localhost", **headers}
        names = [(k.replace("_", "-").encode(), v.encode()) for k, v in pairs.items()]
        self.scope = {"type": "http", "method": "POST", "path": "/", "http_version": "1.1",
                      "headers": names}  # fmt: skip

    async def receive(self) -> dict:
        piece = self.pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces)}

    async def send(self, message: dict) -> None:
        if len(self.messages) >= self.takes:
            await asyncio.Event().wait()
        self.messages.append(message)

    @property
    def head(self) -> tuple[int, dict[bytes, bytes]]:
        return self.messages[0]["status"], dict(self.messages[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.messages[1:])


def ask(client: Client, app, timeout: float = LIMIT) -> Metrics:
    metrics = Metrics()
    front = Front(app, Guard(), metrics, Limits(timeout=timeout))
    asyncio.run(asyncio.wait_for(front(client.scope, client.receive, client.send), LIMIT))
    return metrics


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 7])
def test_responses_are_sent_completely_in_pieces(size):
    content, client = bytes(range(256)) * (size // 256) + bytes(size % 256), Client()
    ask(client, Response(content))
    assert client.body == content
    assert max(len(message["body"]) for message in client.messages[1:]) <= PIECE
    ends = [not message.get("more_body", False) for message in client.messages[1:]]
    assert ends == [False] * (len(ends) - 1) + [True]


def test_unread_responses_time_out_and_release_their_bytes():
    async def app(scope, receive, send):
        scope["mx.share"].hold(8 * PIECE)
        await Response(bytes(8 * PIECE))(scope, receive, send)

    client = Client(takes=3)
    metrics = ask(client, app, timeout=0.05)
    assert len(client.messages) == 3
    text = metrics.text().decode()
    assert "\nmx_bytes_in_flight 0.0" in text
    assert 'mx_requests_total{code="499"} 1.0' in text


async def refuse_body(scope, receive, send):
    raise Refused(413, "too large")


@pytest.mark.parametrize("headers", [{"content_length": "6"}, {"transfer_encoding": "chunked"}])
def test_the_rest_of_a_refused_body_is_read_before_the_answer_ends(headers):
    client = Client([b"ab", b"cd", b"ef"], **headers)
    ask(client, refuse_body)
    code, names = client.head
    assert (code, names[b"connection"], client.pieces) == (413, b"close", [])
    assert b"content-length" not in names
    assert client.body == b'{"error":"too large"}'


def test_a_client_that_waits_before_its_body_is_answered_at_once():
    client = Client([b"abcdef"], content_length="6", expect="100-continue")
    ask(client, refuse_body)
    assert client.head[0] == 413
    assert client.pieces == [b"abcdef"]


def test_unhandled_exceptions_are_logged_and_counted_as_500(caplog):
    async def app(scope, receive, send):
        await json_response({}, 500)(scope, receive, send)
        raise ZeroDivisionError

    metrics = ask(Client(), app)
    assert 'mx_requests_total{code="500"} 1.0' in metrics.text().decode()
