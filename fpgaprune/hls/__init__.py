"""hls4ml projects of a `Design`: the only package that imports hls4ml.

Tested with hls4ml 1.3.0. Three things guard against another release: hls4ml's graph is compared with the design layer
by layer (`same_graph`), templates are corrected only where their text is known (`own_templates`), and
the golden samples of a project hold the emulator's bits. Of 1.4, in preparation, it is known that oneAPI is called
Altera, that `distributed_arithmetic` is made by alkaid and no longer by da4ml, that softmax is built anew, and that
wrong settings raise an error. `ModelGraph` still takes a list of layers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
