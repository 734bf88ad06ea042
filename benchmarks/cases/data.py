"""Reading images from record files, and batches from memory."""

# ruff: noqa: E501 (programs as text)

from __future__ import annotations

from benchmarks.cases import Case

_PICTURES = """
import numpy as np, cv2
rng = np.random.RandomState(0)
def picture(i):
    small = rng.randint(0, 255, (16, 16, 3)).astype("uint8")
    return cv2.resize(small, (256, 256), interpolation=cv2.INTER_CUBIC)
jpegs = [cv2.imencode(".jpg", picture(i), [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes() for i in range(256)]
"""
_RECORDS_MX = (
    _PICTURES
    + """
import os, tempfile, mxnet as mx
path = os.path.join(tempfile.mkdtemp(), "x.rec")
record = mx.recordio.MXRecordIO(path, "w")
for i, jpeg in enumerate(jpegs):
    record.write(mx.recordio.pack(mx.recordio.IRHeader(0, float(i % 10), i, 0), jpeg))
record.close()
batches = mx.io.ImageRecordIter(
    path_imgrec=path, data_shape=(3, 224, 224), batch_size=32, rand_crop=True, rand_mirror=True,
    mean_r=123, mean_g=117, mean_b=104, std_r=58, std_g=57, std_b=57, preprocess_threads=2)
def epoch():
    batches.reset()
    for batch in batches:
        batch.data[0].wait_to_read()
"""
)
_RECORDS_TORCH = (
    _PICTURES
    + """
import torch
class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return len(jpegs)
    def __getitem__(self, i):
        x = cv2.cvtColor(cv2.imdecode(np.frombuffer(jpegs[i], np.uint8), 1), cv2.COLOR_BGR2RGB)
        top, left = np.random.randint(0, 33, 2)
        x = x[top : top + 224, left : left + 224]
        if np.random.rand() < 0.5:
            x = x[:, ::-1]
        x = (x.astype("float32") - (123, 117, 104)) / (58, 57, 57)
        return torch.from_numpy(np.ascontiguousarray(x.transpose(2, 0, 1), dtype="float32")), i % 10
loader = torch.utils.data.DataLoader(Pictures(), 32, num_workers=2, persistent_workers=True)
def epoch():
    for batch in loader:
        pass
"""
)
_MEMORY_MX = """
import numpy as np, mxnet as mx
images = mx.nd.array(np.random.rand(2000, 28, 28, 1).astype("float32"))
labels = np.arange(2000).astype("float32")
dataset = mx.gluon.data.ArrayDataset(images, labels).transform_first(lambda x: x * 2 - 1)
loader = mx.gluon.data.DataLoader(dataset, 100, shuffle=True)
def epoch():
    for batch in loader:
        batch[0].wait_to_read()
"""

CASES = [
    Case(
        "ImageRecordIter, 256 pictures",
        (_RECORDS_MX, "epoch()"),
        (_RECORDS_TORCH, "epoch()"),
        1,
        "torch 0.33, mxnet 0.7",
    ),
    Case("DataLoader from memory, 2,000", (_MEMORY_MX, "epoch()"), None, 1, "mxnet 0.2"),
]
