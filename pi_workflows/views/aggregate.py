"""Everything that a run gave so far in one document, whole, for those who ask for it.

The decision on aggregates: a view shows what fits it; the complete document is built on request,
stored under the run, its digest and its media type, and only then referred to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import LimitExceeded
from pi_workflows.base.limits import AGGREGATE_BYTES_MAX, FRAME_DEPTH_MAX
from pi_workflows.base.sql import Read
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.domain.run.state import NODE_OUTCOME
from pi_workflows.protocol.views import RunPage
from pi_workflows.views.content import stored_value
from pi_workflows.views.facts import RunFacts, run_facts
from pi_workflows.views.heads import HeadValue, head_values, node_heads
from pi_workflows.views.pages import require_revision
from pi_workflows.views.value import Value


@dataclass(frozen=True, slots=True)
class Aggregate:
    """What a run gave so far.

    Attributes:
        run_id: The run.
        revision: The presentation revision that it was read at.
        content: The document, `pi-workflows.run-aggregate.v1`: `outputs`, `results` and, when there
            is one, `finalOutput`; every value as it is stored, without marks or references. The
            same document again as long as no node and no run ended.
    """

    run_id: str
    revision: int
    content: Blob

    @property
    def page(self) -> RunPage:
        """The page that refers to it."""
        blob = self.content
        value = Value(blob.digest, blob.media_type, len(blob.content), None)
        return RunPage(
            run_id=self.run_id,
            revision=self.revision,
            kind="aggregate",
            start=0,
            total=1,
            items=(canonical.fragment(value.reference()),),
        )


def run_aggregate(read: Read, run_id: str, expected_revision: int | None = None) -> Aggregate:
    """Build the complete document of what a run gave so far.

    Args:
        read: One consistent read.
        run_id: The run.
        expected_revision: The presentation revision that it has to be of.

    Returns:
        The document, which is stored nowhere yet.

    Raises:
        NotFound: There is no such run.
        RevisionConflict: The run's view changed since.
        LimitExceeded: `aggregateTooLarge`: it would be too large; nothing of it was read.
    """
    facts = run_facts(read, run_id)
    require_revision(facts, expected_revision)
    snapshot = read.document(Snapshot.parse, facts.definition_hash)
    values = head_values(read, node_heads(read, run_id, snapshot.nodes))
    final = stored_value(read, facts.final_output_hash) if facts.final_output_hash else None
    _require_room(facts, sum(value.byte_length for value in _named(values, final)))
    document: dict[str, Json] = {
        "schema": "pi-workflows.run-aggregate.v1",
        "runId": run_id,
        "outputs": {
            value.node_path: _whole(read, value.output)
            for value in values
            if value.output is not None
        },
        "results": {value.node_path: _result(read, value) for value in values},
    }
    if final is not None:
        document["finalOutput"] = _whole(read, final)
    content = canonical.encode(document, depth_max=FRAME_DEPTH_MAX)
    # Names and quoted texts are larger than what they stand for.
    _require_room(facts, len(content))
    return Aggregate(run_id, facts.revision, Blob.of(content, "application/json"))


def _named(values: Iterable[HeadValue], final: Value | None) -> Iterable[Value]:
    """Yield every value that the document holds."""
    for value in values:
        yield from (part for part in (value.output, value.error) if part is not None)
    if final is not None:
        yield final


def _require_room(facts: RunFacts, size_bytes: int) -> None:
    """Refuse a document that is too large."""
    if size_bytes > AGGREGATE_BYTES_MAX:
        raise LimitExceeded(
            f"What run {facts.run_id} gave so far has over {AGGREGATE_BYTES_MAX:,} bytes.",
            code="aggregateTooLarge",
            field="kind",
            hint="Read the pages of its steps, which refer to each value.",
        )


def _result(read: Read, value: HeadValue) -> Json:
    """Return how an attempt ended."""
    result: dict[str, Json] = {"outcome": NODE_OUTCOME[value.status]}
    if value.error is not None:
        result["error"] = _whole(read, value.error)
    return result


def _whole(read: Read, value: Value) -> Json:
    """Return a value as it is stored, whatever its size."""
    content = value.load(read)
    if value.media_type == "text/plain":
        return content.decode()
    return canonical.fragment(content)
