"""Tables with dashes under the header."""

import pytest

from fpgaprune.errors import ReportError
from fpgaprune.vendor.ruled import read_fixed

TABLE = ["Name   Area  Remark", "-----  ----  ------", "conv     12  much longer than its dashes", "relu         -", ""]


def test_only_the_last_column_reaches_beyond_its_dashes():
    table = read_fixed(TABLE, 1, "a.rpt")
    assert (table.where, table.columns) == ("a.rpt, line 1", ("Name", "Area", "Remark"))
    assert table.rows == (
        {"Name": "conv", "Area": "12", "Remark": "much longer than its dashes"},
        {"Name": "relu", "Remark": "-"},
    )
    with pytest.raises(ReportError, match=r"a\.rpt, line 3: text crosses from one column into the next"):
        read_fixed([*TABLE[:2], "conv1234 12  x"], 1, "a.rpt")
