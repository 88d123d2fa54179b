from .naming import is_scaled as is_scaled
from .onnx_file import export_onnx as export_onnx
from .onnx_file import onnx_bytes as onnx_bytes
from .onnx_file import run_logits as run_logits
from .onnx_file import run_onnx as run_onnx
