"""`state`: how much is stored, whether it is sound, copies of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pi_workflows.audit.verification import verify_file
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import WrongUsage
from pi_workflows.cli.connection import ask, client, state_directory
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.measures import plural, size
from pi_workflows.cli.outcome import FAILED
from pi_workflows.cli.source import refusing
from pi_workflows.cli.violations import told, violation_lines
from pi_workflows.cli.waiting import Bar, showing_progress
from pi_workflows.cli.workflow_target import absolute_path
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.state import BackedUp, StateStatus, Verification

_LABEL: Final = 22
# The two passes over the log that take the time: its digests, and its replay.
_PASSES: Final = ("eventDigest", "replay")


def show_status(invocation: Invocation) -> int:
    """Show how much is stored. Returns the exit code; raises as `ask`."""
    with client(invocation) as server:
        receipt = ask(server, Operation.STATE_STATUS, {}).receipt
    output = invocation.output
    if output.is_json:
        members = receipt if isinstance(receipt, dict) else {}
        output.document({"schema": "pi-workflows.cli-state-status.v1", **members})
        return 0
    status = StateStatus.parse(receipt)
    output.line(_fact("database", size(status.size_bytes)))
    output.line(_fact("not yet in the file", size(status.wal_bytes)))
    output.line(_fact("free pages", f"{status.free_pages:,}"))
    for name, count in status.counts.document().items():
        output.line(_fact(_words(name), f"{count:,}"))
    partial = " (so far; verify checks all)" if status.violations_partial else ""
    output.line(_fact("violations", f"{len(status.violations)}{partial}"))
    output.lines(violation_lines(status.violations))
    return 0


def verify_state(
    invocation: Invocation, file: Path | None, *, is_quick: bool, tells_progress: bool
) -> int:
    """Check the stored state.

    Args:
        invocation: The invocation.
        file: A database that no server has open; None lets the server check its own.
        is_quick: Leave out digests and the replay; of a file only.
        tells_progress: With JSON: one line for each check.

    Returns:
        The exit code: 1 when a rule is broken.

    Raises:
        WrongUsage: `--quick` without a file.
        WorkflowsError: As `verify_file` and `ask`.
    """
    if file is not None:
        found = _verified_file(invocation, file, is_quick=is_quick, tells_progress=tells_progress)
    elif is_quick:
        raise WrongUsage(
            "--quick is for a FILE; `state status` looks over the live state.", field="--quick"
        )
    else:
        # The server answers once, at the end, and tells nothing meanwhile.
        waiting = showing_progress(invocation.output, "Verifying the live state", ())
        with client(invocation) as server, waiting:
            found = Verification.parse(ask(server, Operation.STATE_VERIFY, {}).receipt)
    output = invocation.output
    if output.is_json:
        final: dict[str, Json] = {"final": True} if tells_progress else {}
        output.document({"schema": "pi-workflows.cli-verify.v1", **found.document(), **final})
    else:
        count = plural(len(found.checked), "check")
        broken = plural(len(found.violations), "violation")
        output.line(f"Sound: {count}." if found.valid else f"{broken} in {count}:")
        output.lines(violation_lines(found.violations))
        output.lines(f"note: {each.explanation} ({each.count:,})" for each in found.information)
    return 0 if found.valid else FAILED


def _verified_file(
    invocation: Invocation, file: Path, *, is_quick: bool, tells_progress: bool
) -> Verification:
    """Check a file in this process."""
    output = invocation.output
    named: set[str] = set()

    def tell(name: str, bar: Bar, count: int) -> None:
        bar.at(name, count)
        if tells_progress and output.is_json and name not in named:
            named.add(name)
            output.document(
                {"schema": "pi-workflows.cli-progress.v1", "check": name, "final": False}
            )

    passes = () if is_quick else _PASSES
    with refusing(file), showing_progress(output, "Verifying", passes) as bar:
        found = verify_file(
            file,
            live_directory=state_directory().root,
            is_quick=is_quick,
            begun=bar.begin,
            progress=lambda name, count: tell(name, bar, count),
        )
    return told(found)


def backup_state(invocation: Invocation, file: Path) -> int:
    """Copy the live state into a new file. Returns the exit code; raises as `ask`."""
    destination = absolute_path(file, field="FILE")
    with client(invocation) as server:
        payload: Json = {"destination": destination}
        receipt = ask(server, Operation.STATE_BACKUP, payload, key=invocation.key).receipt
    done = BackedUp.parse(receipt)
    if invocation.is_json:
        document = {"schema": "pi-workflows.cli-backup.v1", **done.document()}
        invocation.output.document(document)
    else:
        invocation.output.line(f"{done.destination}: {size(done.file_bytes)}.")
    return 0


def _fact(label: str, text: str) -> str:
    """Return one fact with its label."""
    return f"{label:<{_LABEL}}{text}"


def _words(name: str) -> str:
    """Return a camelCase name as words."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
