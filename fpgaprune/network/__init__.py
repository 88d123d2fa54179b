"""Analyses what a Keras network does to its channels, with one rule for each class of layers.

`graph` reads the graph. `rules` says what each class of layers does to channels. Two analyses use them. One uses the
values of the weights: `walk` fills a `trace`, and `liveness` finds which channels are needed. The other uses masks
alone, whose locked elements are zero: `flat` lists the network's steps, `coupling` finds the channels that leave
together, `zeros` those that are zero or unread, `alive` those that connect the input with the output.

Other packages import from here, not from the modules inside. Keras is loaded only when a model is given.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
