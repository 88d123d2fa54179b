"""A link of a certificate in another form is one line that says what to do."""

import pytest

from fpgaprune.errors import CertificateError
from fpgaprune.measure import BitstreamLink, LinkCheck


@pytest.mark.parametrize(
    ("kind", "advice"), [(LinkCheck, "run the flow again"), (BitstreamLink, "export the run again")]
)
@pytest.mark.parametrize("data", [{}, [], None, {"link": 3}])
def test_a_link_in_another_form_is_refused(kind, advice, data):
    with pytest.raises(CertificateError, match=rf"^certificate is malformed: .*; {advice}$"):
        kind.from_json(data)
