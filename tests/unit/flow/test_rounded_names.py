"""The report of a network that was trained while it rounded: its layers are those of the network before."""

import keras
import numpy as np

import fpgaprune as fp
from fpgaprune.report import in_names_of, layer_reports
from fpgaprune.values import MaskSet, weight_arrays


def test_both_kernels_of_a_separable_convolution_are_there_after_training_that_rounds():
    layers = keras.layers
    stack = [
        keras.Input((6, 6, 3)),
        layers.SeparableConv2D(4, 3, name="both", use_bias=False),
        layers.BatchNormalization(name="norm"),
        layers.Conv2D(2, 2, name="plain"),
        layers.DepthwiseConv2D(2, name="each"),
        layers.Reshape((4, 2)),
        layers.GRU(3, name="steps"),
        layers.Dense(2, name="dense"),
    ]
    model = keras.Sequential(stack)
    before = weight_arrays(model)
    samples = np.random.default_rng(1).normal(size=(8, 6, 6, 3)).astype("float32")
    after = weight_arrays(fp.quantize(model, fp.Target.of("xc7z020clg400-1"), samples, fp.Precision(6, 8)))
    masks = fp.MaskSet({"both/kernel": np.eye(3, 4, dtype=bool)[None, None]})
    found = {report.name: report for report in layer_reports(in_names_of(after, before), after, masks, {})}
    assert {name: report.channels_after for name, report in found.items()} == {
        name: report.channels_before for name, report in found.items()
    }
    assert {"both_depthwise", "both", "plain", "each", "dense"} <= found.keys()
    assert (found["both"].kernels_kept, found["both"].kernels_locked) == (3, 9)
    # By its own names the separable convolution is gone.
    wrong = layer_reports(before, after, MaskSet({}), {})
    assert [report.name for report in wrong if report.channels_after is None][:2] == [
        "both/depthwise",
        "both/pointwise",
    ]


def test_a_transposed_kernel_has_its_outputs_before_its_inputs():
    model = keras.Sequential([keras.Input((4, 4, 3)), keras.layers.Conv2DTranspose(5, 2, name="up")])
    arrays = weight_arrays(model)
    mask = np.ones((2, 2, 5, 3), bool)
    mask[:, :, 4, :2] = False
    (report,) = layer_reports(arrays, arrays, MaskSet({"up/kernel": mask}), {}, ["up"])
    assert (report.kind, report.channels_before, report.channels_after) == ("Conv2DTranspose", (3, 5), (3, 5))
    assert (report.kernels_kept, report.kernels_locked) == (13, 2)
    assert not report.mask[:2, 4].any()
    assert report.mask[2, 4]


def test_a_kernel_that_training_spread_among_zeros_counts_as_it_is_there():
    model = keras.Sequential(
        [keras.Input((8, 8, 4)), keras.layers.Conv2D(6, 3, dilation_rate=2, groups=2, name="wide")]
    )
    x = np.random.default_rng(1).normal(size=(8, 8, 8, 4)).astype("float32")
    after = weight_arrays(fp.quantize(model, fp.Target.of("xc7z020clg400-1"), x, fp.Precision(6, 8)))
    (report,) = layer_reports(in_names_of(after, weight_arrays(model)), after, MaskSet({}), {})
    assert (report.channels_before, report.channels_after) == ((4, 6), (4, 6))
    assert report.parameters_before == report.parameters_after == 5 * 5 * 4 * 6 + 6
