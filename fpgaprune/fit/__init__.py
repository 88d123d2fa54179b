"""Search for the best network that a part takes: what is locked, how many bits, which layout.

`fit(model, data, target, max_loss="0.5 %")` descends from the trained network (`descent`). Each step moves the knob
(`knobs`) that loses least for what it saves. What it saves is estimated without training (`estimates`); what it loses
is measured by a short run of the flow (`trial`). Then neighbours of the best network are tried that a surrogate of the
loss calls likely (`neighbours`), and the best ones are trained to the end (`finalists`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
