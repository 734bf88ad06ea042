"""Checkpoints, images from record files, and importing."""

from __future__ import annotations

from benchmarks.cases.data import _PICTURES, _RECORDS_TORCH
from benchmarks.rows import Row

_SAVE_MX = """
import os, tempfile, mxnet as mx
from mxnet import nd
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "x.params")
arrays = {"layer%d_weight" % i: nd.ones((400, 1000)) for i in range(100)}
"""
# The same safety: a new file, written through to the disk, that takes the place of the old one.
_SAVE_TORCH = """
import os, tempfile, torch
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "x.pt")
arrays = {"layer%d_weight" % i: torch.ones(400, 1000) for i in range(100)}
def save():
    with open(path + ".part", "wb") as file:
        torch.save(arrays, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)
"""
_LOADER_MX = (
    _PICTURES
    + """
import os, tempfile, mxnet as mx
from mxnet import gluon
from mxnet.gluon.data.vision import transforms
folder = tempfile.TemporaryDirectory()
base = os.path.join(folder.name, "x")
record = mx.recordio.MXIndexedRecordIO(base + ".idx", base + ".rec", "w")
for i, jpeg in enumerate(jpegs):
    record.write_idx(i, mx.recordio.pack(mx.recordio.IRHeader(0, float(i % 10), i, 0), jpeg))
record.close()
change = transforms.Compose([
    transforms.RandomResizedCrop(224), transforms.RandomFlipLeftRight(), transforms.ToTensor(),
    transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
dataset = gluon.data.vision.ImageRecordDataset(base + ".rec").transform_first(change)
loader = gluon.data.DataLoader(dataset, 32, shuffle=True, num_workers=2)
def epoch():
    for data, label in loader:
        data.wait_to_read()
"""
)
_LOADER_TORCH = _RECORDS_TORCH.replace(
    "top, left = np.random.randint(0, 33, 2)\n        x = x[top : top + 224, left : left + 224]",
    "side = np.random.randint(80, 257); top, left = np.random.randint(0, 257 - side, 2)\n"
    "        x = cv2.resize(x[top : top + side, left : left + side], (224, 224))",
)
_IMPORT = "import subprocess, sys"

ROWS = [
    Row(
        "save 160 MB",
        (_SAVE_MX, "nd.save(path, arrays)"),
        {
            "torch, synced": (_SAVE_TORCH, "save()"),
            "torch": (_SAVE_TORCH, "torch.save(arrays, path)"),
            "mxnet": None,
        },
        1.0,
        ("torch, synced",),
        rounds=5,
    ),
    Row(
        "Gluon loader, 256 pictures, 2 workers",
        (_LOADER_MX, "epoch()"),
        {"torch + cv2": (_LOADER_TORCH, "epoch()"), "mxnet": None},
        0.6,
        ("torch + cv2",),
        rounds=5,
    ),
    Row(
        "import",
        (_IMPORT, "subprocess.run([sys.executable, '-c', 'import mxnet'], check=True)"),
        {"torch": (_IMPORT, "subprocess.run([sys.executable, '-c', 'import torch'], check=True)")},
        1.1,
        rounds=7,
    ),
]
