"""The files of docs/how-to/serve.md that run a server as a container or a service."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest

from mxnext_cli.commands import build_parser

from .server import ROOT

PAGE = (ROOT / "docs/how-to/serve.md").read_text()
MX = "/opt/mxnext/bin/mx"


def block(language: str) -> str:
    """Return the one block of a language."""
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return text


def instruction(name: str) -> str:
    """Return the one instruction of the container's file."""
    (text,) = re.findall(rf"^{name} (.*)$", block("dockerfile"), re.MULTILINE)
    return text


def service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment]  # names have capitals
    unit.read_string(block("ini"))
    return unit["Service"]


def test_the_container_runs_a_command_that_exists():
    command = json.loads(instruction("CMD"))
    assert command[:2] == ["mx", "serve"]
    args = build_parser().parse_args(command[1:])
    assert (args.host, args.allow_host, args.port) == ("0.0.0.0", ["*"], 8080)
    assert args.model == ["/models"]
    assert re.search(r"^COPY \S+ /models$", block("dockerfile"), re.MULTILINE)
    assert instruction("EXPOSE") == str(args.port)


def test_the_container_asks_for_health(dense):
    name, *words = shlex.split(instruction("HEALTHCHECK").removeprefix("CMD "))
    assert name == "python" and ":8080/" in words[-1]
    words[-1] = words[-1].replace(":8080/", f":{dense.port}/")
    subprocess.run([sys.executable, *words], check=True, timeout=60)
    words[-1] = words[-1].replace("/health", "/nothing")
    assert subprocess.run([sys.executable, *words], capture_output=True, timeout=60).returncode


def test_the_service_runs_a_command_that_exists():
    program, *words = shlex.split(service()["ExecStart"])
    assert program == MX
    args = build_parser().parse_args(words)
    assert args.mx_command == "serve"
    assert int(service()["LimitNOFILE"]) > args.max_connections
    assert int(service()["TimeoutStopSec"]) > args.timeout
    assert service()["ExecReload"].split()[1] == f"-{signal.SIGHUP.name.removeprefix('SIG')}"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="it comes with systemd")
def test_systemd_accepts_the_service(tmp_path):
    unit = tmp_path / "mx-serve.service"
    command = ["systemd-analyze", "verify", "--man=no", str(unit)]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    for text, is_right in ((block("ini"), True), (block("ini").replace("=40", "=soon"), False)):
        unit.write_text(text.replace(MX, shutil.which("true") or ""))
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert (done.returncode == 0 and not done.stderr) is is_right, done.stderr
