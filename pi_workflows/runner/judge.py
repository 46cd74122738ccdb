"""What becomes of an attempt when the author's function has ended."""

from __future__ import annotations

from collections.abc import Collection

from pi_workflows.authoring.nodes import AnyNode, NotifyNode
from pi_workflows.base import canonical
from pi_workflows.base.limits import NOTIFICATION_CHARS_MAX
from pi_workflows.protocol.proposals import Failure
from pi_workflows.runner.attempts import Attempt, Settlement, failed, reason_of, timed_out
from pi_workflows.runner.calls import Called, Expired, Raised, Returned
from pi_workflows.runner.caught import Caught
from pi_workflows.runner.contents import encoded, shown_text


class Judge:
    """Makes settlements. It runs the author's models, where the author's functions run."""

    def __init__(self, files: Collection[str]) -> None:
        """Judge a workflow.

        Args:
            files: The paths of its source files, by which an author's lines are recognized.
        """
        self._files = files

    def reason(self, error: BaseException) -> Failure:
        """Say why something of the author's failed."""
        return reason_of(error, self._files)

    def settlement(self, attempt: Attempt, called: Called) -> Settlement:
        """Return how an attempt ends whose output is what its function returned."""
        match called:
            case Returned(value):
                return self.output(attempt.node, value)
            case Raised(error):
                return failed(self.reason(error))
            case Expired(is_stuck):
                return timed_out(attempt.timeout_ms, is_stuck=is_stuck)

    def output(self, node: AnyNode, value: object) -> Settlement:
        """Settle a node with an output, or as `failed`: no JSON, too large, not its model's."""
        content = b""
        with Caught() as caught:
            if isinstance(node, NotifyNode):
                value = shown_text(
                    value,
                    what="text",
                    chars_max=NOTIFICATION_CHARS_MAX,
                    hint="Write it to a file and name the file.",
                )
            content = encoded(node.output_json(value), field="output")
        if caught.error is not None:
            return failed(self.reason(caught.error))
        return Settlement("ok", output=content)

    def stored(self, node: AnyNode, result: bytes) -> Settlement:
        """Return the settlement of an action whose effect's stored result is its output."""
        value: object = None
        with Caught() as caught:
            value = node.output_value(canonical.decode_canonical(result), field="output")
        if caught.error is not None:
            return failed(self.reason(caught.error))
        return self.output(node, value)
