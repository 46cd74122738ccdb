"""Reading a run's trace from a number on, without a gap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.cli.connection import ask
from pi_workflows.cli.reader import Reader
from pi_workflows.cli.run_view import RunView, TraceItem
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.views import RunPage, ViewPage


def trace_after(server: Reader, view: RunView, seq: int) -> Iterator[TraceItem]:
    """Yield the events that follow a number: of the view itself if it has them, else of one page.

    Args:
        server: The connected client, or a file.
        view: The run as it stands; it has newer events.
        seq: The number of the newest event that is known.
    """
    items = [item for item in view.trace_page.items if item.seq > seq]
    if not items or items[0].seq != seq + 1:
        items, _ = trace_page(server, view.run_id, seq)
    yield from items


def trace_page(server: Reader, run_id: str, seq: int) -> tuple[list[TraceItem], int]:
    """Read one page of the trace.

    Args:
        server: The connected client, or a file.
        run_id: The run.
        seq: The number of the newest event that is known.

    Returns:
        The events that follow, and how many the run has in all.

    Raises:
        NotFound: There is no such run.
        ProtocolViolation: The page leaves out the next event.
    """
    receipt = ask(server, Operation.VIEW_PAGE, ViewPage(kind="trace", cursor=seq), run_id=run_id)
    page = RunPage.parse(receipt.receipt)
    try:
        read = [TraceItem.model_validate(item) for item in page.items]
    except ValidationError:
        raise ProtocolViolation("The server sent a trace that cannot be read.") from None
    items = [item for item in read if item.seq > seq]
    if page.total > seq and (not items or items[0].seq != seq + 1):
        raise ProtocolViolation("The server sent a trace with a gap.", code="traceGap")
    return items, page.total


def errors_of(server: Reader, run_id: str, items: Sequence[TraceItem]) -> dict[str, Json]:
    """Return why attempts failed, by attempt, for those whose end is among these events.

    Args:
        server: The connected client, or a file.
        run_id: The run.
        items: The events.
    """
    found: dict[str, Json] = {}
    for item in items:
        step = item.payload.get("stepIndex")
        if "errorStored" not in item.payload or item.attempt_id in found:
            continue
        if isinstance(step, int):
            payload = ViewPage(kind="steps", cursor=step)
            receipt = ask(server, Operation.VIEW_PAGE, payload, run_id=run_id).receipt
            for each in RunPage.parse(receipt).items:
                if isinstance(each, dict) and "error" in each:
                    found[str(each.get("attemptId"))] = each["error"]
    return found
