"""Every backend x io type x strategy x network: written, locks zero in the files, compiled, the emulator's bits."""

import shutil

import pytest

from fpgaprune.backends import BACKENDS
from fpgaprune.errors import HlsError, UnsupportedLayerError
from tests.quick import quick

from .hls_contract import CASES, COMPILED, QUICK, check_compiled, check_written, make


def needs(case):
    if case.strategy == "distributed_arithmetic" and case.refusal is None:
        pytest.importorskip(
            "da4ml", reason="da4ml, which makes the adders of 'distributed_arithmetic', is not installed"
        )


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_a_project_is_written_and_holds_its_locks(case, tmp_path):
    needs(case)
    check_written(case, tmp_path / "hls")


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on PATH: the C simulation cannot be compiled")
@pytest.mark.parametrize("case", COMPILED, ids=str)
def test_the_compiled_project_gives_the_bits_of_the_emulator(case, tmp_path):
    check_compiled(case, *check_written(case, tmp_path / "hls"))


REFUSED = [case for case in CASES if case.refusal and case.network in ("mlp", "depthwise")]
# One for each backend and reason.
FEW = {(case.backend, case.refusal): case for case in REFUSED}


@pytest.mark.parametrize("case", quick(FEW.values(), REFUSED, str))
def test_what_has_no_template_is_refused_and_nothing_is_written(case, tmp_path):
    with pytest.raises((HlsError, UnsupportedLayerError), match=case.refusal) as error:
        make(case, tmp_path / "hls")
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case.refusal is None], ids=str)
def test_the_whole_table(case, tmp_path):
    needs(case)
    project, x = check_written(case, tmp_path / "hls")
    if BACKENDS[case.backend].compiles:
        check_compiled(case, project, x)


def test_the_quick_cases_meet_every_backend_io_type_strategy_and_network():
    for place in range(4):
        values = [(c.backend, c.io_type, c.strategy, c.network)[place] for c in (*QUICK, *COMPILED)]
        wanted = {(c.backend, c.io_type, c.strategy, c.network)[place] for c in CASES}
        assert set(values) == wanted - {"distributed_arithmetic"}
