"""What can be wrong with the flattened graph of a composition.

The server checks these rules of the engine contract, section 1.5, in a snapshot that it receives;
whoever defines a workflow meets most of them earlier, in the author's own words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pi_workflows.base.errors import Problem
from pi_workflows.base.limits import STEPS_MAX
from pi_workflows.definition.paths import (
    ROOT,
    is_node_name,
    is_node_path,
    is_within,
    local_name,
    scope_of,
)
from pi_workflows.definition.selector import parse_selector
from pi_workflows.definition.snapshot import Edge, Mount, Snapshot


def composition_problems(snapshot: Snapshot) -> Iterator[Problem]:
    """Yield everything wrong with a definition's mounts and with the ways between them."""
    counted = Counter(mount.path for mount in snapshot.mounts)
    for mount in snapshot.mounts:
        yield from _mount_problems(snapshot, mount, is_twice=counted[mount.path] > 1)
        yield from _exit_problems(snapshot, mount)
    for path, node in snapshot.nodes.items():
        if node.approved_by is not None and scope_of(node.approved_by) != scope_of(path):
            yield Problem(
                "approvalInner", f"nodes.{path}", "its decision stands in another workflow"
            )
        if is_node_path(path) and scope_of(path) not in (ROOT, *counted):
            yield Problem(
                "mountUnknown",
                f"nodes.{path}",
                f"no included workflow is called {scope_of(path)!r}: a node's name has no '/'",
            )
    if scope_of(snapshot.start_at) in counted and not _is_entrance(
        snapshot, ROOT, snapshot.start_at
    ):
        yield Problem("startInner", "start", f"{snapshot.start_at!r} is inside a mount")
    for edge in snapshot.edges:
        yield from _edge_problems(snapshot, edge)


def _mount_problems(snapshot: Snapshot, mount: Mount, *, is_twice: bool) -> Iterator[Problem]:
    path, where = mount.path, f"includes.{mount.path}"
    scope = scope_of(path)
    if not is_node_path(path) or (scope and scope not in snapshot.mount_by_path):
        yield Problem("mountInvalid", where, f"{path!r} is no path of a mount")
    if is_twice or path in snapshot.nodes:
        yield Problem("mountTwice", where, f"{path!r} names more than one thing")
    if not 1 <= mount.max_steps <= STEPS_MAX:
        yield Problem("maxStepsInvalid", where, f"{mount.max_steps}: use 1 to {STEPS_MAX:,}")
    if mount.start_at not in snapshot.nodes or not _is_entrance(snapshot, path, mount.start_at):
        yield Problem("startUnknown", where, f"{mount.start_at!r} is none of its nodes")


def _exit_problems(snapshot: Snapshot, mount: Mount) -> Iterator[Problem]:
    where = f"includes.{mount.path}"
    counted = Counter(way.node for way in mount.exits.values())
    for name, way in mount.exits.items():
        if not is_node_name(name):
            yield Problem("exitNameInvalid", where, f"{name!r} is no name of an exit")
        if counted[way.node] > 1:
            yield Problem("exitTwice", where, f"{way.node!r} has more than one exit")
    for path in snapshot.nodes:
        if not is_within(path, mount.path):
            continue
        edge = snapshot.edge_by_source.get(path)
        is_last = edge is None or not is_within(edge.scope or ROOT, mount.path)
        if is_last and path not in counted:
            yield Problem(
                "exitMissing",
                where,
                f"{path!r} ends the workflow {mount.workflow_name!r}, but no exit names it: every"
                " way out of an included workflow is one of its exits",
            )
        if not is_last and path in counted:
            yield Problem("exitNotLast", where, f"an edge leaves {path!r}: it is no exit")
    for node in counted:
        if node not in snapshot.nodes or not is_within(node, mount.path):
            yield Problem("exitNodeUnknown", where, f"{node!r} is none of its nodes")


def _edge_problems(snapshot: Snapshot, edge: Edge) -> Iterator[Problem]:
    where, scope = f"edges.{edge.source}", edge.scope or ROOT
    if edge.scope is not None and edge.scope not in snapshot.mount_by_path:
        yield Problem("mountUnknown", where, f"there is no mount {edge.scope!r}")
        return
    if edge.source not in snapshot.nodes:
        # Reported where every graph's edges are.
        return
    if not _is_way_out(snapshot, scope, edge.source):
        yield Problem("edgeSourceInner", where, "the edge begins inside an included workflow")
    for target in dict.fromkeys(edge.targets):
        if target in snapshot.nodes and not _is_entrance(snapshot, scope, target):
            yield Problem(
                "edgeTargetInner", where, f"leads to {target!r}, inside an included workflow"
            )
    selector = parse_selector(edge.on) if edge.on is not None else None
    if selector is not None and selector.source == "result" and scope_of(edge.source) != scope:
        yield Problem(
            "switchOnExit",
            where,
            "a switch after an exit looks at what it gave, '$.field': an included workflow that"
            " fails ends the run",
        )


def _is_entrance(snapshot: Snapshot, scope: str, node_path: str) -> bool:
    """Return whether a workflow may lead to a node: its own, or the start of one it includes."""
    if scope_of(node_path) == scope:
        return True
    return any(
        mount.start_at == node_path for mount in snapshot.mounts if scope_of(mount.path) == scope
    )


def _is_way_out(snapshot: Snapshot, scope: str, node_path: str) -> bool:
    """Return whether a workflow may lead on from a node: its own, or an exit of one it includes."""
    if scope_of(node_path) == scope:
        return True
    return any(
        way.node == node_path
        for mount in snapshot.mounts
        if scope_of(mount.path) == scope
        for way in mount.exits.values()
    )


def visible_names(snapshot: Snapshot, scope: str) -> list[str]:
    """Return what a workflow's edges may lead to, as that workflow calls it."""
    paths = (*snapshot.nodes, *snapshot.mount_by_path)
    return [local_name(path) for path in paths if scope_of(path) == scope]
