"""verify waits for no run and judges none that is in progress: its files change under it."""

import pytest

from fpgaprune.errors import RunError
from fpgaprune.flow import RunDirectory, verify_run


def test_a_run_in_progress_is_in_use(tmp_path):
    run = RunDirectory(tmp_path / "run")
    with run.locked():
        run.record("train", "key", {}, {}, {}, 0.0)
        with pytest.raises(RunError, match="is in use by process"):
            verify_run(tmp_path / "run")
    with pytest.raises(RunError, match="run the flow to its end first"):
        verify_run(tmp_path / "run")
