from .generate import to_verilog as to_verilog
from .project import RtlPort as RtlPort
from .project import VerilogProject as VerilogProject
from .read_back import VERILOG_LINK as VERILOG_LINK
from .read_back import check_verilog as check_verilog
