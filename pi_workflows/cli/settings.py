"""`settings`: what a run's workflow lets people change while it goes on."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.cli.connection import ask, client
from pi_workflows.cli.controlling import receipt_document
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.lookup import run_id_of
from pi_workflows.cli.outline import value_line, value_lines
from pi_workflows.cli.output import Output
from pi_workflows.cli.values import json_value
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.settings import SettingsChanged
from pi_workflows.protocol.views import RunPage

_PATCH_CHARS_MAX: Final = 100
_PERMISSIONS: Final = ("read", "add", "remove", "replace")


def show_settings(invocation: Invocation, typed: str) -> int:
    """Show a run's settings.

    Args:
        invocation: The invocation.
        typed: The run.

    Returns:
        The exit code.

    Raises:
        NotFound: There is no such run.
        Unavailable: As `Client.request`.
    """
    output = invocation.output
    with client(invocation) as server:
        run_id = run_id_of(server, typed)
        reply = ask(server, Operation.VIEW_PAGE, {"kind": "settings"}, run_id=run_id)
    page = RunPage.parse(reply.receipt)
    if output.is_json:
        output.document(page.document())
        return 0
    if not page.items:
        output.note(f"{run_id} has no settings, or none yet.")
    for item in page.items:
        if isinstance(item, dict):
            _write(output, item)
    return 0


def _write(output: Output, item: dict[str, Json]) -> None:
    """Write the settings of one workflow."""
    output.line(f"{escaped(str(item['scopeId']))}  change {item['changeNumber']}")
    for line in value_lines(item["value"]):
        output.line(f"  {line}")
    paths = item["paths"]
    for path in paths if isinstance(paths, list) else []:
        if isinstance(path, dict):
            output.line(f"  {_rule(path)}")
    changes = item["changes"]
    for each in changes if isinstance(changes, list) else []:
        if isinstance(each, dict):
            patch = value_line(each["patch"], chars_max=_PATCH_CHARS_MAX)
            output.line(f"  {each['changeNumber']}. {each['actor']}: {patch}")


def _rule(path: dict[str, Json]) -> str:
    """Return who may do what at a pointer, in one line."""
    allowed: list[str] = []
    for name in _PERMISSIONS:
        actors = path.get(name)
        if isinstance(actors, list) and actors:
            allowed.append(f"{name}: {', '.join(map(str, actors))}")
    pointer = escaped(str(path["pointer"])) or "(all)"
    return (
        f"{pointer} may be changed by nobody" if not allowed else f"{pointer} {'; '.join(allowed)}"
    )


def change_settings(
    invocation: Invocation, typed: str, patch: str, scope: str | None, expect: int | None
) -> int:
    """Change a run's settings.

    Args:
        invocation: The invocation.
        typed: The run.
        patch: The patch as it was typed.
        scope: Which settings; None for the run's own.
        expect: The change number at which they must still be; None for any.

    Returns:
        The exit code.

    Raises:
        WrongUsage: The patch is no JSON, or its file cannot be read.
        Refused: The rules, the model, the workflow's code or another change said no.
        Unavailable: As `Client.request`.
    """
    payload: dict[str, Json] = {"patch": json_value(patch, field="--patch")}
    if scope is not None:
        payload["scopeId"] = scope
    if expect is not None:
        payload["expectedChangeNumber"] = expect
    with client(invocation) as server:
        run_id = run_id_of(server, typed)
        reply = ask(
            server, Operation.RUN_CHANGE_SETTINGS, payload, run_id=run_id, key=invocation.key
        )
    if invocation.is_json:
        invocation.output.document(receipt_document(Operation.RUN_CHANGE_SETTINGS, reply))
        return 0
    receipt = SettingsChanged.parse(reply.receipt)
    done = "stand so already, at" if receipt.adopted else "are at"
    invocation.output.line(
        f"The settings of {escaped(receipt.scope_id)} {done} change {receipt.change_number}."
    )
    return 0
