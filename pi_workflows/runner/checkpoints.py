"""Checkpoints: the question is built once, then the run waits without a runner."""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.authoring.nodes import CheckpointNode, plain_json
from pi_workflows.base.canonical import Json
from pi_workflows.runner.attempts import Attempt, Settlement, failed
from pi_workflows.runner.calls import Calls, Returned
from pi_workflows.runner.caught import Caught
from pi_workflows.runner.contents import Contents, encoded
from pi_workflows.runner.contexts import Contexts
from pi_workflows.runner.judge import Judge
from pi_workflows.runner.proposals import Proposals


@dataclass(frozen=True, slots=True)
class Waiting:
    """The run waits for an answer; this runner's work is done."""


class Checkpoints:
    """Asks the questions of a run."""

    def __init__(
        self,
        contexts: Contexts,
        proposals: Proposals,
        contents: Contents,
        calls: Calls,
        judge: Judge,
    ) -> None:
        """Ask questions.

        Args:
            contexts: What functions are given.
            proposals: Where questions are proposed.
            contents: How large ones travel.
            calls: How functions are called.
            judge: What becomes of what they return.
        """
        self._contexts = contexts
        self._proposals = proposals
        self._contents = contents
        self._calls = calls
        self._judge = judge

    async def execute(self, attempt: Attempt, node: CheckpointNode[object]) -> Settlement | Waiting:
        """Ask the question of an attempt.

        Args:
            attempt: The attempt; its start is proposed.
            node: Its node.

        Returns:
            That the run waits, or how the attempt ended because the question could not be built.
        """
        contract: dict[str, Json] = {"summary": node.summary}
        if node.output is not None:
            # A type of the author's may have no schema; the answer is validated all the same.
            with Caught():
                contract["schema"] = node.output.adapter.json_schema()
        if node.function is not None:
            # What a person is shown stands on committed steps.
            await self._proposals.all_answered()
            called = await self._calls.call(
                node.function,
                self._contexts.of(attempt),
                deadline_ns=attempt.deadline_ns,
                cancel=attempt.cancel,
            )
            if not isinstance(called, Returned):
                return self._judge.settlement(attempt, called)
            contract["content"] = plain_json(called.value)
        content = b""
        with Caught() as caught:
            content = encoded(contract, field="request")
        if caught.error is not None:
            return failed(self._judge.reason(caught.error))
        reference, _ = self._contents.ref(content)
        attempt.is_open = False
        await self._proposals.conclude(
            (
                {
                    "command": "waitForInput",
                    "attemptId": attempt.attempt_id,
                    "kind": "checkpoint",
                    "contract": reference,
                },
            ),
            leaves=True,
        )
        return Waiting()
