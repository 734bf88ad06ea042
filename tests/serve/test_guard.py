"""Who may ask: names of hosts, pages of other sites, tokens, and encrypted connections."""

from __future__ import annotations

import json
import ssl
import subprocess
import urllib.request

import pytest

from mxnext_cli import main
from mxnext_cli.serve.app import host_name

from .server import DENSE, LIMIT, serving


@pytest.mark.parametrize(
    "host, code",
    [
        ("localhost", 200),
        ("LOCALHOST:8080", 200),
        ("127.0.0.1:1", 200),
        ("[::1]", 200),
        ("a.localhost", 200),
        ("192.168.0.7", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost@evil.example", 421),
        ("evil.example#localhost", 421),
    ],
)
def test_hosts(dense, host, code):
    assert dense.get("/model", Host=host).code == code


@pytest.mark.parametrize(
    "headers, code",
    [
        ({"Origin": "http://localhost"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200),
    ],
)
def test_cross_origin_requests_are_refused(dense, headers, code):
    assert dense.get("/model", Host="localhost", **headers).code == code


def test_malformed_host_headers_have_no_name():
    assert host_name("x:80:90") is None
    assert host_name("") is None


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    try:
        subprocess.run(
            [*command, "-keyout", str(key), "-out", str(cert)],
            check=True, capture_output=True, timeout=LIMIT,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    return str(key), str(cert)


@pytest.mark.slow
def test_token_tls_and_names(certificate, tmp_path):
    key, cert = certificate
    token = tmp_path / "token"
    token.write_text("secret\n")
    log = tmp_path / "access.log"
    with serving(
        DENSE, "--shape=5", f"--token=@{token}", "--allow-host=models.example",
        f"--keyfile={key}", f"--certfile={cert}", f"--access-log={log}",
    ) as server:  # fmt: skip
        trust = ssl.create_default_context(cafile=cert)

        def get(path: str, **headers: str) -> int:
            address = f"https://localhost:{server.port}{path}"
            request = urllib.request.Request(address, headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=LIMIT, context=trust) as answer:
                    return answer.status
            except urllib.error.HTTPError as error:
                return error.code

        assert get("/health") == 200
        assert get("/") == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
            assert get("/model", **headers) == 401
        assert get("/model", Authorization="Bearer secret") == 200
        assert get("/model", Authorization="Bearer secret", Host="models.example") == 200
        assert get("/health", Host="other.example") == 421
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["path"], line["status"]) for line in lines][:3] == [
        ("/health", 200), ("/", 200), ("/model", 401),
    ]  # fmt: skip
    assert {"time", "client", "method", "bytes", "ms"} < set(lines[0])
    assert "secret" not in log.read_text() + server.log_text


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--token", ""], "empty"),
        (["--certfile", "x"], "belong together"),
        (["--shape", "x=5"], "no input 'x'"),
    ],
)
def test_options_that_do_not_fit(arguments, message, capsys):
    assert main(["serve", DENSE, "--port", "0", *arguments]) == 2
    assert message in capsys.readouterr().err
