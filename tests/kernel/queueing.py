"""Prompts that wait for the end of a session's run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.domain.follow_up.queue import QueueFollowUp, RemoveFollowUp
from pi_workflows.domain.run.control import CancelRun
from pi_workflows.kernel.order import Order
from pi_workflows.store.records import Permit
from tests.kernel.harness import Harness

RUN: Final = "run-1"
SESSION: Final = "session-1"


def launched(bench: Harness) -> Permit:
    """Start a run of a session and let its runner be ready."""
    bench.do(bench.start(session=SESSION))
    return bench.relaunch()


def queue(name: str, prompt: str | None = None) -> QueueFollowUp:
    """Return the command that queues a prompt under a request's name."""
    return QueueFollowUp(RUN, name, Blob.text(prompt or f"Now do {name}."))


def key_of(name: str) -> str:
    """Return the follow-up that a request made."""
    return ids.follow_up_id(RUN, name)


def message_of(name: str) -> str:
    """Return the message of a follow-up."""
    return ids.message_id("followUp", key_of(name), key_of(name))


def queued(bench: Harness) -> Order:
    """Somebody queues a prompt."""
    launched(bench)
    return bench.order(queue("a"))


def removed(bench: Harness) -> Order:
    """Somebody takes it back."""
    bench.submit(queued(bench))
    return bench.order(RemoveFollowUp(RUN, key_of("a")))


def cancelled(bench: Harness) -> Order:
    """Its run is cancelled."""
    bench.submit(queued(bench))
    return bench.order(CancelRun(RUN))


SCENES: Final[dict[str, Callable[[Harness], Order]]] = {
    "follow_up.queued": queued,
    "follow_up.removed": removed,
    "follow_up.cancelled": cancelled,
}
