"""Included workflows in a flat definition: what is entered, left, counted and refused."""

from __future__ import annotations

from typing import Any

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProblemsFound
from pi_workflows.definition.composition import (
    Ancestor,
    Exited,
    entered,
    exhausted,
    exits_of,
    invocation_number,
    open_mounts,
)
from pi_workflows.definition.outline import outline
from pi_workflows.definition.route import Next, route
from pi_workflows.definition.snapshot import Snapshot


def document() -> dict[str, Any]:
    """Return `repair` included in `ship`, which `top` includes; both are left by `end` nodes.

    `ship` is left where `repair` is, or by its own `stop`.
    """
    node = {"type": "compute", "timeoutMs": 0}
    return {
        "schema": "pi-workflows.definition-snapshot.v1",
        "name": "top",
        "startAt": "plan",
        "maxSteps": 20,
        "nodes": dict.fromkeys(
            ("plan", "last", "ship/look", "ship/stop", "ship/repair/try", "ship/repair/end"), node
        ),
        "edges": [
            {"from": "plan", "to": "ship/look"},
            {
                "from": "ship/look",
                "on": "$.way",
                "cases": {"in": "ship/repair/try", "out": "ship/stop"},
                "scope": "ship",
            },
            {
                "from": "ship/repair/end",
                "on": "$.again",
                "cases": {"true": "ship/look", "false": "last"},
            },
            {
                "from": "ship/repair/try",
                "on": "$",
                "cases": {"0": "ship/repair/end", "1": "ship/repair/try"},
                "scope": "ship/repair",
            },
            {"from": "ship/stop", "to": "ship/look"},
        ],
        "mounts": [
            {
                "path": "ship",
                "workflowName": "shipping",
                "startAt": "ship/look",
                "maxSteps": 9,
                "exits": {"done": {"node": "ship/repair/end"}, "stopped": {"node": "ship/stop"}},
            },
            {
                "path": "ship/repair",
                "workflowName": "repairing",
                "contractId": "repair.v1",
                "inputModel": "m.In",
                "startAt": "ship/repair/try",
                "maxSteps": 3,
                "exits": {"fixed": {"node": "ship/repair/end", "outputModel": "m.Out"}},
            },
        ],
    }


def parsed(body: Json) -> Snapshot:
    """Return a snapshot of a document."""
    return Snapshot.parse(canonical.encode(body))


def test_a_composition_is_its_document() -> None:
    """Mounts, exits and the scopes of edges survive writing and reading."""
    snapshot = parsed(document())
    assert snapshot.document() == document()
    assert snapshot.edge_by_source["plan"].scope is None
    assert snapshot.mount_by_path["ship/repair"].exits["fixed"].output_model == "m.Out"


@pytest.mark.parametrize(
    ("scope", "path", "mounts"),
    [
        ("", "plan", ()),
        ("", "ship/look", ("ship",)),
        ("", "ship/repair/try", ("ship", "ship/repair")),
        ("ship", "ship/look", ()),
        ("ship", "ship/repair/try", ("ship/repair",)),
        ("ship/repair", "ship/repair/try", ()),
        ("", "shipping/look", ("shipping",)),
        ("ship", "shipping/look", ("shipping",)),
    ],
)
def test_an_edge_enters_the_mounts_below_the_workflow_that_declares_it(
    scope: str, path: str, mounts: tuple[str, ...]
) -> None:
    """A mount's own edges stay in its invocation, whatever a name begins with."""
    assert entered(scope, path) == mounts


def test_a_route_says_what_it_enters() -> None:
    """Going on inside a mount enters nothing; leaving it and coming back does."""
    snapshot = parsed(document())
    inside = route(snapshot, "ship/look", "ok", lambda: {"way": "in"})
    assert inside == Next("ship/repair/try", ("ship/repair",))
    again = route(snapshot, "ship/repair/end", "ok", lambda: {"again": True})
    assert again == Next("ship/look", ("ship",))
    assert route(snapshot, "ship/repair/try", "ok", lambda: 1) == Next("ship/repair/try")


def test_a_node_leaves_every_mount_whose_exit_it_is() -> None:
    """From the innermost on; a run is inside of those that it has not left."""
    snapshot = parsed(document())
    assert exits_of(snapshot, "ship/repair/end") == (
        Exited("ship/repair", "fixed"),
        Exited("ship", "done"),
    )
    assert exits_of(snapshot, "ship/repair/try") == ()
    place = "ship/repair/end"
    assert open_mounts(snapshot, place, has_ended_well=False) == ("ship", "ship/repair")
    assert open_mounts(snapshot, place, has_ended_well=True) == ()
    assert open_mounts(snapshot, "ship/look", has_ended_well=True) == ("ship",)


def test_the_nodes_that_lead_into_a_mount_are_known() -> None:
    """Those outside, and the exits of the mount that lead in again; never its own edges."""
    snapshot = parsed(document())
    assert snapshot.entrances == {
        "ship": ("plan", "ship/repair/end", "ship/stop"),
        "ship/repair": ("ship/look",),
    }


def test_invocations_are_numbered_by_the_exits_before() -> None:
    """Each visit of an exit's node that ended well ended one invocation."""
    mount = parsed(document()).mount_by_path["ship"]
    assert invocation_number(mount, {}) == 1
    assert invocation_number(mount, {"ship/stop": 2, "ship/repair/end": 1, "plan": 7}) == 4


@pytest.mark.parametrize(
    ("total", "steps", "spent"),
    [
        (19, {"ship": 8, "ship/repair": 2}, None),
        (20, {}, Ancestor("", 20)),
        (19, {"ship": 9, "ship/repair": 3}, Ancestor("ship", 9)),
        (19, {"ship": 8, "ship/repair": 3}, Ancestor("ship/repair", 3)),
    ],
)
def test_the_outermost_limit_is_tested_first(
    total: int, steps: dict[str, int], spent: Ancestor | None
) -> None:
    """Nothing nested starts past the limit of what includes it."""
    snapshot = parsed(document())
    assert exhausted(snapshot, "ship/repair/try", total, steps.__getitem__) == spent


def change(**members: Any) -> dict[str, Any]:
    """Return the document with other members of an edge or a mount, by their place."""
    body = document()
    for place, value in members.items():
        kind, index, name = place.split("_")
        if value is None:
            del body[kind][int(index)][name]
        else:
            body[kind][int(index)][name] = value
    return body


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (change(edges_0_to="ship/stop"), "edgeTargetInner"),
        (change(edges_0_to="ship/repair/try"), "edgeTargetInner"),
        (change(edges_1_scope=None), "edgeSourceInner"),
        (change(edges_1_scope="other"), "mountUnknown"),
        (change(edges_3_scope="ship"), "edgeSourceInner"),
        (change(edges_4_scope="ship"), "exitNotLast"),
        (change(edges_2_on="$result.outcome", edges_2_cases={"ok": "last"}), "switchOnExit"),
        (change(mounts_0_startAt="plan"), "startUnknown"),
        (change(mounts_0_startAt="ship/nowhere"), "startUnknown"),
        (change(mounts_0_path="ship/repair"), "mountTwice"),
        (change(mounts_0_path="last"), "mountTwice"),
        (change(mounts_0_path="a//b"), "mountInvalid"),
        (change(mounts_1_path="boat/repair"), "mountInvalid"),
        (change(mounts_0_maxSteps=0), "maxStepsInvalid"),
        (change(mounts_0_exits={"done": {"node": "ship/repair/end"}}), "exitMissing"),
        (change(mounts_1_exits={}), "exitMissing"),
        (
            change(
                mounts_1_exits={"a": {"node": "ship/repair/end"}, "b": {"node": "ship/repair/end"}}
            ),
            "exitTwice",
        ),
        (change(mounts_1_exits={"fixed": {"node": "ship/repair/try"}}), "exitNotLast"),
        (change(mounts_1_exits={"fixed": {"node": "plan"}}), "exitNodeUnknown"),
        (change(mounts_1_exits={"1": {"node": "ship/repair/end"}}), "exitNameInvalid"),
        ({**document(), "startAt": "ship/stop"}, "startInner"),
        ({**document(), "mounts": []}, "mountUnknown"),
    ],
)
def test_a_flat_graph_that_no_composition_makes_is_refused(body: Json, code: str) -> None:
    """The server checks what it receives: no edge reaches into a mount."""
    with pytest.raises(ProblemsFound) as refused:
        parsed(body)
    assert code in {problem.code for problem in refused.value.problems}, refused.value.problems


def test_an_outline_shows_what_is_included_and_where_it_is_entered_and_left() -> None:
    """Each included workflow has a line of its own; a way says what it enters or leaves."""
    assert outline(parsed(document())) == [
        "top: 6 nodes, 2 included, at most 20 steps",
        (
            "  ship/ is shipping, at most 9 steps each time, exit done (any JSON), exit stopped"
            " (any JSON)"
        ),
        (
            "  ship/repair/ is repairing, at most 3 steps each time, input In, contract repair.v1,"
            " exit fixed (Out)"
        ),
        "  plan (start): compute, no time limit",
        "    -> ship/look (enters ship)",
        "  ship/look: compute, no time limit",
        "    $.way = in -> ship/repair/try (enters ship/repair)",
        "    $.way = out -> ship/stop",
        "  ship/repair/try: compute, no time limit",
        "    $ = 0 -> ship/repair/end",
        "    $ = 1 -> ship/repair/try (loop)",
        "  ship/stop: compute, no time limit",
        "    leaves ship by stopped",
        "    -> ship/look (enters ship) (loop)",
        "  ship/repair/end: compute, no time limit",
        "    leaves ship/repair by fixed",
        "    leaves ship by done",
        "    $.again = false -> last",
        "    $.again = true -> ship/look (enters ship) (loop)",
        "  last: compute, no time limit",
        "    ends the run",
    ]
