"""`soft_labels`: the true class and the teacher's answer in exactly the stated shares."""

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import DataError

X = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
Y = np.array([0, 2, 1])
LOGITS = np.array([[0.0, np.log(4), 0], [np.log(9), 0, 0], [np.log(9), np.log(4), 0]])
# At temperature 2: the roots of 1, 4, 1 and so on, as shares of their sum.
SOFT = np.array([[1 / 4, 2 / 4, 1 / 4], [3 / 5, 1 / 5, 1 / 5], [3 / 6, 2 / 6, 1 / 6]])
TRUE = np.array([[1, 0, 0], [0, 0, 1], [0, 1, 0]])


def teacher(activation=None):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, activation, use_bias=False)])
    model.set_weights([LOGITS[:2].astype(np.float32)])
    return model


@pytest.mark.parametrize("share", [0, 0.25, 1])
def test_labels_have_the_shares_that_were_asked_for(share):
    found = fp.soft_labels(teacher(), X, Y, share)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, (1 - share) * TRUE + share * SOFT, rtol=1e-6, atol=1e-7)


def test_unless_told_otherwise_four_fifths_are_the_teachers_at_temperature_two():
    np.testing.assert_allclose(fp.soft_labels(teacher(), X, Y), 0.2 * TRUE + 0.8 * SOFT, rtol=1e-6, atol=1e-7)


def test_at_temperature_one_the_teacher_says_its_probabilities():
    found = fp.soft_labels(teacher(), X, Y, 1, 1)
    np.testing.assert_allclose(found[0], [1 / 6, 4 / 6, 1 / 6], rtol=1e-6)


def test_a_teacher_with_a_softmax_says_the_same():
    logits, probabilities = (
        fp.soft_labels(teacher(activation), X, Y, 0.7, from_logits=activation is None)
        for activation in (None, "softmax")
    )
    np.testing.assert_allclose(logits, probabilities, rtol=1e-6, atol=1e-7)


def test_a_probability_of_zero_stays_zero():
    model = teacher("relu")  # its outputs are taken as probabilities: 0 where the logit is 0
    assert fp.soft_labels(model, X, Y, 1, 1, from_logits=False)[0].tolist() == pytest.approx([0, 1, 0], abs=1e-30)


@pytest.mark.parametrize("labels", [Y[:, None], TRUE, TRUE.astype(np.float32), Y.astype(np.uint8)])
def test_every_form_of_labels_gives_the_same(labels):
    assert np.array_equal(fp.soft_labels(teacher(), X, labels), fp.soft_labels(teacher(), X, Y))


def test_pixels_have_labels_of_their_own():
    images = keras.Sequential([keras.Input((2, 2, 1)), keras.layers.Conv2D(3, 1)])
    numbers = np.arange(8).reshape(2, 2, 2) % 3
    found = fp.soft_labels(images, np.zeros((2, 2, 2, 1)), numbers, 0.5)
    assert found.shape == (2, 2, 2, 3)
    assert np.array_equal(found.argmax(axis=-1), numbers)


def test_the_loss_is_that_of_the_labels_and_that_of_the_teacher_in_these_shares():
    outputs = np.array([[0.5, -1, 2], [0, 0, 1], [3, 1, 0]], np.float32)

    def loss(labels):
        return float(keras.losses.CategoricalCrossentropy(from_logits=True)(labels.astype(np.float32), outputs))

    assert loss(fp.soft_labels(teacher(), X, Y, 0.3)) == pytest.approx(0.7 * loss(TRUE) + 0.3 * loss(SOFT), rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"share": 1.5}, r"share of the teacher is 1\.5; wanted a fraction from 0 to 1"),
        ({"share": float("nan")}, "share of the teacher is nan"),
        ({"temperature": 0}, "temperature is 0; wanted a number above 0"),
        ({"temperature": float("inf")}, "temperature is inf"),
        ({"y": np.array([0, 3, 1])}, "labels hold int64 from 0 to 3; wanted class numbers from 0 to 2"),
        ({"y": Y[:2]}, r"labels have shape \(2,\), and the teacher's outputs \(3, 3\)"),
        ({"y": SOFT}, r"labels of shape \(3, 3\) are not one-hot"),
        ({"y": 2 * TRUE}, "are not one-hot"),
        ({"y": Y + 0.5}, "labels hold float64; wanted class numbers, which are whole"),
    ],
)
def test_what_does_not_fit_is_refused_with_one_line(arguments, message):
    with pytest.raises(DataError, match=message) as caught:
        fp.soft_labels(teacher(), X, **{"y": Y, **arguments})
    assert "\n" not in str(caught.value)


def test_a_teacher_of_one_number_has_no_classes():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    with pytest.raises(DataError, match="and an output for each class"):
        fp.soft_labels(model, X, Y)


def test_a_teacher_of_two_outputs_is_refused():
    entry = keras.Input((2,))
    model = keras.Model(entry, [keras.layers.Dense(3)(entry), keras.layers.Dense(3)(entry)])
    with pytest.raises(DataError, match="the teacher has 2 outputs; wanted one"):
        fp.soft_labels(model, X, Y)
