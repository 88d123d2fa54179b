"""Layouts of a design: which there are, what each takes by its estimate, and which one a part has room for.

A `DesignLayout` is a design in one layout on one part, with its estimate. `project_layouts` lists those of an hls4ml
project, `slower_layouts` those of our own Verilog by one rule for all layers. `choose_layout` lays each layer out for
a part, `layouts_for_board` finds what a board has room for. Advice, the search for a network that fits, hand-over and
measurement ask here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
