"""What the run has done so far, as this runner knows it, and how author functions see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pi_workflows.authoring.context import NodeResult
from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.definition.composition import Exited, exits_of
from pi_workflows.definition.paths import is_within, local_name, scope_of
from pi_workflows.definition.selector import NodeOutcome
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.protocol.proposals import Failure


@dataclass(slots=True)
class Local:
    """What one workflow of a composition sees of its own invocation, by its own names.

    Attributes:
        outputs: The newest output of each node whose newest attempt was `ok`, and of each included
            workflow that was left, in canonical bytes.
        results: How the newest attempt of each node ended.
        failures: Why, for those that did not end `ok`.
    """

    outputs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    results: dict[str, NodeResult] = field(default_factory=dict[str, NodeResult])
    failures: dict[str, Failure] = field(default_factory=dict[str, Failure])


@dataclass(slots=True)
class History:
    """The run so far. Everything is by full path but what stands in a `Local`.

    Attributes:
        step_total: Settled attempts.
        visits: How often each node path was entered.
        attempts: How many attempts each node path had.
        exits: The mounts that are left when a node ended well, for the nodes that leave any.
        exited: The newest visit that ended well of each such node.
        began: The step total at which each open mount was entered.
        inputs: The input of each open mount, once it is made.
    """

    step_total: int = 0
    visits: dict[str, int] = field(default_factory=dict[str, int])
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    exits: Mapping[str, tuple[Exited, ...]] = field(default_factory=dict[str, tuple[Exited, ...]])
    exited: dict[str, int] = field(default_factory=dict[str, int])
    began: dict[str, int] = field(default_factory=dict[str, int])
    inputs: dict[str, Json] = field(default_factory=dict[str, Json])
    _locals: dict[str, Local] = field(default_factory=dict[str, Local])

    @classmethod
    def of(cls, snapshot: Snapshot) -> History:
        """Return the history of a run that has done nothing."""
        exits = {path: exits_of(snapshot, path) for path in snapshot.nodes}
        return cls(exits={path: left for path, left in exits.items() if left})

    def local(self, scope: str) -> Local:
        """Return what the workflow at a mount sees."""
        return self._locals.setdefault(scope, Local())

    def enter(self, mount: str) -> None:
        """Begin an invocation: it sees nothing of the one before (the engine contract, 1.5)."""
        for known in (self._locals, self.inputs, self.began):
            for path in [path for path in known if is_within(path, mount)]:
                del known[path]
        self.began[mount] = self.step_total

    def settle(
        self,
        node_path: str,
        visit: int,
        outcome: NodeOutcome,
        output: bytes | None,
        failure: Failure | None,
    ) -> None:
        """Add a settled attempt; one that is not `ok` removes the output (engine contract, 1.2)."""
        self.step_total += 1
        outputs = self.local(scope_of(node_path)).outputs
        if outcome == "ok" and output is not None:
            outputs[local_name(node_path)] = output
            self._leave(node_path, visit, output)
        else:
            outputs.pop(local_name(node_path), None)
        self.note(node_path, outcome, failure)

    def note(self, node_path: str, outcome: NodeOutcome, failure: Failure | None) -> None:
        """Keep how the newest attempt of a node ended."""
        local, name = self.local(scope_of(node_path)), local_name(node_path)
        if failure is None:
            local.failures.pop(name, None)
            local.results[name] = NodeResult(outcome)
        else:
            local.failures[name] = failure
            local.results[name] = NodeResult(outcome, failure.message)

    def keep(self, node_path: str, output: bytes) -> None:
        """Keep a node's newest output."""
        self.local(scope_of(node_path)).outputs[local_name(node_path)] = output

    def keep_exit(self, mount: str, name: str, output: bytes) -> None:
        """Keep how a mount was left last: that is its output for the workflow around it."""
        given: Json = {"exit": name, "output": canonical.fragment(output)}
        self.keep(mount, canonical.encode(given))

    def content(self, node_path: str) -> bytes | None:
        """Return a node's output in canonical bytes, if it has one."""
        return self.local(scope_of(node_path)).outputs.get(local_name(node_path))

    def output(self, node_path: str) -> Json:
        """Return a node's output as JSON; null when it has none."""
        content = self.content(node_path)
        return None if content is None else canonical.decode_canonical(content)

    def failure(self, node_path: str) -> Failure | None:
        """Return why a node's newest attempt did not end `ok`, if it is known."""
        return self.local(scope_of(node_path)).failures.get(local_name(node_path))

    def _leave(self, node_path: str, visit: int, output: bytes) -> None:
        """Let the workflows around a node know that it left the mounts whose exit it is."""
        for left in self.exits.get(node_path, ()):
            self.keep_exit(left.mount, left.exit, output)
            self.exited[node_path] = visit


class Outputs(Mapping[str, Any]):
    """Outputs as one attempt sees them: read from their stored bytes when asked for.

    What an author's function changes in such a value changes nothing for any other node, and a
    function sees the same values whether its run went through or was resumed.
    """

    __slots__ = ("_contents", "_values")

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        """Show outputs.

        Args:
            contents: Their canonical bytes by name.
        """
        self._contents = contents
        self._values: dict[str, Json] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            content = self._contents[name]
            self._values[name] = canonical.decode_canonical(content)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    def __len__(self) -> int:
        return len(self._contents)
