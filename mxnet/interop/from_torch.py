"""`from_torch`: conversion of torch modules to blocks, and of torch checkpoints to networks.

Tensors in safetensors files are not in layer order. The order is determined by the names of models
of torchvision and timm; files of other models raise an error.
"""

from __future__ import annotations

import importlib.util
import io
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..error import FormatError, InvalidType, MXNetError
from ..formats import safetensors_file
from ..gluon import Block, Parameter, SymbolBlock
from ..ndarray import NDArray
from ..runtime.array import wrap_plain
from .onnx.importer import import_to_gluon
from .source import Report, compare
from .torch_architectures import fit_layers, fitting

WORD = re.compile(r"([A-Za-z]+?(?:\dx\d)?)(\d*)$")
# Order of the parts of a layer with the same number. In DenseNet normalization precedes
# convolution.
PLAIN = {"conv": 0, "bn": 1, "norm": 1, "denseblock": 2, "transition": 3, "layer": 4}
INSIDE_DENSE = {"norm": 0, "conv": 1}
SINGLE = {"features": 0, "squeeze": 1, "expand1x1": 2, "expand3x3": 3, "denselayer": 4}
LAST = {"downsample": 97, "classifier": 98, "fc": 98}


def in_layer_order(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a state dict in the order in which its layers follow each other.

    >>> names = {"fc.weight": 1, "layer1.0.conv1.weight": 2, "bn1.weight": 3, "conv1.weight": 4}
    >>> list(in_layer_order(names))
    ['conv1.weight', 'bn1.weight', 'layer1.0.conv1.weight', 'fc.weight']
    """
    return {name: state[name] for name in sorted(state, key=_place)}


def _place(path: str) -> tuple:
    *parts, name = path.split(".")
    items = []
    is_dense = False
    for part in parts:
        items.append(_part(path, part, INSIDE_DENSE if is_dense else PLAIN))
        is_dense = is_dense or part.startswith(("denselayer", "transition"))
    return (*items, (1000, 0, name))


def _part(path: str, part: str, table: dict[str, int]) -> tuple[int, int, str]:
    if part.isdigit():
        return int(part), 0, ""
    if part in LAST:
        return LAST[part], 0, ""
    match = WORD.match(part)
    word, number = match.groups() if match else (part, "")
    if word in table:
        return int(number or 0), table[word], ""
    if word in SINGLE:
        return int(number or 0), SINGLE[word], ""
    raise MXNetError(
        f"the order of layers does not follow from the name {path!r}, and safetensors files do not "
        "keep it. Give the checkpoint as a .pth file, or the module itself."
    )


# Entries of checkpoints without counterparts in layers.
SKIPPED_SUFFIXES = ("num_batches_tracked",)
SKIPPED_PREFIXES = ("AuxLogits.", "aux1.", "aux2.")
SPELLINGS = {"gamma": "weight", "beta": "bias"}
OPSET = 17


def from_torch(
    module: nn.Module, inputs: Sequence[Tensor] | Tensor, tolerance: float = 1e-4
) -> SymbolBlock:
    """Convert a torch module to a `SymbolBlock` and compare both on the inputs.

    Parameters
    ----------
    module : torch.nn.Module
        The module; it is traced in evaluation mode.
    inputs : Tensor or list of Tensor
        Example inputs; the block is created for their shapes.
    tolerance : float
        Maximum relative error of the conversion.

    Returns
    -------
    SymbolBlock

    Examples
    --------
    >>> import torch
    >>> block = mx.convert.from_torch(torch.nn.Linear(3, 2), torch.ones(1, 3))
    >>> block(mx.nd.ones((1, 3))).shape
    (1, 2)
    """
    examples = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    was_training = module.training
    module.eval()
    try:
        block = import_to_gluon(_export(module, examples))
        with torch.no_grad():
            target = module(*examples)
    finally:
        module.train(was_training)
    compare_outputs(block, examples, target, tolerance)
    return block


def _export(module: nn.Module, examples: list[Tensor]) -> bytes:
    file: Any = io.BytesIO()
    names = ["data"] if len(examples) == 1 else [f"data{i}" for i in range(len(examples))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces its newer exporter
        try:
            torch.onnx.export(
                module,
                tuple(examples),
                file,
                input_names=names,
                opset_version=OPSET,
                dynamo=False,
            )
        except Exception as error:
            return _export_by_dynamo(module, examples, names, error)
    return file.getvalue()


def _export_by_dynamo(
    module: nn.Module, examples: list[Tensor], names: list[str], first: Exception
) -> bytes:
    """Export by torch's newer exporter, for models that the older one does not support."""
    kind, said = type(module).__name__, str(first).strip().split("\n")[0]
    if importlib.util.find_spec("onnxscript") is None:
        raise MXNetError(
            f"from_torch: torch cannot export {kind}: {said}. Its newer exporter may: "
            "pip install onnxscript"
        ) from first
    try:
        program: Any = torch.onnx.export(
            module, tuple(examples), input_names=names, dynamo=True, verbose=False
        )
    except Exception as error:
        raise MXNetError(f"from_torch: torch cannot export {kind}: {error}") from error
    return program.model_proto.SerializeToString()


def compare_outputs(
    block: Block, examples: Sequence[Tensor], wanted: Any, tolerance: float
) -> Report:
    """Compare a block's outputs with torch's."""
    result = block(*(_array(x) for x in examples))
    ours = [o.asnumpy() for o in (result if isinstance(result, list | tuple) else [result])]
    theirs = [t.numpy() for t in (wanted if isinstance(wanted, list | tuple) else [wanted])]
    report = Report("torch", tolerance)
    report.add("example", compare(ours, theirs))
    report.check()
    return report


def _array(tensor: Tensor) -> NDArray:
    return wrap_plain(NDArray, tensor.detach().clone())


def read_state_dict(source: Any) -> dict[str, Tensor]:
    """Return a state dict from a mapping, a module, or a ``.safetensors``, ``.pth`` file.

    A pickled file is read by torch's restricted loader, which raises for anything but tensors.

    Parameters
    ----------
    source
        A mapping, a module, or the path of a file.

    >>> import torch
    >>> sorted(mx.convert.read_state_dict(torch.nn.Linear(3, 2)))
    ['bias', 'weight']
    """
    if isinstance(source, nn.Module):
        return dict(source.state_dict())
    if isinstance(source, Mapping):
        return dict(source)
    if not isinstance(source, str | os.PathLike):
        raise InvalidType(f"a state dict, a module or a path is needed, got {type(source)}.")
    if safetensors_file.is_safetensors(source):
        return safetensors_file.read(source)
    path = Path(source)
    if not path.is_file():
        raise MXNetError(f"torch checkpoint {str(path)!r} does not exist.")
    try:
        loaded = torch.load(str(path), map_location="cpu", weights_only=True)
    except Exception as error:  # unpickling raises many classes
        first = str(error).strip().split("\n")[0]
        raise FormatError(f"{path} is not a torch checkpoint of tensors: {first}") from None
    if isinstance(loaded, Mapping) and isinstance(loaded.get("state_dict"), Mapping):
        loaded = loaded["state_dict"]
    if not isinstance(loaded, Mapping) or not all(isinstance(v, Tensor) for v in loaded.values()):
        raise FormatError(f"{path} holds {type(loaded).__name__}, not a state dict of tensors.")
    return dict(loaded)


def load_torch_parameters(net: Block, source: Any) -> Block:
    """Load a torch checkpoint into a network, layer by layer in order, and return the network.

    Layers are matched by their order and every shape is checked. A bias that the checkpoint does
    not have becomes 0. torchvision's bottleneck ResNets and MobileNetV2 differ slightly from the
    zoo's: the network is modified to match, with a warning; save it with `export`.

    Parameters
    ----------
    net : Block
        Such as ``mx.gluon.model_zoo.vision.resnet18_v1()`` for torchvision's ``resnet18``.
    source : str, dict or torch.nn.Module
        A ``.pth`` or ``.safetensors`` file, a state dict, or a module.

    >>> import torch
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.initialize()
    >>> mx.convert.load_torch_parameters(net, torch.nn.Linear(3, 2)) is net
    True
    """
    state = read_state_dict(source)
    if safetensors_file.is_safetensors(source):
        state = in_layer_order(state)
    with fitting(net, state):
        for parameter, tensor in _match_layers(net, state):
            parameter._load_init(wrap_plain(NDArray, tensor.detach().clone()), None, True, "saved")
    return net


def _match_layers(net: Block, state: Mapping[str, Tensor]) -> list[tuple[Parameter, Tensor]]:
    """Return the parameters of a network with the tensors of a checkpoint; all must fit."""
    theirs = _layers(
        {
            k: v
            for k, v in state.items()
            if not k.endswith(SKIPPED_SUFFIXES) and not k.startswith(SKIPPED_PREFIXES)
        }
    )
    theirs = fit_layers(net, theirs)
    ours = _layers(net._collect_params_with_prefix())
    if len(ours) != len(theirs):
        raise MXNetError(
            f"the checkpoint has {len(theirs)} layers with parameters, {type(net).__name__} has "
            f"{len(ours)}: it belongs to another architecture."
        )
    pairs = []
    for (name, mine), (key, layer) in zip(ours.items(), theirs.items(), strict=True):
        pairs += _match_parameters(name, mine, key, layer)
    return pairs


def _layers(named: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Group parameters by their layer, in order."""
    items: dict[str, dict[str, Any]] = {}
    for path, value in named.items():
        layer, _, name = path.rpartition(".")
        items.setdefault(layer, {})[name] = value
    return items


def _match_parameters(name: str, mine: dict[str, Any], key: str, layer: dict[str, Tensor]) -> list:
    pairs, used = [], set()
    for kind, parameter in mine.items():
        theirs = SPELLINGS.get(kind, kind)
        tensor = layer.get(theirs)
        if tensor is None:
            if kind != "bias":
                raise MXNetError(f"layer {key!r} of the checkpoint has no {theirs!r} for {name}.")
            tensor = torch.zeros(parameter.shape)
        used.add(theirs)
        shape = parameter.shape
        if _count(shape) == tensor.numel() and len(shape) == tensor.ndim + 2 == 4:
            tensor = tensor.reshape(shape)  # a dense layer as a convolution of one pixel
        if not _fits(shape, tensor.shape):
            raise MXNetError(
                f"{name}.{kind} has the shape {shape}, but {key}.{theirs} of the checkpoint "
                f"{tuple(tensor.shape)}: it belongs to another architecture."
            )
        pairs.append((parameter, tensor))
    left = [k for k in layer if k not in used and layer[k].any()]
    if left:
        raise MXNetError(f"layer {key!r} of the checkpoint has {left}, which {name} cannot hold.")
    return pairs


def _count(shape: Sequence[int] | None) -> int:
    count = 1
    for size in shape or (0,):
        count *= size
    return count


def _fits(shape: Sequence[int] | None, given: Sequence[int]) -> bool:
    if shape is None:
        return True
    if len(shape) != len(given):
        return False
    return all(a in (0, -1, b) for a, b in zip(shape, given, strict=True))
