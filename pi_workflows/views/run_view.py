"""`pi-workflows.run-view.v1`: one run as it stands, in one bounded document from one read.

The client protocol, "Run view". What grows with the run is shown by pages; a value over 16 KiB is a
reference to its content.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import (
    FRAME_DEPTH_MAX,
    INLINE_BYTES_MAX,
    PAGE_BYTES_MAX,
    SNAPSHOT_BYTES_MAX,
    VIEW_DEFINITION_BYTES_MAX,
)
from pi_workflows.base.sql import Read
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.domain.display import Display
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.run.state import NODE_OUTCOME
from pi_workflows.views.capture import session_member
from pi_workflows.views.content import stored_value
from pi_workflows.views.decision import human_decision
from pi_workflows.views.definition import definition_document
from pi_workflows.views.facts import ProcessFacts, RunFacts, run_facts
from pi_workflows.views.follow_ups import follow_ups_page
from pi_workflows.views.graph import live_graph
from pi_workflows.views.heads import Head, HeadValue, head_values, last_node, node_heads, step_total
from pi_workflows.views.messages import messages_page
from pi_workflows.views.page import Page
from pi_workflows.views.pages import steps_page, trace_page, updates_page
from pi_workflows.views.request import interaction
from pi_workflows.views.settings import settings_page
from pi_workflows.views.value import Value, embed, embedded


@dataclass(frozen=True, slots=True)
class RunView:
    """A run view, encoded once for everybody who gets it.

    Attributes:
        run_id: The run.
        revision: Its presentation revision, the cursor of those who watch.
        run_revision: Its own revision, which commands compare.
        content: The canonical bytes of the document.
    """

    run_id: str
    revision: int
    run_revision: int
    content: bytes

    @property
    def document(self) -> Json:
        """The document, ready to stand in a frame."""
        return canonical.fragment(self.content)


@dataclass(frozen=True, slots=True)
class _Budget:
    """How many bytes each part may take."""

    page_bytes: int

    @property
    def value_bytes(self) -> int:
        """One value."""
        return min(INLINE_BYTES_MAX, self.page_bytes)

    @property
    def outputs_bytes(self) -> int:
        """The newest output of every node: as much as two pages."""
        return 2 * self.page_bytes

    @property
    def definition_bytes(self) -> int:
        """The whole definition; a larger one is shown by windows."""
        return min(VIEW_DEFINITION_BYTES_MAX, 2 * self.page_bytes)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What every attempt at the document is built from."""

    facts: RunFacts
    display: Display
    error: Value | None
    heads: list[Head]
    values: list[HeadValue]
    step_total: int


def run_view(read: Read, run_id: str, process: ProcessFacts) -> RunView:
    """Return the view of a run.

    Args:
        read: One consistent read; everything comes from it.
        run_id: The run.
        process: What lives now.

    Returns:
        The view, of at most 768 KiB: over it every budget is halved and the view built again.

    Raises:
        NotFound: There is no such run.
    """
    facts = run_facts(read, run_id)
    parts = _parts(read, facts, process)
    page_bytes = PAGE_BYTES_MAX
    while True:
        document = _document(read, parts, _Budget(page_bytes))
        content = canonical.encode(document, depth_max=FRAME_DEPTH_MAX)
        if len(content) <= SNAPSHOT_BYTES_MAX:
            return RunView(run_id, facts.revision, facts.run_revision, content)
        page_bytes //= 2
        assert page_bytes > 0, "a view of empty pages is too large"


def _parts(read: Read, facts: RunFacts, process: ProcessFacts) -> _Parts:
    """Read what does not depend on a budget."""
    error = _stored_error(read, facts)
    message = Failure.parse(error.load(read)).message if error is not None else None
    snapshot = read.document(Snapshot.parse, facts.definition_hash)
    heads = node_heads(read, facts.run_id, snapshot.nodes)
    return _Parts(
        facts=facts,
        display=facts.display(process, message),
        error=error,
        heads=heads,
        values=head_values(read, heads),
        step_total=step_total(read, facts.run_id),
    )


def _document(read: Read, parts: _Parts, budget: _Budget) -> dict[str, Json]:
    """Build the document within a budget."""
    facts = parts.facts
    steps = steps_page(read, facts.run_id, parts.step_total, None, budget.page_bytes)
    trace = trace_page(read, facts, None, budget.page_bytes)
    graph = live_graph(read, facts.run_id, parts.heads, parts.step_total, budget.page_bytes)
    updates = updates_page(read, facts.run_id, budget.page_bytes)
    settings = settings_page(read, facts, budget.page_bytes)
    follow_ups = follow_ups_page(read, facts.run_id, budget.page_bytes)
    messages = messages_page(read, facts.run_id, budget.page_bytes)
    definition = definition_document(
        read,
        facts.definition_hash,
        facts.node_id or last_node(parts.heads),
        whole_bytes_max=budget.definition_bytes,
        page_bytes_max=budget.page_bytes,
    )
    taken: list[Json] = list(graph.transitions)
    return {
        "schema": "pi-workflows.run-view.v1",
        "runId": facts.run_id,
        "revision": facts.revision,
        "runRevision": facts.run_revision,
        **_process_members(parts.display, parts.error, budget.value_bytes),
        "manifest": facts.manifest(),
        "state": _state(read, parts, steps, budget),
        "workflow": canonical.fragment(definition),
        "queue": facts.queue().document(),
        "graphSteps": graph.steps.documents,
        "graphStepStart": graph.steps.start,
        "graphStepTotal": graph.steps.total,
        "takenTransitions": taken,
        "takenTransitionStart": graph.transition_start,
        "takenTransitionTotal": graph.transition_total,
        "graphCursor": graph.cursor,
        "stepStart": steps.start,
        "stepTotal": steps.total,
        "outputTotal": sum(value.output is not None for value in parts.values),
        "resultTotal": len(parts.values),
        "tracePage": {"start": trace.start, "total": trace.total, "items": trace.documents},
        "updates": updates.documents,
        "updateStart": updates.start,
        "updateTotal": updates.total,
        "settingsScopes": settings.documents,
        "settingsStart": settings.start,
        "settingsTotal": settings.total,
        "followUpQueue": {"items": follow_ups.documents},
        "followUpStart": follow_ups.start,
        "followUpTotal": follow_ups.total,
        "workflowMessages": messages.documents,
        "workflowMessageStart": messages.start,
        "workflowMessageTotal": messages.total,
        "session": session_member(read, facts, budget.page_bytes),
    }


def process_members(read: Read, facts: RunFacts, process: ProcessFacts) -> dict[str, Json]:
    """Return the members of a view that depend on live processes and are stored nowhere.

    Args:
        read: The view's read.
        facts: The run.
        process: What lives now.

    Returns:
        `display`, `live` and `possiblyInterrupted`.
    """
    error = _stored_error(read, facts)
    message = Failure.parse(error.load(read)).message if error is not None else None
    return _process_members(facts.display(process, message), error, INLINE_BYTES_MAX)


def _stored_error(read: Read, facts: RunFacts) -> Value | None:
    """Return why a run ended or is parked."""
    error_hash = facts.error_hash or facts.queue_error_hash
    return stored_value(read, error_hash) if error_hash is not None else None


def _process_members(display: Display, error: Value | None, bytes_max: int) -> dict[str, Json]:
    """Return what people are told; a reason that is too long becomes a phrase and a reference."""
    controls: list[Json] = list(display.controls)
    document: dict[str, Json] = {
        "status": display.status,
        "activity": display.activity,
        "controls": controls,
        "reason": display.reason,
    }
    if error is not None and len(canonical.encode(display.reason)) > bytes_max:
        document["reason"] = display.phrase
        document["reasonContent"] = canonical.fragment(error.reference())
    return {
        "display": document,
        "live": display.is_live,
        "possiblyInterrupted": display.is_possibly_interrupted,
    }


def _state(read: Read, parts: _Parts, steps: Page, budget: _Budget) -> dict[str, Json]:
    """Return `pi-workflows.run-state.v1`: where the run is and what it gave so far."""
    facts = parts.facts
    state: dict[str, Json] = {
        "schema": "pi-workflows.run-state.v1",
        "runId": facts.run_id,
        "workflowName": facts.workflow_name,
        "workflowSource": facts.source(),
        "createdAt": facts.created_at,
        "input": _value(read, facts.input_hash, budget.value_bytes),
        "outputs": _outputs(read, parts.values, budget),
        "results": _results(read, parts.values, budget),
        "steps": steps.documents,
        **state_members(read, facts, budget.value_bytes),
    }
    if facts.title is not None:
        state["title"] = facts.title
    if facts.final_output_hash is not None:
        state["finalOutput"] = _value(read, facts.final_output_hash, budget.value_bytes)
    return state


def state_members(
    read: Read, facts: RunFacts, value_bytes_max: int = INLINE_BYTES_MAX
) -> dict[str, Json]:
    """Return those members of the state that a command may change and that no run makes longer.

    Args:
        read: The view's read.
        facts: The run.
        value_bytes_max: Bytes of a value; a larger one is a reference to its content.

    Returns:
        The members that there are.
    """
    state: dict[str, Json] = {
        "traceSeq": facts.run_revision,
        "status": facts.status,
        "startedAt": facts.started_at,
        "updatedAt": facts.updated_at,
        **_place(read, facts),
    }
    if facts.finished_at is not None:
        state["finishedAt"] = facts.finished_at
    if facts.status_detail is not None:
        state["statusDetail"] = facts.status_detail
    if facts.paused:
        state["paused"] = True
    if facts.error_hash is not None:
        state["error"] = _value(read, facts.error_hash, value_bytes_max)
    return state


def _place(read: Read, facts: RunFacts) -> dict[str, Json]:
    """Return where the run is: the attempt that has not ended, and what it waits for."""
    if facts.attempt_id is None:
        return {}
    place: dict[str, Json] = {"currentAttemptId": facts.attempt_id}
    if facts.request_kind == "decision":
        place["humanDecision"] = human_decision(read, facts.attempt_id)
    if facts.is_request_pending and facts.request_id is not None:
        place["waitingOn"] = facts.node_id
        place["interaction"] = interaction(read, facts.request_id)
    else:
        place["currentNode"] = facts.node_id
    return place


def _value(read: Read, digest: bytes, bytes_max: int) -> Json:
    """Return a value of the run itself."""
    return embedded(read, stored_value(read, digest), bytes_max)


def _outputs(read: Read, values: Sequence[HeadValue], budget: _Budget) -> Json:
    """Return the newest output of each node."""
    given = ((value.node_path, value.output) for value in values if value.output is not None)
    return _fitting(
        ((path, embed(read, output, budget.value_bytes), output) for path, output in given),
        budget.outputs_bytes,
    )


def _results(read: Read, values: Sequence[HeadValue], budget: _Budget) -> Json:
    """Return how the newest settled attempt of each node ended."""
    return _fitting(
        ((value.node_path, _result(read, value, budget.value_bytes), None) for value in values),
        budget.page_bytes,
    )


def _result(read: Read, value: HeadValue, bytes_max: int) -> bytes:
    """Return how an attempt ended."""
    result: dict[str, Json] = {"outcome": NODE_OUTCOME[value.status]}
    if value.error is not None:
        result["error"] = embedded(read, value.error, bytes_max)
    return canonical.encode(result)


def _fitting(members: Iterable[tuple[str, bytes, Value | None]], bytes_max: int) -> Json:
    """Take members, the newest first, while they fit.

    Args:
        members: Name, canonical bytes, and the value that a reference may stand for.
        bytes_max: Bytes of the object.

    Returns:
        The object. A member that does not fit is referred to; one whose reference does not fit is
        left out, and the view's totals tell.
    """
    found: dict[str, Json] = {}
    bytes_left = bytes_max
    for name, content, value in members:
        overhead = len(canonical.encode(name)) + 2
        for shown in (content, value.reference() if value is not None else content):
            if len(shown) + overhead <= bytes_left:
                found[name] = canonical.fragment(shown)
                bytes_left -= len(shown) + overhead
                break
    return found
