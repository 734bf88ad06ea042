"""Sources of trained parameters for the zoo's networks, and their checks."""

from __future__ import annotations

from typing import NamedTuple

TORCHVISION = "https://download.pytorch.org/models/"

SAME = "the same layers"
STRIDES = "the network is changed: strides move to the 3x3 convolutions"
BIAS = "the network is changed: a bias in the last layer, an identity in the first bottleneck"


class TorchWeights(NamedTuple):
    """A torchvision network of the same architecture, except for `change`.

    `file` is its checkpoint at torchvision's address, `hub` a copy at the Hugging Face Hub.
    """

    model: str
    file: str
    change: str = SAME
    hub: str | None = None


def _timm(name: str) -> str:
    return f"hf://timm/{name}.tv_in1k"


def _row(model: str, digest: str, change: str = SAME, on_hub: bool = False) -> TorchWeights:
    return TorchWeights(model, f"{model}-{digest}.pth", change, _timm(model) if on_hub else None)


TORCH_WEIGHTS = {
    "alexnet": TorchWeights("alexnet", "alexnet-owt-7be5be79.pth"),
    "densenet121": _row("densenet121", "a639ec97", on_hub=True),
    "densenet161": _row("densenet161", "8d451a50", on_hub=True),
    "densenet169": _row("densenet169", "b2777c0a", on_hub=True),
    "densenet201": _row("densenet201", "c1103571", on_hub=True),
    "inceptionv3": TorchWeights("inception_v3", "inception_v3_google-0cc3c7bd.pth"),
    "mobilenetv2_1.0": _row("mobilenet_v2", "b0353104", BIAS),
    "resnet18_v1": _row("resnet18", "f37072fd", on_hub=True),
    "resnet34_v1": _row("resnet34", "b627a593", on_hub=True),
    "resnet50_v1": _row("resnet50", "0676ba61", STRIDES, on_hub=True),
    "resnet101_v1": _row("resnet101", "63fe2227", STRIDES, on_hub=True),
    "resnet152_v1": _row("resnet152", "394f9c45", STRIDES, on_hub=True),
    "squeezenet1.0": TorchWeights("squeezenet1_0", "squeezenet1_0-b66bff10.pth"),
    "squeezenet1.1": TorchWeights("squeezenet1_1", "squeezenet1_1-b8a52dc0.pth"),
    "vgg11": _row("vgg11", "8a719046"),
    "vgg13": _row("vgg13", "19584684"),
    "vgg16": _row("vgg16", "397923af"),
    "vgg19": _row("vgg19", "dcbb9e9d"),
    "vgg11_bn": _row("vgg11_bn", "6002323d"),
    "vgg13_bn": _row("vgg13_bn", "abd245e5"),
    "vgg16_bn": _row("vgg16_bn", "6c64b313"),
    "vgg19_bn": _row("vgg19_bn", "c79401a0"),
}
# Networks whose numbers were compared with torchvision's definition, with random weights.
COMPARED = frozenset(
    {
        "alexnet", "densenet121", "densenet161", "inceptionv3", "mobilenetv2_1.0", "resnet18_v1",
        "resnet34_v1", "resnet50_v1", "resnet101_v1", "resnet152_v1", "squeezenet1.0",
        "squeezenet1.1",
    }
)  # fmt: skip


def describe_check(name: str) -> str:
    """Describe how a network was compared with torchvision's.

    >>> describe_check("vgg16")
    'names and shapes, when a file is loaded'
    """
    files = "names and shapes, when a file is loaded"
    if name not in COMPARED:
        return files
    return f"torchvision's definition with random weights gives the same numbers; {files}"


def advise(name: str) -> str:
    """Return a sentence on sources of weights other than MXNet's own file.

    >>> print(advise("resnet18_v1").split(":")[0])
    Or take torchvision's resnet18
    """
    weights = TORCH_WEIGHTS.get(name)
    if weights is None:
        return (
            "torchvision has no network of this architecture. pretrained= also takes the path of "
            "a .params or .onnx file that you have, or a folder with one."
        )
    hub = f", or pretrained='{weights.hub}'" if weights.hub else ""
    return (
        f"Or take torchvision's {weights.model}: fetch {TORCHVISION}{weights.file} and give "
        f"pretrained='{weights.file}'{hub} ({weights.change}). pretrained= also takes .params, "
        f".safetensors and .onnx files and folders; `mx weights {name}` says more."
    )
