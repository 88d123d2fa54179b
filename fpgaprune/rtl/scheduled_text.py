"""Verilog text of `ScheduledSums`: their module with its memories, and what loads those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fpgaprune.rtl.scheduled_sums import MODULE, ScheduledSums, in_blocks

# Modules of hw/rtl that it contains.
CONTAINS = ("fp_group", "fp_memory", "fp_product", "fp_products", "fp_total", "fp_turns")
# The ports through which a load comes to a layer, and goes on to the next one.
_LOAD_PORTS = (("l", "input"), ("n", "output"))


def scheduled_text(module: str, sums: ScheduledSums, before: str, after: str) -> str:
    """Write the text that makes `sums` of the stream `before`, in the layer `module`."""
    p, loaded = sums.parameters, sums.loaded is not None
    word, turn = sums.word_bits, sums.turn_bits
    given = _given({**p, "STARTS": sums.starts})
    written = ".write(load_writes), .write_at(load_at), .in_data(load_kernel), " if loaded else ""
    leaving = "sum" if loaded else after
    text = (
        f"    wire [{p['STEP'] - 1}:0] step;\n    wire [{word - 1}:0] word;\n    wire reads;\n"
        f"    wire [{p['TURN'] - 1}:0] turn;\n    wire [{turn - 1}:0] part;\n"
        f"    {module}_kernels kernels (.clk(clk), .ce(1'b1), {written}.at(step), .word(word));\n"
        f"    {module}_turns turns (.clk(clk), .ce(reads), .at(turn), .word(part));\n"
        f"    {MODULE} #({given}) sums (\n"
        "        .clk(clk), .rst(rst), .step(step), .word(word), .reads(reads), .turn(turn), .part(part),\n"
        f"        .s_data({before}_data), .s_valid({before}_valid), .s_ready({before}_ready),\n"
        f"        .m_data({leaving}_data), .m_valid({leaving}_valid), .m_ready({leaving}_ready)\n    );\n"
    )
    return _loaded_text(module, sums, after) + text if loaded else text


def _loaded_text(module: str, sums: ScheduledSums, after: str) -> str:
    """Write the modules that load the memories of `sums` and put a bias above each sum."""
    p = sums.load_parameters
    return (
        f"    wire [{p['GROUPS'] - 1}:0] load_writes;\n    wire [{p['STEP'] - 1}:0] load_at;\n"
        f"    wire [{p['TAPS'] * p['W_WIDTH'] - 1}:0] load_kernel;\n    wire bias_writes;\n"
        f"    wire [{p['BIAS'] - 1}:0] bias_to;\n    wire [{p['B_WIDTH'] - 1}:0] bias_data;\n"
        f"    wire [{p['BIAS'] - 1}:0] bias_at;\n    wire [{p['B_WIDTH'] - 1}:0] bias;\n"
        f"    wire [{sums.bits - 1}:0] sum_data;\n    wire sum_valid;\n    wire sum_ready;\n"
        f"    fp_load #({_given(p)}) load (\n        .clk(clk), .rst(rst),\n"
        "        .l_data(l_data), .l_valid(l_valid), .l_end(l_end),\n"
        "        .n_data(n_data), .n_valid(n_valid), .n_end(n_end),\n"
        "        .writes(load_writes), .write_at(load_at), .kernel(load_kernel),\n"
        "        .bias_writes(bias_writes), .bias_at(bias_to), .bias(bias_data)\n    );\n"
        f"    {module}_biases biases (.clk(clk), .ce(1'b1), .write(bias_writes), .write_at(bias_to), "
        ".in_data(bias_data), .at(bias_at), .word(bias));\n"
        f"    fp_biased #({_given(sums.bias_parameters)}) biased (\n"
        "        .clk(clk), .rst(rst), .at(bias_at), .bias(bias),\n"
        "        .s_data(sum_data), .s_valid(sum_valid), .s_ready(sum_ready),\n"
        f"        .m_data({after}_data), .m_valid({after}_valid), .m_ready({after}_ready)\n    );\n"
    )


def load_ports(sums: ScheduledSums) -> list[str]:
    """Return the ports of a layer's module by which a load comes and goes on; none where weights are not loaded."""
    if sums.loaded is None:
        return []
    return [
        port
        for prefix, way in _LOAD_PORTS
        for port in (
            f"{way} wire [{sums.loaded.beat - 1}:0] {prefix}_data",
            f"{way} wire {prefix}_valid",
            f"{way} wire {prefix}_end",
        )
    ]


def memory_files(module: str, sums: ScheduledSums, head: str) -> Mapping[str, str]:
    """Return the files, by name, of the memories of kernels and of turns, and of biases where they are loaded."""
    kernels, turns, biases = f"{module}_kernels", f"{module}_turns", f"{module}_biases"
    p = sums.parameters
    groups = f"For each of {p['GROUPS']} groups from the lowest bits on"
    more = "// Stored sums that are read: {nothing, last, group, slot}.\n"
    found = {f"{turns}.v": head + more + _memory(turns, sums.turn_bits, sums.turns(), p["TURN"])}
    if sums.loaded is None:
        note = f"// {groups}: {{last, {p['TAPS']} weights, gap}}.\n"
        found[f"{kernels}.v"] = head + note + _memory(kernels, sums.word_bits, sums.words(), p["STEP"])
        return found
    note = (
        f"// {groups}: {{last, {p['TAPS']} weights, gap}}. The weights can be loaded; what is\n"
        "// visited when, {last, gap}, cannot.\n"
    )
    found[f"{kernels}.v"] = head + note + _kernels(kernels, sums)
    mask = (1 << sums.loaded.bias.width) - 1
    words = [bias & mask for bias in sums.loaded.biases]
    found[f"{biases}.v"] = head + _memory(
        biases, sums.loaded.bias.width, words, sums.load_parameters["BIAS"], written=True
    )
    return found


def _memory(module: str, width: int, words: Sequence[int], address: int, written: bool = False) -> str:
    """Return a module that holds `words`, and gives the one at `at` a cycle later."""
    ports = _write_port(1, address, width) if written else ""
    return (
        f"module {module} (\n    input wire clk,\n    input wire ce,\n{ports}"
        f"    input wire [{address - 1}:0] at,\n    output reg [{width - 1}:0] word\n);\n"
        f"{_array('words', width, words, written)}"
        "    always @(posedge clk) begin\n        if (ce) begin\n            word <= words[at];\n        end\n"
        + ("        if (write) begin\n            words[write_at] <= in_data;\n        end\n" if written else "")
        + f"    end\n    initial begin\n{_rows('words', width, words)}    end\nendmodule\n"
    )


def _kernels(module: str, sums: ScheduledSums) -> str:
    """Return the module of kernels whose weights are written group by group."""
    p, groups = sums.parameters, sums.program.groups
    each, gap = p["TAPS"] * p["W_WIDTH"], p["GAP"]
    mark = 1 + gap
    joined = ", ".join(
        f"marked[{g * mark + gap}], kernel[{g * each} +: {each}]" + (f", marked[{g * mark} +: {gap}]" if gap else "")
        for g in reversed(range(groups))
    )
    writes = "".join(
        f"        if (write[{g}]) begin\n            weights[write_at][{g * each} +: {each}] <= in_data;\n        end\n"
        for g in range(groups)
    )
    return (
        f"module {module} (\n    input wire clk,\n    input wire ce,\n{_write_port(groups, p['STEP'], each)}"
        f"    input wire [{p['STEP'] - 1}:0] at,\n    output wire [{sums.word_bits - 1}:0] word\n);\n"
        f"{_array('words', groups * mark, sums.marks(), False)}{_array('weights', groups * each, sums.weights(), True)}"
        f"    reg [{groups * mark - 1}:0] marked;\n    reg [{groups * each - 1}:0] kernel;\n"
        f"    assign word = {{{joined}}};\n"
        "    always @(posedge clk) begin\n        if (ce) begin\n            marked <= words[at];\n"
        f"            kernel <= weights[at];\n        end\n{writes}    end\n"
        f"    initial begin\n{_rows('words', groups * mark, sums.marks())}"
        f"{_rows('weights', groups * each, sums.weights())}    end\nendmodule\n"
    )


def _write_port(enables: int, address: int, width: int) -> str:
    return (
        f"    input wire [{enables - 1}:0] write,\n    input wire [{address - 1}:0] write_at,\n"
        f"    input wire [{width - 1}:0] in_data,\n"
    )


def _array(name: str, width: int, words: Sequence[int], written: bool) -> str:
    style = f'    (* {"ram" if written else "rom"}_style = "block" *)\n' if in_blocks(len(words), width) else ""
    return f"{style}    reg [{width - 1}:0] {name} [0:{len(words) - 1}];\n"


def _rows(name: str, width: int, words: Sequence[int]) -> str:
    digits = -(-width // 4)
    return "".join(f"        {name}[{place}] = {width}'h{word:0{digits}x};\n" for place, word in enumerate(words))


def _given(parameters: Mapping[str, int | str]) -> str:
    return ", ".join(f".{name}({value})" for name, value in parameters.items())
