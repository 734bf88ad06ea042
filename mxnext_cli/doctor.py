"""`mx doctor`: versions, devices, features and settings, and common problems with them."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mxnet import accelerator, libinfo, runtime, torch_private
from mxnet import ndarray as nd
from mxnet._process import env

from .output import format_bytes, print_facts, print_json, print_table

LIBRARIES = {
    "torch": "kernels and gradients",
    "numpy": "arrays",
    "opencv-python-headless": "images",
    "simplejpeg": "faster JPEG",
    "scipy": "sparse matrices",
    "onnx": "reading and writing ONNX",
    "onnxruntime": "checking ONNX files",
    "safetensors": "safetensors files",
    "rich": "tables on terminals",
    "tqdm": "progress bars",
    "starlette": "mx serve",
    "granian": "mx serve",
    "graphviz": "drawings by Graphviz",
    "matplotlib": "curves of training",
    "tensorboard": "metrics for TensorBoard",
}
OLD_PACKAGES = ("mxnet", "mxnet-mkl", "mxnet-cu112", "mxnet-cu110", "mxnet-cu102", "mxnet-cu101")
MIN_FREE_BYTES = 1 << 30
MIN_SHARED_BYTES = 64 << 20


def run(args: argparse.Namespace) -> int:
    """Print the report; return 1 if there is a problem."""
    return report(as_json=args.json, with_bench=args.bench)


def report(*, as_json: bool, with_bench: bool = False) -> int:
    """Print the facts about this installation; return 1 if there is a problem."""
    facts = gather()
    if with_bench:
        from .bench import measure_devices  # lazy import: it computes for seconds

        facts["speed"] = measure_devices()
    if as_json:
        print_json(facts)
        return 1 if facts["problems"] else 0
    print(f"MXNext {facts['mxnext']} (MXNet {facts['mxnet']})")
    print(f"Python {facts['python']} on {facts['platform']}")
    print_table(
        ("library", "version", "used for"),
        [(n, v or "not installed", LIBRARIES[n]) for n, v in facts["libraries"].items()],
    )
    print_facts(facts["devices"], title="devices")
    print(f"features: {', '.join(facts['features'])}")
    print_facts(facts["settings"], title="settings that differ from their defaults")
    if with_bench:
        print_table(("device", "case", "MXNext", "torch", "ratio"), facts["speed"])
    for note in facts["notes"]:
        print(f"note: {note}")
    for problem in facts["problems"]:
        print(f"problem: {problem}")
    if not facts["problems"]:
        print("No problems found.")
    return 1 if facts["problems"] else 0


def gather() -> dict[str, Any]:
    """Return all facts about this installation."""
    return {
        "mxnext": libinfo.mxnext_version,
        "mxnet": libinfo.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "package": str(Path(libinfo.__file__).resolve().parent),
        "libraries": {name: _version(name) for name in LIBRARIES},
        "devices": _devices(),
        "features": [n for n, feature in runtime.Features().items() if feature.enabled],
        "settings": {
            name: os.environ[name]
            for name in sorted(os.environ)
            if name.startswith(("MXNET_", "OMP_", "MKL_", "CUDA_VISIBLE"))
        },
        "notes": _torch_notes(),
        "problems": find_problems(),
    }


def newest_tested_torch() -> str:
    """Return the newest version of torch that the tests were run with."""
    path = Path(__file__).with_name("tested_versions.json")
    versions = [row["torch"] for row in json.loads(path.read_text(encoding="utf-8"))]
    return max(versions, key=_release)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _torch_notes() -> list[str]:
    """Return notes about this version of torch, which need not be problems."""
    notes = []
    tested = newest_tested_torch()
    if _release(torch.__version__) > _release(tested):
        notes.append(
            f"torch {torch.__version__} is newer than {tested}, the newest version that MXNext was "
            "tested with"
        )
    for load in (
        torch_private.dense_kernels,
        torch_private.convolution_kernels,
        torch_private.int8_kernels,
    ):
        load()
    notes += [
        f"this torch lacks the private function {name} ({reason}); a slower public one is used"
        for name, reason in torch_private.UNAVAILABLE.items()
    ]
    return notes


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _devices() -> dict[str, Any]:
    threads = f"threads of torch: {torch.get_num_threads()}"
    devices: dict[str, Any] = {"cpu": f"{os.cpu_count()} cores, {threads}"}
    for number in range(accelerator.count()):
        _, total = accelerator.memory_info(number)
        devices[f"gpu({number})"] = f"{accelerator.describe(number)}, {format_bytes(total)}"
    return devices


def find_problems() -> list[str]:
    """Return the problems of this installation and their solutions."""
    return [
        *_package_problems(),
        *_setting_problems(),
        *_device_problems(),
        *_disk_problems(),
        *_result_problems(),
    ]


def _package_problems() -> list[str]:
    problems = [
        f"the package {name} is installed too and hides MXNext: pip uninstall {name}"
        for name in OLD_PACKAGES
        if _version(name)
    ]
    problems += [
        f"{folder} is a second package of the name {folder.name!r}: {advice}"
        for folder, advice in find_twins(sys.path)
    ]
    headless, full = _version("opencv-python-headless"), _version("opencv-python")
    if headless and full:
        problems.append("opencv-python and opencv-python-headless overwrite each other: keep one")
    return problems


def find_twins(paths: list[str]) -> list[tuple[Path, str]]:
    """Return other packages called `mxnet` or `mxnext` on the path, and what to do about them."""
    own = Path(libinfo.__file__).resolve().parent
    twins: list[tuple[Path, str]] = []
    for folder in dict.fromkeys(Path(path or ".").resolve() for path in paths):
        other = folder / "mxnet"
        if (other / "__init__.py").is_file() and other.resolve() != own:
            twins.append((other, "remove it, or start Python elsewhere"))
        helper = folder / "mxnext"
        if (helper / "__init__.py").is_file():
            twins.append((helper, "SimpleDet has a helper of this name; keep it in the project"))
    return twins


def _setting_problems() -> list[str]:
    problems = []
    for name in env.VARIABLES:
        try:
            env.get(name)
        except Exception as error:  # every setting is reported, whatever is wrong with it
            problems.append(str(error))
    cores = os.cpu_count() or 1
    if torch.get_num_threads() > cores:
        problems.append(
            f"torch uses {torch.get_num_threads()} threads on {cores} cores, which is slower: "
            f"set OMP_NUM_THREADS={cores}"
        )
    return problems


def _device_problems() -> list[str]:
    if shutil.which("nvidia-smi") and not accelerator.count():
        return [
            "there is an NVIDIA driver, but torch sees no GPU: install a build of torch with CUDA"
        ]
    return []


def _disk_problems() -> list[str]:
    problems = []
    home = Path(env.get("MXNET_HOME")).expanduser()
    folder = next(p for p in (home, *home.parents) if p.exists())
    if not os.access(folder, os.W_OK):
        problems.append(f"{folder} cannot be written: set MXNET_HOME to another folder")
    for volume, least, what in (
        (Path(tempfile.gettempdir()), MIN_FREE_BYTES, "temporary files"),
        (Path("/dev/shm"), MIN_SHARED_BYTES, "loader processes (docker run --shm-size=1g)"),
    ):
        if volume.is_dir() and shutil.disk_usage(volume).free < least:
            free = format_bytes(shutil.disk_usage(volume).free)
            problems.append(f"{volume} has only {free} free, which {what} need")
    return problems


def _result_problems() -> list[str]:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = nd.dot(nd.array(a), nd.array(a.T)).asnumpy()
    right = a @ a.T
    if result.shape == right.shape and np.allclose(result, right):
        return []
    return [f"a small matrix product is wrong ({result.tolist()}): reinstall torch"]
