"""What the modules of `hw/rtl` are made of: registers, counters, choices, memories, and groups of multipliers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fpgaprune.estimate.verilog.datapaths import Counts, count_shift
from fpgaprune.rtl import Instance, product_cycles


def count_scheduled(i: Instance) -> Mapping[str, float]:
    """Count the quantities of `fp_scheduled` and of the memories of its program, by name."""
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
    product = product_cycles(i["TOGETHER"], bool(i["IN_LUTS"]))
    found["register"] += 2 * (i["LEVELS"] + product + 4) + i["GROUP"] + i["SLOT"]
    return found


def _group(i: Instance) -> Counts:
    """Return one group: a memory of beats, a multiplier for each tap, a tree of additions, a memory of sums."""
    taps, together, split = i["TAPS"], i["TOGETHER"], i["SPLIT"]
    width = i["X_WIDTH"] + i["W_WIDTH"]
    found = Counts()
    beats = taps * split * i["X_WIDTH"]
    found[f"memory_{beats}_{1 << (i['SIDE'] + i['CHANNEL'])}"] += together
    found[f"memory_{i['SUM_WIDTH']}_{1 << (i['BUFFER'] + i['SLOT'])}"] += together
    found["register"] += together * (beats + i["SUM_WIDTH"])
    found["choice_bit"] += together * taps * i["X_WIDTH"] * (split - 1) / 3
    if i["IN_LUTS"]:
        found.more(_product_of_luts(i), taps)
    else:
        # Registers of factors are inside a DSP block, or beside it; which of a beat's parts is read is chosen.
        factor = i["X_WIDTH"] * together
        found.more({f"multiplier_{factor}_{i['W_WIDTH']}": taps, "weight_bit": taps * i["W_WIDTH"]})
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


def _product_of_luts(i: Instance) -> Mapping[str, float]:
    """Count one multiplier of LUTs (`hw/rtl/fp_product.v`): digits of the narrower factor choose multiples to add."""
    by_weight = i["W_WIDTH"] <= i["X_WIDTH"]
    narrow, wide = (i["W_WIDTH"], i["X_WIDTH"] + 1) if by_weight else (i["X_WIDTH"], i["W_WIDTH"])
    digits = (narrow + 1) // 2
    upper = min(digits, 2)
    lower = digits - upper
    sums = [wide + 2, wide + 4, *([wide + 4] if lower == 2 else []), *([wide + 2 * upper] if lower else [])]
    low = (0, wide + 2, wide + 4)[lower]
    registers = 2 * digits + wide + (wide + 2) + low + (wide + 4) + i["X_WIDTH"] + i["W_WIDTH"]
    return {
        "row_bit": digits * (wide + 2),
        "row_weight": i["W_WIDTH"],
        "adder": len(sums),
        "pair_bit": sum(sums),
        "chain_bit": sum(sums),
        "register": registers,
    }


# Bits of a pixel that have line buffers of their own (`hw/rtl/fp_window.v`).
_SLICE = 36


def count_instance(part: Instance) -> Counts:
    """Count the quantities of hardware of `part`, by name; a window has every tap."""
    found = Counts(_COUNTED[part.module](part))
    found[f"instance_{part.module[3:]}"] += 1
    return found


def bits_of(value: int) -> int:
    """Count the bits that hold `value`, at least one."""
    return max(value.bit_length(), 1)


def _counters(*limits: int) -> Mapping[str, float]:
    return {"counter": sum(map(bits_of, limits))}


def _memory(width: int, depth: int) -> Mapping[str, float]:
    return {f"memory_{width}_{depth}": 1, "register": width} if depth > 1 else {"register": width}


def _joined(*parts: Mapping[str, float]) -> Mapping[str, float]:
    total = Counts()
    for part in parts:
        total.more(part)
    return total


def _fifo(i: Instance) -> Mapping[str, float]:
    depth = i["DEPTH"]
    return _joined(_memory(i["WIDTH"], depth), _counters(depth - 1, depth - 1, depth))


def _scatter(i: Instance) -> Mapping[str, float]:
    return {"register": i["WIDTH"] * i["BEATS"], "choice_bit": i["WIDTH"] * (i["BEATS"] - 1), **_counters(i["BEATS"])}


def _pad(i: Instance) -> Mapping[str, float]:
    rows, columns = i["TOP"] + i["ROWS"] + i["BOTTOM"], i["LEFT"] + i["COLUMNS"] + i["RIGHT"]
    return {"choice_bit": i["WIDTH"], **_counters(rows - 1, columns - 1, 3)}


def _line_buffer(width: int, depth: int) -> Mapping[str, float]:
    return _joined(_memory(width, depth), _counters(depth, depth) if depth > 1 else {})


def _upsample(i: Instance) -> Mapping[str, float]:
    counters = _counters(i["FX"] - 1, i["FY"] - 1, i["COLUMNS"] - 1)
    return _joined(_line_buffer(i["WIDTH"], i["COLUMNS"]), counters, {"choice_bit": i["WIDTH"]})


def _transpose(i: Instance) -> Mapping[str, float]:
    memory = _line_buffer(i["WIDTH"] * (i["PARTS"] - 1), i["COLUMNS"])
    return _joined(memory, _counters(i["PARTS"] - 1, i["COLUMNS"] - 1), {"choice_bit": i["WIDTH"] * i["PARTS"]})


def _reverse(i: Instance) -> Mapping[str, float]:
    """Count a memory of a sample, counters, and what the two places are next, where a step and the sample end."""
    end, beat = i["STEPS"] * i["BEATS"] - 1, i["BEATS"] - 1
    places = {"choice_bit": 4 * bits_of(end)}
    return _joined(_memory(i["WIDTH"], end + 1), _counters(end, end, beat, beat, 1, 1, 1, 1), places)


def _window_counters(i: Instance) -> Mapping[str, float]:
    return _counters(i["COLUMNS"] - 1, i["ROWS"] - 1, i["KW"] + i["SW"], i["KH"] + i["SH"])


def _window(i: Instance) -> Mapping[str, float]:
    every = [True] * (i["KH"] * i["KW"])
    return count_window(i, every, i["WIDTH"])


def count_window(i: Instance, used: Sequence[bool], width: int) -> Counts:
    """Count a window of values of `width` bits; `used` tells, tap by tap, which values are read."""
    high, wide, columns = i["KH"], i["KW"], i["COLUMNS"]
    channels = i["WIDTH"] // width
    found = Counts(_window_counters(i))
    # Lines of a channel that are kept, from the lowest row of the window on.
    lines = [0] * channels
    for row in range(high):
        for channel in range(channels):
            read = [used[(row * wide + column) * channels + channel] for column in range(wide)]
            if any(read):
                _shifted(found, read, width)
                lines[channel] = max(lines[channel], high - row)
                if i["SPREAD"]:
                    found["register"] += width * sum(read)
    for start in range(0, i["WIDTH"], _SLICE):
        here = [lines[bit // width] for bit in range(start, min(start + _SLICE, i["WIDTH"]))]
        found["register"] += sum(count > 0 for count in here)
        found["counter"] += 2
        if max(here) > 1:
            found.more(_line_buffer(sum(max(count - 1, 0) for count in here), columns))
    found["instance_window"] += 1
    return found


def count_gather(i: Instance, used: Sequence[bool], width: int) -> Counts:
    """Count gathered beats of values of `width` bits; `used` tells which values are read."""
    lanes, found = i["WIDTH"] // width, Counts(_counters(i["BEATS"] - 1))
    for lane in range(lanes):
        _shifted(found, used[lane::lanes], width)
    found["instance_gather"] += 1
    return found


def _shifted(found: Counts, read: Sequence[bool], width: int) -> None:
    """Add the registers through which a value moves from the last place to the first one that is read."""
    taps = [place for place, wanted in enumerate(read) if wanted]
    if not taps:
        return
    found["register"] += width * (len(read) - taps[0])
    for one, two in zip(taps, [*taps[1:], len(read)], strict=True):
        count_shift(found, width, two - one)


def _accumulate(i: Instance) -> Mapping[str, float]:
    bits = i["LANES"] * i["OUT_WIDTH"]
    if i["BEATS"] == 1:
        return {"register": bits}
    sums = {"adder": i["LANES"], "chain_bit": bits, "pair_bit": bits}
    return {"register": bits, **sums, **_counters(i["BEATS"] - 1, 1)}


def count_signed_accumulate(i: Instance) -> Counts:
    """Count an accumulator of signed numbers: the first number of a sample is selected in all bits."""
    found = count_instance(i)
    found["choice_bit"] += found["pair_bit"]
    return found


def _largest(i: Instance) -> Mapping[str, float]:
    bits = i["LANES"] * i["WIDTH"]
    return {"register": bits, "comparison_bit": bits * (i["BEATS"] > 1), **_counters(i["BEATS"] - 1, 1)}


def _pool(i: Instance) -> Mapping[str, float]:
    bits, across = i["LANES"] * i["OUT_WIDTH"], i["COLUMNS"] // i["KW"]
    places = (1 if i["KH"] == 1 else across) * i["CHANNELS"]
    one = {"comparison_bit": bits} if i["LARGEST"] else {"adder": i["LANES"], "chain_bit": bits, "pair_bit": bits}
    # The first value of a window is chosen; what a value is compared with too, where it can be in two registers.
    twice = i["LARGEST"] and i["CHANNELS"] == 1 and places > 1
    choices = {"choice_bit": bits * (2 if twice else 1), "register": bits}
    limits = (i["CHANNELS"] - 1, i["KW"] - 1, i["KH"] - 1, across, i["ROWS"] // i["KH"], places - 1, 1)
    return _joined(one, choices, _memory(bits, places) if places > 1 else {}, _counters(*limits))


def _channel_window(i: Instance) -> Mapping[str, float]:
    found = _joined(
        _line_buffer(i["WIDTH"] * (i["KH"] - 1), i["COLUMNS"] * i["CHANNELS"]) if i["KH"] > 1 else {},
        _window_counters(i),
        _counters(i["CHANNELS"] - 1),
    )
    return _joined(found, *[_line_buffer(i["WIDTH"] * i["KH"], i["CHANNELS"])] * (i["KW"] - 1))


def _load(i: Instance) -> Mapping[str, float]:
    held = i["WIDTH"] + i["TAPS"] * i["W_WIDTH"] + i["B_WIDTH"] + 2 * i["GROUPS"] + i["STEP"] + i["BIAS"] + 5
    return {"register": held, **_counters(i["TAPS"] - 1, i["STEPS"] - 1, i["BIASES"] - 1)}


def _recurrent(i: Instance) -> Mapping[str, float]:
    """Count two queues, a choice between inputs and outputs, zeros in the first step, and counters."""
    queues = [_fifo(Instance("fp_fifo", {"WIDTH": i["H_WIDTH"], "DEPTH": i["UNITS"]}))] * 2
    unit, step = i["UNITS"] - 1, i["STEPS"] - 1
    counters = _counters(max(i["INPUTS"] - 1, unit), unit, unit, step, step, step, 1, 1, 1, 1)
    return _joined(*queues, counters, {"choice_bit": i["X_WIDTH"] + i["H_WIDTH"], "instance_fifo": 2})


def _reduce(i: Instance) -> Mapping[str, float]:
    """Return a queue, a result that grows and one that stands, and counters."""
    bits, end = i["OUT_WIDTH"], i["BEATS"] - 1
    queue = _fifo(Instance("fp_fifo", {"WIDTH": i["WIDTH"], "DEPTH": i["BEATS"] + 1}))
    one = {"comparison_bit": bits} if i["LARGEST"] else {"adder": 1, "chain_bit": bits, "pair_bit": bits}
    return _joined(queue, one, {"register": 2 * bits, "instance_fifo": 1}, _counters(end, end, 1, 1))


_COUNTED: Mapping[str, Callable[[Instance], Mapping[str, float]]] = {
    "fp_accumulate": _accumulate,
    "fp_append": lambda i: {"choice_bit": i["WIDTH"], **_counters(i["BEATS_A"] + i["BEATS_B"] - 1)},
    "fp_biased": lambda i: _joined(_memory(i["B_WIDTH"], i["OUTPUTS"]), _counters(i["OUTPUTS"] - 1)),
    "fp_channel_window": _channel_window,
    "fp_credit": lambda i: _counters(i["ROOM"], 1),
    "fp_crop": lambda i: _counters(i["ROWS"] - 1, i["COLUMNS"] - 1),
    "fp_delay": lambda i: {"register": i["DEPTH"]},
    "fp_fifo": _fifo,
    "fp_fork": lambda _: {"register": 2},
    "fp_gate": lambda i: {"counter": i["COUNT"] * (i["INPUTS"] + i["OUTPUTS"]), "register": 2},
    "fp_gather": lambda i: {"register": i["WIDTH"] * i["BEATS"], **_counters(i["BEATS"] - 1)},
    "fp_join": lambda _: {},
    "fp_largest": _largest,
    "fp_last": lambda i: _counters(i["BEATS"] - 1),
    "fp_load": _load,
    "fp_pace": lambda i: _joined(_window_counters(i), _counters(i["CLOCKS"] - 1, 1)),
    "fp_pad": _pad,
    "fp_pipeline": lambda i: {"register": i["DEPTH"]},
    "fp_pool": _pool,
    "fp_recurrent": _recurrent,
    "fp_reduce": _reduce,
    "fp_register": lambda i: {"register": 2 * i["WIDTH"] + 2, "choice_bit": i["WIDTH"]},
    "fp_repeat": lambda i: _counters(i["BEATS"] - 1),
    "fp_reverse": _reverse,
    "fp_scatter": _scatter,
    "fp_scheduled": count_scheduled,
    "fp_settle": lambda i: _counters(i["DEPTH"]),
    "fp_sequence": lambda i: _counters(i["BEATS"] - 1),
    "fp_transpose": _transpose,
    "fp_upsample": _upsample,
    "fp_window": _window,
}
