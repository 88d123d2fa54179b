"""Streaming Verilog of a `Design`, as text and plain data: generated, listed, and read back for the certificate."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
