"""ONNX files: the only package that imports tf2onnx."""
