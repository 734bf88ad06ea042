"""Requests that are meant to harm: the server answers others meanwhile, and stays small.

One server takes all of them. `/health` is asked all the time; what counts is how much processor
time the server uses before it answers, because tests share their machine.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import socket
import struct
import sys
import threading
import time
import zlib

import numpy as np
import pytest

from .server import LIMIT, NPY, NPZ, HealthWatch, Running, npy, npz, serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc"),
]
MIB = 1 << 20
MAX_BODY, MAX_IN_FLIGHT, MAX_CONNECTIONS = 32, 64, 100  # MiB, MiB, count
MODEL = 70  # MiB that the model itself takes for the largest body
# What docs/how-to/serve.md promises: requests, four bodies in each of two decoders, connections.
MAX_GROWTH = (MAX_IN_FLIGHT + 2 * 4 * MAX_BODY + MAX_CONNECTIONS // 16 + MODEL) * MIB
MAX_HEALTH_SECONDS = 1.0  # of the processor; a parser that cannot be stopped took 23
HOST = b"Host: localhost\r\n"


@pytest.fixture(scope="module")
def server(image_model):
    with serving(
        image_model, "--header-timeout=4", "--timeout=5", f"--max-connections={MAX_CONNECTIONS}",
        f"--max-in-flight={MAX_IN_FLIGHT}", f"--max-body={MAX_BODY}", "--max-rows=4096",
        open_files=200,
    ) as running:  # fmt: skip
        running.post(npy(np.zeros((64, 3, 32, 32), "f4")), NPY)
        running.base = running.memory()
        yield running
        assert running.process.poll() is None
        assert len(running.log()) < 20_000


@contextlib.contextmanager
def under_attack(server: Running):
    """Check that others are served meanwhile, and that memory stays bounded."""
    peak = [0]
    stop = threading.Event()

    def watch_memory() -> None:
        while not stop.wait(0.05):
            peak[0] = max(peak[0], server.memory())

    watcher = threading.Thread(target=watch_memory)
    watcher.start()
    try:
        with HealthWatch(server) as health:
            yield
    finally:
        stop.set()
        watcher.join(LIMIT)
    assert health.failures == []
    assert max(health.seconds) < MAX_HEALTH_SECONDS
    assert peak[0] - server.base < MAX_GROWTH
    ok = server.post(npy(np.zeros((1, 3, 32, 32), "f4")), NPY)
    assert ok.code == 200, ok.content


def in_threads(function, count: int) -> None:
    threads = [threading.Thread(target=function) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)


def png(width: int, height: int) -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + check

    size = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    compressor = zlib.compressobj(9)
    pixels = b"".join(compressor.compress(bytes(width + 1)) for _ in range(min(height, 2000)))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size)
        + chunk(b"IDAT", pixels + compressor.flush()) + chunk(b"IEND", b"")
    )  # fmt: skip


BODIES = {
    "lists in lists": (b'{"inputs":[' + b"[[[1]]]," * MIB + b"1]}", "application/json"),
    "deep lists": (b'{"inputs":' + b"[" * (7 * MIB), "application/json"),
    "deep objects": (b'{"inputs":' + b'{"a":' * MIB, "application/json"),
    "wide object": (b"{" + b'"a":1,' * MIB + b'"b":1}', "application/json"),
    "long number": (b'{"inputs":[' + b"1" * (7 * MIB) + b"]}", "application/json"),
    "long text": (b'{"inputs":"' + b"a" * (7 * MIB) + b'"}', "application/json"),
    "numbers": (b'{"inputs":[' + b"1," * (3 * MIB) + b"1]}", "application/json"),
    "not a number": (b'{"inputs":[' + b"NaN," * MIB + b"1]}", "application/json"),
    "large image": (png(13000, 13000), "image/png"),
    "image that is allowed": (png(1024, 1024), "image/png"),
    "JPEG of many scans": (
        b"\xff\xd8\xff\xc2\x00\x0b\x08\x04\x00\x04\x00\x01\x01\x11\x00"
        + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" * 20_000, "image/jpeg",
    ),
    "archive bomb": (npz(data=np.zeros((1, 1), "f8")), NPZ),
    "large array": (npy(np.zeros((1300, 3, 32, 32), "f8")), NPY),
    "form of many parts": (b"--b\r\n\r\n" * 500_000, "multipart/form-data; boundary=b"),
    "gzip": (zlib.compress(bytes(10 * MIB)), "application/gzip"),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_bodies_that_cost_much(server, name):
    body, kind = BODIES[name]
    codes = []

    def attack() -> None:
        for _ in range(2):
            codes.append(server.post(body, kind).code)

    with under_attack(server):
        in_threads(attack, 4)
    assert len(codes) == 8
    # 408 and 504 are answers of a busy machine.
    assert set(codes) <= {200, 400, 408, 413, 415, 503, 504}, codes


def test_bodies_that_do_not_end(server):
    """Together they would be a gigabyte; the largest give way, and small requests are answered."""
    head = b"POST /predict HTTP/1.1\r\n" + HOST + b"Content-Type: " + NPY.encode()
    body = npy(np.zeros((1300, 3, 32, 32), "f8"))[:-100]
    head += b"\r\nContent-Length: %d\r\n\r\n" % (len(body) + 100)

    def attack() -> None:
        with contextlib.suppress(OSError):
            server.raw(head, body, timeout=7)

    with under_attack(server):
        in_threads(attack, 12)


def test_half_sent_headers_do_not_lock_others_out(server):
    """More of them than there are files; each costs the one that waits longest."""
    sockets = []
    with under_attack(server):
        for number in range(400):
            sock = server.connect()
            sock.sendall(b"GET /health HTTP/1.1\r\nX-%d: a" % number)
            sockets.append(sock)
        closed = sum(_is_closed(sock) for sock in sockets)
    for sock in sockets:
        sock.close()
    assert closed == len(sockets)


def _is_closed(sock: socket.socket) -> bool:
    sock.settimeout(LIMIT)
    try:
        while sock.recv(4096):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def test_slow_bodies_and_headers_end(server):
    slow = b"POST /predict HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n\r\n{"
    assert server.raw(slow).startswith(b"HTTP/1.1 408")
    assert server.raw(b"GET /health HT") == b""
    assert server.raw() == b""


def test_slow_readers_end(server):
    """Clients that ask much and read nothing."""
    with under_attack(server):
        sockets = []
        for _ in range(30):
            sock = server.connect()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall((b"GET /page.js HTTP/1.1\r\n" + HOST + b"\r\n") * 8)
            sockets.append(sock)
        time.sleep(1)
        for sock in sockets:
            sock.close()


def test_long_pipelines(server):
    request = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
    last = b"GET /health HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
    assert server.raw(request * 4 + last).count(b"200 OK") == 5
    with under_attack(server), server.connect() as sock:
        sender = threading.Thread(target=sock.sendall, args=(request * 19_999 + last,))
        sender.start()
        answers = b"".join(iter(lambda: sock.recv(1 << 16), b""))  # until the server closes
        sender.join(LIMIT)
    assert answers.count(b"HTTP/1.1 200 OK") == 20_000


SMUGGLED = {
    "both lengths": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
    "a list of lengths": b"Content-Length: 4, 4\r\n\r\nabcd",
    "signed length": b"Content-Length: +4\r\n\r\nabcd",
    "two encodings": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "encoding with a tab": b"Transfer-Encoding:\tchunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
    "encodings": b"Transfer-Encoding: identity\r\n\r\nabcd",
    "bad chunk": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
    "folded header": b"A: b\r\n c: d\r\n\r\n",
    "space before the colon": b"Content-Length : 4\r\n\r\nabcd",
    "two hosts": b"Host: localhost\r\n\r\n",
    "null byte": b"A: \0\r\n\r\n",
    "many headers": b"A: b\r\n" * 200 + b"\r\n",
    "long header": b"A: " + b"b" * 100_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_requests_that_can_be_read_in_two_ways(server, name):
    """They are refused, and what follows on the connection is not read as a request."""
    head = b"POST /predict HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    answer = server.raw(head + SMUGGLED[name] + b"GET /metrics HTTP/1.1\r\n" + HOST + b"\r\n")
    assert answer[9:12] in (b"400", b"431"), answer[:200]
    assert answer.count(b"HTTP/1.1") == 1
    assert b"mx_requests_total" not in answer


def test_an_error_after_a_request_does_not_answer_it(server):
    """The valid request is answered with 200. The invalid one gets a 400 response of its own."""
    good = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
    answer = server.raw(good + b"not http at all\r\n\r\n" + good)
    assert re.findall(rb"HTTP/1\.1 (\d+)", answer) == [b"200", b"400"]


def test_refused_clients_can_read_why(server):
    """The server reads on for a while, so that its answer is not lost in a reset."""
    for _ in range(5):
        answer = server.post(bytes(20 * MIB), "application/json")
        assert (answer.code, "larger than" in answer.error) == (413, True)


def test_upgrade_range_expect_and_missing_host_headers(server):
    upgrade = b"GET /health HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + HOST
    assert server.raw(upgrade + b"\r\n").startswith(b"HTTP/1.1 200")
    assert server.get("/page.js", Range="bytes=0-5,3-9," + "1-2," * 1000).code == 200
    expect = b"POST /predict HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n"
    assert server.raw(expect + HOST + b"\r\n").startswith(b"HTTP/1.1 413")
    assert server.raw(b"GET / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert server.raw(b"GET http://a/ HTTP/9.9\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert server.raw(b"CONNECT a:80 HTTP/1.1\r\n" + HOST + b"\r\n")[:10] in (b"", b"HTTP/1.1 4")


def test_a_declared_length_over_the_limit_is_refused_before_the_body(server):
    """Nothing of the body is sent, and the server does not wait for it."""
    head = b"POST /predict HTTP/1.1\r\nContent-Type: %s\r\n" + HOST
    for kind in (b"application/json", NPY.encode(), b"image/png", b"multipart/form-data"):
        for expect in (b"", b"Expect: 100-continue\r\n"):
            for length in (b"99999999", b"9" * 19):
                request = head % kind + expect + b"Content-Length: " + length + b"\r\n\r\n"
                answer = server.raw(request, timeout=2)  # shorter than the time for a body
                assert answer.startswith(b"HTTP/1.1 413"), (kind, expect, length, answer)
                assert b"larger than" in answer


SEEDS = [
    b"GET /health HTTP/1.1\r\n" + HOST + b"Accept: */*\r\n\r\n",
    b"POST /predict HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    b"Content-Length: 17\r\n\r\n" + b'{"inputs": [[1]]}',
    b"POST /predict HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    b"5\r\n{\"inp\r\n3\r\nuts\r\n0\r\n\r\n",
    b"POST /v2/models/animals/infer HTTP/1.1\r\n" + HOST + b"Content-Length: 109\r\n"
    b"Inference-Header-Content-Length: 99\r\n\r\n" + b'{"inputs":[{"name":"data","shape":[1,2],'
    b'"datatype":"FP32","parameters":{"binary_data_size":10}}]}' + b"0123456789",
]  # fmt: skip


def mutate(generator: random.Random, seed: bytes) -> bytes:
    """Return a request with some bytes, lines or parts changed."""
    data = bytearray(seed)
    for _ in range(generator.randint(1, 6)):
        position = generator.randrange(len(data) + 1)
        choice = generator.randrange(5)
        if choice == 0:
            data[position : position + generator.randint(0, 8)] = generator.randbytes(3)
        elif choice == 1:
            data[position:position] = generator.choice(
                [b"\r\n", b"\0", b" ", b":", b"\r\n\r\n", b"99999999999999999999", b"-1", b"\xff"]
            )
        elif choice == 2:
            del data[position : position + generator.randint(1, 20)]
        elif choice == 3:
            lines = bytes(data).split(b"\r\n")
            generator.shuffle(lines)
            data = bytearray(b"\r\n".join(lines))
        else:
            data[position:position] = data[: generator.randrange(len(data) + 1)]
        data = data[:4000]
    return bytes(data)


def test_mutated_requests(server):
    generator = random.Random(7)
    with under_attack(server):
        for _ in range(400):
            request = mutate(generator, generator.choice(SEEDS))
            with server.connect() as sock:
                sock.sendall(request)
                sock.shutdown(socket.SHUT_WR)
                sock.settimeout(10)
                answer = b""
                with contextlib.suppress(ConnectionError):
                    while chunk := sock.recv(65536):
                        answer += chunk
            assert b"HTTP/1.1 50" not in answer, (request, answer)


def test_mutated_bodies(server):
    """Every body that begins as a good one is answered by 200 or a client's error."""
    rows = np.zeros((1, 3, 32, 32), "f4")
    seeds = [
        (json.dumps({"inputs": rows.tolist()}).encode(), "application/json"),
        (npy(rows), NPY), (npz(data=rows), NPZ), (png(32, 32), "image/png"),
    ]  # fmt: skip
    generator = random.Random(8)
    for _ in range(150):
        seed, kind = generator.choice(seeds)
        body = bytearray(seed)
        for _ in range(generator.randint(1, 5)):
            start = generator.randrange(min(len(body), 300)) - generator.choice([0, 0, 200])
            body[start : start + generator.randint(0, 4)] = generator.randbytes(2)
        answer = server.post(bytes(body), kind)
        assert answer.code in (200, 400, 413), (kind, answer)


def test_the_api_document_says_what_is_answered(server):
    """Each operation is asked with bodies of its schema and with others."""
    document = server.get("/openapi.json").json()
    assert document["openapi"].startswith("3.")
    asked = 0
    for path, operations in document["paths"].items():
        path = path.replace("{model}", "animals")
        for method, operation in operations.items():
            if method == "parameters":
                continue
            bodies = operation.get("requestBody", {}).get("content", {"": None})
            for kind in bodies:
                for body in (None, b"", b"{}", b"[]", b"null", b"\xff\xfe", b'{"inputs": null}'):
                    answer = server.ask(method.upper(), path, body, content_type=kind)
                    assert str(answer.code) in operation["responses"], (path, kind, body, answer)
                    asked += 1
    assert asked > 100
