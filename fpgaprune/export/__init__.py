"""Writes ONNX files; no other package imports tf2onnx."""
