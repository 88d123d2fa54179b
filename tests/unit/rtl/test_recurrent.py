"""Recurrent layers: layouts, schedules without locked weights, and weights read back from their Verilog."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.design import VerilogLayout
from fpgaprune.errors import CertificateError, RtlError
from fpgaprune.estimate import timed
from fpgaprune.rtl import (
    Instance,
    Looped,
    check_verilog,
    cycles_of,
    plan_verilog,
    program_of,
    prove_project,
    read_weights,
    to_verilog,
)
from fpgaprune.values import FixedType, MaskSet

from .networks import Net

ROLES = {"weight": "kernel", "recurrent_weight": "recurrent_kernel"}


def design_of(cell, locked=0.5, accum=None):
    """A network of one layer, of which a part of both matrices is locked; its name, and the masks."""
    rng = np.random.default_rng(5)
    net = Net(rng)
    name = net.recurrent(net.input(6, 3), cell, 4)
    design = net.design(name)
    layer = design[name]
    masks = {role: rng.random(layer.weights[role].shape) >= locked for role in ROLES}
    layer = replace(
        layer,
        weights={**layer.weights, **{role: np.where(mask, layer.weights[role] | 1, 0) for role, mask in masks.items()}},
        types={**layer.types, "accum": accum or FixedType(40, 20)},
        sources={role: f"{name}/{path}" for role, path in ROLES.items()},
    )
    made = replace(design, layers=tuple(layer if la.name == name else la for la in design.layers))
    return made, name, MaskSet({f"{name}/{ROLES[role]}": mask for role, mask in masks.items()})


def with_weights(design, name, role, weights):
    layer = replace(design[name], weights={**design[name].weights, role: weights})
    return replace(design, layers=tuple(layer if la.name == name else la for la in design.layers))


@pytest.mark.parametrize("multipliers", [0, 1, 7])
@pytest.mark.parametrize("cell", ["GRU", "LSTM", "RNN"])
def test_both_matrices_are_read_back(cell, multipliers, tmp_path):
    design, name, masks = design_of(cell)
    project = to_verilog(design, tmp_path, multipliers={name: multipliers} if multipliers else {})
    for role in ROLES:
        wanted, found = design[name].weights[role], read_weights(project, design[name], role)
        # A sum at once has the fraction of the accumulator.
        assert (found * np.abs(wanted).max() == wanted * np.abs(found).max()).all()
        assert (found == wanted).all() or not multipliers
    check = check_verilog(project, design, masks)
    assert sorted(weight.path for weight in check.weights) == sorted(masks)
    assert not check.violations


@pytest.mark.parametrize(("cell", "multipliers"), [("GRU", 0), ("GRU", 3), ("RNN", 0), ("RNN", 2)])
@pytest.mark.parametrize("role", ROLES)
def test_a_locked_weight_that_crept_in_is_found(role, cell, multipliers, tmp_path):
    design, name, masks = design_of(cell)
    weights = design[name].weights[role].copy()
    locked = tuple(np.argwhere(weights == 0)[2])
    weights[locked] = 1
    tampered = with_weights(design, name, role, weights)
    project = to_verilog(tampered, tmp_path, multipliers={name: multipliers} if multipliers else {})
    check = check_verilog(project, design, masks)
    assert [weight.path for weight in check.weights if weight.violations] == [f"{name}/{ROLES[role]}"]
    (first,) = (weight.first_violation for weight in check.weights if weight.violations)
    assert first.startswith(f"[{', '.join(map(str, locked))}]")


def test_a_sum_of_inputs_that_takes_a_state_is_refused(tmp_path):
    """The first two stored sums change places: that of the inputs, and that of the state."""
    design, name, _ = design_of("GRU", locked=0)
    project = to_verilog(design, tmp_path, multipliers={name: 1})
    path = tmp_path / "rtl" / f"{name}_turns.v"
    path.write_text(
        path.read_text()
        .replace("words[0] =", "words[x] =")
        .replace("words[1] =", "words[0] =")
        .replace("words[x] =", "words[1] =")
    )
    with pytest.raises(CertificateError, match="a sum of the Verilog reads values of another one"):
        read_weights(project, design[name])


@pytest.mark.parametrize("cell", ["GRU", "LSTM"])
def test_a_locked_weight_takes_no_word_and_no_cycle(cell, tmp_path):
    cycles = []
    for locked in (0.0, 0.5, 0.9):
        design, name, masks = design_of(cell, locked)
        kept = sum(int(masks[path].sum()) for path in masks)
        to_verilog(design, tmp_path, multipliers={name: 1})
        assert len(re.findall(r"words\[\d+\] = ", (tmp_path / "rtl" / f"{name}_kernels.v").read_text())) == kept
        assert program_of(design[name], 1).steps == kept
        cycles.append(cycles_of(design, design[name], VerilogLayout(multipliers={name: 1})))
    # The outputs of the sums take as many cycles as ever.
    assert cycles[0] > cycles[1] > cycles[2]


def test_many_weights_get_multipliers_unless_the_order_of_additions_counts(tmp_path):
    design, name, _ = design_of("LSTM", locked=0)
    assert to_verilog(design, tmp_path, parallel_products=30).layers[-1].note == (
        "scheduled: 4 multipliers, 112 of 112 weights kept, 28 cycles of every step"
    )
    design, name, _ = design_of("LSTM", accum=FixedType(8, 4, overflow="SAT"))
    assert to_verilog(design, tmp_path, parallel_products=30).layers[-1].note == ""
    with pytest.raises(RtlError, match=f"layer {name!r}.*its accumulator rounds or saturates"):
        to_verilog(design, tmp_path, multipliers={name: 1})


def test_its_places_are_not_paired_and_its_weights_not_loaded(tmp_path):
    design, name, _ = design_of("GRU")
    with pytest.raises(RtlError, match=f"{name} has steps that wait for each other.*take it out of multipliers"):
        to_verilog(design, tmp_path, multipliers={name: 1}, loadable=True)
    with pytest.raises(RtlError, match="take it out of paired"):
        to_verilog(design, tmp_path, multipliers={name: 1}, paired=[name])


def verdicts(project, design):
    return {proof.module.rpartition("_")[2]: proof for proof in prove_project(project, design)}


@pytest.mark.parametrize("cell", ["GRU", "LSTM"])
def test_the_sums_at_once_are_proven_and_the_tables_compared(cell, tmp_path):
    design, name, _ = design_of(cell)
    found = verdicts(to_verilog(design, tmp_path), design)
    outputs = 2 * design[name].weights["weight"].shape[1]
    assert found["sums"].holds
    assert found["sums"].found == (
        f"{outputs} sums of 7 inputs and states are the two integer matrices, with no bit lost before the accumulator"
    )
    for role in ("gates", "state"):
        assert (found[role].holds, found[role].found) == (
            None,
            "its tables are right in every entry; what it makes of them was not proven",
        )


@pytest.mark.parametrize("role", ["bias", "recurrent_bias", "weight", "recurrent_weight"])
def test_sums_of_other_weights_or_biases_are_not_proven(role, tmp_path):
    design, name, _ = design_of("GRU")
    other = design[name].weights[role].copy()
    other[np.nonzero(other)[0][0]] += 1
    project = to_verilog(with_weights(design, name, role, other), tmp_path)
    assert verdicts(project, design)["sums"].holds is False


@pytest.mark.parametrize("multipliers", [0, 2])
@pytest.mark.parametrize("role", ["gates", "state"])
def test_a_wrong_entry_of_a_table_is_found(role, multipliers, tmp_path):
    design, name, _ = design_of("LSTM")
    project = to_verilog(design, tmp_path, multipliers={name: multipliers} if multipliers else {})
    for path in sorted((tmp_path / "rtl").glob(f"{name}_{role}_rom*.v")):
        text = path.read_text()
        at, word = re.findall(r"'d(\d+): data = \d+'h([0-9a-f]+);", text)[-1]
        path.write_text(re.sub(rf"('d{at}: data = \d+'h){word};", rf"\g<1>{int(word, 16) ^ 1:x};", text))
        found = verdicts(project, design)[role]
        assert found.holds is False
        assert re.match(rf"table {path.stem} is neither sigmoid nor tanh nor .* in entry {at}", found.found)
        path.write_text(text)


@pytest.mark.parametrize("cell", ["GRU", "LSTM"])
def test_with_more_cycles_for_a_sample_it_has_fewer_multipliers_and_keeps_them(cell):
    design, _, _ = design_of(cell, locked=0)
    found = []
    for interval in (0, 6 * 120, 6 * 150, 6 * 300):
        made = plan_verilog(design, VerilogLayout(interval=interval))
        (part,) = (part for part in made.layers[0].parts if isinstance(part, Looped))
        modules = {inner.module: inner for inner in part.sums if isinstance(inner, Instance)}
        found.append(modules["fp_scheduled"]["GROUPS"] if "fp_scheduled" in modules else 0)
        assert not interval or timed(made).interval <= interval
    assert found[0] == 0
    assert found[1] > found[2] > found[3] == 1
