"""From what a person types to the one thing that it names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from pi_workflows.base.errors import NotFound, Refused
from pi_workflows.base.limits import RUN_ID_CHARS_MAX
from pi_workflows.cli.connection import ask
from pi_workflows.cli.reader import Reader
from pi_workflows.cli.run_list import RunListItem
from pi_workflows.cli.table import ELLIPSIS
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.views import RunFilter, RunListPage, ViewRunsPage

# As many as a person reads.
_MATCHES_SHOWN: Final = 10

Lookup: TypeAlias = Callable[[str, int], tuple[list[str], int]]
"""Gives of the runs whose ID begins so as many as asked for, and how many there are.

The run that is called exactly so is among them.
"""


def run_id_of(server: Reader, typed: str) -> str:
    """Return the ID of the run that a whole ID or a unique prefix names; asks a server.

    Args:
        server: The connected client.
        typed: What stands on the command line.

    Raises:
        NotFound: As `run_id_among`.
        Refused: As `run_id_among`.
    """
    return run_id_among(partial(_listed, server), typed)


def run_id_among(lookup: Lookup, typed: str) -> str:
    """Return the ID of the run that a whole ID or a unique prefix names.

    Args:
        lookup: Finds runs by a prefix.
        typed: What stands on the command line.

    Raises:
        NotFound: `runMissing`: no run begins so.
        Refused: `runAmbiguous`: several do; the message lists them.
    """
    typed = typed.removesuffix(ELLIPSIS)
    if not typed or len(typed) > RUN_ID_CHARS_MAX:
        raise _missing(typed)
    # One more than is shown tells that there are others.
    found, total = lookup(typed, _MATCHES_SHOWN + 1)
    if len(found) == 1 or typed in found:
        return typed if typed in found else found[0]
    if not found:
        raise _missing(typed)
    listed = ", ".join(found[:_MATCHES_SHOWN])
    more = total - len(found[:_MATCHES_SHOWN])
    rest = f" and {more} more" if more > 0 else ""
    raise Refused(
        f"{total} runs begin with {typed}: {listed}{rest}.",
        code="runAmbiguous",
        field="run",
        hint="Type more of the ID.",
    )


def _listed(server: Reader, prefix: str, limit: int) -> tuple[list[str], int]:
    """Look in the run list of a server."""
    where = ViewRunsPage(filter=RunFilter(run_id_prefix=prefix), limit=limit)
    page = RunListPage.parse(ask(server, Operation.VIEW_RUNS_PAGE, where).receipt)
    found = [RunListItem.parse(item).run_id for item in page.items]
    if page.total > len(found) and prefix not in found and _exists(server, prefix):
        # The run that is called exactly so may be older than all that are listed.
        found.insert(0, prefix)
    return found, page.total


def _exists(server: Reader, run_id: str) -> bool:
    """Whether a run is called exactly so."""
    try:
        ask(server, Operation.VIEW_RUN_GET, {}, run_id=run_id)
    except NotFound:
        return False
    return True


def _missing(typed: str) -> NotFound:
    """Return the error of a run that is not there."""
    return NotFound(
        f"There is no run {typed}.",
        code="runMissing",
        field="run",
        hint="List the runs: pi-workflows runs",
    )
