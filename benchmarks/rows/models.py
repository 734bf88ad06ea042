"""The networks of the comparison as text: for MXNet's API, for torch, and for engines of ONNX."""

# ruff: noqa: E501 (programs as text)

from __future__ import annotations

from benchmarks.cases.networks import MX as _MX
from benchmarks.cases.networks import TORCH as _TORCH

MX = (
    _MX
    + """
class Layer(gluon.HybridBlock):
    def __init__(self, units=512, heads=8, **kwargs):
        super(Layer, self).__init__(**kwargs)
        self._heads = heads
        with self.name_scope():
            self.qkv, self.out = nn.Dense(3 * units, flatten=False), nn.Dense(units, flatten=False)
            self.up, self.down = nn.Dense(4 * units, flatten=False), nn.Dense(units, flatten=False)
            self.first, self.second = nn.LayerNorm(), nn.LayerNorm()
    def hybrid_forward(self, F, x):
        qkv = self.qkv(x)
        scores = F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=self._heads)
        mixed = F.contrib.interleaved_matmul_selfatt_valatt(qkv, F.softmax(scores), heads=self._heads)
        x = self.first(x + self.out(mixed))
        return self.second(x + self.down(F.LeakyReLU(self.up(x), act_type="gelu")))

def bert(layers=4):
    net = nn.HybridSequential()
    for _ in range(layers):
        net.add(Layer())
    return net

class Unrolled(gluon.HybridBlock):
    def __init__(self, steps=35, **kwargs):
        super(Unrolled, self).__init__(**kwargs)
        self._steps = steps
        with self.name_scope():
            self.cell = rnn.LSTMCell(200, input_size=200)
    def hybrid_forward(self, F, x):
        begin = [F.zeros((32, 200)), F.zeros((32, 200))]
        return self.cell.unroll(self._steps, x, begin_state=begin, layout="TNC", merge_outputs=True)[0]

def squared(net, x):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    def step():
        with autograd.record():
            loss = (net(x) ** 2).mean()
        loss.backward()
        trainer.step(1)
        nd.waitall()
    return step
"""
)

TORCH = (
    _TORCH
    + """
class Bottleneck(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        inner = after // 4
        self.body = nn.Sequential(*conv_bn(before, inner, 1, stride), nn.ReLU(), *conv_bn(inner, inner, 3), nn.ReLU(),
                                  *conv_bn(inner, after, 1))
        self.short = nn.Sequential(*conv_bn(before, after, 1, stride)) if before != after else nn.Identity()
    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))

def bottlenecks(*counts):
    layers = [*conv_bn(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for count, after in zip(counts, (256, 512, 1024, 2048)):
        for i in range(count):
            layers.append(Bottleneck(before, after, 2 if i == 0 and after > 256 else 1))
            before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))

def resnet50():
    return bottlenecks(3, 4, 6, 3)

def resnet152():
    return bottlenecks(3, 8, 36, 3)

class Layer(nn.Module):
    def __init__(self, units=512, heads=8):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(units, 3 * units), nn.Linear(units, units)
        self.up, self.down = nn.Linear(units, 4 * units), nn.Linear(4 * units, units)
        self.first, self.second = nn.LayerNorm(units), nn.LayerNorm(units)
    def forward(self, x):
        steps, batch, units = x.shape
        q, k, v = self.qkv(x).view(steps, batch, 3, self.heads, -1).permute(2, 1, 3, 0, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = self.first(x + self.out(mixed.permute(2, 0, 1, 3).reshape(steps, batch, units)))
        return self.second(x + self.down(F.gelu(self.up(x))))

def bert(layers=4):
    return nn.Sequential(*[Layer() for _ in range(layers)])

class Unrolled(nn.Module):
    def __init__(self, steps=35):
        super().__init__()
        self.cell = nn.LSTMCell(200, 200)
    def forward(self, x):
        h = c = torch.zeros(32, 200)
        out = []
        for step in x:
            h, c = self.cell(step, (h, c))
            out.append(h)
        return torch.stack(out)

def squared(net, x):
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    def step():
        optimizer.zero_grad()
        (net(x) ** 2).mean().backward()
        optimizer.step()
    return step

def last(net, x):
    return net.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
"""
)

_ONNX = (
    MX
    + """
import os, tempfile
folder = tempfile.TemporaryDirectory()
def fix_parameters(path):
    # A file lists parameters as inputs, as MXNet's do; engines fold only what cannot change.
    import onnx
    model = onnx.load(path)
    names = {p.name for p in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in names]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    onnx.save(model, path)
def exported(net, x):
    predict(net, x)
    params = {("arg:" if p.grad_req != "null" else "aux:") + n: p.data() for n, p in net.collect_params().items()}
    path = os.path.join(folder.name, "net.onnx")
    sym = net(mx.sym.Variable("data"))
    mx.onnx.export_model(sym, params, [x.shape], ["float32"], path)
    fix_parameters(path)
    return path, x.asnumpy()
"""
)
ONNXRUNTIME = (
    _ONNX
    + """
import onnxruntime
def session(path, x):
    made = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return (lambda: made.run(None, {"data": x}))
"""
)
OPENVINO = (
    _ONNX
    + """
import openvino
def session(path, x):
    made = openvino.Core().compile_model(path, "CPU", {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    request = made.create_infer_request()
    return (lambda: request.infer({0: x}))
"""
)


def predictions(mx: str, torch: str, shape: tuple[int, ...]) -> dict:
    """Return the programs of all peers that run a network forward.

    Networks of images also run channels last, the others compiled, which takes a minute for these.
    """
    run, predict = "o = run()", "o = predict(net, x)"
    plain = TORCH + f"net, x = ready({torch}, *{shape})\n"
    other = {"torch channels_last": (plain + "net, x = last(net, x)", predict)}
    if len(shape) != 4:
        other = {"torch.compile": (plain + "net = torch.compile(net)", predict)}
    return {
        "torch": (plain, predict),
        **other,
        "onnxruntime": (ONNXRUNTIME + f"run = session(*exported(*ready({mx}, *{shape})))", run),
        "openvino": (OPENVINO + f"run = session(*exported(*ready({mx}, *{shape})))", run),
        "mxnet": None,
    }
