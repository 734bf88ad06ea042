"""Record what real MXNet makes of `gluon_programs`. Run this file by its path inside MXNet 1.9.1.

``python tests/golden/record/record_gluon.py`` writes ``gluon/facts.json`` and, for each network,
its exported files and ``<name>.npz`` with inputs, outputs and gradients.
"""

from __future__ import annotations

import json
from pathlib import Path

import mxnet as mx  # isort: skip
import numpy as np
from gluon_programs import FACTS, NETWORKS, answer, fill, flat, gradients

DATA = Path(__file__).resolve().parents[1] / "data" / "gluon"


def record_network(name: str) -> None:
    with mx.name.NameManager():
        net, inputs = NETWORKS[name](mx)
    net.initialize()
    net(*inputs)
    fill(mx, net.collect_params())
    kept = {f"input{i}": a.asnumpy() for i, a in enumerate(flat(inputs))}
    net.hybridize()
    kept |= {f"output{i}": a.asnumpy() for i, a in enumerate(flat(net(*inputs)))}
    net.export(str(DATA / name))
    net.save_parameters(str(DATA / f"{name}.params"))
    for training in (False, True):
        kept |= gradients(net, inputs, training)
    np.savez_compressed(DATA / f"{name}.npz", **kept)


def main() -> None:
    """Write everything."""
    DATA.mkdir(exist_ok=True)
    facts = {name: answer(mx, name) for name in FACTS}
    text = json.dumps(facts, indent=1, sort_keys=True)
    (DATA / "facts.json").write_text(text + "\n", encoding="utf-8")
    for name in NETWORKS:
        record_network(name)


if __name__ == "__main__":
    main()
