"""The stored state as a whole: how much there is, whether it is sound, and a copy of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import trio

from pi_workflows.base import ids
from pi_workflows.base.limits import STATE_STATUS_MS
from pi_workflows.base.units import NS_PER_MS
from pi_workflows.kernel import verify as kernel
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.state import BackedUp, StateBackup, StateStatus, Verification, Violation
from pi_workflows.server.operations.call import Call, known, remember, shown
from pi_workflows.server.services import Services
from pi_workflows.store.backup import check_source, copying
from pi_workflows.store.scratch import Scratch, create_scratch
from pi_workflows.views.status import state_counts


async def status(services: Services, _call: Call) -> Reply:
    """Return how much is stored, and the violations that two seconds find."""
    found = await violations_now(services)
    with services.store.snapshot() as read:
        pages = read.pages()
        counts = state_counts(read, services.clock.now_ms())
    return shown(
        StateStatus(
            size_bytes=pages.page_count * pages.page_bytes,
            wal_bytes=services.store.wal_bytes(),
            free_pages=pages.freelist_count,
            counts=counts,
            violations=_violations(found),
            violations_partial=True if found.is_partial else None,
        )
    )


async def verify(services: Services, _call: Call) -> Reply:
    """Check everything, while the writer goes on. A completed check is accepted, whatever it found.

    Raises:
        Unavailable: The file could not be read, or the disk has no room for the replay.
    """
    found = await _verified(services, quick=False, is_over=lambda: False)
    return shown(
        Verification(
            valid=found.is_valid,
            checked=found.checked,
            violations=_violations(found),
            information=(),
        )
    )


async def backup(services: Services, call: Call) -> Reply:
    """Copy the live database into a new file, once for this request.

    Raises:
        PayloadInvalid: The destination exists, or cannot be one.
        Corrupt: The database is damaged.
        IdempotencyConflict: The identity was used for another request.
        Unavailable: The disk refused, or as `Writer.submit`.
    """
    request = call.request
    destination = call.read(StateBackup).destination

    async def act() -> Reply:
        if (reply := await known(services.writer, request)) is not None:
            return reply
        size_bytes = await _copied(services, Path(destination))
        receipt = BackedUp(destination=destination, file_bytes=size_bytes)
        return await remember(services, request, receipt.document())

    return await services.long_work.perform((request.client_id, request.idempotency_key), act)


async def _copied(services: Services, destination: Path) -> int:
    """Copy the database step by step between the writer's groups; return the copy's bytes.

    Both are read whole, before and after, in a thread: the server goes on meanwhile.
    """
    store = services.store
    await trio.to_thread.run_sync(check_source, store, destination)
    with copying(store, destination) as copy:
        while await services.writer.between(copy.step):
            pass
        return await trio.to_thread.run_sync(copy.complete)


async def violations_now(services: Services) -> kernel.Verification:
    """Return the violations that need neither replay nor digests, as far as two seconds reach."""
    deadline_ns = services.clock.monotonic_ns() + STATE_STATUS_MS * NS_PER_MS
    return await _verified(
        services, quick=True, is_over=lambda: services.clock.monotonic_ns() >= deadline_ns
    )


async def _verified(
    services: Services, *, quick: bool, is_over: Callable[[], bool]
) -> kernel.Verification:
    """Verify in a thread, on a read connection of its own."""

    def scratch() -> AbstractContextManager[Scratch]:
        return create_scratch(services.state.root / f".{ids.random_id('verify')}.sqlite")

    def progress(_name: str, _count: int) -> None:
        # A client that left, or a server that stops, ends the check between two rows.
        trio.from_thread.check_cancelled()

    def work() -> kernel.Verification:
        with services.store.verification() as source:
            return kernel.verify(
                source,
                quick=quick,
                scratch=scratch,
                projectors=services.projectors,
                progress=progress,
                is_over=is_over,
            )

    found = await trio.to_thread.run_sync(work)
    services.measurements.violation_count = len(found.violations)
    return found


def _violations(found: kernel.Verification) -> tuple[Violation, ...]:
    """Return violations as the wire has them."""
    return tuple(
        Violation(
            code=violation.code,
            run_ids=violation.run_ids,
            count=violation.count,
            explanation=violation.explanation,
        )
        for violation in found.violations
    )
