"""Importing, and saving and loading 500 MB."""

from __future__ import annotations

from benchmarks.cases import Case

_MX = """
import os, tempfile, mxnet as mx
from mxnet import nd
folder = tempfile.mkdtemp(); path = os.path.join(folder, "x.params")
arrays = {"layer%d_weight" % i: nd.ones((1250, 1000)) for i in range(100)}
nd.save(path, arrays)
"""
_TORCH = """
import os, tempfile, torch
folder = tempfile.mkdtemp(); path = os.path.join(folder, "x.pt")
arrays = {"layer%d_weight" % i: torch.ones(1250, 1000) for i in range(100)}
torch.save(arrays, path)
"""
_IMPORT = "import subprocess, sys"

CASES = [
    Case(
        "import",
        (_IMPORT, "subprocess.run([sys.executable, '-c', 'import mxnet'], check=True)"),
        (_IMPORT, "subprocess.run([sys.executable, '-c', 'import torch'], check=True)"),
        1,
        "torch 1.2",
    ),
    Case(
        "save 500 MB",
        (_MX, "nd.save(path, arrays)"),
        (_TORCH, "torch.save(arrays, path)"),
        1,
        "mxnet 1",
    ),
    Case(
        "load 500 MB",
        (_MX, "r = nd.load(path); nd.waitall()"),
        (_TORCH, "r = torch.load(path)"),
        1,
        "mxnet 1",
    ),
]
