"""`effects`: what runs do to the world, and what a person says became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, cast

from pi_workflows.base.canonical import Json
from pi_workflows.base.clock import SystemClock
from pi_workflows.base.errors import NotFound, Refused
from pi_workflows.cli.connection import ask, client
from pi_workflows.cli.content import whole
from pi_workflows.cli.controlling import receipt_document
from pi_workflows.cli.effect_view import ID_CHARS_MIN, standing_cell, write_effect
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.lookup import run_id_of
from pi_workflows.cli.measures import age
from pi_workflows.cli.outline import value_line
from pi_workflows.cli.table import ELLIPSIS, Cell, short_ids, write_table
from pi_workflows.client.blocking import Client
from pi_workflows.protocol.effects import (
    EffectItem,
    EffectItems,
    EffectList,
)
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.proposals import EffectStatus

_REQUEST_CHARS_MAX: Final = 120
_MATCHES_SHOWN: Final = 5
# How an effect may stand that is named: first as it must, then in any way.
_PLACES: Final[tuple[EffectStatus | None, ...]] = ("ambiguous", None)


def list_effects(invocation: Invocation, typed: str | None, status: str | None) -> int:
    """List effects.

    Args:
        invocation: The invocation.
        typed: Only those of this run.
        status: Only those that stand so; None lists the unsettled.

    Returns:
        The exit code.

    Raises:
        NotFound: There is no such run.
        Unavailable: As `Client.request`.
    """
    output = invocation.output
    with client(invocation) as server:
        run_id = None if typed is None else run_id_of(server, typed)
        # The command line offers these statuses and no other one.
        known = cast("EffectStatus | None", status)
        items = list(_effects(server, EffectList(run_id=run_id, status=known)))
    if output.is_json:
        documents: list[Json] = [item.document() for item in items]
        output.document({"schema": "pi-workflows.cli-effects.v1", "items": documents})
        return 0
    if not items:
        output.note("No such effects." if status else "No unsettled effects.")
        return 0
    now_ms = SystemClock().now_ms()
    headings = ("status", "effect", "run", "node", "type", "tries", "age", "request")
    ids = [*(item.run_id for item in items), *(item.effect_id for item in items)]
    names = short_ids(output, ids, chars_min=ID_CHARS_MIN)
    rows = [_row(item, names, now_ms) for item in items]
    write_table(output, headings, rows, numbers=frozenset({"tries", "age"}))
    open_item = next((item for item in items if item.status == "ambiguous"), None)
    first = open_item or items[0]
    output.note(
        "What is known of one, and what each answer would do:"
        f" pi-workflows effects show {names[first.effect_id].removesuffix(ELLIPSIS)}"
    )
    return 0


def show_effect(invocation: Invocation, typed: str) -> int:
    """Show everything that is known of an effect, and what each answer about it would do.

    Args:
        invocation: The invocation.
        typed: The effect's ID, or the beginning of one.

    Returns:
        The exit code.

    Raises:
        NotFound: `effectMissing`.
        Refused: `effectAmbiguousName`: several effects begin so.
        Unavailable: As `Client.request`.
    """
    output = invocation.output
    with client(invocation) as server:
        item = _named(server, typed)
        if output.is_json:
            output.document({"schema": "pi-workflows.cli-effects.v1", "items": [item.document()]})
            return 0
        values = {
            name: whole(server, item.run_id, value)
            for name, value in (
                ("request", item.request),
                ("output", item.output),
                ("progress", item.progress),
            )
        }
    write_effect(output, item, values, SystemClock().now_ms())
    return 0


def resolve_effect(
    invocation: Invocation,
    typed: str,
    action: Literal["confirm", "retry", "reject"],
    evidence: str,
) -> int:
    """Say what became of an ambiguous effect.

    Args:
        invocation: The invocation.
        typed: The effect's ID, or the beginning of one.
        action: What became of it.
        evidence: How the person knows.

    Returns:
        The exit code.

    Raises:
        WrongUsage: The evidence is empty or too long.
        NotFound: `effectMissing`.
        Refused: `effectAmbiguousName`: several effects begin so; or the server refused it.
        Unavailable: As `Client.request`.
        OutcomeUnknown: As `Client.request`.
    """
    output = invocation.output
    with client(invocation) as server:
        effect = _named(server, typed)
        payload: dict[str, Json] = {
            "effectId": effect.effect_id,
            "attemptNumber": max(1, effect.attempts),
            "action": action,
            "evidence": evidence,
        }
        reply = ask(server, Operation.EFFECT_RESOLVE, payload, key=invocation.key)
    if output.is_json:
        output.document(receipt_document(Operation.EFFECT_RESOLVE, reply))
        return 0
    receipt = reply.receipt if isinstance(reply.receipt, dict) else {}
    output.line(f"{effect.effect_id} is {receipt.get('status')}.")
    output.note(f"Follow its run: pi-workflows watch {effect.run_id}")
    return 0


def _effects(server: Client, asked: EffectList) -> Iterator[EffectItem]:
    """Yield every effect that is asked for, page by page."""
    cursor = 0
    while True:
        payload = asked.model_copy(update={"cursor": cursor})
        page = EffectItems.parse(ask(server, Operation.EFFECT_LIST, payload).receipt)
        yield from page.items
        cursor += len(page.items)
        if not page.items or cursor >= page.total:
            return


def _named(server: Client, typed: str) -> EffectItem:
    """Return the one effect whose ID begins so."""
    typed = typed.removesuffix(ELLIPSIS)
    for status in _PLACES:
        found = list(_effects(server, EffectList(status=status, effect_id=typed)))
        exact = [item for item in found if item.effect_id == typed]
        if len(exact or found) == 1:
            return (exact or found)[0]
        if found:
            listed = ", ".join(item.effect_id for item in found[:_MATCHES_SHOWN])
            raise Refused(
                f"{len(found)} effects begin with {typed}: {listed}.",
                code="effectNameAmbiguous",
                field="ID",
            )
    raise NotFound(
        f"There is no effect {typed}.",
        code="effectMissing",
        field="ID",
        hint="List the effects: pi-workflows effects",
    )


def _row(item: EffectItem, names: Mapping[str, str], now_ms: int) -> list[Cell]:
    """Return an effect as the list shows it."""
    visit = f" (visit {item.visit})" if item.visit > 1 else ""
    return [
        standing_cell(item, now_ms),
        names[item.effect_id],
        names[item.run_id],
        f"{item.node_path}{visit}",
        f"{item.effect_type} ({item.recovery})",
        str(item.attempts),
        age(now_ms - item.created_at),
        value_line(item.request, chars_max=_REQUEST_CHARS_MAX),
    ]
