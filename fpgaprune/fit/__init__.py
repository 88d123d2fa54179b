"""Searches for the best network that a part takes: what is locked, how many bits, which layout.

`fit(model, data, target, max_loss="0.5 %")` walks down from the trained network (`descent`). Each step turns the knob
(`knobs`) that loses least for what it saves. What it saves is a price, known without training (`foresight`, `layout`);
what it loses is seen in a short run of the flow (`trial`). The best point is then run whole (`search`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
