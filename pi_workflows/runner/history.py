"""What the run has done so far, as this runner knows it, and how author functions see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pi_workflows.authoring.context import NodeResult
from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.definition.selector import NodeOutcome
from pi_workflows.protocol.proposals import Failure


@dataclass(slots=True)
class History:
    """The run so far.

    Attributes:
        step_total: Settled attempts.
        visits: How often each node path was entered.
        attempts: How many attempts each node path had.
        outputs: The newest output of each node whose newest attempt was `ok`, in canonical bytes.
        results: How the newest attempt of each node ended.
        failures: Why, for those that did not end `ok`.
    """

    step_total: int = 0
    visits: dict[str, int] = field(default_factory=dict[str, int])
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    outputs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    results: dict[str, NodeResult] = field(default_factory=dict[str, NodeResult])
    failures: dict[str, Failure] = field(default_factory=dict[str, Failure])

    def settle(
        self, node_path: str, outcome: NodeOutcome, output: bytes | None, failure: Failure | None
    ) -> None:
        """Add a settled attempt; one that is not `ok` removes the output (engine contract, 1.2)."""
        self.step_total += 1
        if outcome == "ok" and output is not None:
            self.outputs[node_path] = output
        else:
            self.outputs.pop(node_path, None)
        self.note(node_path, outcome, failure)

    def note(self, node_path: str, outcome: NodeOutcome, failure: Failure | None) -> None:
        """Keep how the newest attempt of a node ended."""
        if failure is None:
            self.failures.pop(node_path, None)
            self.results[node_path] = NodeResult(outcome)
        else:
            self.failures[node_path] = failure
            self.results[node_path] = NodeResult(outcome, failure.message)

    def output(self, node_path: str) -> Json:
        """Return a node's output as JSON; null when it has none."""
        content = self.outputs.get(node_path)
        return None if content is None else canonical.decode_canonical(content)


class Outputs(Mapping[str, Any]):
    """Outputs as one attempt sees them: read from their stored bytes when asked for.

    What an author's function changes in such a value changes nothing for any other node, and a
    function sees the same values whether its run went through or was resumed.
    """

    __slots__ = ("_contents", "_values")

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        """Show outputs.

        Args:
            contents: Their canonical bytes by node path.
        """
        self._contents = contents
        self._values: dict[str, Json] = {}

    def __getitem__(self, node_path: str) -> Any:
        if node_path not in self._values:
            content = self._contents[node_path]
            self._values[node_path] = canonical.decode_canonical(content)
        return self._values[node_path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    def __len__(self) -> int:
        return len(self._contents)
