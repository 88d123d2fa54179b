"""Rows of counts: predictions in the scorer's form, and refusals that leave the other rows answered."""

import json

import pytest

from fpgaprune.errors import EstimateError
from fpgaprune.estimate import count_products, estimate, estimate_designs_file, estimate_rows, predict_row
from fpgaprune.target import Target

from .designs import mlp


def number(bits, integer, text=""):
    return {"W": bits, "I": integer, "signed": True, "str": text or f"ap_fixed<{bits},{integer}>"}


def dense(n_in, n_out, **more):
    row = {
        "name": f"fc_{n_in}_{n_out}", "class": "Dense", "n_in": n_in, "n_out": n_out, "reuse_factor": 1,
        "strategy": "latency", "weight_t": number(8, 1), "accum_t": number(16, 6), "input_t": number(16, 6),
        "output_t": number(16, 6),
    }  # fmt: skip
    return row | more


def row(*layers, **more):
    return {
        "id": "r", "tool": "Vivado HLS", "clock_ns": 5.0, "io_type": "io_parallel", "strategy": "latency",
        "part": "xc7z020clg400-1", "layers": list(layers or [dense(16, 8)]),
    } | more  # fmt: skip


def test_form_of_a_prediction():
    made = predict_row(row())
    assert sorted(made) == ["csynth", "id", "synth"]
    assert sorted(made["csynth"]) == ["BRAM18", "DSP", "FF", "LUT", "interval_cycles", "latency_cycles"]
    assert sorted(made["synth"]) == ["BRAM18", "DSP", "FF", "LUT"]
    assert made["csynth"]["LUT"] > made["synth"]["LUT"] > 0


def test_the_truth_is_never_read():
    class Trap(dict):
        def __getitem__(self, key):
            raise AssertionError(key)

        get = __getitem__

    bare = row()
    layer = dense(16, 8) | {"truth": Trap()}
    assert predict_row(row(layer, truth=Trap())) == predict_row(bare)


def test_a_design_and_its_counts_are_priced_alike():
    design = mlp(width=12, zeros=0.4, backend="Vivado")
    layers = []
    for spec in design.layers[1:]:
        if spec.kind == "Dense":
            weight = spec.weights["weight"]
            counted = count_products(weight)
            layers.append(
                dense(
                    *weight.shape, name=spec.name, weight_t=number(12, 1),
                    weights={
                        "w2": {
                            "n": weight.size, "zeros_q": counted.zero, "pow2_q": counted.power_of_two,
                            "n_csd_ge3": counted.many, "max_abs_bits": counted.constant_bits - 1,
                            "mean_bits_nz": counted.magnitude_bits / counted.nonzero,
                        }
                    },
                )
            )  # fmt: skip
        else:
            kind = {"relu": "Activation", "softmax": "Softmax"}[spec.name]
            layers.append(
                {"name": spec.name, "class": kind, "activation": spec.name, "n_in": spec.output_shape[0],
                 "input_t": number(16, 6), "output_t": number(16, 6)}
            )  # fmt: skip
    from_counts = predict_row(row(*layers))
    exact = estimate(design, Target.of("xc7z020clg400-1"))
    assert from_counts["csynth"]["latency_cycles"] == exact.latency_cycles
    for key, resource in (("LUT", "lut"), ("FF", "ff"), ("DSP", "dsp"), ("BRAM18", "bram18")):
        assert from_counts["csynth"][key] == pytest.approx(getattr(exact.total["csynth"], resource).value, rel=0.05)


BAD = {
    "no layers": (row() | {"layers": []}, "has no 'layers'"),
    "no clock": ({k: v for k, v in row().items() if k != "clock_ns"}, "has clock_ns None"),
    "width 0": (row(dense(16, 8, weight_t=number(0, 0))), "weight_t of 0 bits; wanted 1 to 1024"),
    "width 2000": (row(dense(16, 8, input_t=number(2000, 6))), "input_t of 2000 bits; wanted 1 to 1024"),
    "width text": (row(dense(16, 8, input_t={"W": "16"})), "input_t of '16' bits"),
    "unknown class": (row({"class": "Wavelet", "n_in": 4}), "is a 'Wavelet', which no hardware model prices"),
    "recurrent": (row({"class": "RNN", "n_in": 4}), "is a 'RNN', which no hardware model prices"),
    "only recurrent": (row({"class": "GRU", "n_in": 4}), "is a 'GRU', whose two products a row does not tell apart"),
    "negative reuse": (row(dense(16, 8, reuse_factor=-1)), "reuse_factor -1"),
    "no size": (row(dense(16, None)), "has n_out None"),
    "negative size": (row(dense(-16, 8)), "n_in -16"),
    "no id": ({k: v for k, v in row().items() if k != "id"}, "has id None"),
    "layer no object": (row([1, 2]), "is list; wanted an object"),
    "io type": (row(io_type="io_serial"), "has io_type 'io_serial'"),
    "more nonzeros than weights": (row(dense(16, 8, n_nonzero=999)), "999 nonzero weights of 128"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_bad_row_is_refused_by_name(name):
    bad, message = BAD[name]
    with pytest.raises(EstimateError) as error:
        predict_row(bad)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_layer_that_no_model_prices_is_left_out_and_named():
    whole, partial = predict_row(row()), predict_row(row(dense(16, 8), {"class": "Wavelet", "name": "wave", "n_in": 8}))
    assert partial["csynth"] == whole["csynth"]
    assert "left_out" not in whole
    (said,) = partial["left_out"]
    assert "layer 1 is a 'Wavelet', which no hardware model prices" in said


def test_a_reuse_factor_that_lays_nothing_out_is_moved_and_said():
    moved = predict_row(row(dense(16, 8, reuse_factor=7, strategy="resource")))
    assert moved["csynth"] == predict_row(row(dense(16, 8, reuse_factor=8, strategy="resource")))["csynth"]
    assert "reuse factor 7" in moved["left_out"][0]
    assert moved["left_out"][0].endswith("the nearest that does: 8")


def test_an_uncertainty_beyond_the_clock_is_cut_and_said():
    cut = predict_row(row(clock_uncertainty_ns=6.0))
    assert cut["csynth"] == predict_row(row())["csynth"]
    assert cut["left_out"] == ["clock_uncertainty_ns 6 leaves nothing of 5 ns; priced with 0.625"]


def test_an_output_of_78_bits_is_priced():
    assert predict_row(row(dense(16, 8, output_t=number(78, 40))))["csynth"]["LUT"] > 0


def test_a_quantiser_of_hgq_is_a_cast_without_a_table():
    quantiser = {"name": "h_quantize_5", "class": "h_quantize_5", "input_t": number(16, 6), "output_t": number(12, 6)}
    also = {"class": "Activation", "activation": "h_dense_2_relu_quantizer", "n_in": 8, "input_t": number(16, 6)}
    made = predict_row(row(quantiser, dense(16, 8), also))
    assert "left_out" not in made
    assert made["csynth"]["BRAM18"] == 0


def test_the_other_rows_are_still_answered(tmp_path):
    lines = [json.dumps(row(id="first"))]
    lines += [json.dumps(bad) for bad, _ in BAD.values()]
    lines += ["{not json", "[1, 2]", "", json.dumps(row(id="last"))]
    predictions, refusals = estimate_rows(lines)
    assert [p["id"] for p in predictions] == ["first", "last"]
    assert len(refusals) == len(BAD) + 2
    assert refusals[0].line == 2
    assert all(r.reason and "\n" not in r.reason for r in refusals)
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(lines))
    assert estimate_designs_file(path) == (predictions, refusals)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(EstimateError, match="cannot be read"):
        estimate_designs_file(tmp_path / "none.jsonl")


def test_mutated_rows_are_answered_or_refused_never_broken():
    """Every field of a row in turn is removed or made absurd."""
    base = row(dense(16, 8, weights={"w2": {"n": 128, "zeros_q": 3, "pow2_q": 5, "n_csd_ge3": 60, "max_abs_bits": 7}}))
    absurd = [None, -1, 0, "x", [], {}, 1e9, True]
    for key in base:
        estimate_rows([json.dumps({k: v for k, v in base.items() if k != key})])
        for value in absurd:
            estimate_rows([json.dumps(base | {key: value})])
    for key in base["layers"][0]:
        for value in absurd:
            estimate_rows([json.dumps(base | {"layers": [base["layers"][0] | {key: value}]})])
    counts = base["layers"][0]["weights"]["w2"]
    for key in counts:
        for value in absurd:
            weights = {"w2": counts | {key: value}}
            estimate_rows([json.dumps(base | {"layers": [base["layers"][0] | {"weights": weights}]})])
