"""8-bit networks of the zoo, batch 1, compared with our float32 and onnxruntime's 8-bit networks.

The peer's figures are in the column of torch. onnxruntime runs the QDQ file that we export.
"""

# ruff: noqa: E501 (programs as text)

from __future__ import annotations

from benchmarks.cases import Case

SETUP = """
import warnings, tempfile, pathlib, numpy as np, mxnet as mx
warnings.filterwarnings("ignore")
from mxnet.contrib.quantization import quantize_net_v2

def network(name):
    mx.random.seed(0)
    net = getattr(mx.gluon.model_zoo.vision, name)()
    net.initialize(mx.init.Xavier(magnitude=2.5))
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.random.normal(shape=(1, 3, 224, 224))
    predict(net, x)
    return net, x

def predict(net, x):
    out = net(x)
    out.wait_to_read()
    return out

def quantized(name):
    net, x = network(name)
    small = quantize_net_v2(net, calib_mode="naive", calib_data=[x])
    for _ in range(3):
        predict(small, x)
    return small, x

def session(name):
    import onnxruntime
    from mxnet.interop.onnx.export import build_model
    small, x = quantized(name)
    with tempfile.TemporaryDirectory() as folder:
        prefix = str(pathlib.Path(folder) / "net")
        small.export(prefix)
        symbol, arguments, auxiliary = mx.model.load_checkpoint(prefix, 0)
    import torch
    model = build_model(symbol, {**arguments, **auxiliary}, {"data": x.shape}, {"data": torch.float32}, None, 13, False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    made = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return made, {"data": x.asnumpy()}
"""


def _cases(title: str, name: str, goal: str) -> list[Case]:
    ours = (f"{SETUP}\nnet, x = quantized({name!r})", "predict(net, x)")
    plain = (f"{SETUP}\nnet, x = network({name!r})", "predict(net, x)")
    peer = (f"{SETUP}\nrun, feed = session({name!r})", "run.run(None, feed)")
    return [
        Case(f"{title}, 8 bits / float32", ours, plain, 5, goal),
        Case(f"{title}, 8 bits / onnxruntime", ours, peer, 5),
    ]


CASES = [
    *_cases("ResNet-18", "resnet18_v1", "0.6"),
    *_cases("ResNet-50", "resnet50_v1", "0.6"),
    *_cases("MobileNetV2", "mobilenet_v2_1_0", "0.6"),
]
