"""Import rows, one file for each family of ONNX operators."""
