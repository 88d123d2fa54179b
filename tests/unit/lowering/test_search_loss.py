"""The loss that a search of precision keeps small: of classes, of labels, of outputs that are no classes."""

import numpy as np
import pytest

from fpgaprune.lowering.width_search import _loss

SCORES = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
# The first two samples change their class.
OTHER = np.array([[0.4, 0.6], [0.7, 0.3], [0.6, 0.4], [0.3, 0.7]])


def test_without_labels_the_classes_of_keras_are_the_truth():
    said, loss = _loss(SCORES, None)
    assert said == "share of samples with another class than Keras gives"
    assert (loss(SCORES).value, loss(OTHER).value) == (0.0, 0.5)


def test_with_labels_the_accuracy_counts():
    said, loss = _loss(SCORES, np.array([0, 0, 0, 1]))
    assert said == "accuracy lost against the 75.00% of Keras"
    # One right sample is lost and a wrong one is won.
    assert loss(OTHER).value == 0.0
    assert loss(1 - SCORES).value == 0.5


@pytest.mark.parametrize("scale", [0.1, 4.0])
def test_outputs_that_are_no_classes_have_an_error_over_their_own_size(scale):
    wanted = scale * np.array([[3.0], [-3.0], [3.0], [-3.0]])
    said, loss = _loss(wanted, None)
    assert said.startswith("root mean square error of the outputs")
    assert loss(wanted.reshape(-1) + 0.3 * scale).value == pytest.approx(0.1)
    _, both = _loss([wanted, 10 * wanted], None)
    assert both((wanted, 10 * wanted + 6 * scale)).value == pytest.approx(0.2)
