"""`Fabric`: what quantities of hardware take on a device family after open synthesis."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from fpgaprune.errors import EstimateError, shown
from fpgaprune.estimate.verilog.datapaths import Counts
from fpgaprune.files import hardware_path
from fpgaprune.rtl import in_blocks


@dataclass(frozen=True)
class Fabric:
    """A device family.

    Attributes:
        name: as open synthesis calls it, as `xc7`.
        lut, ff: what one of each quantity takes.
        ranges: resource -> true value over price of a whole network, at the ends of the 80 % range.
        layer_ranges: those of a layer.
        memory: how yosys chooses memories: `block`, the resource that a block is, its words, and costs where it changes
            to blocks, from LUTs that are memories or, where `depths` is empty, from registers.
        product: how wide the operands and the result of a multiplier in a DSP block are, at least and at most, and from
            how many bits beyond that on there is a block for them.
    """

    name: str
    lut: Mapping[str, float]
    ff: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]]
    layer_ranges: Mapping[str, tuple[float, float]]
    memory: Mapping[str, Any]
    product: Mapping[str, int]

    def resources(self, counts: Counts) -> dict[str, float]:
        """Return the LUTs, flip-flops, DSP blocks and block memories that `counts` take."""
        mapped = self.mapped(counts)
        return {
            "lut": max(sum(self.lut.get(name, 0.0) * count for name, count in mapped.items()), 0.0),
            "ff": max(sum(self.ff.get(name, 0.0) * count for name, count in mapped.items()), 0.0),
            "dsp": mapped["dsp"],
            self.memory["block"]: mapped["block"],
        }

    def memories(self, counts: Counts) -> int:
        """Return how many memories made of LUTs `counts` take, each of the words that `memory` says."""
        return round(self.mapped(counts)["memory_lut"] / self.memory["luts"]) if self.memory["depths"] else 0

    def mapped(self, counts: Counts) -> Counts:
        """Map memories, tables and products of `counts` to the cells of this family."""
        found = Counts()
        for name, count in counts.items():
            kind, *sizes = name.split("_")
            if kind == "memory":
                self._memory(int(sizes[0]), int(sizes[1]), count, found)
            elif kind == "table" and sizes[0].isdigit():
                self._table(int(sizes[0]), int(sizes[1]), count, found)
            elif kind == "program":
                self._program(int(sizes[0]), int(sizes[1]), count, found)
            elif kind == "multiplier":
                self._multiplier(int(sizes[0]), int(sizes[1]), count, found)
            elif kind == "product":
                self._product(int(sizes[0]), int(sizes[1]), int(sizes[2]), count, found)
            else:
                found[name] += count
        return found

    def _memory(self, width: int, depth: int, count: float, found: Counts) -> None:
        """Add `count` memories with one port that writes and one that reads to `found`."""
        m = self.memory
        if not m["depths"]:
            if width * depth * m["cost"] > m["block_cost"] * self._block_memories(width, depth):
                found["block"] += count * self._block_memories(width, depth)
                found["register"] -= count * width
            else:
                found["register"] += count * width * depth
                found["memory_choice"] += count * width * (depth - 1)
            return
        bits, banks = next(
            ((b, -(-depth // d)) for d, b in zip(m["depths"], m["bits"], strict=True) if depth <= d),
            (m["bits"][-1], -(-depth // m["depths"][-1])),
        )
        cells = -(-width // bits) * banks
        # Some families count only the bits of a cell that are used; behind the cells, words are chosen by address.
        cost = m["cost"] * (banks * width / bits if m["by_bit"] else cells)
        cost += m["choice_cost"] * width * (banks - 1) + m["bank_cost"] * banks
        if cost <= m["block_cost"] * self._block_memories(width, depth):
            found["memory_lut"] += count * m["luts"] * cells
            found["memory_choice"] += count * width * (banks - 1)
        else:
            found["block"] += count * self._block_memories(width, depth)
            # The register behind a block memory is a part of it.
            found["register"] -= count * width

    def _block_memories(self, width: int, depth: int) -> int:
        words: list[tuple[int, int]] = self.memory["block_words"]
        wide = next((bits for bits, deep in words if depth <= deep), words[-1][0])
        return -(-width // wide) * -(-depth // max(deep for _, deep in words))

    def _table(self, entries: int, bits: int, count: float, found: Counts) -> None:
        m = self.memory
        blocks = self._block_memories(bits, entries)
        if entries * bits * m["rom_cost"] > m["block_cost"] * blocks:
            found["block"] += count * blocks
        else:
            found["table_lut"] += count * bits * max(entries / m["table_entries"], 1.0)
            found["table_register"] += count * bits

    def _program(self, words: int, bits: int, count: float, found: Counts) -> None:
        """Add the words of a scheduled layer to `found`, in block memories where `to_verilog` asks for them."""
        if in_blocks(words, bits):
            found["block"] += count * self._block_memories(bits, words)
        else:
            found["table_lut"] += count * bits * max(words / self.memory["table_entries"], 1 / 16)
            found["register"] += count * bits

    def _multiplier(self, a: int, b: int, count: float, found: Counts) -> None:
        """Map the multipliers of a scheduled layer, which `to_verilog` asks a DSP block for where there are any.

        Synthesis makes no DSP block of a result that is too small.
        """
        if self.product["least"] > max(a, b) or a + b < self.product["least_result"]:
            found["multiplier_bit"] += count * a * b
        else:
            found["dsp"] += count

    def _product(self, a: int, b: int, bits: int, count: float, found: Counts) -> None:
        p = self.product
        if b < p["least"] or bits < p["least_result"]:
            found["product_bit"] += count * a * b
            return
        beyond = [max(a - p["wide"], 0), max(b - p["narrow"], 0)]
        parts = [1 + (-(-bits // p["part"]) if bits >= p["least_rest"] else 0) for bits in beyond]
        # Where what is beyond both limits has a result too small for a block, that part is made of LUTs.
        small = p["least_rest"] > 1 and min(parts) > 1 and sum(beyond) + 2 < p["least_result"]
        found["dsp"] += count * (parts[0] * parts[1] - small)


def priced_families() -> str:
    """Return the names of the families that have a price, for a message."""
    return ", ".join(sorted(_fitted()))


@cache
def _fitted() -> Mapping[str, Any]:
    """Read each family; what it lacks is that of the family named by its `like`."""
    document = tomllib.loads(hardware_path("calibration", "verilog.toml").read_text(encoding="utf-8"))
    found = {family: data for family, data in document.items() if "lut" in data}
    for family, data in found.items():
        if "like" in data:
            found[family] = {name: {**table, **data.get(name, {})} for name, table in found[data["like"]].items()}
    return found


@cache
def find_fabric(name: str) -> Fabric:
    """Read the device family called `name` in `hw/calibration/verilog.toml`.

    Raises:
        EstimateError: nothing was fitted for the family.
    """
    families = _fitted()
    if name not in families:
        raise EstimateError(f"family {shown(name)} has no price of Verilog; those that have: {priced_families()}")
    data = families[name]
    ranges, layer_ranges = (
        {resource: (low, high) for resource, (low, high) in data[key].items()} for key in ("ranges", "layer_ranges")
    )
    return Fabric(name, data["lut"], data["ff"], ranges, layer_ranges, data["memory"], data["product"])
