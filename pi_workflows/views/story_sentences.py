"""What a story is made of: events as they are told, sentences, and the whole."""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.base.canonical import Json
from pi_workflows.domain.fact import Event
from pi_workflows.domain.rows import RunStatus
from pi_workflows.views.story_times import Totals


@dataclass(frozen=True, slots=True)
class Told:
    """An event as the story reads it.

    Attributes:
        event_seq: Its number in the log.
        seq: Its place in the run's trace; None of an effect's event.
        at_ms: When it was recorded.
        actor: The class of who acted.
        fact: The event.
    """

    event_seq: int
    seq: int | None
    at_ms: int
    actor: str
    fact: Event


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a story.

    Attributes:
        event_seq: The number of the event that it tells.
        seq: The event's place in the run's trace; None of an effect's event.
        at_ms: When that was.
        actor: The class of who acted.
        type: The event's type.
        text: The sentence.
        node_id: The node that it is about, if it is about one.
        outcome: How the attempt ended that it tells of, if it does.
    """

    event_seq: int
    seq: int | None
    at_ms: int
    actor: str
    type: str
    text: str
    node_id: str | None = None
    outcome: str | None = None

    def document(self) -> dict[str, Json]:
        """Return the sentence as documents have it."""
        document: dict[str, Json] = {
            "eventSeq": self.event_seq,
            "at": self.at_ms,
            "actor": self.actor,
            "type": self.type,
            "text": self.text,
        }
        optional: dict[str, Json] = {
            "seq": self.seq,
            "nodeId": self.node_id,
            "outcome": self.outcome,
        }
        return document | {name: value for name, value in optional.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Story:
    """What happened to a run.

    Attributes:
        run_id: The run.
        workflow_name: Its workflow.
        title: What people call it.
        status: Its stored status.
        sentences: What happened, in order.
        totals: Where the time went.
    """

    run_id: str
    workflow_name: str
    title: str | None
    status: RunStatus
    sentences: tuple[Sentence, ...]
    totals: Totals

    def document(self) -> dict[str, Json]:
        """Return the story as documents have it."""
        document: dict[str, Json] = {
            "runId": self.run_id,
            "workflowName": self.workflow_name,
            "status": self.status,
            "sentences": [each.document() for each in self.sentences],
            "totals": self.totals.document(),
        }
        if self.title is not None:
            document["title"] = self.title
        return document
