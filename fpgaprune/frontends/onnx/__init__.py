"""The front end of ONNX: reading, planning without Keras, building, and judging by onnxruntime."""
