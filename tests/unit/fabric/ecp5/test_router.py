"""ECP5's netlists keep their name as long as they are made by the same rules."""

import hashlib
import json

import numpy as np

from fpgaprune.fabric import cut_again_and_again
from fpgaprune.fabric.ecp5 import anchors
from fpgaprune.fabric.ecp5.router import VERSION, prepare
from fpgaprune.target import find_part

from .test_anchors import pipelines
from .test_multipliers import product

# Digest of the netlist below -> the version of the rules that made it.
MADE_BY = {"2c0cb05b588076390a997eb7b3d640e3043836ed4cac6c5428c84c83e4812360": "2"}


def cut(nets, wires, weights):
    """Halves the parts in their order; the two that stand for the outside stay where they are."""
    parts = len(weights) - 2
    return [int(2 * part >= parts) for part in range(parts)] + [0, 1]


def test_another_netlist_of_the_same_one_has_another_version(monkeypatch):
    def floorplan(weights, nets, width, height, timeout_s):
        return cut_again_and_again(np.array(weights), list(nets.items()), width, height, cut)

    monkeypatch.setattr(anchors, "floorplan", floorplan)
    netlist = pipelines(16, 70)
    netlist.chain(5, 3)
    with_product = {**netlist.module["cells"], **product(bit=100_000)["cells"]}
    document = {"modules": {"top": {"cells": with_product, "ports": {}}}}
    prepare(document, "top", find_part("lfe5u-25f"), 60)
    digest = hashlib.sha256(json.dumps(document).encode()).hexdigest()
    assert MADE_BY.get(digest) == VERSION, f"the rules make netlist {digest}: raise VERSION and list it here"
