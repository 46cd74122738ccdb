"""Asking a file what one asks the server: the reads of the protocol, answered by the same views."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pi_workflows.audit.damage import contradiction, damage_of_run
from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome, Refused
from pi_workflows.base.limits import FRAME_DEPTH_MAX, RUN_LIST_DEFAULT
from pi_workflows.base.sql import Read, load
from pi_workflows.protocol.effects import EffectList
from pi_workflows.protocol.operations import Operation, read_payload
from pi_workflows.protocol.refusal import Refusal
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.search import ViewSearch
from pi_workflows.protocol.views import ViewContent, ViewPage, ViewRunsPage
from pi_workflows.protocol.wire import Payload, WireModel, error_line
from pi_workflows.store.inactive import open_inactive
from pi_workflows.views.content import content_chunk
from pi_workflows.views.effects import effect_items
from pi_workflows.views.facts import ProcessFacts
from pi_workflows.views.pages import run_page
from pi_workflows.views.run_list import LAST_CHARACTER, run_list_page, untold_count
from pi_workflows.views.run_view import run_view
from pi_workflows.views.search import search_page

SQL: Final = load(__package__, "reading.sql")

_NOBODY: Final = ProcessFacts(now_ms=0)
"""Nobody serves a file: no process lives, so that no claim is anybody's whenever it ends."""


class FileReader:
    """Answers the reads of the protocol from one moment of a database, as the server would.

    Args:
        read: The moment; every answer comes from it.
    """

    def __init__(self, read: Read) -> None:
        """Begin to answer."""
        self._read = read

    @property
    def at_ms(self) -> int:
        """When the newest event was recorded; 0 without any."""
        return self._read.one(int, SQL["newest_event_at"]) or 0

    def runs_beginning(self, prefix: str, limit: int) -> tuple[list[str], int]:
        """Return the runs whose ID begins so, whatever of their other rows is missing.

        Args:
            prefix: A beginning, or a whole ID.
            limit: How many at most.

        Returns:
            Their IDs, the run that is called exactly so first, then the newest; and how many there
            are.
        """
        bounds = {"prefix": prefix, "prefix_end": prefix + LAST_CHARACTER}
        run_ids = self._read.all(str, SQL["runs_of_prefix"], **bounds, runs_max=limit)
        return run_ids, self._read.one(int, SQL["count_of_prefix"], **bounds) or 0

    def request(
        self,
        operation: Operation,
        payload: Payload | Json,
        *,
        run_id: str | None = None,
        expected_revision: int | None = None,
        key: str | None = None,
    ) -> Reply:
        """Answer a read.

        Args:
            operation: A read of runs, their content or their effects.
            payload: Its payload, as a model or a JSON object.
            run_id: The run, for the operations that are about one.
            expected_revision: As the operation takes it.
            key: Nothing is changed, so that nothing is remembered under it.

        Returns:
            The reply. Every other operation is refused (`offline`).

        Raises:
            PayloadInvalid: No such request can be asked.
            Corrupt: What is stored is damaged, or contradicts itself.
            Unavailable: The disk failed.
        """
        del key
        document = payload.document() if isinstance(payload, Payload) else payload
        asked = read_payload(
            operation, document, run_id=run_id, expected_revision=expected_revision
        )
        answer = _ANSWERS.get(operation, _no_answer)
        try:
            with damage_of_run(self._read, run_id or ""):
                return answer(self._read, asked, run_id or "")
        except Refused as error:
            line = error_line(error.message) or error.reason_code
            return Reply(error.outcome, None, Refusal.of(error).document(), line)


@contextmanager
def reading_file(file: Path, *, live_directory: Path | None) -> Generator[FileReader]:
    """Answer from a database that no server has open for as long as the body runs.

    Args:
        file: The database; nothing is written into it.
        live_directory: The state directory, whose database is refused by any path.

    Raises:
        NotFound: There is no such file.
        AuthorityDenied: It is the live database, or is not self-contained.
        Incompatible: It is not our database.
        Corrupt: It is damaged.
        Unavailable: The disk failed.
    """
    with open_inactive(file, live_directory=live_directory) as read:
        yield FileReader(read)


def _shown(document: WireModel | Json, *, revision: int | None = None) -> Reply:
    """Return the reply of a read, its document decoded as if it had been sent."""
    receipt = document.document() if isinstance(document, WireModel) else document
    content = canonical.encode(receipt, depth_max=FRAME_DEPTH_MAX)
    return Reply(Outcome.ACCEPTED, revision, canonical.decode(content, depth_max=FRAME_DEPTH_MAX))


def _no_answer(_read: Read, _payload: Payload, _run_id: str) -> Reply:
    """Refuse what only a server can do."""
    raise _offline()


def _offline() -> Refused:
    """Return the answer to what would have to be stored."""
    return Refused("Only a server can do that, and nobody serves a file.", code="offline")


def _run_get(read: Read, _payload: Payload, run_id: str) -> Reply:
    """Answer `view.run.get`."""
    view = run_view(read, run_id, _NOBODY)
    return _shown(view.document, revision=view.revision)


def _runs_page(read: Read, payload: Payload, _run_id: str) -> Reply:
    """Answer `view.runs.page`; a list that would leave out a damaged run is none."""
    assert isinstance(payload, ViewRunsPage)
    start, limit = payload.cursor or 0, payload.limit or RUN_LIST_DEFAULT
    if untold_count(read, _NOBODY, start=start, limit=limit, where=payload.filter):
        raise contradiction()
    page = run_list_page(read, _NOBODY, start=start, limit=limit, where=payload.filter)
    return _shown(page)


def _page(read: Read, payload: Payload, run_id: str) -> Reply:
    """Answer `view.page`."""
    assert isinstance(payload, ViewPage)
    if payload.kind == "aggregate":
        raise _offline()
    page = run_page(read, run_id, payload.kind, payload.cursor, payload.expected_revision)
    return _shown(page, revision=page.revision)


def _content(read: Read, payload: Payload, run_id: str) -> Reply:
    """Answer `view.content`."""
    assert isinstance(payload, ViewContent)
    return _shown(content_chunk(read, run_id, payload.path, payload.offset))


def _search(read: Read, payload: Payload, run_id: str) -> Reply:
    """Answer `view.search`."""
    assert isinstance(payload, ViewSearch)
    page = search_page(read, run_id, payload.query, payload.kinds, payload.cursor)
    return _shown(page, revision=page.revision)


def _effects(read: Read, payload: Payload, _run_id: str) -> Reply:
    """Answer `effect.list`."""
    assert isinstance(payload, EffectList)
    items = effect_items(
        read,
        run_id=payload.run_id,
        status=payload.status,
        effect_id=payload.effect_id,
        cursor=payload.cursor,
    )
    return _shown(items)


_ANSWERS: Final[Mapping[Operation, Callable[[Read, Payload, str], Reply]]] = {
    Operation.VIEW_RUN_GET: _run_get,
    Operation.VIEW_RUNS_PAGE: _runs_page,
    Operation.VIEW_PAGE: _page,
    Operation.VIEW_CONTENT: _content,
    Operation.VIEW_SEARCH: _search,
    Operation.EFFECT_LIST: _effects,
}
