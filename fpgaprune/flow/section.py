"""`Section`: one table of a flow file, with no key that it does not know."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of a flow file; unknown keys are refused, and nothing changes afterwards.

    The text below each key says what it means; `fpgaprune config` and docs/flow_file.md show it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
