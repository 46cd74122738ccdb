"""Questions to people and models: each is built once, then the run waits without a runner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from pi_workflows.authoring.decisions import DecisionRequest
from pi_workflows.authoring.nodes import (
    AgentNode,
    CheckpointNode,
    HumanDecisionNode,
    NodeFunction,
    plain_json,
)
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.limits import SUMMARY_CHARS_MAX
from pi_workflows.definition.presentation import presentation_of
from pi_workflows.definition.snapshot import AssistantOutput, RequestKind
from pi_workflows.runner.attempts import Attempt, Settlement, failed
from pi_workflows.runner.calls import Calls, Returned
from pi_workflows.runner.caught import Caught
from pi_workflows.runner.contents import Contents, encoded
from pi_workflows.runner.contexts import Contexts
from pi_workflows.runner.judge import Judge
from pi_workflows.runner.proposals import Proposals

SCHEMA: Final = "pi-workflows.interaction-contract.v1"

AskingNode: TypeAlias = AgentNode[object] | CheckpointNode[object] | HumanDecisionNode[object]


@dataclass(frozen=True, slots=True)
class Waiting:
    """The run waits for an answer; this runner's work is done."""


class Questions:
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

    async def execute(
        self, attempt: Attempt, node: AskingNode, kind: RequestKind
    ) -> Settlement | Waiting:
        """Ask the question of an attempt.

        Args:
            attempt: The attempt; its start is proposed, with its prompt if it has one.
            node: Its node.
            kind: What kind of answer it waits for.

        Returns:
            That the run waits, or how the attempt ended because the question could not be built.
        """
        contract: dict[str, Json] = {"schema": SCHEMA, "kind": kind, "nodeId": attempt.node_path}
        match node:
            case AgentNode():
                contract |= _told(node, attempt.prompt)
            case CheckpointNode():
                contract["summary"] = node.summary
                contract |= _schema(node)
            case HumanDecisionNode():
                # Its title is built with the rest.
                pass
        function = None if isinstance(node, AgentNode) else node.function
        if function is not None:
            built = await self._call(attempt, function)
            if isinstance(built, Settlement):
                return built
            with Caught() as caught:
                contract |= _shown(node, built.value)
            if caught.error is not None:
                return failed(self._judge.reason(caught.error))
        return await self._ask(attempt, kind, contract)

    async def _call(self, attempt: Attempt, function: NodeFunction) -> Returned | Settlement:
        """Call what builds a question; what a person is shown stands on committed steps."""
        await self._proposals.all_answered()
        called = await self._calls.call(
            function,
            self._contexts.of(attempt),
            deadline_ns=attempt.deadline_ns,
            cancel=attempt.cancel,
        )
        return called if isinstance(called, Returned) else self._judge.settlement(attempt, called)

    async def _ask(
        self, attempt: Attempt, kind: RequestKind, contract: dict[str, Json]
    ) -> Settlement | Waiting:
        """Propose that the attempt waits."""
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
                    "kind": kind,
                    "contract": reference,
                },
            ),
            leaves=True,
        )
        return Waiting()


def _told(node: AgentNode[object], prompt: str) -> dict[str, Json]:
    """Return what a model is told, and what its answer has to be."""
    told: dict[str, Json] = {"prompt": prompt}
    if isinstance(node.expected, AssistantOutput):
        if node.expected.max_chars is not None:
            told["maxChars"] = node.expected.max_chars
    elif node.expected is not None:
        told["expectedOutput"] = node.expected
    else:
        told |= _schema(node)
    if node.allowed_tools is not None:
        told["allowedTools"] = list(node.allowed_tools)
    if node.choices is not None:
        told["choices"] = list(node.choices)
        told["choiceField"] = node.choice_field
    return told


def _schema(node: AgentNode[object] | CheckpointNode[object]) -> dict[str, Json]:
    """Return the schema of an answer, where its model has one."""
    found: dict[str, Json] = {}
    if node.output is not None:
        # A type of the author's may have no schema; the answer is validated all the same.
        with Caught():
            found["answerSchema"] = node.output.adapter.json_schema()
    return found


def _shown(node: AskingNode, built: object) -> dict[str, Json]:
    """Return what a question's function built, as its contract holds it.

    Raises:
        PayloadInvalid: `requestInvalid`, a decision is none; `presentationInvalid`, it cannot be
            shown.
    """
    if not isinstance(node, HumanDecisionNode):
        return {"content": plain_json(built)}
    if not isinstance(built, DecisionRequest):
        message = f"request gave {built!r:.60}: return a DecisionRequest"
        raise PayloadInvalid(message, code="requestInvalid", field="request")
    title = cast("object", built.title)
    if not isinstance(title, str) or not title.strip() or len(title) > SUMMARY_CHARS_MAX:
        message = f"title: use text of 1 to {SUMMARY_CHARS_MAX:,} characters"
        raise PayloadInvalid(message, code="requestInvalid", field="title")
    policy: dict[str, Json] = node.policy.model_dump(mode="json", by_alias=True, exclude_none=True)
    asked: dict[str, Json] = {
        **policy,
        "title": title,
        "subject": plain_json(built.subject),
        "presentation": presentation_of(built.presentation).document(),
    }
    return {"summary": title, "decision": asked}
