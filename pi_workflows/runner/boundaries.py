"""Where one attempt ends and the next begins: what is proposed then, and what becomes history."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

from pi_workflows.authoring.nodes import NotifyNode
from pi_workflows.authoring.workflow import Workflow
from pi_workflows.base import canonical, ids
from pi_workflows.base.canonical import Json
from pi_workflows.base.clock import Clock
from pi_workflows.definition.paths import scope_of
from pi_workflows.definition.snapshot import NoticeKind
from pi_workflows.protocol.proposals import Failure, SettingsNow
from pi_workflows.protocol.runner import OpenVisit
from pi_workflows.runner import plan
from pi_workflows.runner.attempts import Attempt, Settlement, deadline_ns
from pi_workflows.runner.contents import Contents
from pi_workflows.runner.history import History
from pi_workflows.runner.plan import Enter, Later, Over, Settled, Step
from pi_workflows.runner.proposals import Proposals
from pi_workflows.runner.settings import Settings, claim

# A command without its values, generously.
_COMMAND_BYTES: Final = 512


class Boundaries:
    """Begins and settles attempts, one after the other, from whichever thread executes them.

    The commands of a settlement wait for what follows it, so that "finish this, start that" is one
    proposal.

    Attributes:
        history: The run so far.
    """

    def __init__(
        self,
        run_id: str,
        workflow: Workflow[BaseModel],
        history: History,
        *,
        proposals: Proposals,
        contents: Contents,
        clock: Clock,
    ) -> None:
        """Continue a run.

        Args:
            run_id: The run.
            workflow: Its definition.
            history: What it has done.
            proposals: Where boundaries are proposed.
            contents: How large values travel.
            clock: What measures active time.
        """
        self.history = history
        self._run_id = run_id
        self._workflow = workflow
        self._proposals = proposals
        self._contents = contents
        self._clock = clock
        self._settled: list[Json] = []
        self._settled_bytes = 0
        self._must_follow = False
        self._named: tuple[bytes, Json] | None = None

    def begin(self, step: Enter, timeout_ms: int, prompt: str = "") -> Attempt:
        """Begin an attempt and propose it together with the settlement before it.

        The caller has waited for room.

        Args:
            step: What to attempt.
            timeout_ms: Its budget in active milliseconds; 0 = unlimited.
            prompt: What an agent is told; empty = it is told nothing.
        """
        attempt, start = self._started(step, timeout_ms, prompt)
        self._proposals.add(
            (*self._settled, start),
            content_bytes=self._settled_bytes + _COMMAND_BYTES,
            must_follow=self._must_follow,
        )
        self._forget()
        return attempt

    async def begin_bound(
        self, step: Enter, timeout_ms: int, settings: Settings, prompt: str = ""
    ) -> Attempt:
        """Begin an attempt once the server has bound it to settings, opening those entered first.

        Args:
            step: As `begin`.
            timeout_ms: As `begin`.
            settings: The run's settings; nothing runs ahead of which value an attempt has.
            prompt: As `begin`.
        """
        opening = settings.opening()
        attempt, start = self._started(step, timeout_ms, prompt)
        mount = scope_of(step.node_path)
        known = settings.known.get(mount)
        if known is not None:
            start["settings"] = claim(known)
        commands = [*self._settled, *opening, start]
        self._forget()
        result = await self._proposals.conclude(commands)
        attempt.settings = known
        if known is not None and isinstance(result.values, SettingsNow):
            attempt.settings = await settings.learn(mount, result.values)
        return attempt

    async def settle_route(
        self, attempt: Attempt, settlement: Settlement, settings: Settings
    ) -> Step:
        """Settle a settings route if its settings are still the ones; else attempt it again.

        Args:
            attempt: The route.
            settlement: What it chose.
            settings: The run's settings, which learn the newest value.
        """
        attempt.is_open = False
        elapsed_ns = self._clock.monotonic_ns() - attempt.started_ns
        self._finish(attempt.attempt_id, settlement, elapsed_ns)
        commands = self._settled
        self._forget()
        result = await self._proposals.conclude(commands)
        step = attempt.step
        if isinstance(result.values, SettingsNow):
            await settings.learn(scope_of(step.node_path), result.values)
            return Enter(step.node_path, step.visit, step.tries)
        return self._after(step.node_path, step.visit, step.tries + 1, settlement)

    def _started(
        self, step: Enter, timeout_ms: int, prompt: str
    ) -> tuple[Attempt, dict[str, Json]]:
        """Return a new attempt, and the command that starts it."""
        path = step.node_path
        number = self.history.attempts.get(path, 0) + 1
        self.history.attempts[path] = number
        self.history.visits[path] = step.visit
        started_ns = self._clock.monotonic_ns()
        attempt = Attempt(
            step=step,
            node=self._workflow.node_by_path[path],
            attempt_id=ids.attempt_id(self._run_id, path, number),
            attempt_number=number,
            timeout_ms=timeout_ms,
            started_ns=started_ns,
            deadline_ns=deadline_ns(started_ns, timeout_ms),
            prompt=prompt,
        )
        start: dict[str, Json] = {
            "command": "startAttempt",
            "attemptId": attempt.attempt_id,
            "nodePath": path,
            "visit": step.visit,
            "attemptNumber": number,
            "nodeType": self._workflow.snapshot.nodes[path].type,
            "timeoutMs": timeout_ms,
        }
        if prompt:
            self._name(start, "prompt", canonical.encode(prompt))
        return attempt, start

    def settle(self, attempt: Attempt, settlement: Settlement) -> Step:
        """Settle an attempt and return what follows; `begin`, `propose` or `leave` proposes it."""
        attempt.is_open = False
        elapsed_ns = self._clock.monotonic_ns() - attempt.started_ns
        if isinstance(attempt.node, NotifyNode) and settlement.output is not None:
            self._notify(attempt.attempt_id, attempt.node.kind, settlement.output, elapsed_ns)
        else:
            self._finish(attempt.attempt_id, settlement, elapsed_ns)
        step = attempt.step
        return self._after(step.node_path, step.visit, step.tries + 1, settlement)

    def settle_asked(self, left: OpenVisit, settlement: Settlement) -> Step:
        """Settle an attempt whose question is over. No time of it was active here."""
        self._finish(left.attempt_id, settlement, 0)
        return self._after(left.node_path, left.visit, left.tries + 1, settlement)

    async def propose(self) -> None:
        """Propose the settlement without anything that follows it, and wait for the answer."""
        commands = self._settled
        self._forget()
        await self._proposals.conclude(commands)

    async def leave(self, last: Over | Later) -> None:
        """Propose the settlement with the end of the run, or with its return to the queue."""
        commands = self._settled
        if isinstance(last, Later):
            commands.append({"command": "requeue", "delayMs": last.delay_ms})
        else:
            commands.append(self._finish_run(last))
        self._forget()
        await self._proposals.conclude(commands, leaves=True)

    def _after(self, node_path: str, visit: int, tries: int, settlement: Settlement) -> Step:
        self.history.settle(
            node_path, visit, settlement.outcome, settlement.output, settlement.failure
        )
        settled = Settled(node_path, visit, tries, settlement.outcome)
        return plan.after(self._workflow.snapshot, self.history, settled)

    def _finish(self, attempt_id: str, settlement: Settlement, elapsed_ns: int) -> None:
        """Keep the command that settles an attempt."""
        finish: dict[str, Json] = {
            "command": "finishAttempt",
            "attemptId": attempt_id,
            "outcome": settlement.outcome,
            "elapsedNs": elapsed_ns,
        }
        if settlement.output is not None:
            self._name(finish, "output", settlement.output)
        if settlement.receipt is not None:
            finish["receipt"] = settlement.receipt
            self._settled_bytes += _COMMAND_BYTES
        self._fail(finish, settlement.failure)
        self._settled.append(finish)
        self._settled_bytes += _COMMAND_BYTES

    def _notify(self, attempt_id: str, kind: NoticeKind, text: bytes, elapsed_ns: int) -> None:
        """Keep the command that settles an attempt and tells the session its output."""
        notice: dict[str, Json] = {
            "command": "notify",
            "attemptId": attempt_id,
            "kind": kind,
            "elapsedNs": elapsed_ns,
        }
        self._name(notice, "text", text)
        self._settled.append(notice)
        self._settled_bytes += _COMMAND_BYTES

    def _finish_run(self, last: Over) -> Json:
        finish: dict[str, Json] = {"command": "finishRun", "outcome": last.outcome}
        if last.output is not None:
            self._name(finish, "output", last.output)
        self._fail(finish, last.failure)
        return finish

    def _name(self, command: dict[str, Json], member: str, content: bytes) -> None:
        """Let a command name a value."""
        if self._named is not None and self._named[0] is content:
            # The final node's output is also the run's: one proposal, put once.
            command[member] = self._named[1]
            return
        reference, was_put = self._contents.ref(content)
        self._settled_bytes += 0 if was_put else len(content)
        self._must_follow = self._must_follow or was_put
        self._named = (content, reference)
        command[member] = reference

    def _fail(self, command: dict[str, Json], failure: Failure | None) -> None:
        """Let a command say why."""
        if failure is not None:
            command["error"] = failure.document()
            self._settled_bytes += len(failure.message)

    def _forget(self) -> None:
        self._settled, self._settled_bytes, self._must_follow = [], 0, False
        self._named = None
