"""Reports of strangers' projects, as the tools wrote them, give the figures that stand in them.

The files are not part of the project: without `shared` beside the checkout these tests are left out.
"""

from pathlib import Path

import pytest
from msgspec import structs

from fpgaprune.errors import ReportError
from fpgaprune.measure import Resources
from fpgaprune.vendor import PLATFORM, parse_reports, read_reports

from .real_figures import EXPECTED, REFUSED, UNKNOWN

FOLDER = Path(__file__).parents[3].parent / "shared" / "vendor_reports"
if not FOLDER.is_dir():
    pytest.skip("no ../shared/vendor_reports beside the checkout", allow_module_level=True)


# The other folders hold reports of tools that this package does not read.
READ = ("quartus", "vitis_hls", "vivado")
ALL = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*") if path.is_file())
FILES = [name for name in ALL if name.startswith(READ)]


def stated(report):
    """The report's figures under the names of the table above."""
    plain = ("stage", "design", "part", "tool_version", "date", "passed", "clock_ns", "est_clock_ns", "slack_ns")
    return {
        **report.other,
        **{name: getattr(report, name) for name in plain},
        **structs.asdict(report.total),
        **structs.asdict(report.cycles),
        "other": report.other,
        "rows": len(report.rows),
    }


def parsed(name):
    return parse_reports((FOLDER / name).read_bytes().decode(errors="replace"), name)


def test_every_file_is_expected_to_be_read_or_refused():
    assert sorted([*EXPECTED, *REFUSED]) == FILES


@pytest.mark.parametrize("name", EXPECTED)
def test_a_real_report_gives_the_figures_that_stand_in_it(name):
    reports = parsed(name)
    assert [report.stage for report in reports] == [expected["stage"] for expected in EXPECTED[name]]
    for report, expected in zip(reports, EXPECTED[name], strict=True):
        got = stated(report)
        assert {key: got[key] for key in expected} == expected


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_without_figures_is_refused_with_its_reason(name):
    with pytest.raises(ReportError, match=REFUSED[name]):
        parsed(name)


@pytest.mark.parametrize("name", sorted({*ALL} - {*FILES}))
def test_a_report_of_another_tool_is_refused(name):
    with pytest.raises(ReportError, match=UNKNOWN):
        parsed(name)


@pytest.mark.parametrize("kind", READ)
def test_a_folder_of_them_is_read_but_for_those_that_are_named(kind):
    found = read_reports(FOLDER / kind)
    assert {str(report.source.relative_to(FOLDER)) for report in found} == {
        name for name in EXPECTED if Path(name).parent.name == kind
    }
    assert {str(one.path.relative_to(FOLDER)) for one in found.unread} == {
        name for name, reason in REFUSED.items() if Path(name).parent.name == kind and reason != UNKNOWN
    }


def test_the_platform_is_known_apart():
    (amd,) = parsed("vivado/2022.2_kernel_util_routed.rpt")
    assert amd.breakdown[PLATFORM] == Resources(lut=127605, ff=178700, dsp=4, bram18=400, uram=0)


def test_rows_of_modules_have_their_figures():
    (fit,) = parsed("quartus/nabeel-at-intel_output_files_top.fit.rpt")
    (first, *_) = fit.rows
    assert (first.name, first.module, first.usage.lut, first.usage.ff) == ("LOOP[0].my_div", "div_int", 134, 174)
    (xml,) = parsed("vitis_hls/2022.1_read_romcode_csynth.xml")
    (row,) = xml.rows
    assert (row.usage.lut, row.usage.ff, row.cycles.latency_min, row.cycles.interval_max) == (84, 74, 4, None)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_real_report_that_is_cut_off_is_refused_or_says_the_same(name):
    text = (FOLDER / name).read_bytes().decode(errors="replace")
    whole = parse_reports(text, name)
    for twentieth in range(20):
        try:
            got = parse_reports(text[: len(text) * twentieth // 20], name)
        except ReportError:
            continue
        assert got == whole
