"""Record the public names of MXNet and their parameters. Run inside an MXNet 1.9.1 environment:

python tests/golden/record/record_surface.py
"""

from __future__ import annotations

import importlib
import inspect
import json
import pathlib
import re

MODULES = """
attribute autograd callback context contrib.amp contrib.autograd contrib.io contrib.quantization
contrib.svrg_optimization.svrg_module contrib.tensorboard contrib.text.embedding
contrib.text.utils contrib.text.vocab engine error executor gluon gluon.contrib.cnn
gluon.contrib.data gluon.contrib.estimator gluon.contrib.nn gluon.contrib.rnn gluon.data
gluon.data.vision gluon.data.vision.transforms gluon.loss
gluon.model_zoo.model_store gluon.model_zoo.vision gluon.nn gluon.rnn gluon.utils image
initializer io kvstore library log lr_scheduler metric model module monitor name ndarray
ndarray.contrib ndarray.image ndarray.linalg ndarray.random ndarray.sparse numpy numpy.linalg
numpy.random numpy_extension numpy_extension.image numpy_extension.random operator optimizer
profiler random recordio registry rnn rtc runtime symbol symbol.contrib symbol.image
symbol.linalg symbol.random symbol.sparse test_utils util visualization
"""
PATH = pathlib.Path(__file__).resolve().parents[1] / "data" / "surface.json"


def parameters(value: object) -> str | None:
    """Return the parameters of a call as text, without annotations, addresses and folders."""
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = ", ".join(str(p) for p in plain if p.name != "self")
    text = re.sub(r" at 0x[0-9a-f]+|(?<=') from '[^']+'(?=>)", "", text)
    return text.replace(str(pathlib.Path.home()), "~")


def members(value: type) -> dict[str, str | None]:
    """Return the public methods and properties that a class defines itself."""
    found: dict[str, str | None] = {}
    for name, member in sorted(vars(value).items()):
        if name.startswith("_"):
            continue
        plain = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        text = parameters(plain) if inspect.isroutine(plain) else None
        found[name] = re.sub(r"^cls(, )?", "", text) if text is not None else None
    return found


def surface(module: str) -> dict[str, str | None]:
    """Return the public names of a module: parameters of what is called, else null."""
    home = importlib.import_module(f"mxnet.{module}")
    everything = getattr(home, "__all__", None)
    found: dict[str, str | None] = {}
    for name in sorted(set(everything or vars(home))):
        value = getattr(home, name, None)
        if name.startswith("_") or inspect.ismodule(value) or not callable(value):
            continue
        # Without `__all__`, names that a module imports from elsewhere are not its own.
        part = "mxnet." + ("" if everything else module.partition(".")[0])
        if not (getattr(value, "__module__", None) or "").startswith(part):
            continue
        found[name] = parameters(value)
        if inspect.isclass(value):
            found.update({f"{name}.{key}": text for key, text in members(value).items()})
    return found


if __name__ == "__main__":
    recorded = {module: surface(module) for module in MODULES.split()}
    lines = (f"{json.dumps(m)}: {json.dumps(names)}" for m, names in recorded.items())
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")
