"""The run's loop: begin an attempt, execute it, settle it, go where the route leads."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import BaseModel

from pi_workflows.authoring.nodes import (
    ActionNode,
    AgentNode,
    CheckpointNode,
    ComputeNode,
    HumanDecisionNode,
    NotifyNode,
    ShellNode,
)
from pi_workflows.authoring.policies import computed_timeout_ms
from pi_workflows.authoring.workflow import Workflow
from pi_workflows.base.clock import Clock
from pi_workflows.base.limits import DEFINITION_CALLBACK_MS, NODE_TIMEOUT_DEFAULT_MS
from pi_workflows.base.units import NS_PER_MS
from pi_workflows.protocol.proposals import Failure
from pi_workflows.protocol.runner import Resume
from pi_workflows.runner import plan
from pi_workflows.runner.actions import Actions
from pi_workflows.runner.attempts import Attempt, Settlement, failed, timed_out
from pi_workflows.runner.boundaries import Boundaries
from pi_workflows.runner.burst import Awaiting, Burst, Bursting, Overdue, Stay
from pi_workflows.runner.calls import Calls, Expired, Raised, Returned, is_async
from pi_workflows.runner.caught import Caught
from pi_workflows.runner.commands import Commands
from pi_workflows.runner.contents import Contents
from pi_workflows.runner.contexts import Contexts
from pi_workflows.runner.ending import EXIT_LOST, leave, say
from pi_workflows.runner.judge import Judge
from pi_workflows.runner.mounts import Mounts
from pi_workflows.runner.plan import Enter, Step
from pi_workflows.runner.prompts import Prompts
from pi_workflows.runner.proposals import Proposals
from pi_workflows.runner.questions import Questions, Waiting
from pi_workflows.runner.settings import Settings

Executed: TypeAlias = Step | Waiting


class Engine:
    """Executes one run from where it stands until it ends, waits, or goes back to the queue."""

    def __init__(
        self,
        *,
        workflow: Workflow[BaseModel],
        boundaries: Boundaries,
        contexts: Contexts,
        mounts: Mounts,
        settings: Settings,
        proposals: Proposals,
        contents: Contents,
        calls: Calls,
        judge: Judge,
        actions: Actions,
        commands: Commands,
        clock: Clock,
        is_interactive: bool,
    ) -> None:
        """Execute a run; the parts are those of one runner."""
        self._workflow = workflow
        self._boundaries = boundaries
        self._contexts = contexts
        self._mounts = mounts
        self._settings = settings
        self._proposals = proposals
        self._contents = contents
        self._calls = calls
        self._judge = judge
        self._actions = actions
        self._commands = commands
        self._questions = Questions(contexts, proposals, contents, calls, judge)
        self._prompts = Prompts(contexts, calls, judge, clock, is_interactive=is_interactive)
        self._clock = clock
        self._bursting = Bursting(
            boundaries, contexts, proposals, calls, clock, _bursting_ms(workflow), judge.settlement
        )

    async def run(self, resume: Resume | None) -> None:
        """Execute the run.

        Args:
            resume: Where it stands; None at its start.
        """
        step = await self._first(resume)
        while isinstance(step, Enter):
            await self._proposals.room()
            step = await self._enter(step)
        if not isinstance(step, Waiting):
            await self._boundaries.leave(step)

    async def _first(self, resume: Resume | None) -> Executed:
        """Return the first step; what became of a question settles its attempt before it."""
        left = None if resume is None else resume.open
        if left is not None and left.accepted is not None:
            answer = await self._contents.get(left.accepted)
            return self._boundaries.settle_asked(left, Settlement("ok", output=answer))
        if left is not None and left.closed is not None:
            ended = Settlement(left.closed.outcome, failure=left.closed.error)
            return self._boundaries.settle_asked(left, ended)
        return plan.first(self._workflow.snapshot, self._boundaries.history, resume)

    async def _enter(self, step: Enter) -> Executed:
        """Execute one attempt, or several that need nothing from trio, and return what follows."""
        unmade = await self._mounts.enter(step) or await self._settings.enter(step)
        if unmade is not None:
            return unmade
        timeout_ms = self._workflow.snapshot.nodes[step.node_path].timeout_ms
        if timeout_ms is None:
            computed = await self._computed_timeout(step)
            if isinstance(computed, Settlement):
                attempt = await self._begin(step, NODE_TIMEOUT_DEFAULT_MS)
                return await self._settle(attempt, computed)
            timeout_ms = computed
        node = self._workflow.node_by_path[step.node_path]
        prompt = await self._prompts.build(step, node) if isinstance(node, AgentNode) else ""
        if isinstance(prompt, Settlement):
            attempt = await self._begin(step, timeout_ms)
            return await self._settle(attempt, prompt)
        attempt = await self._begin(step, timeout_ms, prompt)
        if step.node_path in self._bursting.timeouts_ms:
            return await self._unburst(await Stay(self._bursting, attempt).run())
        settlement = await self._execute(attempt)
        if isinstance(settlement, Waiting):
            return settlement
        return await self._settle(attempt, settlement)

    async def _begin(self, step: Enter, timeout_ms: int, prompt: str = "") -> Attempt:
        """Begin an attempt; one with settings once the server has bound it."""
        is_bound = self._workflow.snapshot.settings_of(step.node_path) is not None
        if is_bound or self._settings.is_opening:
            return await self._boundaries.begin_bound(step, timeout_ms, self._settings, prompt)
        return self._boundaries.begin(step, timeout_ms, prompt)

    async def _execute(self, attempt: Attempt) -> Settlement | Waiting:
        """Execute an attempt by its node's kind."""
        node = attempt.node
        declared = self._workflow.snapshot.nodes[attempt.node_path]
        policy, kind = declared.effect, declared.request_kind
        match node:
            case ComputeNode() | NotifyNode():
                called = await self._calls.call(
                    node.function,
                    self._contexts.of(attempt),
                    deadline_ns=attempt.deadline_ns,
                    cancel=attempt.cancel,
                )
                return self._judge.settlement(attempt, called)
            case AgentNode() | CheckpointNode() | HumanDecisionNode():
                assert kind is not None, attempt.node_path
                return await self._questions.execute(attempt, node, kind)
            case ActionNode():
                assert policy is not None, attempt.node_path
                return await self._actions.execute(attempt, node, policy)
            case ShellNode():
                assert policy is not None, attempt.node_path
                return await self._commands.execute(attempt, node, policy)

    async def _unburst(self, burst: Burst) -> Step:
        """Do what a stay in a thread left to trio."""
        match burst:
            case Awaiting(attempt, awaitable):
                called = await self._calls.finish(
                    awaitable, deadline_ns=attempt.deadline_ns, cancel=attempt.cancel
                )
                return await self._settle(attempt, self._judge.settlement(attempt, called))
            case Overdue(attempt, is_stuck):
                return await self._settle(attempt, timed_out(attempt.timeout_ms, is_stuck=is_stuck))
            case _:
                return burst

    async def _settle(self, attempt: Attempt, settlement: Settlement) -> Step:
        """Settle an attempt. A function that does not end takes this process, not the step."""
        if isinstance(attempt.node, ComputeNode) and attempt.node.is_settings_route:
            step = await self._boundaries.settle_route(attempt, settlement, self._settings)
        else:
            step = self._boundaries.settle(attempt, settlement)
        if isinstance(attempt.node, NotifyNode) and settlement.outcome == "ok":
            # Nothing runs ahead of what a session is told.
            await self._boundaries.propose()
        if settlement.is_stuck and isinstance(step, Enter):
            await self._boundaries.propose()
            say(f"{attempt.node_path}: its function still runs; this runner ends to end it")
            leave(EXIT_LOST)
        return step

    async def _computed_timeout(self, step: Enter) -> int | Settlement:
        """Return a computed budget in milliseconds, or how the attempt ends without one."""
        timeout = self._workflow.node_by_path[step.node_path].timeout
        assert callable(timeout), step.node_path
        context = self._contexts.before(step)
        called = await self._calls.call(
            timeout,
            context,
            deadline_ns=self._clock.monotonic_ns() + DEFINITION_CALLBACK_MS * NS_PER_MS,
            cancel=context.cancel,
        )
        match called:
            case Raised(error):
                return failed(self._judge.reason(error))
            case Expired(is_stuck):
                message = f"computing the timeout took more than {DEFINITION_CALLBACK_MS} ms"
                reason = Failure.of("timeoutInvalid", message)
                return Settlement("failed", failure=reason, is_stuck=is_stuck)
            case Returned(value):
                budget_ms = 0
                with Caught() as caught:
                    budget_ms = computed_timeout_ms(value)
                return (
                    budget_ms if caught.error is None else failed(self._judge.reason(caught.error))
                )


def _bursting_ms(workflow: Workflow[BaseModel]) -> dict[str, int]:
    """Return the plain compute nodes with a fixed budget: they may share a stay in a thread."""
    found: dict[str, int] = {}
    for path, node in workflow.node_by_path.items():
        timeout_ms = workflow.snapshot.nodes[path].timeout_ms
        if workflow.snapshot.settings_of(path) is not None:
            # Which value it has is the server's to say.
            continue
        if isinstance(node, ComputeNode) and timeout_ms is not None and not is_async(node.function):
            found[path] = timeout_ms
    return found
