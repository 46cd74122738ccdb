"""Everything that a run gave, in one document that holds nothing back."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import LimitExceeded, NotFound, RevisionConflict
from pi_workflows.base.limits import (
    AGGREGATE_BYTES_MAX,
    FRAME_DEPTH_MAX,
    VALUE_BYTES_MAX,
    VALUE_DEPTH_MAX,
)
from pi_workflows.views.aggregate import Aggregate, run_aggregate
from tests.kernel.harness import Harness, begin, definition, end, finish
from tests.views.reading import at, view

NODES = [f"node-{number}" for number in range(40)]
CHAIN = definition(
    {name: {} for name in NODES},
    [{"from": a, "to": b} for a, b in pairwise(NODES)],
)


def aggregate(bench: Harness, expected_revision: int | None = None) -> Aggregate:
    """Build the document of a run."""
    with bench.store.snapshot() as read:
        return run_aggregate(read, "run-1", expected_revision)


def document(bench: Harness) -> Json:
    """Return the document as a client decodes it."""
    return canonical.decode_canonical(aggregate(bench).content.content, depth_max=FRAME_DEPTH_MAX)


def test_it_holds_what_a_view_leaves_out(bench: Harness) -> None:
    """Outputs that a view has no room for are all there, whole, with the run's own."""
    permit = bench.launch(workflow=CHAIN)
    texts: dict[str, Json] = {name: name * 10_000 for name in NODES}
    for name in NODES:
        bench.do(begin(name), permit=permit)
        bench.do(end(name, texts[name]), permit=permit)
    bench.do(finish(texts["node-39"]), permit=permit)
    assert at(view(bench), "state", "outputs") != texts
    found = document(bench)
    assert isinstance(found, dict)
    assert found == {
        "schema": "pi-workflows.run-aggregate.v1",
        "runId": "run-1",
        "outputs": texts,
        "results": {name: {"outcome": "ok"} for name in NODES},
        "finalOutput": texts["node-39"],
    }


def test_it_holds_the_newest_of_each_node(bench: Harness) -> None:
    """A failed attempt gives its error and no output; what the node gave before is history."""
    permit = bench.launch()
    assert document(bench) == {
        "schema": "pi-workflows.run-aggregate.v1",
        "runId": "run-1",
        "outputs": {},
        "results": {},
    }
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", outcome="failed"), permit=permit)
    failure = {"code": "nodeFailed", "message": "it did not work"}
    assert at(document(bench), "results", "one") == {"outcome": "failed", "error": failure}
    assert at(document(bench), "outputs") == {}


def test_values_stand_as_they_are_stored(bench: Harness) -> None:
    """What looks like a reference is not marked: nothing in the document is searched for one."""
    deepest: Json = None
    for _ in range(VALUE_DEPTH_MAX - 1):
        deepest = [deepest]
    value: Json = {"a": {"$artifact": {"path": "x"}}, "b": {"$escaped": 1}, "deep": deepest}
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", value), permit=permit)
    assert at(document(bench), "outputs", "one") == value


def test_the_same_results_are_the_same_document(bench: Harness) -> None:
    """A change of the run that no node or run ended by leaves the digest as it is."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", 1), permit=permit)
    before = aggregate(bench)
    bench.do(begin("two"), permit=permit)
    after = aggregate(bench)
    assert after.revision > before.revision
    assert after.content == before.content


def test_what_is_too_large_is_not_read(bench: Harness) -> None:
    """Above the limit, with or without its names and quotes, it is refused with another way."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", "x" * (VALUE_BYTES_MAX - 2)), permit=permit)
    assert VALUE_BYTES_MAX == AGGREGATE_BYTES_MAX
    with pytest.raises(LimitExceeded) as alone:
        aggregate(bench)
    assert alone.value.reason_code == "aggregateTooLarge"
    assert alone.value.hint is not None
    bench.do(begin("two"), permit=permit)
    bench.do(end("two", 2), permit=permit)
    with pytest.raises(LimitExceeded):
        aggregate(bench)


def test_it_is_of_the_revision_that_is_asked_for(bench: Harness) -> None:
    """Another revision is a conflict, and a run that does not exist has none."""
    bench.launch()
    assert aggregate(bench, aggregate(bench).revision).page.total == 1
    with pytest.raises(RevisionConflict):
        aggregate(bench, 1)
    with bench.store.snapshot() as read, pytest.raises(NotFound):
        run_aggregate(read, "run-2")
