"""Port networks to PyTorch and print how long their code is and how far both sides differ.

Run ``python -m tools.ports [NAME ...]``: networks of the zoo, symbols of old example scripts and,
where they are installed, GluonCV and GluonNLP. Parameters are random.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mxnet as mx
from mxnet import sym
from mxnet.gluon.model_zoo import vision
from mxnet.interop.port.comparison.verify import PortReport
from tests.interop.port import symbols
from tests.interop.port.symbols import conv_factory

Shapes = Any
Network = Callable[[], tuple[Any, Shapes]]
CHECKS = {
    "outputs": "outputs",
    "gradients": "gradients",
    "running statistics": "statistics",
    "parameters after 5 steps": "5 steps",
    "inputs of suppression": "boxes",
}


# -- symbols of example scripts --------------------------------------------------------------------


def bottleneck(x: Any, width: int, stride: int, same: bool, name: str) -> Any:
    """Return a unit of three convolutions that begin with a normalization."""
    y = first = x
    for i, (filters, kernel, step) in enumerate(
        ((width // 4, 1, 1), (width // 4, 3, stride), (width, 1, 1))
    ):
        y = sym.BatchNorm(y, fix_gamma=False, eps=2e-5, name=f"{name}_bn{i + 1}")
        y = sym.Activation(y, act_type="relu", name=f"{name}_relu{i + 1}")
        first = y if i == 0 else first
        pad = (kernel // 2, kernel // 2)
        y = sym.Convolution(y, num_filter=filters, kernel=(kernel, kernel), stride=(step, step),
                            pad=pad, no_bias=True, name=f"{name}_conv{i + 1}")  # fmt: skip
    if same:
        return y + x
    return y + sym.Convolution(first, num_filter=width, kernel=(1, 1), stride=(stride, stride),
                               no_bias=True, name=f"{name}_sc")  # fmt: skip


def resnet152() -> Any:
    """Return the ResNet-152 of the image classification scripts."""
    x = sym.BatchNorm(sym.Variable("data"), fix_gamma=True, eps=2e-5, name="bn_data")
    x = sym.Convolution(x, num_filter=64, kernel=(7, 7), stride=(2, 2), pad=(3, 3), no_bias=True,
                        name="conv0")  # fmt: skip
    x = sym.BatchNorm(x, fix_gamma=False, eps=2e-5, name="bn0")
    x = sym.Activation(x, act_type="relu", name="relu0")
    x = sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max", name="pool0")
    for i, (count, width) in enumerate(((3, 256), (8, 512), (36, 1024), (3, 2048))):
        for j in range(count):
            name = f"stage{i + 1}_unit{j + 1}"
            x = bottleneck(x, width, 2 if i and not j else 1, j > 0, name)
    x = sym.BatchNorm(x, fix_gamma=False, eps=2e-5, name="bn1")
    x = sym.Activation(x, act_type="relu", name="relu1")
    x = sym.Pooling(x, global_pool=True, kernel=(7, 7), pool_type="avg", name="pool1")
    x = sym.FullyConnected(sym.Flatten(x), num_hidden=1000, name="fc1")
    return sym.SoftmaxOutput(x, name="softmax")


def _chain(x: Any, name: str, *layers: tuple) -> Any:
    """Return convolutions one after the other: (width, kernel, padding, stride)."""
    for i, (width, kernel, *rest) in enumerate(layers):
        pad = rest[0] if rest else (0, 0)
        stride = (rest[1], rest[1]) if len(rest) > 1 else (1, 1)
        x = conv_factory(x, width, kernel, f"{name}_conv_{i}" if i else f"{name}_conv", pad, stride)
    return x


def _pooled(x: Any, name: str, width: int, kind: str = "avg") -> Any:
    x = sym.Pooling(x, kernel=(3, 3), pad=(1, 1), pool_type=kind, name=f"{kind}_pool_{name}_pool")
    return _chain(x, f"{name}_tower_2", (width, (1, 1)))


def _join(name: str, *parts: Any) -> Any:
    return sym.Concat(*parts, name=f"ch_concat_{name}_chconcat")


def inception_v3() -> Any:
    """Return the Inception-v3 of the image classification scripts."""
    x = conv_factory(sym.Variable("data"), 32, (3, 3), "conv", stride=(2, 2))
    x = conv_factory(x, 32, (3, 3), "conv_1")
    x = conv_factory(x, 64, (3, 3), "conv_2", pad=(1, 1))
    x = sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pool_type="max", name="pool")
    x = conv_factory(x, 80, (1, 1), "conv_3")
    x = conv_factory(x, 192, (3, 3), "conv_4")
    x = sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pool_type="max", name="pool1")
    one, three = (1, 1), (3, 3)
    for name, width in (("mixed", 32), ("mixed_1", 64), ("mixed_2", 64)):
        five = _chain(x, f"{name}_tower", (48, one), (64, (5, 5), (2, 2)))
        double = _chain(x, f"{name}_tower_1", (64, one), (96, three, one), (96, three, one))
        x = _join(name, _chain(x, name, (64, one)), five, double, _pooled(x, name, width))
    x = _reduction(x, "mixed_3", ((384, three, (0, 0), 2),),
                   ((64, one), (96, three, one), (96, three, (0, 0), 2)))  # fmt: skip
    for name, n in (("mixed_4", 128), ("mixed_5", 160), ("mixed_6", 160), ("mixed_7", 192)):
        row, column = ((1, 7), (0, 3)), ((7, 1), (3, 0))
        seven = _chain(x, f"{name}_tower", (n, one), (n, *row), (192, *column))
        double = _chain(x, f"{name}_tower_1", (n, one), (n, *column), (n, *row), (n, *column),
                        (192, *row))  # fmt: skip
        x = _join(name, _chain(x, name, (192, one)), seven, double, _pooled(x, name, 192))
    x = _reduction(x, "mixed_8", ((192, one), (320, three, (0, 0), 2)),
                   ((192, one), (192, (1, 7), (0, 3)), (192, (7, 1), (3, 0)),
                    (192, three, (0, 0), 2)))  # fmt: skip
    for name, kind in (("mixed_9", "avg"), ("mixed_10", "max")):
        three_ = _chain(x, f"{name}_tower", (384, one))
        double = _chain(x, f"{name}_tower_1", (448, one), (384, three, one))
        halves = [
            _chain(part, f"{name}_{label}_{side}", (384, kernel, pad))
            for part, label in ((three_, "split"), (double, "split_1"))
            for side, kernel, pad in (("a", (1, 3), (0, 1)), ("b", (3, 1), (1, 0)))
        ]
        x = _join(name, _chain(x, name, (320, one)), *halves, _pooled(x, name, 192, kind))
    x = sym.Pooling(x, kernel=(8, 8), global_pool=True, pool_type="avg", name="global_pool")
    x = sym.FullyConnected(sym.Flatten(x, name="flatten"), num_hidden=1000, name="fc1")
    return sym.SoftmaxOutput(x, name="softmax")


def _reduction(x: Any, name: str, first: tuple, second: tuple) -> Any:
    pool = sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pool_type="max", name=f"max_pool_{name}")
    towers = [_chain(x, f"{name}_tower", *first), _chain(x, f"{name}_tower_1", *second)]
    return _join(name, *towers, pool)


VGG16 = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))
SSD_EXTRA = ((256, 512, 2, 1), (128, 256, 2, 1), (128, 256, 1, 0), (128, 256, 1, 0))
SSD_SIZES = ((0.1, 0.141), (0.2, 0.272), (0.37, 0.447), (0.54, 0.619), (0.71, 0.79), (0.88, 0.961))


def ssd_vgg16(classes: int = 20) -> Any:
    """Return the SSD of 300 by 300 pixels on VGG-16, for prediction."""
    x, layers = sym.Variable("data"), []

    def conv(x: Any, width: int, name: str, kernel: int = 3, pad: int = 1, **options: Any) -> Any:
        x = sym.Convolution(x, num_filter=width, kernel=(kernel, kernel), pad=(pad, pad),
                            name=f"conv{name}", **options)  # fmt: skip
        return sym.Activation(x, act_type="relu", name=f"relu{name}")

    for i, (count, width) in enumerate(VGG16, 1):
        for j in range(1, count + 1):
            x = conv(x, width, f"{i}_{j}")
        if i == 4:
            scale = sym.Variable("relu4_3_scale", shape=(1, 512, 1, 1))
            normed = sym.L2Normalization(x, mode="channel", name="relu4_3_norm")
            layers.append(sym.broadcast_mul(scale, normed))
        size, step, pad = (3, 1, 1) if i == 5 else (2, 2, 0)
        x = sym.Pooling(x, pool_type="max", kernel=(size, size), stride=(step, step),
                        pad=(pad, pad), pooling_convention="full", name=f"pool{i}")  # fmt: skip
    x = conv(x, 1024, "6", pad=6, dilate=(6, 6))
    layers.append(conv(x, 1024, "7", kernel=1, pad=0))
    for i, (narrow, width, stride, pad) in enumerate(SSD_EXTRA, 8):
        x = conv(layers[-1], narrow, f"{i}_1", kernel=1, pad=0)
        layers.append(conv(x, width, f"{i}_2", pad=pad, stride=(stride, stride)))
    locations, scores, anchors = [], [], []
    for i, (layer, sizes) in enumerate(zip(layers, SSD_SIZES, strict=True)):
        ratios = (1, 2, 0.5) if i in (0, 4, 5) else (1, 2, 0.5, 3, 1 / 3)
        count = len(sizes) + len(ratios) - 1
        for parts, width, kind in ((locations, 4, "loc"), (scores, classes + 1, "cls")):
            y = sym.Convolution(layer, num_filter=count * width, kernel=(3, 3), pad=(1, 1),
                                name=f"scale{i}_{kind}_pred_conv")  # fmt: skip
            parts.append(sym.Flatten(sym.transpose(y, axes=(0, 2, 3, 1))))
        anchors.append(sym.Flatten(sym.contrib.MultiBoxPrior(layer, sizes=sizes, ratios=ratios)))
    cls = sym.Reshape(sym.Concat(*scores, dim=1), shape=(0, -1, classes + 1))
    prob = sym.softmax(sym.transpose(cls, axes=(0, 2, 1)), axis=1, name="cls_prob")
    anchor = sym.Reshape(sym.Concat(*anchors, dim=1), shape=(0, -1, 4), name="multibox_anchors")
    loc = sym.Concat(*locations, dim=1, name="multibox_loc_pred")
    return sym.contrib.MultiBoxDetection(prob, loc, anchor, name="detection", nms_topk=400)


MTCNN = {  # widths, kernels, pooling, hidden units
    "r": ((28, 48, 64), (3, 3, 2), 128),
    "o": ((32, 64, 64, 128), (3, 3, 3, 2), 256),
    "l": ((28, 48, 64), (3, 3, 2), 256),
}


def mtcnn(kind: str) -> Any:
    """Return one of the later networks of MTCNN: refinement, output or landmarks."""
    widths, kernels, hidden = MTCNN[kind]
    x = sym.Variable("data")
    for i, (width, kernel) in enumerate(zip(widths, kernels, strict=True), 1):
        x = sym.Convolution(x, num_filter=width, kernel=(kernel, kernel), name=f"conv{i}")
        x = sym.LeakyReLU(x, act_type="prelu", name=f"prelu{i}")
        if i < len(widths):
            x = sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pool_type="max",
                            pooling_convention="full", name=f"pool{i}")  # fmt: skip
    x = sym.FullyConnected(x, num_hidden=hidden, name="fc")
    x = sym.LeakyReLU(x, act_type="prelu", name="prelu_fc")
    counts = (2,) * 5 if kind == "l" else (2, 4, 10)[: 3 if kind == "o" else 2]
    heads = [sym.FullyConnected(x, num_hidden=n, name=f"fc_{i}") for i, n in enumerate(counts, 1)]
    if kind != "l":
        heads[0] = sym.SoftmaxActivation(heads[0], name="prob")
    return sym.Group(heads)


# -- all networks ----------------------------------------------------------------------------------


def _zoo(name: str) -> Network:
    size = (
        299 if "inception" in name else 224 if name.startswith(("alexnet", "vgg", "dense")) else 64
    )

    def build() -> tuple[Any, Shapes]:
        return initialize(vision.get_model(name)), [(1, 3, size, size)]

    return build


def _package(package: str, name: str, shapes: Shapes, **options: Any) -> Network:
    def build() -> tuple[Any, Shapes]:
        if package == "gluoncv":
            zoo = importlib.import_module("gluoncv.model_zoo")
            net = zoo.get_model(name, pretrained=False, **options)
        else:
            nlp = importlib.import_module("gluonnlp")
            words = nlp.data.count_tokens([f"w{i}" for i in range(1000)])
            vocab = nlp.vocab.BERTVocab(words) if "bert" in name else nlp.Vocab(words)
            net, _ = nlp.model.get_model(
                name, dataset_name=None, pretrained=False, vocab=vocab, **options
            )
        chosen = (i for start, i in INITIALIZERS.items() if name.startswith(start))
        return initialize(net, next(chosen, None)), shapes

    return build


def initialize(net: Any, initializer: Any = None) -> Any:
    """Return a network with random parameters."""
    mx.random.seed(0)
    net.initialize(initializer or mx.init.Xavier())
    return net


def _symbol(build: Callable[[], Any], **shapes: tuple) -> Network:
    return lambda: (build(), shapes)


INITIALIZERS = {
    "ssd": mx.init.Uniform(0.05),
    "bert": mx.init.Normal(0.02),
    "awd": mx.init.Normal(0.02),
}
BASE = {"pretrained_base": False}
SMALL = {**BASE, "crop_size": 96, "base_size": 96}
IMAGE = [(1, 3, 96, 96)]
PACKAGES = {
    "ssd_300_vgg16_atrous_voc": ([(1, 3, 300, 300)], BASE),
    "ssd_512_resnet50_v1_voc": ([(1, 3, 256, 256)], BASE),
    "yolo3_darknet53_voc": ([(1, 3, 128, 128)], BASE),
    "faster_rcnn_resnet50_v1b_voc": ([(1, 3, 256, 256)], BASE),
    "fcn_resnet50_voc": (IMAGE, SMALL),
    "psp_resnet50_ade": (IMAGE, SMALL),
    "deeplab_resnet50_ade": (IMAGE, SMALL),
    "simple_pose_resnet18_v1b": ([(1, 3, 128, 96)], BASE),
    "i3d_resnet50_v1_kinetics400": ([(1, 3, 8, 64, 64)], BASE),
    "se_resnext50_32x4d": (IMAGE, {}),
    "mobilenetv3_large": (IMAGE, {}),
    "resnest50": (IMAGE, {}),
    "googlenet": ([(1, 3, 224, 224)], BASE),
    "xception": (IMAGE, {}),
    "hrnet_w18_small_v1_c": (IMAGE, BASE),
    "nasnet_4_1056": (IMAGE, {}),
    "bert_12_768_12": ([(2, 8), (2, 8), (2,)], {"use_classifier": False, "use_decoder": False}),
    "awd_lstm_lm_1150": ([(5, 2)], {}),
}


def list_networks() -> dict[str, Network]:
    """Return all networks that can be built here, by name."""
    networks = {name: _zoo(name) for name in sorted(vision.MODELS)}
    data = {"data": (1, 3, 64, 64)}
    networks |= {
        "symbol ResNet-152": _symbol(resnet152, **data),
        "symbol Inception-v3": _symbol(inception_v3, data=(1, 3, 299, 299)),
        "symbol SSD-VGG16": _symbol(ssd_vgg16, data=(1, 3, 300, 300)),
    }
    for kind, size in (("r", 24), ("o", 48), ("l", 24)):
        networks[f"symbol MTCNN {kind}"] = _symbol(lambda k=kind: mtcnn(k), data=(2, 3, size, size))
    for name, (build, shapes) in symbols.NETWORKS.items():
        networks[f"symbol {name}"] = _symbol(build, **shapes)
    for name, (shapes, options) in PACKAGES.items():
        package = "gluonnlp" if "bert" in name or "lstm" in name else "gluoncv"
        if importlib.util.find_spec(package) is not None:
            networks[f"{package} {name}"] = _package(package, name, shapes, **options)
    return networks


def port(network: Network, output: Path | None) -> PortReport:
    """Build and port one network."""
    model, shapes = network()
    params = None
    if isinstance(model, mx.sym.Symbol):
        params = symbols.random_parameters(model, shapes)
        for name in params:  # scores as a trained network has them
            params[name] *= 0.1 if "_pred_" in name else 1
    return mx.convert.port(model, output, shapes, params, force=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; all networks without them")
    parser.add_argument("--output", type=Path, help="a folder for the ported networks")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| network | lines | " + " | ".join(CHECKS.values()) + " | seconds |")
    print("|---" * (3 + len(CHECKS)) + "|")
    for name, network in list_networks().items():
        if args.names and not any(part in name for part in args.names):
            continue
        start = time.perf_counter()
        try:
            report = port(network, args.output and args.output / name.replace(" ", "_"))
        except Exception as error:  # one network that fails does not end the table
            print(f"| {name} | {type(error).__name__}: {str(error).splitlines()[0]} |", flush=True)
            continue
        present = {row.check for row in report.rows}
        errors = [f"{report.error(c):.1e}" if c in present else "" for c in CHECKS]
        seconds = time.perf_counter() - start
        print(f"| {name} | {report.lines} | {' | '.join(errors)} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
