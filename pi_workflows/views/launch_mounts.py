"""What a resumed runner has to know about included workflows: open invocations, and exits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pi_workflows.base.limits import CARRIED_BYTES_MAX
from pi_workflows.base.sql import Read
from pi_workflows.definition.composition import exit_nodes, open_mounts
from pi_workflows.definition.paths import ROOT, scope_of
from pi_workflows.definition.snapshot import Mount, Snapshot
from pi_workflows.domain.attempt.invocations import ExitStep, exit_steps, first_step
from pi_workflows.protocol.content import Ref
from pi_workflows.protocol.runner import Last, MountState, OpenVisit
from pi_workflows.views.heads import SQL, Head, HeadValue, json_list
from pi_workflows.views.value import Value


@dataclass(frozen=True, slots=True)
class Composed:
    """The invocations of a run.

    Attributes:
        began: The first step of each open mount's invocation.
        exits: The newest visits of exits' nodes that ended well, by node.
    """

    began: Mapping[str, int]
    exits: Mapping[str, ExitStep]

    def sees(self, scope: str, step_index: int | None) -> bool:
        """Return whether a step belongs to what the workflow at a mount sees now."""
        if scope == ROOT:
            return True
        began = self.began.get(scope)
        return began is not None and step_index is not None and step_index >= began

    def sees_head(self, head: Head) -> bool:
        """Return whether a node's newest settled attempt belongs to its open invocation."""
        return self.sees(scope_of(head.node_path), head.step_index)

    @property
    def exited(self) -> dict[str, int]:
        """The newest visit that ended well of each exit's node."""
        return {node: step.visit_number for node, step in self.exits.items()}


def composed(
    read: Read, run_id: str, snapshot: Snapshot, left: OpenVisit | None, last: Last | None
) -> Composed:
    """Return the invocations of a run as it stands.

    Args:
        read: The launch's read.
        run_id: The run.
        snapshot: Its definition.
        left: Its unsettled visit.
        last: The visit that settled last.
    """
    place = left or last
    inside: tuple[str, ...] = ()
    if place is not None:
        is_over = left is None and last is not None and last.outcome == "ok"
        inside = open_mounts(snapshot, place.node_path, has_ended_well=is_over)
    nodes = {node for mount in snapshot.mounts for node in exit_nodes(mount)}
    return Composed(
        began={mount: first_step(read, run_id, snapshot, mount) for mount in inside},
        exits={step.node_path: step for step in exit_steps(read, run_id, nodes)},
    )


def mount_states(
    read: Read,
    snapshot: Snapshot,
    told: Composed,
    step_total: int,
    ref: Callable[[Value], Ref],
) -> dict[str, MountState]:
    """Return what a runner is told of each mount, without those that it need not know.

    Args:
        read: The launch's read.
        snapshot: The definition.
        told: The run's invocations.
        step_total: The run's settled attempts.
        ref: Makes a value, or its name, of what an exit gave.
    """
    newest = {mount.path: _newest(mount, told) for mount in snapshot.mounts}
    ids = {step.attempt_id for step in newest.values() if step is not None}
    values = read.all(
        HeadValue, SQL["head_values"], attempt_ids=json_list(ids), carried_bytes=CARRIED_BYTES_MAX
    )
    outputs = {value.node_path: value.output for value in values}
    states: dict[str, MountState] = {}
    for mount in snapshot.mounts:
        step = newest[mount.path]
        began = told.began.get(mount.path)
        output = None if step is None else outputs[step.node_path]
        if began is None and output is None:
            continue
        states[mount.path] = MountState(
            steps=None if began is None else step_total - began,
            exit=None if step is None else _exit_name(mount, step.node_path),
            output=None if output is None else ref(output),
        )
    return states


def _newest(mount: Mount, told: Composed) -> ExitStep | None:
    """Return the newest exit that the workflow around a mount sees."""
    steps = [told.exits[node] for node in exit_nodes(mount) if node in told.exits]
    newest = max(steps, key=lambda step: step.step_index, default=None)
    is_seen = newest is not None and told.sees(scope_of(mount.path), newest.step_index)
    return newest if is_seen else None


def _exit_name(mount: Mount, node_path: str) -> str:
    return next(name for name, way in mount.exits.items() if way.node == node_path)
