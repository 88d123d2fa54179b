"""The certificate's link of a design: the integers that our Verilog is made of."""

import numpy as np
import pytest

from fpgaprune.certify import check_design
from fpgaprune.errors import CertificateError
from fpgaprune.values import MaskSet

from .projects import design, layer

WEIGHT = np.array([[0, 3, -2], [5, 0, 1]])


def test_a_locked_integer_that_is_not_zero_is_seen():
    made = design(layer("fc", "Dense", {"weight": WEIGHT}, (3,)))
    link = check_design(made, MaskSet({"fc/weight": WEIGHT != 0}))
    assert (link.link, link.locked, link.violations) == ("design.json", 2, 0)
    (counts,) = link.layers
    assert (counts.weights, counts.zero, counts.power_of_two) == (6, 2, 2)
    assert check_design(made, MaskSet({"fc/weight": np.zeros((2, 3), bool)})).violations == 4


def test_a_locked_kernel_that_the_design_lacks_is_refused():
    made = design(layer("fc", "Dense", {"weight": WEIGHT}, (3,)))
    with pytest.raises(CertificateError, match="'gone/weight' is locked but missing"):
        check_design(made, MaskSet({"gone/weight": np.zeros((2, 2), bool)}))


def test_a_dense_layer_of_each_position_is_checked_with_the_mask_of_its_kernel():
    """Behind positions it is a convolution of one tap in hardware, whose kernel has an axis more."""
    made = design(layer("fc", "PointwiseConv1D", {"weight": WEIGHT[None]}, (4, 3)))
    link = check_design(made, MaskSet({"fc/weight": WEIGHT != 0}))
    assert (link.locked, link.violations) == (2, 0)
    assert check_design(made, MaskSet({"fc/weight": np.zeros((2, 3), bool)})).violations == 4
    with pytest.raises(CertificateError, match=r"has shape \(1, 2, 3\); its mask has \(3, 2\)"):
        check_design(made, MaskSet({"fc/weight": np.ones((3, 2), bool)}))
