"""What each backend of hls4ml and our Verilog builds of a `Design`: strategies, templates, known faults."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
