import numpy as np

from fpgaprune.network import Slots


def test_fresh_slots_are_their_own_roots():
    slots = Slots()
    assert slots.fresh(3).tolist() == [0, 1, 2]
    assert slots.fresh(2).tolist() == [3, 4]
    assert slots.roots().tolist() == [0, 1, 2, 3, 4]


def test_unions_follow_chains_in_any_order():
    slots = Slots()
    ids = slots.fresh(200)
    slots.unite(ids[1::2], ids[::2])
    slots.unite(ids[2::2], ids[:-2:2])
    assert (slots.roots() == 0).all()


def test_roots_agree_with_a_plain_search():
    generator = np.random.default_rng(5)
    for _ in range(20):
        slots = Slots()
        count = 30
        slots.fresh(count)
        label = list(range(count))
        for _ in range(18):
            a, b = (int(k) for k in generator.integers(0, count, 2))
            slots.unite(np.array([a]), np.array([b]))
            low, high = sorted((label[a], label[b]))
            label = [low if value == high else value for value in label]
        assert slots.roots().tolist() == label


def test_one_slot_is_united_with_many():
    slots = Slots()
    many, one = slots.fresh(4).reshape(2, 2), slots.fresh(1)
    slots.unite(many, one)
    assert slots.roots().tolist() == [0, 0, 0, 0, 0]
