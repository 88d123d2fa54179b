"""What a Keras network does to its channels: one walk through its graph, one rule for each class of layers.

`graph` reads the graph. `rules` says of each class what it does to channels. From there two analyses go on. With the
weights as they are: `walk` fills a `trace`, and `liveness` finds which channels are needed. With masks alone, whose
locked elements are zero: `flat` writes the network out as a row of steps, `coupling` finds the channels that leave
together, `zeros` those that are zero or unread, `alive` those that lead from the input to the output.

Other packages import from here, not from the modules inside. Keras is loaded once a model of it is given.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
