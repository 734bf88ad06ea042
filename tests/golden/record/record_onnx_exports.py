"""Record how MXNet 1.9.1 names the outputs of ONNX models. Run it where MXNet and onnx 1.14 are."""

import json
import pathlib
import sys
import tempfile

import numpy as np
import onnx

import mxnet as mx

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
sys.path.insert(0, str(HERE))
from onnx_exports import cases  # noqa: E402

recorded = {}
path = str(pathlib.Path(tempfile.mkdtemp()) / "model.onnx")
for key, (symbol, params, shapes) in cases().items():
    mx.onnx.export_model(symbol, params, shapes, np.float32, path)
    outputs = onnx.load(path).graph.output
    kinds = [o.type.tensor_type for o in outputs]
    recorded[key] = [
        [o.name, k.elem_type, [d.dim_value for d in k.shape.dim]]
        for o, k in zip(outputs, kinds, strict=True)
    ]
(DATA / "onnx_exports.json").write_text(json.dumps(recorded, indent=0) + "\n")
print(len(recorded), "models")
