"""What a person reads of a request that waits."""

from __future__ import annotations

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.cli.question import question_lines


@pytest.mark.parametrize(
    ("contract", "lines"),
    [
        (None, ["An answer is needed."]),
        ({"summary": "Go on?", "content": 3}, ["Go on?", "  3"]),
        (
            {"kind": "agent", "prompt": "Plan it.\nThen \x1b[2Jwait."},
            [
                "The model of the run's session is asked:",
                "  Plan it.",
                "  Then \\x1b[2Jwait.",
            ],
        ),
    ],
)
def test_a_request_says_what_is_asked(contract: Json, lines: list[str]) -> None:
    """Its summary and what goes with it; of a model's step, what the model is told."""
    assert list(question_lines(contract)) == lines
