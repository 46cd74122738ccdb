"""The definition snapshot as a stored and received document, and its digest."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from pi_workflows.base import canonical, limits
from pi_workflows.base.errors import PayloadInvalid, ProblemsFound
from pi_workflows.definition.digest import definition_digest
from pi_workflows.definition.effects import effect_key
from pi_workflows.definition.graph import snapshot_problems
from pi_workflows.definition.paths import is_contract_id, is_node_path, is_workflow_name
from pi_workflows.definition.selector import case_text, parse_selector
from pi_workflows.definition.snapshot import (
    Edge,
    EffectPolicy,
    Node,
    RetryPolicy,
    Snapshot,
)
from pi_workflows.definition.source import SourceFile, source_revision

# The text of a definition with every kind of node and edge; its digest is part of the contract.
DOCUMENT = (
    b'{"contractId":"org.example:repair","edges":[{"cases":{"no":"fix","yes":"send"},"from":"ask",'
    b'"on":"$"},{"from":"fix","to":"look"},{"cases":{"failed":"fix","ok":"ask"},"from":"look",'
    b'"on":"$result.outcome"}],"inputModel":"repair_workflow.Task","maxSteps":50,"mounts":[],'
    b'"name":"repair","nodes":{"ask":{"outputModel":"repair_workflow.Answer","summary":"Go on?",'
    b'"timeoutMs":900000,"type":"checkpoint"},"fix":{"statusDetail":"fixing","type":"compute"},'
    b'"look":{"actionForm":"shell","effect":{"recovery":"idempotent","type":"repo.read"},"retry":'
    b'{"backoff":1.5,"delayMs":100,"maxAttempts":3,"on":["failed","timed_out"]},"timeoutMs":0,'
    b'"type":"action"},"send":{"actionForm":"function","effect":{"recovery":"manual","type":'
    b'"mail.send"},"timeoutMs":1000,"type":"action"}},'
    b'"schema":"pi-workflows.definition-snapshot.v1","startAt":"look"}'
)
DIGEST = "sha256:d4166af3d60bf31bdd36a384d9fc3e1696ede85ef7d285dfe59aa67e809315eb"


def test_a_snapshot_is_its_document() -> None:
    """Parsing and writing a snapshot gives the same bytes, camelCase, absent members left out."""
    snapshot = Snapshot.parse(DOCUMENT)
    assert canonical.encode(snapshot.document()) == DOCUMENT
    assert Snapshot.parse(canonical.encode(snapshot.document())) == snapshot
    assert snapshot.nodes["fix"].timeout_ms is None
    assert snapshot.nodes["look"].timeout_ms == 0
    assert snapshot.edge_by_source["ask"].targets == ("fix", "send")


def test_the_digest_is_fixed() -> None:
    """A stored definition keeps its digest for ever."""
    assert definition_digest(Snapshot.parse(DOCUMENT)) == DIGEST


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["0", "1", "4294967295"])
def test_the_digest_does_not_depend_on_the_process(seed: str) -> None:
    """Another process with another hash seed computes the same digest."""
    program = (
        "import sys;from pi_workflows.definition.digest import definition_digest as d;"
        "from pi_workflows.definition.snapshot import Snapshot as S;"
        "print(d(S.parse(sys.stdin.buffer.read())))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        input=DOCUMENT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        check=True,
    )
    assert answer.stdout.decode().strip() == DIGEST


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"contract_id": None},
        {"input_model": "repair_workflow.Other"},
        {"max_steps": 51},
        {"start_at": "ask"},
        {"edges": ()},
        {"nodes": {}},
    ],
)
def test_every_part_of_a_definition_is_in_its_digest(change: dict[str, object]) -> None:
    """Two definitions that differ in anything have different digests."""
    changed = Snapshot.parse(DOCUMENT).model_copy(update=change)
    assert definition_digest(changed) != DIGEST


@pytest.mark.parametrize(
    ("before", "after", "where", "message"),
    [
        (b'"maxSteps":50', b'"maxSteps":"50"', "definitionSnapshot.maxSteps", "integer"),
        (b'"maxSteps":50', b'"maxSteps":0', "max_steps", "use 1 to 1,000,000"),
        (b'"maxSteps":50,', b'"maxSteps":50,"more":1,', "definitionSnapshot.more", "Extra"),
        (b'"maxSteps":50,', b"", "definitionSnapshot.maxSteps", "required"),
        (b"snapshot.v1", b"snapshot.v2", "definitionSnapshot.schema", "snapshot.v1"),
        (b'"startAt":"look"', b'"startAt":"loop"', "start", "did you mean 'look'"),
        (b'"type":"compute"', b'"type":"robot"', "definitionSnapshot.nodes.fix.type", "compute"),
        (b'"type":"compute"', b'"type":"agent"', "nodes.fix", "output is missing"),
        (b'"on":"$"', b'"on":"route"', "edges.ask", "$result.outcome"),
        (b'"timeoutMs":0', b'"timeoutMs":-1', "nodes.look", "timeout"),
        (b'"backoff":1.5', b'"backoff":0.5', "nodes.look", "backoff"),
        (b'"manual"', b'"never"', "definitionSnapshot.nodes.send.effect.recovery", "manual"),
    ],
)
def test_a_snapshot_that_is_not_sound_is_refused(
    before: bytes, after: bytes, where: str, message: str
) -> None:
    """The server refuses a document that no author could have defined, and says where."""
    assert before in DOCUMENT
    with pytest.raises(ProblemsFound) as refused:
        Snapshot.parse(DOCUMENT.replace(before, after))
    problem = refused.value.problems[0]
    assert problem.where == where
    assert message in problem.message


def test_a_snapshot_is_json() -> None:
    """Text that two readers could take differently is refused before its members are looked at."""
    with pytest.raises(PayloadInvalid, match="definitionSnapshot"):
        Snapshot.parse(DOCUMENT.replace(b'"maxSteps":50', b'"maxSteps":50,"maxSteps":51'))


def test_what_only_a_hand_written_snapshot_can_hold() -> None:
    """Mixed edges, misplaced effects and retries are refused though no author writes them."""
    retry = RetryPolicy(max_attempts=1, on=("failed", "failed"), delay_ms=-1, backoff=1.0)
    effect = EffectPolicy(type="", recovery="idempotent")
    snapshot = Snapshot(
        name="x",
        start_at="a",
        max_steps=1,
        nodes={
            "a": Node(type="checkpoint", retry=retry),
            "b": Node(type="compute", effect=effect),
            "c": Node(type="action"),
        },
        edges=(Edge(source="a", to="b", on="$"), Edge(source="b", on="$", cases={"c": "c"})),
    )
    found = [(problem.code, problem.where) for problem in snapshot_problems(snapshot)]
    assert found == [
        ("retryMisplaced", "nodes.a"),
        ("retryInvalid", "nodes.a"),
        ("retryInvalid", "nodes.a"),
        ("effectMisplaced", "nodes.b"),
        ("effectTypeInvalid", "nodes.b"),
        ("effectMisplaced", "nodes.c"),
        ("edgeInvalid", "edges.a"),
    ]


def bounded(**changes: object) -> list[str]:
    """The codes of what is wrong with a node, a retry or a workflow that has these values."""
    retry = RetryPolicy(max_attempts=1, on=("failed",), delay_ms=0, backoff=1.0)
    node = Node(type="action", effect=EffectPolicy(type="x", recovery="idempotent"))
    parts = {name: value for name, value in changes.items() if name in RetryPolicy.model_fields}
    effect = EffectPolicy(type=str(changes.get("type", "x")), recovery="idempotent")
    node = node.model_copy(
        update={
            "retry": retry.model_copy(update=parts),
            "effect": effect,
            "timeout_ms": changes.get("timeout_ms", 0),
        }
    )
    steps = changes.get("max_steps", 1)
    snapshot = Snapshot(name="x", start_at="a", max_steps=1, nodes={"a": node}, edges=())
    found = snapshot_problems(snapshot.model_copy(update={"max_steps": steps}))
    return [problem.code for problem in found]


@pytest.mark.parametrize(
    ("name", "least", "most", "step", "code"),
    [
        ("max_steps", 1, limits.STEPS_MAX, 1, "maxStepsInvalid"),
        ("timeout_ms", 0, limits.NODE_TIMEOUT_MS_MAX, 1, "timeoutInvalid"),
        ("max_attempts", 1, limits.RETRY_ATTEMPTS_MAX, 1, "retryInvalid"),
        ("delay_ms", 0, limits.RETRY_DELAY_MS_MAX, 1, "retryInvalid"),
        ("backoff", 1.0, limits.RETRY_BACKOFF_MAX, 0.1, "retryInvalid"),
    ],
)
def test_bounds_are_inclusive(name: str, least: float, most: float, step: float, code: str) -> None:
    """The least and the greatest value are sound; one step beyond each is not."""
    for value in (least, most):
        assert bounded(**{name: value}) == []
    for value in (least - step, most + step):
        assert bounded(**{name: value}) == [code]


def test_an_effect_type_has_a_length() -> None:
    """One to 256 characters name an effect."""
    assert bounded(type="x" * limits.EFFECT_TYPE_CHARS_MAX) == []
    assert bounded(type="x" * (limits.EFFECT_TYPE_CHARS_MAX + 1)) == ["effectTypeInvalid"]


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"to": "a", "on": "$", "cases": {}},
        {"to": "a", "cases": {}},
        {"on": "$"},
        {"cases": {"x": "a"}},
    ],
)
def test_an_edge_is_plain_or_a_switch(parts: dict[str, Any]) -> None:
    """An edge has one target, or a path with cases: nothing less and nothing of both."""
    node = Node(type="compute")
    edge = Edge(source="a", **parts)
    snapshot = Snapshot(name="x", start_at="a", max_steps=1, nodes={"a": node}, edges=(edge,))
    assert [problem.code for problem in snapshot_problems(snapshot)] == ["edgeInvalid"]


@pytest.mark.parametrize(
    ("delay", "expected"),
    [
        (1, []),
        (limits.EDGE_DELAY_MS_MAX, []),
        ("$.wait_ms", []),
        (0, ["edgeDelayInvalid"]),
        (limits.EDGE_DELAY_MS_MAX + 1, ["edgeDelayInvalid"]),
        ("wait_ms", ["edgeDelayInvalid"]),
        ("$result.outcome", ["edgeDelayInvalid"]),
    ],
)
def test_an_edge_may_wait(delay: int | str, expected: list[str]) -> None:
    """A plain edge waits for up to seven days, or as long as the output says; a switch does not."""
    nodes = {"a": Node(type="compute"), "b": Node(type="compute")}
    plain = Edge(source="a", to="b", delay=delay)
    switched = Edge(source="a", on="$", cases={"x": "b"}, delay=delay)
    for edge, codes in ((plain, expected), (switched, ["edgeDelayInvalid", *expected])):
        snapshot = Snapshot(name="x", start_at="a", max_steps=1, nodes=nodes, edges=(edge,))
        assert [problem.code for problem in snapshot_problems(snapshot)] == codes


def test_a_definition_has_so_many_nodes() -> None:
    """A graph that nobody could read is refused."""
    node = Node(type="compute")
    for count in (limits.NODES_MAX, limits.NODES_MAX + 1):
        nodes = {f"n{i}": node for i in range(count)}
        edges = tuple(Edge(source=f"n{i}", to=f"n{i + 1}") for i in range(count - 1))
        snapshot = Snapshot(name="x", start_at="n0", max_steps=1, nodes=nodes, edges=edges)
        codes = [problem.code for problem in snapshot_problems(snapshot)]
        assert codes == (["nodesTooMany"] if count > limits.NODES_MAX else [])


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("$.a", ("a",)),
        ("$output.a.b", ("a", "b")),
        ("$", ()),
        ("$output", ()),
        ("$result.outcome", ("outcome",)),
        ("$result", None),
        ("$result.error", None),
        ("$.", None),
        ("$.a..b", None),
        ("a", None),
        ("", None),
        ("$outputs.a", None),
    ],
)
def test_selectors(text: str, path: tuple[str, ...] | None) -> None:
    """A switch looks at the output or at the outcome, by one of three prefixes."""
    selector = parse_selector(text)
    assert (selector.path if selector is not None else None) == path


def test_cases_are_json_text() -> None:
    """A value compares as its JSON, text as it is."""
    assert [case_text(v) for v in (True, False, None, 1, 1.0, 1.5, "x", "")] == [
        "true", "false", "null", "1", "1", "1.5", "x", "",
    ]  # fmt: skip


def test_effect_keys_differ_with_each_part() -> None:
    """Run, type, path and visit each make another key; the same four make the same."""
    parts: tuple[str, str, str, int] = ("run-1", "repo.read", "a", 1)
    others = [("run-2", *parts[1:]), ("run-1", "r", "a", 1), ("run-1", "repo.read", "b", 1)]
    keys = {effect_key(*key) for key in (*others, parts, ("run-1", "repo.read", "a", 2))}
    assert len(keys) == 5
    assert (
        effect_key(*parts) == "piw-790c1c61bff7c5db94ea2aaa0314f0dc3025f342b8a597be335d965c1aa17a5f"
    )
    assert all(key.startswith("piw-") and len(key) == 68 for key in keys)


def test_names() -> None:
    """Workflow names are commands, node names are identifiers with hyphens, paths join them."""
    assert all(map(is_workflow_name, ("a", "0", "repo-health", "a" * 64)))
    assert not any(map(is_workflow_name, ("", "-a", "A", "a_b", "a" * 65, "a\n")))
    assert all(map(is_node_path, ("a", "_a", "A-1", "a/b/c", "n" * 100)))
    assert not any(map(is_node_path, ("", "1a", "a/", "/a", "a b", "__piw_x", "n" * 101, "a\n")))
    assert is_contract_id("A.b_c:d-1")
    assert not is_contract_id(".a")


def test_the_source_revision_covers_every_file() -> None:
    """Another digest, path, mount or order is another revision."""
    one = SourceFile(mount="", path="/p/a_workflow.py", sha256="0" * 64)
    two = SourceFile(mount="", path="/p/helper.py", sha256="1" * 64)
    changed = two.model_copy(update={"sha256": "2" * 64})
    mounted = two.model_copy(update={"mount": "m"})
    lists = [(one,), (one, two), (two, one), (one, changed), (one, mounted)]
    assert len({source_revision(files) for files in lists}) == len(lists)
    assert source_revision((one, two)) == source_revision([one, two])
