"""What an honest server never does, or hardly ever: the command line against a scripted one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.version import package_version
from tests.cli.installation import Done, Installation
from tests.client.peer import Listener, hello, response, serving

RUN = "run-1"
Answer: TypeAlias = dict[str, Any] | Callable[[dict[str, Any]], bytes]
"""The members of a response, or a function that makes one of the request."""


def listed(request: dict[str, Any]) -> bytes:
    """Answer a lookup with the one run that there is."""
    item = {
        "runId": RUN,
        "workflowName": "sample",
        "createdAt": 1,
        "updatedAt": 1,
        "display": {"status": "completed"},
    }
    page = {
        "schema": "pi-workflows.run-list-page.v1",
        "revision": "1",
        "start": 0,
        "total": 1,
        "items": [item],
    }
    return response(request, receipt=page)


def play(fresh: Installation, answers: Sequence[tuple[str, Answer]], *words: str) -> Done:
    """Run a command against a server that gives these answers, each to the operation it names."""
    (fresh.state / "host").mkdir(parents=True)
    done: list[Done] = []

    def script(listener: Listener) -> None:
        connection = listener.accept(greeting=hello(package_version()))
        for operation, answer in answers:
            request = connection.request()
            assert request["operation"] == operation
            if isinstance(answer, dict):
                connection.send(response(request, **answer))
            else:
                connection.send(answer(request))
        connection.until_closed()
        connection.close()

    with serving(fresh.state / "host" / "host.sock", script):
        done.append(fresh.cli(*words))
    return done[0]


def view(revision: int) -> dict[str, Json]:
    """Return the receipt of `view.run.get`, as far as a restart reads it."""
    return {"receipt": {"runRevision": revision}}


def test_a_restart_looks_again_after_a_conflict(fresh: Installation) -> None:
    """A run that changed meanwhile is looked at once more, under a key of its own."""
    keys: list[str] = []

    def refused(request: dict[str, Any]) -> bytes:
        keys.append(request["idempotencyKey"])
        assert request["expectedRevision"] == 7
        return response(request, "conflict", error="It changed.", receipt={"code": "staleRevision"})

    def accepted(request: dict[str, Any]) -> bytes:
        keys.append(request["idempotencyKey"])
        assert request["expectedRevision"] == 9
        receipt = {"runId": "restart-1", "parentRunId": RUN, "restartNumber": 1}
        return response(request, receipt=receipt, revision=1)

    answers: list[tuple[str, Answer]] = [
        ("view.runs.page", listed),
        ("view.run.get", view(7)),
        ("run.restart", refused),
        ("view.run.get", view(9)),
        ("run.restart", accepted),
    ]
    done = play(fresh, answers, "restart", RUN, "--key", "mine")
    assert (done.code, done.out) == (0, "restart-1\n")
    assert keys == ["mine", "mine.2"]


def effect(name: str) -> dict[str, Json]:
    """Return an ambiguous effect."""
    return {
        "effectId": name,
        "runId": RUN,
        "runStatus": "running",
        "runPaused": False,
        "tries": [],
        "choices": [],
        "decisions": [],
        "nodePath": "pay",
        "visit": 1,
        "effectType": "pay",
        "recovery": "manual",
        "status": "ambiguous",
        "attempts": 1,
        "request": None,
        "createdAt": 1,
        "updatedAt": 1,
    }


def test_a_prefix_of_several_effects(fresh: Installation) -> None:
    """Nothing is resolved when the beginning of an ID fits several effects; they are listed."""
    items: list[Json] = [effect("effect-a1"), effect("effect-a2")]
    answers = [("effect.list", {"receipt": {"items": items, "total": 2}})]
    words = ("effects", "resolve", "effect-a", "confirm", "--evidence", "seen")
    done = play(fresh, answers, *words, "--json")
    assert (done.code, done.document["code"]) == (1, "effectNameAmbiguous")
    assert "effect-a1, effect-a2" in str(done.document["message"])


def chunk(content: bytes, *, data: str, complete: bool = True) -> dict[str, Json]:
    """Return a part of a content."""
    digest = hashlib.sha256(content).hexdigest()
    return {
        "schema": "pi-workflows.content-chunk.v1",
        "runId": RUN,
        "path": f"artifacts/sha256/{digest}.json",
        "mediaType": "application/json",
        "bytes": len(content),
        "sha256": digest,
        "offset": 0,
        "nextOffset": 4,
        "complete": complete,
        "data": data,
    }


@pytest.mark.parametrize(
    "bad",
    [
        chunk(b'"ab"', data="ImNkIg=="),
        chunk(b'"ab"', data="not base64"),
        chunk(b'"ab"', data="", complete=False),
    ],
    ids=["other content", "no base64", "nothing"],
)
def test_content_is_believed_by_its_digest_only(bad: dict[str, Json], fresh: Installation) -> None:
    """Other bytes than the reference names are never shown."""
    reference: dict[str, Json] = {
        "$artifact": {
            "path": str(bad["path"]),
            "mediaType": "application/json",
            "bytes": 4,
            "sha256": str(bad["sha256"]),
            "opaque": True,
        }
    }
    document = whole_view(reference)
    answers: list[tuple[str, Answer]] = [
        ("view.runs.page", listed),
        ("view.run.get", {"receipt": document}),
        ("view.content", {"receipt": bad}),
    ]
    done = play(fresh, answers, "show", RUN)
    assert done.code == 1
    assert "content that its reference does not name" in done.err
    assert "cd" not in done.out.split("Output")[1]


def whole_view(output: Json) -> Json:
    """Return the view of a completed run with this output."""
    return canonical.decode(
        canonical.encode(
            {
                "runId": RUN,
                "revision": 1,
                "runRevision": 1,
                "live": False,
                "possiblyInterrupted": False,
                "display": {"status": "completed", "controls": [], "reason": None},
                "state": {
                    "workflowName": "sample",
                    "workflowSource": {"type": "file", "ref": "/sample_workflow.py"},
                    "traceSeq": 1,
                    "status": "completed",
                    "createdAt": 1,
                    "startedAt": 1,
                    "finishedAt": 2,
                    "finalOutput": output,
                },
                "queue": {"status": "done"},
                "workflow": {"name": "sample", "startAt": "one", "nodes": {}, "edges": []},
                "tracePage": {"start": 0, "total": 1, "items": []},
            }
        )
    )


def test_a_view_that_is_none(fresh: Installation) -> None:
    """A server that sends something else than a view is told by the member that is missing."""
    answers: list[tuple[str, Answer]] = [
        ("view.runs.page", listed),
        ("view.run.get", {"receipt": {"runId": RUN}}),
    ]
    done = play(fresh, answers, "show", RUN)
    assert done.code == 1
    assert "a run view without revision" in done.err


def test_a_server_of_another_version(fresh: Installation) -> None:
    """A server of another version is not asked, but for its status and its end."""
    (fresh.state / "host").mkdir(parents=True)

    def script(listener: Listener) -> None:
        connection = listener.accept(greeting=hello("0.0.1"))
        connection.until_closed()
        connection.close()
        connection = listener.accept(greeting=hello("0.0.1"))
        connection.send(response(connection.request(), receipt={"state": "running", "news": 1}))
        connection.until_closed()
        connection.close()

    with serving(fresh.state / "host" / "host.sock", script):
        refused = fresh.cli("runs", "--json")
        status = fresh.cli("server", "status")
    assert (refused.code, refused.document["code"]) == (3, "versionMismatch")
    assert "0.0.1" in str(refused.document["message"])
    assert (status.code, status.out) == (0, "news: 1\nstate: running\n")
