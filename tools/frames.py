"""Count the Python frames that a warm step enters, and the files that it runs through.

Run ``python -m tools.frames``, or ``python -m tools.frames --list NAME`` for every frame of one
step. Inputs are small, so what is counted is the work around the kernels.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import mxnet as mx

ROOT = Path(mx.__file__).resolve().parent
WARM_STEPS = 12  # programs are compiled on their second run, call caches fill on the first


def hybrid_call() -> dict[str, Callable[[], Any]]:
    """Return steps of a hybridized network of two Dense layers."""
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(8, activation="relu"), mx.gluon.nn.Dense(4))
    net.initialize()
    net.hybridize()
    data = mx.nd.ones((2, 4))

    def train() -> None:
        with mx.autograd.record():
            output = net(data)
        output.backward()

    return {"hybrid call": lambda: net(data), "hybrid recorded + backward": train}


def module_steps() -> dict[str, Callable[[], Any]]:
    """Return the parts of a Module's step on one device."""
    data = mx.sym.Variable("data")
    hidden = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=8), act_type="relu")
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(hidden, num_hidden=4), name="softmax")
    module = mx.mod.Module(net)
    module.bind([("data", (2, 4))], [("softmax_label", (2,))])
    module.init_params()
    module.init_optimizer(optimizer_params={"learning_rate": 0.1})
    batch = mx.io.DataBatch([mx.nd.ones((2, 4))], [mx.nd.zeros((2,))])

    def step() -> None:
        module.forward_backward(batch)
        module.update()

    return {
        "Module.forward_backward": lambda: module.forward_backward(batch),
        "Module.update": module.update,
        "Module step": step,
    }


def frames_of(step: Callable[[], Any]) -> list[tuple[str, str, int]]:
    """Return (file, function, line) of every Python frame that a warm step enters."""
    for _ in range(WARM_STEPS):
        step()
    frames: list[tuple[str, str, int]] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is not getattr(step, "__code__", None):
            code = frame.f_code
            frames.append((code.co_filename, code.co_qualname, code.co_firstlineno))

    sys.setprofile(profile)
    try:
        step()
    finally:
        sys.setprofile(None)
    return frames


def shorten(file: str) -> str:
    """Return the path of one of our files below the package, of others the name."""
    path = Path(file)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def main() -> None:
    """Print the counts, or the frames of one step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", metavar="NAME", help="print every frame of this step")
    chosen = parser.parse_args().list
    for name, step in {**hybrid_call(), **module_steps()}.items():
        if chosen not in (None, name):
            continue
        frames = frames_of(step)
        files = {file for file, _, _ in frames if Path(file).is_relative_to(ROOT)}
        print(f"{name:28} {len(frames):4} frames {len(files):3} files")
        if chosen is not None:
            for file, function, line in frames:
                print(f"    {shorten(file)}:{line} {function}")


if __name__ == "__main__":
    main()
