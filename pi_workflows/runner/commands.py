"""Shell steps: commands with a declared effect."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import trio

from pi_workflows.authoring.commands import Command
from pi_workflows.authoring.nodes import ShellNode, plain_json
from pi_workflows.base import canonical
from pi_workflows.base.errors import Refused
from pi_workflows.definition.snapshot import EffectPolicy
from pi_workflows.protocol.proposals import Failure
from pi_workflows.runner import receipts
from pi_workflows.runner.attempts import Attempt, Settlement, failed, timed_out
from pi_workflows.runner.calls import Calls, Returned
from pi_workflows.runner.capture import Capture
from pi_workflows.runner.contents import encoded
from pi_workflows.runner.contexts import Contexts
from pi_workflows.runner.effects import Adopted, Due, Effects
from pi_workflows.runner.judge import Judge
from pi_workflows.runner.lines import LineUpdates
from pi_workflows.runner.logs import Logs
from pi_workflows.runner.shell import Execution, Program, Shells

_COOKIE: Final = "PI_WORKFLOWS_WORKER"
_NULL: Final = b"null"


class Commands:
    """Executes shell steps."""

    def __init__(
        self,
        contexts: Contexts,
        effects: Effects,
        calls: Calls,
        judge: Judge,
        *,
        shells: Shells,
        logs: Logs,
        project_path: str,
    ) -> None:
        """Execute the shell steps of a run.

        Args:
            contexts: What functions are given.
            effects: Where effects are reserved, begun and settled.
            calls: How functions are called.
            judge: What becomes of what they return.
            shells: What runs processes.
            logs: Where it is told that an author's reader of lines does not work.
            project_path: Where commands run that name no directory.
        """
        self._contexts = contexts
        self._effects = effects
        self._calls = calls
        self._judge = judge
        self._shells = shells
        self._logs = logs
        self._project_path = project_path

    async def execute(
        self, attempt: Attempt, node: ShellNode[object], policy: EffectPolicy
    ) -> Settlement:
        """Execute an attempt.

        Args:
            attempt: The attempt; its start is proposed.
            node: Its node.
            policy: The node's effect.
        """
        command = await self._command(attempt, node, policy)
        if isinstance(command, Settlement):
            return command
        what = command.request(self._project_path)
        try:
            request = encoded(what, field="request")
        except Refused as error:
            return failed(self._judge.reason(error))
        reserved = await self._effects.reserve(attempt, policy, request)
        match reserved:
            case Failure():
                return failed(reserved)
            case Adopted(result):
                return _adopted(await self._interpret(attempt, node, result or _NULL))
            case Due():
                program = _program(command, str(what["cwd"]))
                return await self._try(attempt, node, policy, reserved, program)

    async def _command(
        self, attempt: Attempt, node: ShellNode[object], policy: EffectPolicy
    ) -> Command | Settlement:
        """Return what to execute, or why the attempt ends here."""
        command: object = node.command
        if not isinstance(node.command, Command):
            called = await self._calls.call(
                node.command,
                self._contexts.of_action(attempt, policy.type, attempt.step.tries + 1),
                deadline_ns=attempt.deadline_ns,
                cancel=attempt.cancel,
            )
            if not isinstance(called, Returned):
                return self._judge.settlement(attempt, called)
            command = called.value
        if not isinstance(command, Command):
            message = f"the command's function returned {type(command).__name__}, not a Command"
            return failed(Failure.of("commandInvalid", message))
        fault = command.fault()
        if fault is not None:
            return failed(Failure.of("commandInvalid", fault))
        return command

    async def _try(
        self,
        attempt: Attempt,
        node: ShellNode[object],
        policy: EffectPolicy,
        due: Due,
        program: Program,
    ) -> Settlement:
        """Run the command and settle its effect."""
        await self._effects.begin(due, policy)
        execution = Execution(program, Capture("stdout"), Capture("stderr"))
        on_lines = None
        if node.updates is not None:
            context = self._contexts.of(attempt)
            on_lines = LineUpdates(attempt, context, node.updates, self._calls, self._logs).read
        try:
            with trio.move_on_after(self._calls.seconds_until(attempt.deadline_ns)) as limit:
                await self._shells.run(execution, attempt.attempt_id, on_lines)
        except OSError as error:
            reason = receipts.not_executed(execution, error)
            await self._effects.settle(due, "rejected", failure=reason)
            return failed(reason, receipt=receipts.account(execution))
        if limit.cancelled_caught:
            return await self._cut_short(attempt, due, execution)
        result = encoded(plain_json(receipts.result_of(execution)), field="result")
        await self._effects.settle(due, "applied", result=result)
        settlement = await self._interpret(attempt, node, result)
        return replace(settlement, receipt=receipts.account(execution))

    async def _cut_short(self, attempt: Attempt, due: Due, execution: Execution) -> Settlement:
        """Settle a command whose time ended."""
        settlement = timed_out(attempt.timeout_ms, receipt=receipts.whole_account(execution))
        if execution.is_executed:
            await self._effects.settle(
                due,
                "uncertain",
                result=encoded(settlement.receipt, field="result"),
                failure=settlement.failure,
            )
        else:
            await self._effects.settle(due, "rejected", failure=settlement.failure)
        return settlement

    async def _interpret(
        self, attempt: Attempt, node: ShellNode[object], content: bytes
    ) -> Settlement:
        """Make the attempt's end of its command's stored result, new or adopted."""
        result = receipts.stored_result(content)
        if result is None and node.parse is None:
            # A person confirmed the command: what it wrote is lost, and that it ran is the output.
            return Settlement("ok", output=content)
        if result is None:
            return self._judge.output(node, canonical.decode_canonical(content))
        failure = receipts.exit_failure(result)
        if failure is not None and not node.allow_non_zero_exit:
            return failed(failure)
        if node.parse is None:
            return self._judge.output(node, result)
        called = await self._calls.call(
            node.parse, result, deadline_ns=attempt.deadline_ns, cancel=attempt.cancel
        )
        return self._judge.settlement(attempt, called)


def _program(command: Command, cwd: str) -> Program:
    """Return what the operating system is given of a command."""
    return Program(
        arguments=tuple(command.argv),
        cwd=cwd,
        environment=_environment(command.env or {}),
        stdin=command.stdin,
    )


def _adopted(settlement: Settlement) -> Settlement:
    """Return an attempt's end so that a failure says what was not done."""
    failure = settlement.failure
    if failure is None:
        return settlement
    message = f"the stored result was read again, the command did not run: {failure.message}"
    return replace(settlement, failure=Failure.of(failure.code, message))


def _environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the runner's variables with the author's changes; what marks our processes stays."""
    variables = dict(os.environ)
    for name, value in changes.items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    if _COOKIE in os.environ:
        variables[_COOKIE] = os.environ[_COOKIE]
    return variables
