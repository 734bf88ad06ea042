"""Record the networks of MXNet 1.9.1's zoo. Run this file by its path inside MXNet 1.9.1:

``python tests/golden/record/record_model_zoo.py`` writes ``model_zoo.json``.
"""

from __future__ import annotations

import json
from pathlib import Path

import mxnet as mx  # isort: skip
from zoo_cases import SEEN, seen, summary

DATA = Path(__file__).resolve().parents[1] / "data"


def names() -> list[str]:
    """Return all names that MXNet lists when it is asked for a network it does not have."""
    try:
        mx.gluon.model_zoo.vision.get_model("?")
    except ValueError as error:
        return str(error).split("\n\t")[1:]
    raise AssertionError("get_model knows every name")


def main() -> None:
    """Write the summary of each network, and what some make of a picture."""
    found = {name: summary(mx, name) for name in names()}
    for name in SEEN:
        found[name]["seen"] = [round(float(v), 6) for v in seen(mx, name).ravel()]
        print(name, found[name]["seen"][:3])
    text = json.dumps(found, sort_keys=True)
    text = text.replace('}, "', '},\n"')
    (DATA / "model_zoo.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
