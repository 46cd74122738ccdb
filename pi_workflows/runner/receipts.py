"""What is kept of a command: the whole result at its effect, a small account at its attempt."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from pi_workflows.authoring.commands import ShellResult
from pi_workflows.authoring.nodes import plain_json
from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import INLINE_BYTES_MAX, VALUE_BYTES_MAX
from pi_workflows.protocol.proposals import Failure
from pi_workflows.runner.capture import bounded
from pi_workflows.runner.shell import Execution

# The quotes of two outputs and the flags that say they were cut.
_FRAME_BYTES: Final = 256
# How much of its outputs the account of a command without a result keeps, and an error line shows.
_TAIL_CHARS: Final = 2_000
_SHOWN_CHARS: Final = 400


def result_of(execution: Execution) -> ShellResult:
    """Return the result of a command that has ended, its outputs cut so that it can be stored."""
    program = execution.program
    result = ShellResult(
        command=program.arguments,
        cwd=program.cwd,
        exit_code=execution.exit_code,
        signal=execution.signal_name,
        duration_ms=execution.duration_ms,
        stdout="",
        stderr="",
    )
    frame_bytes = len(canonical.encode(plain_json(result))) + _FRAME_BYTES
    each_bytes_max = max(_FRAME_BYTES, (VALUE_BYTES_MAX - frame_bytes) // 2)
    stdout, stdout_is_cut = bounded(execution.stdout.text, each_bytes_max)
    stderr, stderr_is_cut = bounded(execution.stderr.text, each_bytes_max)
    return result.model_copy(
        update={
            "stdout": stdout,
            "stderr": stderr,
            "stdout_truncated": execution.stdout.is_truncated or stdout_is_cut,
            "stderr_truncated": execution.stderr.is_truncated or stderr_is_cut,
        }
    )


def stored_result(content: bytes) -> ShellResult | None:
    """Return a stored result; None when it is none: a person confirmed the effect in its place."""
    try:
        return ShellResult.model_validate_json(content)
    except ValidationError:
        return None


def account(execution: Execution) -> dict[str, Json]:
    """Return what an attempt keeps of a command whose effect holds its outputs."""
    arguments: list[Json] = [*execution.program.arguments]
    while len(arguments) > 1 and len(canonical.encode(arguments)) > INLINE_BYTES_MAX // 4:
        arguments = [*arguments[: len(arguments) // 2], "…"]
    kept: dict[str, Json] = {
        "command": arguments,
        "cwd": execution.program.cwd,
        "exitCode": execution.exit_code,
        "durationMs": execution.duration_ms,
    }
    if execution.signal_name is not None:
        kept["signal"] = execution.signal_name
    return kept


def whole_account(execution: Execution) -> dict[str, Json]:
    """Return what an attempt keeps of a command without a result: also how its outputs end."""
    return {
        **account(execution),
        "stdout": execution.stdout.text[-_TAIL_CHARS:],
        "stderr": execution.stderr.text[-_TAIL_CHARS:],
    }


def exit_failure(result: ShellResult) -> Failure | None:
    """Say why a command's end is no success, or None when its exit code is 0."""
    if result.exit_code == 0:
        return None
    ended = (
        f"{result.command[0]} was ended by {result.signal}"
        if result.exit_code is None
        else f"{result.command[0]} ended with exit code {result.exit_code}"
    )
    said = (result.stderr.strip() or result.stdout.strip())[-_SHOWN_CHARS:]
    return Failure.of("commandFailed", f"{ended}: {said}" if said else ended)


def not_executed(execution: Execution, error: OSError) -> Failure:
    """Say why a command could not be executed."""
    what = error.filename if isinstance(error.filename, str) else execution.program.arguments[0]
    why = (error.strerror or "cannot be executed").lower()
    return Failure.of("commandNotExecuted", f"{what}: {why}")
