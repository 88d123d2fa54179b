"""`certify_export`: the certificate of a folder for a board, from the run's links to the bitstream."""

import numpy as np
import pytest

from fpgaprune.errors import CertificateError
from fpgaprune.flow import certify_export
from fpgaprune.flow.run import RunDirectory
from fpgaprune.measure import BitstreamLink, Claim
from fpgaprune.rtl import to_verilog
from fpgaprune.values import MaskSet

from ..rtl.test_proof import design, text_file

PATH = "fc/kernel"
LAST = BitstreamLink(
    "net.fs", "tang-nano-9k", "0" * 64, (Claim("it computes", "on 3 samples", "0 differ", holds=True),)
)


@pytest.fixture
def run(tmp_path):
    """A run whose zeros are locked."""
    found = RunDirectory(tmp_path / "mine")
    with found.locked():
        found.manifest["stages"] = {"remove": {"outputs": {"removed.keras": "0", "removed_masks.npz": "0"}}}
        found.write_manifest()
    return found


def lock(run, masks):
    MaskSet({PATH: masks}).save(run.file("removed_masks.npz"))


def sourced():
    """The design, whose weights know their path."""
    of = design()
    layer = of.layers[1]
    object.__setattr__(layer, "sources", {"weight": PATH})
    return of


def test_every_link_says_for_which_inputs_it_holds(run, tmp_path):
    of = sourced()
    lock(run, of.layers[1].weights["weight"] != 0)
    found = certify_export(run, to_verilog(of, tmp_path / "verilog"), of, LAST)
    assert [(link["link"], link["inputs"], link["violations"]) for link in found["links"]] == [
        ("Verilog for the board", "for all inputs", 0)
    ]
    assert [(module["module"], module["holds"]) for module in found["modules"]] == [("fc_sums", True)]
    assert found["bitstream"]["holds"] is True
    assert found["bitstream"]["claims"][0]["inputs"] == "on 3 samples"


def test_a_locked_weight_with_a_product_is_refused(run, tmp_path):
    of = sourced()
    weight = of.layers[1].weights["weight"]
    masks = weight != 0
    masks[tuple(np.argwhere(masks)[0])] = False
    lock(run, masks)
    with pytest.raises(CertificateError, match=r"1 of \d+ locked elements of 'fc/kernel' have a product there"):
        certify_export(run, to_verilog(of, tmp_path / "verilog"), of, LAST)


def test_a_module_that_computes_something_else_is_refused(run, tmp_path):
    of = sourced()
    lock(run, of.layers[1].weights["weight"] != 0)
    project = to_verilog(of, tmp_path / "verilog")
    path = text_file(project, "sums")
    path.write_text(path.read_text().replace(" > ", " < "))
    with pytest.raises(CertificateError, match=r"module fc_sums: output \d is"):
        certify_export(run, project, of, LAST)


def test_a_run_that_locks_nothing_says_so(run, tmp_path):
    of = design()
    found = certify_export(run, to_verilog(of, tmp_path / "verilog"), of, LAST)
    assert found["not_read"] == "mine has no masks, so no weight is locked"
    assert found["links"] == []
