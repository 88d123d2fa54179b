from .link_checks import certify as certify
from .link_checks import check_design as check_design
from .link_checks import check_firmware as check_firmware
from .link_checks import check_keras_file as check_keras_file
from .link_checks import check_model as check_model
from .link_checks import check_onnx_file as check_onnx_file
