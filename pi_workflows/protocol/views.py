"""Views and subscriptions: their payloads, and the documents that answer and follow them."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from pi_workflows.base.blob import MediaType
from pi_workflows.base.limits import RUN_ID_CHARS_MAX
from pi_workflows.base.vocabulary import DisplayStatus, PageKind
from pi_workflows.protocol.runs import Limit
from pi_workflows.protocol.wire import (
    AbsolutePath,
    AnyJson,
    Count,
    Id,
    Many,
    Maybe,
    Payload,
    Revision,
    Sha256,
    Text,
    WireModel,
)

FailureReason: TypeAlias = Literal[
    "connection_lost",
    "reconnect_exhausted",
    "version_mismatch",
    "projection_failed",
    "run_removed",
]
"""Why a subscription tells nothing. The first three are raised inside the client."""


class ViewRunsWatch(Payload):
    """`view.runs.watch`: the first page of the run list now and after each change."""

    subscription_id: Id
    limit: Maybe[Limit] = None


class RunFilter(WireModel):
    """Which runs a list shows."""

    run_id_prefix: Maybe[
        Annotated[str, StringConstraints(min_length=1, max_length=RUN_ID_CHARS_MAX)]
    ] = None
    status: Maybe[DisplayStatus] = None
    project_path: Maybe[AbsolutePath] = None


class ViewRunsPage(Payload):
    """`view.runs.page`: a page of the run list. The first page has neither cursor nor revision."""

    cursor: Maybe[Count] = None
    revision: Maybe[Text] = None
    limit: Maybe[Limit] = None
    filter: Maybe[RunFilter] = None

    @model_validator(mode="after")
    def _continues_or_begins(self) -> Self:
        """A cursor means a place in one revision of the list."""
        if (self.cursor is None) != (self.revision is None):
            raise PydanticCustomError("page_half", "cursor and revision go together")
        return self


class ViewRunWatch(Payload):
    """`view.run.watch`: what changed since `revision`, or a snapshot; then every change."""

    subscription_id: Id
    revision: Maybe[Revision] = None


class ViewRunUnwatch(Payload):
    """`view.run.unwatch`: ends a subscription of any kind."""

    subscription_id: Id


class ViewPage(Payload):
    """`view.page`: a window of a run's items around the cursor, or the last one without it.

    Of kind `aggregate`, which has no cursor, a reference to all that the run gave.
    """

    kind: PageKind
    cursor: Maybe[Count] = None
    expected_revision: Maybe[Revision] = None

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        """A cursor is a place in a window."""
        if self.kind == "aggregate" and self.cursor is not None:
            raise PydanticCustomError("cursor_unused", "an aggregate has no cursor")
        return self


class ViewContent(Payload):
    """`view.content`: the next part of a value that a view names by reference."""

    path: Text
    offset: Count


class Subscribed(WireModel):
    """Receipt of the operations that begin a subscription."""

    subscribed: Literal[True]


class Unsubscribed(WireModel):
    """Receipt of `view.run.unwatch`."""

    subscribed: Literal[False]


class RunListPage(WireModel):
    """`pi-workflows.run-list-page.v1`: runs, newest first. The items are documents of the views."""

    schema_id: Annotated[Literal["pi-workflows.run-list-page.v1"], Field(alias="schema")] = (
        "pi-workflows.run-list-page.v1"
    )
    revision: Text
    start: Count
    total: Count
    items: Many[AnyJson]


class RunPage(WireModel):
    """`pi-workflows.run-page.v1`: a window of a run's items, at one presentation revision."""

    schema_id: Annotated[Literal["pi-workflows.run-page.v1"], Field(alias="schema")] = (
        "pi-workflows.run-page.v1"
    )
    run_id: Id
    revision: Revision
    kind: PageKind
    cursor: Maybe[Count] = None
    start: Count
    total: Count
    items: Many[AnyJson]
    graph_steps: Maybe[Many[AnyJson]] = None
    graph_cursor: Maybe[Count] = None
    taken_transitions: Maybe[Many[str]] = None
    replay_checkpoint: AnyJson = None


class ContentChunk(WireModel):
    """`pi-workflows.content-chunk.v1`: a part of a value in base64."""

    schema_id: Annotated[Literal["pi-workflows.content-chunk.v1"], Field(alias="schema")] = (
        "pi-workflows.content-chunk.v1"
    )
    run_id: Id
    path: Text
    media_type: MediaType
    content_bytes: Annotated[Count, Field(alias="bytes")]
    sha256: Sha256
    offset: Count
    next_offset: Count
    complete: bool
    data: str


class SubscriptionFailure(WireModel):
    """`pi-workflows.subscription-failure.v1`: the payload of an `unavailable` event."""

    schema_id: Annotated[Literal["pi-workflows.subscription-failure.v1"], Field(alias="schema")] = (
        "pi-workflows.subscription-failure.v1"
    )
    reason_code: FailureReason
    message: Text
