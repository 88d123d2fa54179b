"""Random circuits, and a judge of their schedules that knows nothing of how they are made."""

from __future__ import annotations

from hypothesis import strategies as st

from fpgaprune.rtl import COSTS, Circuit


@st.composite
def circuits(draw, operations=30, inputs=4, three=False):
    """A circuit of every operation, with inputs of several widths and some values that several others read.

    Sums of three operands are among them with `three`.
    """
    circuit = Circuit()
    places = []
    for _ in range(draw(st.integers(1, inputs))):
        width = draw(st.integers(1, 6))
        places.append(circuit.input(width, True, -(1 << (width - 1)), (1 << (width - 1)) - 1))

    def narrow(place):
        return circuit.wrap(place, 4, signed=False)

    made = {
        "add": lambda a, b: circuit.add(a, b, draw(st.integers(0, 2))),
        "sub": circuit.sub,
        "max": circuit.larger,
        "min": circuit.smaller,
        "less": circuit.less,
        "clip": lambda a, b: circuit.clip(a, -5, 6),
        "inside": lambda a, b: circuit.inside(a, -3, 9),
        "select": lambda a, b: circuit.select(circuit.less(a, b), a, circuit.const(3)),
        "shl": lambda a, b: circuit.shl(a, 2),
        "shr": lambda a, b: circuit.shr(a, 1),
        "wrap": lambda a, b: circuit.wrap(a, 5, signed=True),
        "mul": lambda a, b: circuit.mul(narrow(a), narrow(b)),
        "rom": lambda a, b: circuit.rom(narrow(a), [v * v % 11 for v in range(16)]),
    }
    if three:
        made["sum"] = lambda a, b: circuit.sum([(a, 1, 1), (b, 0, -1), (places[0], 0, 1)])
    for _ in range(draw(st.integers(1, operations))):
        a, b = draw(st.sampled_from(places)), draw(st.sampled_from(places))
        places.append(made[draw(st.sampled_from(sorted(made)))](a, b))
    for place in {draw(st.sampled_from(places)) for _ in range(draw(st.integers(1, 3)))} | {places[-1]}:
        circuit.output(place, circuit.nodes[place].width)
    return circuit


def faults(circuit, stage, depth, levels):
    """What is wrong with a schedule: values that are read too early, and stages with more levels than they may have."""
    found = []
    spent = {}
    for place in circuit.alive():
        node = circuit.nodes[place]
        args = [arg for arg in node.args if circuit.nodes[arg].op != "const"]
        if node.op == "input" and stage[place] != 0:
            found.append(f"input v{place} in stage {stage[place]}")
        late = [arg for arg in args if stage[arg] + 2 * (circuit.nodes[arg].op == "rom") > stage[place]]
        found += [f"v{place} reads v{arg} before it is there" for arg in late]
        cost = COSTS.get(node.op, 0)
        # Behind a register a value takes no levels; neither does a memory's.
        before = max((spent[arg] for arg in args if stage[arg] == stage[place]), default=0)
        spent[place] = 0 if node.op == "rom" else before + cost
        if cost and before and before + cost > levels:
            found.append(f"v{place} is behind {before + cost} levels; {levels} may be")
        if depth and stage[place] > (depth - 1 if cost else depth):
            found.append(f"v{place} in stage {stage[place]} of {depth}")
    return found


def register_bits(circuit, stage, depth):
    """Bits of the registers in which values wait for their last reader, and at the end of the pipeline."""
    total = 0
    for place in circuit.alive():
        if circuit.nodes[place].op != "const":
            readers = [stage[p] for p in circuit.alive() if place in circuit.nodes[p].args]
            readers += [depth] * any(place == out for out, _ in circuit.outputs)
            total += circuit.nodes[place].width * (max(readers, default=stage[place]) - stage[place])
    return total
