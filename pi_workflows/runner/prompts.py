"""What agents are told: built and held to its limit before their attempts begin."""

from __future__ import annotations

from typing import Final

from pi_workflows.authoring.nodes import AgentNode
from pi_workflows.base.clock import Clock
from pi_workflows.base.limits import DEFINITION_CALLBACK_MS, PROMPT_CHARS_DEFAULT
from pi_workflows.base.units import NS_PER_MS
from pi_workflows.protocol.proposals import Failure
from pi_workflows.runner.attempts import Settlement, failed
from pi_workflows.runner.calls import Calls, Expired, Raised, Returned
from pi_workflows.runner.caught import Caught
from pi_workflows.runner.contents import shown_text
from pi_workflows.runner.contexts import Contexts
from pi_workflows.runner.judge import Judge
from pi_workflows.runner.plan import Enter

_NO_SESSION: Final = (
    "this run is headless: it belongs to no Pi session whose model could take the step, and nothing"
    " else executes agents here; start the workflow from a Pi session"
)


class Prompts:
    """Builds the prompts of one run."""

    def __init__(
        self, contexts: Contexts, calls: Calls, judge: Judge, clock: Clock, *, is_interactive: bool
    ) -> None:
        """Build prompts.

        Args:
            contexts: What functions are given.
            calls: How functions are called.
            judge: Says why one failed.
            clock: What measures their time.
            is_interactive: Whether a session takes the run's steps.
        """
        self._contexts = contexts
        self._calls = calls
        self._judge = judge
        self._clock = clock
        self._is_interactive = is_interactive

    async def build(self, step: Enter, node: AgentNode[object]) -> str | Settlement:
        """Return the prompt of an attempt, or how the attempt ends without one.

        Args:
            step: The attempt that is about to begin.
            node: Its node.
        """
        if not self._is_interactive:
            return failed(Failure.of("agentExecutorMissing", _NO_SESSION))
        given: object = node.prompt
        if callable(node.prompt):
            context = self._contexts.before(step)
            called = await self._calls.call(
                node.prompt,
                context,
                deadline_ns=self._clock.monotonic_ns() + DEFINITION_CALLBACK_MS * NS_PER_MS,
                cancel=context.cancel,
            )
            match called:
                case Raised(error):
                    return failed(self._judge.reason(error))
                case Expired(is_stuck):
                    message = f"building the prompt took more than {DEFINITION_CALLBACK_MS} ms"
                    reason = Failure.of("promptInvalid", message)
                    return Settlement("failed", failure=reason, is_stuck=is_stuck)
                case Returned(value):
                    given = value
        with Caught() as caught:
            given = shown_text(
                given,
                what="prompt",
                chars_max=node.prompt_chars_max or PROMPT_CHARS_DEFAULT,
                hint="Shorten it, name a file that the model reads, or raise prompt_chars_max.",
            )
        return str(given) if caught.error is None else failed(self._judge.reason(caught.error))
