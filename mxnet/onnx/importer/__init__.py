"""From ONNX files to symbols: reading, the walk over nodes, and a row for each ONNX operator."""
