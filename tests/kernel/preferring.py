"""A run with settings, and what is done to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.domain.attempt.boundary import StartAttempt
from pi_workflows.domain.settings.change import ChangeSettings, OpenSettings
from pi_workflows.domain.settings.state import Binding
from pi_workflows.kernel.order import Order
from tests.kernel.harness import Harness, begin, definition, end

FIRST: Final[Json] = {"merge": False, "labels": []}
SCOPE: Final = "run-1:$root:1"


MERGED: Final = definition(
    {"choose": {"settingsRoute": True}, "merge": {}, "leave": {}},
    [{"from": "choose", "on": "$.route", "cases": {"merge": "merge", "leave": "leave"}}],
    settings=[
        {
            "mount": "",
            "model": "sample.Prefs",
            "paths": [{"pointer": "/merge", "replace": ["human"]}],
        }
    ],
)


def open_scope(value: Json = FIRST, *, mount: str = "", invocation: int = 1) -> OpenSettings:
    """Return the command with which a runner enters a workflow that has settings."""
    return OpenSettings("run-1", mount, invocation, Blob.json(value))


def value_of(number: int) -> Json:
    """Return the settings that a change of this number makes."""
    return FIRST if number == 0 else {"merge": bool(number % 2), "labels": [number]}


def change(
    number: int, *, request: str | None = None, expected: int | None = None
) -> ChangeSettings:
    """Return the change of this number, judged by the value before it."""
    return ChangeSettings(
        "run-1",
        SCOPE,
        request or f"request-{number}",
        patch=Blob.json([{"op": "replace", "path": "", "value": value_of(number)}]),
        judged_number=number - 1,
        after=Blob.json(value_of(number)),
        expected_number=expected,
    )


def bound(number: int = 0, value: Json = None) -> Binding:
    """Return what a runner knows of the settings."""
    return Binding(SCOPE, number, Blob.json(value_of(number) if value is None else value).hex)


def begin_bound(node: str, number: int = 0, *, attempt: int = 1) -> StartAttempt:
    """Return the command that starts a node of a workflow with settings."""
    plain = begin(node, number=attempt)
    return StartAttempt(
        "run-1",
        ids.attempt_id("run-1", node, attempt),
        node,
        plain.visit,
        attempt,
        plain.node_type,
        plain.timeout_ms,
        settings=bound(number),
    )


def opened(bench: Harness) -> Order:
    """Its workflow is entered."""
    return bench.order(open_scope(), permit=bench.launch(workflow=MERGED))


def changed(bench: Harness) -> Order:
    """A person changes its settings."""
    bench.submit(opened(bench))
    return bench.order(change(1))


def outdated(bench: Harness) -> Order:
    """A settings route chooses by a value of before."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), begin_bound("choose"), permit=permit)
    bench.do(change(1))
    return bench.order(end("choose", {"route": "leave"}), permit=permit)


SCENES: Final[dict[str, Callable[[Harness], Order]]] = {
    "run.settings_opened": opened,
    "settings.changed": changed,
    "attempt.status_changed": outdated,
}
