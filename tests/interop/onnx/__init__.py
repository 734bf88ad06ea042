"""Tests of the ONNX exporter and importer."""
