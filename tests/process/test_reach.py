"""What becomes of a server and its runs when their files change under them."""

from __future__ import annotations

import pytest

from pi_workflows.base.canonical import Json
from tests.process.installation import DEADLINE_S, Installation, await_true, text_at

TYPED = """
from pi_workflows import checkpoint, define_workflow
from pydantic import BaseModel

class Input(BaseModel):
    pass

class Answer(BaseModel):
    go: bool

workflow = define_workflow(
    name="typed", input=Input, start="ask",
    nodes={"ask": checkpoint("Go on?", output=Answer)}, edges=[],
)
"""


@pytest.mark.slow
def test_a_server_whose_socket_is_gone_makes_room_for_another(installation: Installation) -> None:
    """It ends in order by itself, and the next one serves the same state."""
    file = installation.write("typed", TYPED)
    installation.start()
    assert installation.run(file, "typed").is_done
    installation.await_status("typed", "waiting")
    (installation.state / "host" / "host.sock").unlink()
    assert installation.started[-1].wait(DEADLINE_S) == 0
    installation.start()
    assert installation.status("typed") == "waiting"
    installation.stop()
    installation.assert_sound()


@pytest.mark.slow
def test_an_answer_is_not_judged_by_other_code(installation: Installation) -> None:
    """A changed file is named with what helps; the question stays open for when it is back."""
    file = installation.write("typed", TYPED)
    installation.start()
    assert installation.run(file, "typed").is_done
    installation.await_status("typed", "waiting")
    state = installation.view("typed")["state"]
    assert isinstance(state, dict)
    answer: dict[str, Json] = {
        "requestId": text_at(state, "interaction", "requestId"),
        "submissionId": "submission-1",
        "input": {"go": True},
    }
    installation.write("typed", TYPED + "\n")
    refused = installation.request("checkpoint.answer", answer, run_id="typed", key="one").refusal
    assert refused is not None
    assert (refused.code, refused.hint is not None) == ("workflowSourceChanged", True)
    installation.write("typed", TYPED)
    installation.request("checkpoint.answer", answer, run_id="typed", key="two").done()
    await_true(lambda: installation.status("typed") == "completed", "the run to complete")
    installation.stop()
    installation.assert_sound()
