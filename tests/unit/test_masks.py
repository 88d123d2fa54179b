"""MaskSet: polarity, algebra, slice notation, files, messages."""

import numpy as np
import pytest

from fpgaprune.errors import MaskError
from fpgaprune.select import parse_cost, parse_granularity
from fpgaprune.values import MaskSet, parse_slice

SHAPES = {"conv1/kernel": (3, 3, 1, 32), "conv2/kernel": (3, 3, 32, 16), "conv2/bias": (16,)}


def test_slice_locks_exactly_that_kernel():
    masks = MaskSet.from_slices(SHAPES, ["conv2/kernel[:, :, 29, 13]"])
    expected = np.ones((3, 3, 32, 16), bool)
    expected[:, :, 29, 13] = False
    assert masks == MaskSet({"conv2/kernel": expected})
    assert masks.locked_count == 9


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("conv2/kernel[..., 13]", np.s_[..., 13]),
        ("conv2/kernel[..., -1]", np.s_[..., -1]),
        ("conv2/kernel[0, 1:3, ::2]", np.s_[0, 1:3, ::2]),
        ("conv2/kernel[:, :, -4:, ...]", np.s_[:, :, -4:, ...]),
        ("conv2/kernel", np.s_[...]),
        ("conv2/kernel[...]", np.s_[...]),
        (" conv2/kernel [ : , : , 3 ]", np.s_[:, :, 3]),
        ("conv2/kernel[:, :, [1, 5], 0]", np.s_[:, :, [1, 5], 0]),
    ],
)
def test_notation_means_what_numpy_means(text, index):
    expected = np.ones((3, 3, 32, 16), bool)
    expected[index] = False
    assert np.array_equal(MaskSet.from_slices(SHAPES, [text])["conv2/kernel"], expected)


def test_lists_on_two_axes_name_their_product():
    mask = MaskSet.from_slices(SHAPES, ["conv2/kernel[:, :, [1, 2], [3, 4]]"])["conv2/kernel"]
    assert (~mask).sum() == 9 * 4


def test_glob_names_every_match():
    masks = MaskSet.from_slices(SHAPES, ["conv*/kernel[0]"])
    assert sorted(masks) == ["conv1/kernel", "conv2/kernel"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("conv9/kernel[0]", "matches no weight; did you mean conv2/kernel, conv1/kernel?"),
        ("conv2/kernel[:, :, 32, 0]", "index 32 on axis 2, which has 32 entries"),
        ("conv2/kernel[:, :, -33]", "wanted -32 to 31"),
        ("conv2/kernel[:, :, 0:40]", "bound 40 on axis 2"),
        ("conv2/kernel[0, 0, 0, 0, 0]", "has 5 indices; the weight has shape (3, 3, 32, 16)"),
        ("conv2/kernel[..., ...]", "more than one '...'"),
        ("conv2/kernel[::0]", "a step of 0"),
        ("conv2/kernel[__import__('os')]", "has the index"),
        ("conv2/kernel[0", "cannot be read"),
        ("conv2/kernel[[0]", "brackets that do not match"),
        ("", "cannot be read"),
    ],
)
def test_bad_slices_are_named(text, part):
    with pytest.raises(MaskError) as error:
        MaskSet.from_slices(SHAPES, [text])
    assert part in str(error.value)
    assert "\n" not in str(error.value)


def test_algebra():
    a = MaskSet({"k": np.array([True, True, False, False]), "only_a": np.array([False])})
    b = MaskSet({"k": np.array([True, False, True, False])})
    assert (a & b)["k"].tolist() == [True, False, False, False]
    assert (a | b)["k"].tolist() == [True, True, True, False]
    assert (~a)["k"].tolist() == [False, False, True, True]
    assert (a & b)["only_a"].tolist() == [False]  # free in b, so locked stays locked
    assert (a | b)["only_a"].tolist() == [True]
    assert a.sparsity == 3 / 5


def test_only_bool_is_a_mask():
    with pytest.raises(MaskError, match="dtype float64; wanted bool"):
        MaskSet({"k": np.array([0.0, 1.0])})


def test_masks_cannot_be_changed_in_place():
    source = np.ones(3, bool)
    masks = MaskSet({"k": source})
    source[0] = False
    assert masks["k"].all()
    with pytest.raises(ValueError, match="read-only"):
        masks["k"][0] = False


def test_file_round_trip_is_exact_and_reproducible(tmp_path):
    rng = np.random.default_rng(0)
    masks = MaskSet({path: rng.random(shape) > 0.5 for path, shape in SHAPES.items()})
    masks.save(tmp_path / "a.npz")
    MaskSet(dict(reversed(list(masks.items())))).save(tmp_path / "b.npz")
    assert MaskSet.load(tmp_path / "a.npz") == masks
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npz", "b.npz"]


def test_pickled_masks_are_refused(tmp_path):
    np.savez(tmp_path / "evil.npz", k=np.array([object()], dtype=object), allow_pickle=True)
    with pytest.raises(MaskError, match="is not a mask file"):
        MaskSet.load(tmp_path / "evil.npz")


def test_digest_sees_every_bit_and_the_shape():
    mask = np.ones((2, 9), bool)
    digests = {MaskSet({"k": mask}).digest(), MaskSet({"k": mask.reshape(9, 2)}).digest()}
    for at in range(18):
        changed = mask.copy()
        changed.flat[at] = False
        digests.add(MaskSet({"k": changed}).digest())
    assert len(digests) == 20


def test_what_fits_no_weight_is_named():
    with pytest.raises(MaskError, match=r"shape \(2,\); the weight has \(16,\)"):
        MaskSet({"conv2/bias": np.ones(2, bool)}).fitted(SHAPES)
    with pytest.raises(MaskError, match="fits no weight"):
        MaskSet({"conv3/bias": np.ones(2, bool)}).fitted(SHAPES)


@pytest.mark.parametrize("index", ["{}", ":{}", "[0, {}]", "::{}", "-{}"])
def test_an_index_of_thousands_of_digits_is_refused_in_one_line(index):
    with pytest.raises(MaskError, match=r"of 5,00\d characters; wanted 18 at most"):
        parse_slice(f"conv/kernel[:, :, {index.format('9' * 5000)}, 0]")


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (parse_granularity, "{}:4"),
        (parse_granularity, "block({}, 4)"),
        (parse_granularity, "multiplier(latency, {})"),
        (parse_cost, "adders({})"),
        (parse_cost, "adders(6, {})"),
    ],
)
def test_a_number_of_thousands_of_digits_is_none_of_a_unit_or_a_cost(read, text):
    with pytest.raises(MaskError, match="is unknown; wanted"):
        read(text.format("9" * 5000))
