"""Prediction with hybridized networks: torch, ONNX Runtime, OpenVINO and MXNet as peers."""

from __future__ import annotations

from benchmarks.rows import Row
from benchmarks.rows.models import MX, TORCH, predictions


def prediction(
    name: str, mx: str, torch: str, shape: tuple[int, ...], goal: float, number: int, **more
) -> Row:
    """Return a row that runs a network forward."""
    setup = f"net, x = ready({mx}, *{shape})"
    run = "o = predict(net, x)"
    engine = "; net.hybridize(backend={!r}); predict(net, x)"
    names = ("auto", "onednn_graph") if len(shape) == 4 else ("auto",)
    variants = {name: (MX + setup + engine.format(name), run) for name in names}
    peers = predictions(mx, torch, shape)
    return Row(name, (MX + setup, run), peers, goal, number=number, variants=variants, **more)


_FIRST_MX = (
    MX
    + """
import time
x = nd.random.normal(shape=(1, 3, 64, 64))
start = time.perf_counter()
net = zoo.resnet152_v1()
net.initialize(); net.hybridize()
predict(net, x)
seconds = time.perf_counter() - start
"""
)
_FIRST_TORCH = (
    TORCH
    + """
import time
start = time.perf_counter()
net, x = ready(resnet152(), 1, 3, 64, 64)
predict(net, x)
seconds = time.perf_counter() - start
"""
)

ROWS = [
    prediction(
        "MobileNetV2 b1",
        "zoo.mobilenet_v2_1_0()",
        "mobilenet_v2()",
        (1, 3, 224, 224),
        1.0,
        10,
        rounds=7,
    ),
    prediction("ResNet-18 b1", "zoo.resnet18_v1()", "resnet18()", (1, 3, 224, 224), 1.0, 5),
    prediction("ResNet-50 b1", "zoo.resnet50_v1()", "resnet50()", (1, 3, 224, 224), 1.0, 3),
    prediction(
        "ResNet-50 b16", "zoo.resnet50_v1()", "resnet50()", (16, 3, 224, 224), 1.0, 1, rounds=3
    ),
    prediction("BERT-small b8", "bert()", "bert()", (128, 8, 512), 0.95, 1),
    prediction(
        "ResNet-152 64x64, steady",
        "zoo.resnet152_v1()",
        "resnet152()",
        (1, 3, 64, 64),
        1.0,
        2,
        against=("mxnet", "torch", "torch channels_last"),
    ),
    Row(
        "ResNet-152 64x64, made and called once",
        (_FIRST_MX, "seconds"),
        {"torch": (_FIRST_TORCH, "seconds"), "mxnet": None},
        1.5,
        ("torch",),
        unit="value",
        fresh=True,
        rounds=3,
    ),
    prediction(
        "unrolled LSTM", "Unrolled()", "Unrolled()", (35, 32, 200), 0.9, 3, against=("torch",)
    ),
]
