"""Record what MXNet 1.9.1's im2rec makes of a folder. Run inside an MXNet 1.9.1 environment:

python tests/golden/record/record_im2rec.py
"""

from __future__ import annotations

import base64
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

import mxnet as mx

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
place = importlib.util.spec_from_file_location("cases", HERE / "image_cases.py")
cases = importlib.util.module_from_spec(place)
place.loader.exec_module(cases)


def run(folder, *options):
    tool = mx.test_utils.get_im2rec_path()
    command = [sys.executable, tool, *options]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def main():
    found = {"lists": [], "records": []}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases.write_folder(folder / "root")
        for options in cases.LIST_OPTIONS:
            for old in folder.glob("*.lst"):
                old.unlink()
            said = run(folder, "p", "root", "--list", *options)
            made = {p.name: p.read_text() for p in sorted(folder.glob("*.lst"))}
            found["lists"].append([options, said, made])
        for old in folder.glob("*.lst"):
            old.unlink()
        (folder / "p.lst").write_text(cases.LIST)
        for options in cases.RECORD_OPTIONS:
            run(folder, *options, "p", "root")
            record = base64.b64encode((folder / "p.rec").read_bytes()).decode()
            found["records"].append([options, record, (folder / "p.idx").read_text()])
    (DATA / "im2rec.json").write_text(json.dumps(found, indent=0))
    print(len(found["lists"]), "lists,", len(found["records"]), "records")


if __name__ == "__main__":
    main()
