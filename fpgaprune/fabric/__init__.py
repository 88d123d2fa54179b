"""Tools that run on the Verilog of a design: simulation, synthesis, place and route, bitstreams, vendors' hand-off."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
