"""Dead and unread channels leave a Keras network, and the smaller network is proven equal.

`walk` goes through the graph with one rule per layer class (`rules/`) and fills a `trace`; `liveness` finds what
is needed; `planning` writes the `plan`; `rebuild` makes the small model; `proof` compares the two.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
