"""Included workflows at run time: which ones an edge enters anew, and how far one may go.

A definition is flat: every node stands under its full path, `mount/child/node`. A mount is entered
anew by an edge that a workflow around it declares, and left when one of its exits' nodes has ended.
The server and the runner ask the same functions, so that both count alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pi_workflows.definition.paths import ROOT, is_within, mounts_of
from pi_workflows.definition.snapshot import Mount, Snapshot


@dataclass(frozen=True, slots=True)
class Exited:
    """What ends with a node.

    Attributes:
        mount: The mount that is left.
        exit: The name of its exit.
    """

    mount: str
    exit: str


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A workflow that may take no further step.

    Attributes:
        mount: Its mount; empty for the root.
        max_steps: Its limit.
    """

    mount: str
    max_steps: int


def entered(scope: str, node_path: str) -> tuple[str, ...]:
    """Return the mounts that a way enters anew, from the outermost.

    Args:
        scope: The mount whose workflow declares the way; empty for the root. The start of a run is
            a way of the root's.
        node_path: The node that it leads to.
    """
    return tuple(mount for mount in mounts_of(node_path) if not is_within(scope, mount))


def exits_of(snapshot: Snapshot, node_path: str) -> tuple[Exited, ...]:
    """Return the mounts that are left when a node has ended well, from the innermost."""
    return tuple(
        Exited(mount, name)
        for mount in reversed(mounts_of(node_path))
        for name, way in snapshot.mount_by_path[mount].exits.items()
        if way.node == node_path
    )


def open_mounts(snapshot: Snapshot, node_path: str, *, has_ended_well: bool) -> tuple[str, ...]:
    """Return the mounts that a run is inside of, from the outermost.

    Args:
        snapshot: A sound definition.
        node_path: The node whose attempt is open, or else settled last.
        has_ended_well: Whether it settled `ok`: then it has left the mounts whose exit it is.
    """
    left = {each.mount for each in exits_of(snapshot, node_path)} if has_ended_well else ()
    return tuple(mount for mount in mounts_of(node_path) if mount not in left)


def exit_nodes(mount: Mount) -> tuple[str, ...]:
    """Return the nodes that leave a mount, in text order."""
    return tuple(sorted(way.node for way in mount.exits.values()))


def invocation_number(mount: Mount, exited: Mapping[str, int]) -> int:
    """Return the number of a mount's current invocation, or of the next while it is not open.

    Args:
        mount: The mount.
        exited: The newest visit of each of its exits' nodes that ended well; a node without one
            may be missing.

    Returns:
        From 1. It rises with every exit, and an invocation that is not left ends its run.
    """
    return 1 + sum(exited.get(node, 0) for node in exit_nodes(mount))


def exhausted(
    snapshot: Snapshot, node_path: str, step_total: int, steps: Callable[[str], int]
) -> Ancestor | None:
    """Return the outermost workflow around a node that has taken all its steps.

    Args:
        snapshot: A sound definition.
        node_path: The node that would be attempted.
        step_total: The run's settled attempts.
        steps: Returns those of a mount's current invocation, 0 when it is entered anew; called only
            for the mounts around the node.

    Returns:
        The workflow, or None when the attempt may begin. Ancestors come first: nothing nested
        starts past the limit of what includes it (the engine contract, section 1.4).
    """
    if step_total >= snapshot.max_steps:
        return Ancestor(ROOT, snapshot.max_steps)
    for mount in mounts_of(node_path):
        limit = snapshot.mount_by_path[mount].max_steps
        if steps(mount) >= limit:
            return Ancestor(mount, limit)
    return None


def exhausted_message(ancestor: Ancestor, node_path: str) -> str:
    """Say in one line which limit ends a run."""
    who = f"{ancestor.mount} took" if ancestor.mount else "the run took"
    return f"{who} {ancestor.max_steps} steps, which is its limit, before {node_path}"
