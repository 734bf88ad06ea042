"""`mx weights`: where trained parameters of the zoo's networks can be had, and their conversion."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import torch

from mxnet import ndarray as nd
from mxnet.formats import safetensors_file
from mxnet.formats.atomic import replacing
from mxnet.gluon.model_zoo import model_store, vision
from mxnet.gluon.model_zoo.weights import TORCH_WEIGHTS, TORCHVISION, describe_check
from mxnet.interop.to_torchvision import compare_with_torchvision, to_torchvision

from . import UsageError
from .output import print_json, print_table, refuse_existing

MIN_SIZE = {"inceptionv3": 299}  # of images; others take 224


def run(args: argparse.Namespace) -> int:
    """List all networks, describe one, or convert a file of its weights."""
    if args.name is None:
        return _list(args)
    name = args.name.lower()
    if name not in model_store.SHA1:
        raise UsageError(f"{args.name} must be one of {', '.join(sorted(model_store.SHA1))}")
    if args.to == "torchvision":
        return _write_torchvision(args, name)
    if args.source is None:
        return _describe(args, name)
    return _convert(args, name)


def _facts(name: str) -> dict[str, str | bool | None]:
    file = f"{name}-{model_store.short_hash(name)}.params"
    folder = Path(model_store.default_root()).expanduser()
    weights = TORCH_WEIGHTS.get(name)
    return {
        "name": name,
        "mxnet_file": file,
        "sha1": model_store.SHA1[name],
        "is_there": (folder / file).is_file(),
        "torchvision": weights and weights.model,
        "address": weights and TORCHVISION + weights.file,
        "hub": weights and weights.hub,
        "change": weights and weights.change,
        "verified": describe_check(name) if weights else None,
    }


def _list(args: argparse.Namespace) -> int:
    rows = [_facts(name) for name in sorted(model_store.SHA1)]
    if args.json:
        print_json(rows)
        return 0
    print_table(
        ("network", "MXNet's file", "here", "torchvision", "hub"),
        [
            (
                str(r["name"]),
                str(r["mxnet_file"]),
                "yes" if r["is_there"] else "no",
                str(r["torchvision"] or "-"),
                str(r["hub"] or "-"),
            )
            for r in rows
        ],
    )
    return 0


def _describe(args: argparse.Namespace, name: str) -> int:
    facts = _facts(name)
    if args.json:
        print_json(facts)
        return 0
    folder = model_store.default_root()
    print(f"{name}")
    there = "there" if facts["is_there"] else "not there"
    print(f"  MXNet's own file: {facts['mxnet_file']}, SHA-1 {facts['sha1']}; {there} in {folder}")
    print("    MXNET_GLUON_REPO names mirrors of the zoo (addresses or folders) to fetch it from")
    if facts["torchvision"] is None:
        print("  torchvision has no network of this architecture")
        return 0
    print(f"  torchvision's {facts['torchvision']}: {facts['address']}")
    if facts["hub"]:
        print(f"    the same at the Hugging Face Hub: {facts['hub']}")
    print(f"    architecture: {facts['change']}")
    print(f"    verified: {facts['verified']}")
    print(f"  to use:     vision.get_model({name!r}, pretrained='FILE')")
    print(f"  to convert: mx weights {name} --from FILE --output PREFIX")
    print(f"  for torchvision: mx weights {name} --to torchvision")
    return 0


def _write_torchvision(args: argparse.Namespace, name: str) -> int:
    """Write the zoo's parameters, or those of a file, under torchvision's names."""
    target = Path(args.output or f"{name}-torchvision.pth")
    if target.suffix not in (".pth", ".safetensors"):
        raise UsageError(f"--output {target}: the file ends in .pth or .safetensors")
    refuse_existing([target], force=args.force)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net = vision.get_model(name, pretrained=args.source or True, classes=args.classes)
    weights = to_torchvision(net, name)
    worst = compare_with_torchvision(net, weights, MIN_SIZE.get(name, 224))
    notes = [*(str(w.message) for w in caught), *weights.notes]
    if worst is None:
        notes.append("outputs were not compared, because torchvision is not installed")
    else:
        notes.append(f"torchvision's {weights.model} differs by {worst.relative:.1e}")
    if target.suffix == ".pth":
        with replacing(target) as file:
            torch.save(weights.state, file)
    else:
        safetensors_file.write(target, weights.state)
    code = weights.code(str(target))
    if args.json:
        print_json({"written": [str(target)], "notes": notes, "code": code})
        return 0
    print("\n".join([*notes, f"wrote {target}; to load it:", *(f"    {line}" for line in code)]))
    return 0


def _convert(args: argparse.Namespace, name: str) -> int:
    """Load a file into the network and write it as a model: graph and parameters."""
    prefix = args.output or name
    targets = [Path(f"{prefix}-symbol.json"), Path(f"{prefix}-0000.params")]
    refuse_existing(targets, force=args.force)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net = vision.get_model(name, pretrained=args.source, classes=args.classes)
    size = MIN_SIZE.get(name, 224)
    net.hybridize()
    net(nd.zeros((1, 3, size, size)))
    net.export(prefix)
    notes = [str(w.message) for w in caught]
    if args.json:
        print_json({"written": [str(t) for t in targets], "notes": notes})
        return 0
    for note in notes:
        print(note)
    print(f"wrote {', '.join(map(str, targets))}")
    return 0
