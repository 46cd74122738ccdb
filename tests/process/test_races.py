"""Clients that ask at the same moment, each over a real socket of its own: one of them wins."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from tests.process.installation import DEADLINE_S, Installation, text_at

CLIENTS: Final = 4
WORKFLOW: Final = """
from pi_workflows import checkpoint, compute, define_workflow, edge
from pydantic import BaseModel


class Input(BaseModel):
    pass


class Answer(BaseModel):
    number: int


ask = checkpoint("Which?", output=Answer)


@compute
def take(ctx):
    return {"taken": ctx.output_of(ask).number}


workflow = define_workflow(
    name="race", input=Input, start="ask", nodes={"ask": ask, "take": take},
    edges=[edge("ask", "take")],
)
"""


def at_once(
    installation: Installation, ask: Callable[[int], tuple[Operation, dict[str, Json], int]]
) -> list[Reply]:
    """Let each client ask when all of them are connected; return what each is told."""
    barrier = threading.Barrier(CLIENTS)

    def one(number: int) -> Reply:
        operation, payload, revision = ask(number)
        with installation.client(f"client-{number}") as client:
            barrier.wait(DEADLINE_S)
            return client.request(
                operation,
                payload,
                run_id="run-1",
                expected_revision=revision,
                key=f"{operation}-{number}",
            )

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(one, range(CLIENTS)))


def member(document: dict[str, Json], name: str) -> dict[str, Json]:
    """Return a part of a document."""
    found = document[name]
    assert isinstance(found, dict)
    return found


def told(reply: Reply) -> Json:
    """Return the code of a refusal, else the outcome."""
    receipt = reply.receipt
    code = receipt.get("code") if isinstance(receipt, dict) else None
    return code or str(reply.outcome.value)


def test_one_of_many_answers_wins_and_one_restart_follows(installation: Installation) -> None:
    """The run goes on with the winner's value; all who restart it are told of the same new run."""
    installation.start()
    installation.run(installation.write("race", WORKFLOW), "run-1").done()
    installation.await_status("run-1", "waiting")
    request_id = text_at(member(installation.view("run-1"), "state"), "interaction", "requestId")

    def answer(number: int) -> tuple[Operation, dict[str, Json], int]:
        payload: dict[str, Json] = {
            "requestId": request_id,
            "submissionId": f"s-{number}",
            "input": {"number": number},
        }
        return Operation.CHECKPOINT_ANSWER, payload, 1

    outcomes = [told(reply) for reply in at_once(installation, answer)]
    assert sorted(map(str, outcomes)) == ["accepted", *["alreadyAnswered"] * (CLIENTS - 1)]
    installation.await_status("run-1", "completed")
    view = installation.view("run-1")
    outputs = member(member(view, "state"), "outputs")
    assert outputs["take"] == {"taken": outcomes.index("accepted")}
    revision = view["runRevision"]
    assert isinstance(revision, int)
    replies = at_once(installation, lambda _: (Operation.RUN_RESTART, {}, revision))
    assert sorted(str(told(reply)) for reply in replies) == [
        "accepted",
        *["adopted"] * (CLIENTS - 1),
    ]
    assert len({str(reply.receipt) for reply in replies}) == 1
    installation.stop()
    installation.assert_sound()
