"""The answer of a search: what synthesis refutes is not called best, and what it has not counted is said."""

from types import SimpleNamespace

import pytest
from msgspec import structs

from fpgaprune.errors import RunError
from fpgaprune.fit.finalists import BEST, Finalists
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.layout import Laid
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.ranking import Ranking
from fpgaprune.flow import Silent
from tests.unit.fit.made_up import Prices, made
from tests.unit.rtl.networks import parallel_design

RANKING = Ranking(Limits(share=0.8), 5.0)


def chosen(folder, shares, counted, counts=True):
    """The answer and the notes, where `counted` says what a tool counts of each network; and the layouts that it had.

    Each network has two layouts, the second slower with half of the share.
    """
    points, laid_out = [], []
    for number, share in enumerate(shares):
        knobs = Knobs("weight", weight_bits=8 - number)
        home = folder / str(number)
        home.mkdir()
        parallel_design(3, 3).save(home / "design.json")
        point = made(knobs, Prices().fastest(knobs), (0.9, 1, 1))
        points.append(structs.replace(point, share=share, used={"lut": 100}, fits=share <= 0.8, folder=str(home)))

    def whole(point, laid, epochs):
        count = counted[points.index(point)]
        laid_out.append(laid.rung)
        if count is None:
            return structs.replace(point, epochs=epochs)
        if count == 0:
            return None
        share = count / 100 * point.share
        return structs.replace(point, measured={"lut": count}, share=share, fits=share <= 0.8, epochs=epochs)

    def layouts(design):
        # The price of a layout is that of the first network.
        return [
            Laid(rung, {}, shares[0] / part, "lut", {}, 10 * part, 10 * part)
            for rung, part in (("all", 1), ("half", 2))
        ]

    route = SimpleNamespace(layouts=layouts, counts=counts)
    impossible = {str(Knobs("weight", weight_bits=8 - number)): "no such network" for number in range(len(shares))}
    trials = SimpleNamespace(whole=whole, route=route, impossible=impossible)
    notes = []
    best = Finalists(trials, RANKING, 9, folder, Silent(), notes).best(points)
    return best, notes, laid_out


def test_a_network_that_synthesis_refutes_gives_way_to_the_next(tmp_path):
    best, notes, _ = chosen(tmp_path, [0.70, 0.74], [120, 105])
    assert best.meets_limits
    assert best.measured == {"lut": 105}
    assert best.folder == str(tmp_path / BEST)
    assert (tmp_path / BEST / "design.json").read_bytes() == (tmp_path / "1" / "design.json").read_bytes()
    (note,) = notes
    assert note.startswith(f"{Knobs('weight')}: met the limits in the search")


def test_after_a_count_the_next_layout_is_chosen_by_the_corrected_price(tmp_path):
    # By its price the network fits as it is, 0.7 of 0.8; counted it took 1.2 times its price, and has to be halved.
    assert chosen(tmp_path, [0.70, 0.74], [120, 105])[2] == ["all", "half"]


def test_if_synthesis_refutes_all_the_nearest_is_the_answer(tmp_path):
    best, notes, _ = chosen(tmp_path, [0.70, 0.74, 0.76, 0.78], [130, 120, 140, 100])
    assert not best.meets_limits
    assert best.measured == {"lut": 120}
    assert len(notes) == 3


@pytest.mark.parametrize("counts", [True, False])
def test_what_no_tool_has_counted_is_said(tmp_path, counts):
    best, notes, _ = chosen(tmp_path, [0.7], [None], counts)
    assert best.measured is None
    assert [note for note in notes if "no tool has counted" in note] == notes
    assert len(notes) == counts


def test_no_network_at_all_is_an_error_that_says_why(tmp_path):
    with pytest.raises(RunError, match="no such network"):
        chosen(tmp_path, [0.7], [0])
