"""Invocations of included workflows, told from the run's steps.

Nothing of an invocation is stored. A run inside a mount has come there by the newest step of a node
that leads into it, and has taken the steps since; and each exit is a visit of the node that it ends
with. A few lookups tell both, however long the run is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import LimitExceeded
from pi_workflows.base.sql import Read, load
from pi_workflows.definition.composition import (
    exhausted,
    exhausted_message,
    exit_nodes,
    invocation_number,
)
from pi_workflows.definition.snapshot import Snapshot

SQL: Final = load(__package__, "invocations.sql")


class ExitStep(NamedTuple):
    """The newest visit of an exit's node that ended well."""

    node_path: str
    attempt_id: str
    visit_number: int
    step_index: int


def first_step(read: Read, run_id: str, snapshot: Snapshot, mount: str) -> int:
    """Return the index of the first step of a mount's current invocation.

    Args:
        read: Reads of the deciding transaction.
        run_id: The run, which is inside the mount or about to enter it.
        snapshot: Its definition.
        mount: The mount.

    Returns:
        The index; no step of the run has it when the mount is only about to be entered.
    """
    entrances = snapshot.entrances[mount]
    own = set(exit_nodes(snapshot.mount_by_path[mount]))
    outside = [node for node in entrances if node not in own]
    led_in = read.all(int, SQL["settled_steps"], run_id=run_id, node_paths=_json_list(outside))
    # An exit that leads back in does so only once it ended well.
    led_in += [step.step_index for step in exit_steps(read, run_id, own.intersection(entrances))]
    return max(led_in, default=-1) + 1


def exit_steps(read: Read, run_id: str, node_paths: Iterable[str]) -> list[ExitStep]:
    """Return the newest visits of exits' nodes that ended well, in text order of the nodes."""
    nodes = sorted(node_paths)
    if not nodes:
        return []
    return read.all(ExitStep, SQL["exits"], run_id=run_id, node_paths=_json_list(nodes))


def invocation(read: Read, run_id: str, snapshot: Snapshot, mount: str) -> int:
    """Return the number of a mount's invocation: the open one, else the next.

    Args:
        read: Reads of the deciding transaction.
        run_id: The run.
        snapshot: Its definition.
        mount: One of its mounts.
    """
    declared = snapshot.mount_by_path[mount]
    steps = exit_steps(read, run_id, exit_nodes(declared))
    return invocation_number(declared, {step.node_path: step.visit_number for step in steps})


def require_steps(
    read: Read, run_id: str, snapshot: Snapshot, node_path: str, step_total: int
) -> None:
    """Refuse an attempt past the limit of a workflow around its node.

    Args:
        read: Reads of the deciding transaction.
        run_id: The run.
        snapshot: Its definition.
        node_path: The node that is due.
        step_total: The run's settled attempts.

    Raises:
        LimitExceeded: `maxSteps`.
    """

    def steps(mount: str) -> int:
        return step_total - first_step(read, run_id, snapshot, mount)

    spent = exhausted(snapshot, node_path, step_total, steps)
    if spent is not None:
        message = exhausted_message(spent, node_path)
        raise LimitExceeded(f"{message[0].upper()}{message[1:]}.", code="maxSteps")


def _json_list(values: Iterable[str]) -> str:
    listed: list[Json] = list(values)
    return canonical.encode(listed).decode()
