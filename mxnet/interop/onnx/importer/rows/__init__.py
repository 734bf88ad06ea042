"""The rows of import: one file for each domain of ONNX operators."""
