"""What a node's function is given, and what it publishes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from pydantic import BaseModel, ValidationError

from pi_workflows import (
    CancelSignal,
    Context,
    Json,
    Progress,
    Update,
    checkpoint,
    compute,
)
from pi_workflows.authoring.updates import PublishedUpdate, published
from pi_workflows.base.errors import LimitExceeded, NotFound, PayloadInvalid, ProblemsFound

make_progress: Callable[..., Progress] = Progress


class Finding(BaseModel):
    """An output with types that JSON does not have."""

    at: datetime
    score: float


@dataclass
class Kept:
    """Keeps what a function publishes."""

    updates: list[PublishedUpdate] = field(default_factory=list)

    async def publish(self, update: PublishedUpdate) -> None:
        """Keep an update."""
        self.updates.append(update)

    def publish_from_thread(self, update: PublishedUpdate) -> None:
        """Keep an update."""
        self.updates.append(update)


def nothing(ctx: Context[None]) -> object:
    """Stand for a function whose output is given."""
    return ctx.input


NODES = {
    "find": compute(nothing, output=Finding),
    "list": compute(nothing),
    "ask": checkpoint("Go on?"),
}
TWICE = compute(nothing)
FOUND: Json = {"at": "2026-01-02T03:04:05Z", "score": 1}


def context(outputs: Mapping[str, Json], publisher: Kept | None = None) -> Context[None]:
    """A context of a workflow with the nodes above."""
    return Context(
        input=None,
        outputs=outputs,
        results={},
        run_id="run-1",
        project_path="/project",
        node_path="find",
        visit=1,
        attempt_number=1,
        cancel=CancelSignal(),
        nodes={**NODES, "x": TWICE, "y": TWICE},
        publisher=publisher or Kept(),
    )


def test_outputs_come_back_typed() -> None:
    """A node with a model gives an instance of it, one without gives the JSON value."""
    ctx = context({"find": FOUND, "list": [1, 2], "ask": "yes"})
    found = ctx.output_of(NODES["find"])
    assert isinstance(found, Finding)
    assert found.at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert ctx.output_of(NODES["list"]) == [1, 2]
    assert ctx.output_of(NODES["ask"]) == "yes"


@pytest.mark.parametrize(
    ("node", "code", "message"),
    [
        (NODES["list"], "outputMissing", "'list' has no output yet"),
        (compute(nothing), "nodeForeign", "not one of the workflow's nodes"),
        (TWICE, "nodeAmbiguous", "several names (x, y)"),
    ],
)
def test_an_output_that_is_not_there(node: Any, code: str, message: str) -> None:
    """A missing output, a foreign node and a node under two names each say what to do."""
    with pytest.raises(NotFound) as error:
        context({"find": FOUND}).output_of(node)
    assert error.value.reason_code == code
    assert message in error.value.message


def test_a_stored_output_that_no_longer_fits_is_refused() -> None:
    """A stored value is judged by the model as it is now."""
    with pytest.raises(ProblemsFound, match=r"output\.score: is required"):
        context({"find": {"at": "2026-01-02T03:04:05Z"}}).output_of(NODES["find"])


def test_a_context_is_frozen() -> None:
    """A function cannot change what the next one is given."""
    ctx: Any = context({})
    with pytest.raises(FrozenInstanceError):
        ctx.visit = 2


def test_the_cancel_signal_wakes_a_thread() -> None:
    """A waiting thread returns at once when its end is requested."""
    signal = CancelSignal()
    assert (signal.requested, signal.wait(0)) == (False, False)
    signal.request()
    assert (signal.requested, signal.wait(60)) == (True, True)


def test_updates_are_checked_copies() -> None:
    """What is published is a copy: changing the author's object afterwards changes nothing."""
    kept = Kept()
    ctx = context({}, kept)
    data: dict[str, object] = {"files": ["a"]}
    ctx.publish_update_from_thread(Update("repo.files", data), key="k/1")
    data["files"] = []
    trio.run(ctx.publish_update, Progress(label="Reading", completed=1, total=2, unit="files"))
    assert kept.updates == [
        PublishedUpdate("repo.files", "k/1", {"files": ["a"]}),
        PublishedUpdate(
            "progress",
            "node:find",
            {
                "schema": "pi-workflows.progress.v1",
                "status": "running",
                "label": "Reading",
                "completed": 1,
                "total": 2,
                "unit": "files",
            },
        ),
    ]


@pytest.mark.parametrize(
    ("update", "key", "code"),
    [
        (Update("Files", {}), None, "updateTypeInvalid"),
        (Update("progress", {}), None, "updateTypeInvalid"),
        (Update("x" * 65, {}), None, "updateTypeInvalid"),
        (Update("files", {}), "", "updateKeyInvalid"),
        (Update("files", {}), "-a", "updateKeyInvalid"),
        (Update("files", {}), "k" * 129, "updateKeyInvalid"),
        (Update("files", {"x": {1, 2}}), None, "notJson"),
        (Update("files", {"x": float("nan")}), None, "numberNotFinite"),
        (Update("files", {"x": "y" * 65_536}), None, "updateTooLarge"),
    ],
)
def test_updates_that_are_not_allowed(update: Update, key: str | None, code: str) -> None:
    """Type, key, data and size are checked before anything is sent."""
    with pytest.raises((PayloadInvalid, LimitExceeded)) as error:
        published(update, key=key, node_path="find")
    assert error.value.reason_code == code


def test_a_long_path_still_makes_a_key() -> None:
    """The default key of a deeply mounted node stays within its bound."""
    assert len(published(Progress(), key=None, node_path="n" * 300).key) == 128


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"status": "busy"}, "status"),
        ({"label": "x" * 201}, "label"),
        ({"phase": "x" * 129}, "phase"),
        ({"completed": -1, "unit": "x"}, "completed"),
        ({"total": 0, "unit": "x"}, "total"),
        ({"total": 1, "completed": 2, "unit": "x"}, "completed may not be over total"),
        ({"completed": 1}, "unit is required"),
        ({"total": float("inf"), "unit": "x"}, "total"),
        ({"completed": 1, "unit": "x" * 33}, "unit"),
        ({"source_updated_at": datetime(2026, 1, 1)}, "source_updated_at"),  # noqa: DTZ001
        ({"more": 1}, "more"),
    ],
)
def test_progress_has_limits(parts: dict[str, object], message: str) -> None:
    """Every member of a progress update has its bound; unknown members are refused."""
    with pytest.raises(ValidationError, match=message):
        make_progress(**parts)


def test_progress_times_are_rfc_3339() -> None:
    """Times are written with their zone."""
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    data = published(Progress(source_updated_at=at), key=None, node_path="a").data
    assert isinstance(data, dict)
    assert data["sourceUpdatedAt"] == "2026-01-02T03:04:05Z"
