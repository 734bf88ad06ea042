"""Record `module_programs` from MXNet 1.9.1: ``python tests/golden/record/record_modules.py``."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"


def main():
    import numpy as np

    import mxnet as mx

    sys.path.insert(0, str(HERE))
    from module_programs import PROGRAMS

    arrays, texts = {}, {}
    for name, (program, settings) in PROGRAMS.items():
        for key, value in program(mx, **settings).items():
            if isinstance(value, list):
                texts[f"{name}/{key}"] = value
            else:
                arrays[f"{name}/{key}"] = np.asarray(value)
    np.savez_compressed(DATA / "modules.npz", **arrays)
    (DATA / "modules.json").write_text(json.dumps(texts, indent=1) + "\n")
    print(len(PROGRAMS), "programs")


if __name__ == "__main__":
    main()
