"""ONNX rows, one file for each family of operators."""
