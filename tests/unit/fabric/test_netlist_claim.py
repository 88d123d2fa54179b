"""The comparison of a netlist with its Verilog is a claim of the certificate, or its absence has a reason there."""

from types import SimpleNamespace

import pytest

from fpgaprune.errors import ToolTimeoutError
from fpgaprune.fabric import NetlistProof, with_netlist
from fpgaprune.measure import BitstreamLink, Claim

BITS = Claim("the bitstream computes the emulator's bits", "on 5 samples", "0 differ", holds=True)
LINK = BitstreamLink("net.fs", "tang-nano-9k", "0" * 64, (BITS,))


def linked(monkeypatch, outcome, link=LINK):
    """The link, where the proof for the board's family ends so."""

    def prove(project, family, **_):
        assert (project, family) == ("project", "gowin")
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr("fpgaprune.fabric.netlist_proof.prove_netlist", prove)
    return with_netlist(link, "project", "tang-nano-9k", cache="cache")


def test_what_was_proven_is_a_claim_of_the_bitstream(monkeypatch):
    found = linked(monkeypatch, NetlistProof("gowin", 90, 10, ()))
    assert [claim.inputs for claim in found.claims] == ["on 5 samples", "for all inputs"]
    assert found.claims[1].found == "90 bits compared, 0 differ; 10 not decided, as behind memories and multipliers"
    assert (found.holds, found.left_out) == (True, None)
    assert BitstreamLink.from_json(found.to_json()) == found


def test_a_link_whose_netlist_differs_does_not_hold(monkeypatch):
    found = linked(monkeypatch, NetlistProof("gowin", 90, 10, ("v7_d1[3]",)))
    assert not found.holds
    assert found.claims[1].found == "v7_d1[3] does not"


@pytest.mark.parametrize("before", [None, "its cells were not compared"])
def test_what_was_not_compared_has_its_reason(monkeypatch, before):
    link = BitstreamLink("net.fs", "tang-nano-9k", "0" * 64, (BITS,), before)
    found = linked(monkeypatch, ToolTimeoutError("abc ran longer than 60 s"), link)
    assert (found.claims, found.holds) == (LINK.claims, True)
    said = "netlist and Verilog not compared: abc ran longer than 60 s"
    assert found.left_out == (f"{before}; {said}" if before else said)


def test_a_bitstream_that_was_not_read_back_gets_no_claim(monkeypatch):
    unread = BitstreamLink("net.fs", "tang-nano-9k", "0" * 64, (), "Apycula is missing")
    assert linked(monkeypatch, SimpleNamespace(), unread) is unread
