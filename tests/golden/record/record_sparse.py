"""Record what MXNet 1.9.1 makes of the sparse programs. Run inside an MXNet 1.9.1 environment:

python -m tests.golden.record.record_sparse

Each program runs in a process of its own, as MXNet reports a storage fallback only once.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sys
import tempfile

import numpy as np

import mxnet as mx
from tests.golden.record.sparse_programs import GROUPS, answer

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"


def in_child(text, pipe):
    """Answer one program, with what MXNet writes to stderr watched."""
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            found = {"answer": answer(text, mx, np)}
        except Exception as error:
            found = {"error": type(error).__name__}
        mx.nd.waitall() if "answer" in found else None
        log.seek(0)
        found["falls_back"] = b"fallback detected" in log.read()
    os.write(pipe, json.dumps(found).encode())


def ask(text):
    """Return the answer of one program."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        signal.alarm(20)
        in_child(text, writer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        found = stream.read()
    os.waitpid(child, 0)
    return json.loads(found) if found else {"error": "Crash", "falls_back": False}


def main():
    """Write all answers."""
    stored = {}
    for group, programs in GROUPS.items():
        stored[group] = {text: ask(text) for text in programs}
        print(group, len(programs))
        sys.stdout.flush()
    (DATA / "sparse.json").write_text(json.dumps(stored, indent=None, separators=(",", ":")))


if __name__ == "__main__":
    main()
