"""What `import fpgaprune` offers; each name is loaded on first use. The face of a room offers the others."""

from .advice import advise as advise
from .certify import certify as certify
from .design import Design as Design
from .emulate import emulate as emulate
from .errors import FpgaPruneError as FpgaPruneError
from .estimate import estimate as estimate
from .estimate import verilog_price as verilog_price
from .export import export_onnx as export_onnx
from .fabric import to_verilog as to_verilog
from .fit import fit as fit
from .frontends import from_torch as from_torch
from .frontends import load as load
from .hls import to_hls as to_hls
from .layout import choose_layout as choose_layout
from .lowering import AutoPrecision as AutoPrecision
from .lowering import Precision as Precision
from .lowering import make_design as make_design
from .lowering import quantize as quantize
from .remove import apply_removal as apply_removal
from .remove import equivalence as equivalence
from .remove import plan_removal as plan_removal
from .rtl import check_verilog as check_verilog
from .select import from_zeros as from_zeros
from .select import select as select
from .target import Target as Target
from .train import LockedOptimizer as LockedOptimizer
from .train import finetune as finetune
from .train import lock as lock
from .train import relock as relock
from .train import unlock as unlock
from .values import MaskSet as MaskSet
from .values import weight_arrays as weight_arrays

__version__: str
