"""A run view as the command line reads it: the members that are shown, and no others.

The server computed everything here; nothing is derived again. What is unknown is passed over, so
that a later server may tell more.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.protocol.wire import AnyJson

NodeOutcome: TypeAlias = Literal["ok", "failed", "timed_out", "cancelled"]


class _Part(BaseModel):
    """What the parts share: read-only, camelCase in JSON, other members passed over."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, ignored_types=(cached_property,)
    )


class Display(_Part):
    """What people are told about a run."""

    status: str
    activity: str | None = None
    controls: tuple[str, ...] = ()
    reason: str | None = None


class Queue(_Part):
    """The run's place in the queue."""

    status: str
    error_code: str | None = None
    restart_number: int = 0
    parent_run_id: str | None = None


class Result(_Part):
    """How the newest settled attempt of a node ended."""

    outcome: NodeOutcome
    error: AnyJson = None


class Interaction(_Part):
    """A question that waits for its answer."""

    request_id: str
    node_id: str
    kind: str
    revision: int
    contract: AnyJson = None
    created_at: int


class HumanDecision(_Part):
    """What only a person decides. Times are ms since the epoch."""

    decision_id: str
    title: str
    audience: str
    deadline_at: int | None = None


class Source(_Part):
    """Where the workflow came from."""

    type: str
    ref: str


class State(_Part):
    """Where the run is, and what it gave so far. Times are ms since the epoch."""

    workflow_name: str
    workflow_source: Source
    title: str | None = None
    trace_seq: int
    status: str
    created_at: int
    started_at: int
    finished_at: int | None = None
    input: AnyJson = None
    outputs: dict[str, AnyJson] = {}
    results: dict[str, Result] = {}
    current_node: str | None = None
    current_attempt_id: str | None = None
    waiting_on: str | None = None
    status_detail: str | None = None
    interaction: Interaction | None = None
    human_decision: HumanDecision | None = None
    final_output: AnyJson = None
    error: AnyJson = None

    @property
    def has_output(self) -> bool:
        """Whether the run gave an output, be it null."""
        return "final_output" in self.model_fields_set


class GraphStep(_Part):
    """The newest settled attempt of a node."""

    attempt_id: str
    node_id: str
    visit: int
    attempt_number: int
    outcome: NodeOutcome
    started_at: int | None = None
    finished_at: int | None = None


class TraceItem(_Part):
    """One event of the run."""

    seq: int
    at: int
    type: str
    node_id: str | None = None
    attempt_id: str | None = None
    payload: dict[str, AnyJson] = {}


class SessionEntry(_Part):
    """An entry of a captured session, as Pi wrote it."""

    seq: int
    at: int
    entry: AnyJson = None


class SessionEvent(_Part):
    """An event of a captured session."""

    seq: int
    at: int
    type: str
    node_id: str | None = None
    message_id: str | None = None
    tool_call_id: str | None = None
    payload: AnyJson = None


class MessageTurn(_Part):
    """The newest turn for a message; no reason while it is open."""

    stop_reason: str | None = None


class SessionMessage(_Part):
    """What a session is told by its run."""

    order: int
    created_at: int
    kind: str
    status: str
    content: AnyJson = None
    turn: MessageTurn | None = None


class FollowUp(_Part):
    """A prompt that waits for the end of its run, or did."""

    order: int
    created_at: int
    state: str
    actor: str
    prompt: AnyJson = None


class SettingsScope(_Part):
    """The settings of one workflow of a run."""

    scope_id: str
    change_number: int
    value: AnyJson = None


class TracePage(_Part):
    """The end of the trace, or a window of it."""

    start: int
    total: int
    items: tuple[TraceItem, ...]


class Update(_Part):
    """The newest progress of one key."""

    seq: int
    at: int
    node_id: str
    type: str
    key: str
    data: AnyJson = None


class Retry(_Part):
    """When a visit of a node is tried again."""

    max_attempts: int
    on: tuple[str, ...]


class Node(_Part):
    """A node of the definition."""

    type: str
    action_form: str | None = None
    summary: str | None = None
    status_detail: str | None = None
    retry: Retry | None = None

    @property
    def kind(self) -> str:
        """What people call its type."""
        return self.action_form if self.action_form == "shell" else self.type


class Edge(_Part):
    """The way out of a node: plain, or by a value."""

    source: str = Field(alias="from")
    to: str | None = None
    cases: dict[str, str] = {}

    @property
    def targets(self) -> tuple[str, ...]:
        """Every node that it may lead to, each once."""
        if self.to is not None:
            return (self.to,)
        return tuple(dict.fromkeys(target for _, target in sorted(self.cases.items())))


class Workflow(_Part):
    """The definition, or a window of a large one."""

    name: str
    start_at: str
    nodes: dict[str, Node]
    edges: tuple[Edge, ...] = ()
    node_total: int | None = None
    content: AnyJson = None

    @classmethod
    def parse(cls, document: Json) -> Self:
        """Read a whole definition. Raises ProtocolViolation when it is none."""
        try:
            return cls.model_validate(document)
        except ValidationError:
            raise ProtocolViolation("The server sent no definition.") from None

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The nodes as a reader follows them: each behind those that lead to it, but for loops."""
        ways = {edge.source: edge.targets for edge in self.edges}
        seen = {self.start_at}
        behind: list[str] = []
        stack = [(self.start_at, iter(reversed(ways.get(self.start_at, ()))))]
        while stack:
            path, targets = stack[-1]
            target = next(targets, None)
            if target is None:
                behind.append(path)
                stack.pop()
            elif target not in seen:
                seen.add(target)
                stack.append((target, iter(reversed(ways.get(target, ())))))
        found = [path for path in reversed(behind) if path in self.nodes]
        return tuple(dict.fromkeys((*found, *self.nodes)))


class RunView(_Part):
    """`pi-workflows.run-view.v1`."""

    run_id: str
    revision: int
    run_revision: int
    live: bool
    possibly_interrupted: bool
    display: Display
    state: State
    queue: Queue
    workflow: Workflow
    graph_steps: tuple[GraphStep, ...] = ()
    graph_step_start: int = 0
    taken_transitions: tuple[str, ...] = ()
    step_total: int = 0
    trace_page: TracePage
    updates: tuple[Update, ...] = ()
    document: AnyJson = None

    @classmethod
    def parse(cls, document: Json) -> Self:
        """Read a run view that the server sent.

        Args:
            document: The decoded JSON; kept whole for programs.

        Raises:
            ProtocolViolation: It is no run view.
        """
        try:
            view = cls.model_validate(document)
        except ValidationError as error:
            where = ".".join(map(str, error.errors(include_url=False)[0]["loc"]))
            raise ProtocolViolation(f"The server sent a run view without {where}.") from None
        return view.model_copy(update={"document": document})

    @property
    def here(self) -> str | None:
        """The node that the run is at; of an effect that a person has to settle, its node."""
        if self.display.status == "ambiguous":
            return self._node_of_effect() or self.state.current_node
        return self.state.current_node or self.state.waiting_on

    @property
    def failed_attempts(self) -> frozenset[str]:
        """The newest attempts of nodes, as far as they did not end well."""
        return frozenset(step.attempt_id for step in self.graph_steps if step.outcome != "ok")

    @property
    def detail(self) -> str | None:
        """What people read while the run is where it is.

        Its own words, else its node's; of a checkpoint, what it asks.
        """
        node = self.workflow.nodes.get(self.here or "")
        if self.state.status_detail or node is None:
            return self.state.status_detail
        return node.status_detail or (node.summary if self.state.waiting_on else None)

    def _node_of_effect(self) -> str | None:
        """Return the node whose effect is ambiguous, if its events are still on the view's page."""
        items = self.trace_page.items
        attempt = next(
            (each.attempt_id for each in reversed(items) if each.type == "run.effect_ambiguous"),
            None,
        )
        nodes = (each.node_id for each in items if each.node_id and each.attempt_id == attempt)
        return None if attempt is None else next(nodes, None)

    @property
    def again_at(self) -> int | None:
        """When a queued run may go on at the earliest, as its newest events say."""
        if self.queue.status != "queued":
            return None
        for item in reversed(self.trace_page.items):
            if item.type in ("run.requeued", "lease.released"):
                at = item.payload.get("availableAt")
                return at if isinstance(at, int) else None
        return None

    @property
    def title(self) -> str:
        """What the run is called."""
        return self.state.title or self.state.workflow_name
