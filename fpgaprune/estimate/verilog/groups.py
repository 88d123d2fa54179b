"""What a scheduled layer is made of: its groups of multipliers, their memories, and the control of all."""

from __future__ import annotations

from collections.abc import Mapping

from fpgaprune.estimate.verilog.counts import Counts
from fpgaprune.rtl import Instance


def count_scheduled(i: Instance) -> Mapping[str, float]:
    """Quantities of `fp_scheduled` and of the memories of its program, by name."""
    found = Counts()
    found.more(_group(i), i["GROUPS"])
    mark, kernel = i["GROUPS"] * (1 + i["GAP"]), i["GROUPS"] * i["TAPS"] * i["W_WIDTH"]
    if i["LOADED"]:
        # Weights that can be loaded stand in a memory beside those that say what is visited.
        found[f"memory_{kernel}_{i['STEPS']}"] += 1
        found[f"program_{i['STEPS']}_{mark}"] += 1
        found["register"] += kernel
    else:
        found[f"program_{i['STEPS']}_{mark + kernel}"] += 1
    found[f"program_{i['TURNS']}_{2 + i['GROUP'] + i['SLOT']}"] += 1
    # One of the sums of all groups is chosen, and added to those before it.
    sums = i["TOGETHER"] * i["SUM_WIDTH"]
    found["choice_bit"] += sums * (i["GROUPS"] * i["TOGETHER"] - 1) / 3
    found.more({"adder": 1, "chain_bit": i["SUM_WIDTH"], "pair_bit": i["SUM_WIDTH"], "register": 2 * i["SUM_WIDTH"]})
    limits = (i["CHANNEL"], i["STEP"], i["TURN"], i["TURN"], i["SIDE"] * 5, i["BUFFER"] * 5)
    found["counter"] += sum(limits)
    found["register"] += 2 * (i["LEVELS"] + i["TOGETHER"] + 4) + i["GROUP"] + i["SLOT"]
    return found


def _group(i: Instance) -> Counts:
    """One group: a memory of beats, a multiplier for each tap, a tree of additions, a memory of sums."""
    taps, together, split = i["TAPS"], i["TOGETHER"], i["SPLIT"]
    width = i["X_WIDTH"] + i["W_WIDTH"]
    found = Counts()
    beats = taps * split * i["X_WIDTH"]
    found[f"memory_{beats}_{1 << (i['SIDE'] + i['CHANNEL'])}"] += together
    found[f"memory_{i['SUM_WIDTH']}_{1 << (i['BUFFER'] + i['SLOT'])}"] += together
    found["register"] += together * (beats + i["SUM_WIDTH"])
    found["choice_bit"] += together * taps * i["X_WIDTH"] * (split - 1) / 3
    # Registers of factors are inside a DSP block, or beside it; which of a beat's parts is read is chosen.
    found.more({"multiplier": taps, "weight_bit": taps * i["W_WIDTH"]})
    found["piece_bit"] += together * taps * i["X_WIDTH"] * (split - 1)
    # The word of a step waits twice.
    found["register"] += 2 * (1 + taps * i["W_WIDTH"]) + i["SLOT"] + i["CHANNEL"] + i["PIECE"] + together + 3
    found["counter"] += i["CHANNEL"] + i["PIECE"] + i["SLOT"]
    if together == 2:
        # Two values share a factor; the upper product gets back what the lower one borrowed.
        found.more({"register": taps * 2 * width, "pair_bit": taps * width, "chain_bit": taps * width})
        if i["X_SIGNED"]:
            found.more({"pair_bit": taps * i["X_WIDTH"], "chain_bit": taps * i["X_WIDTH"]})
    places = taps
    for level in range(i["LEVELS"]):
        pairs, bits = places // 2, width + level + 1
        found.more({"adder": pairs, "pair_bit": pairs * bits, "chain_bit": pairs * bits}, together)
        places = -(-places // 2)
        found["register"] += together * places * bits
    found["register"] += together * (i["SUM_WIDTH"] + 2 * i["LEVELS"] + 2)
    found.more({"adder": 1, "pair_bit": i["SUM_WIDTH"], "chain_bit": i["SUM_WIDTH"]}, together)
    return found
