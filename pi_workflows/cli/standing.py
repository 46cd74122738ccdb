"""Why a run is where it is, in one sentence, and the one command that helps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pydantic import ValidationError

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.base.sentences import actor_words, closed, one_line
from pi_workflows.cli.connection import ask
from pi_workflows.cli.content import whole
from pi_workflows.cli.failure import PROGRAM
from pi_workflows.cli.measures import duration, plural, second
from pi_workflows.cli.question import answer_example
from pi_workflows.cli.quoting import quoted
from pi_workflows.cli.reader import Reader
from pi_workflows.cli.run_view import RunView, TraceItem
from pi_workflows.protocol.effects import EffectItem, EffectItems, EffectList
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.views import RunFilter, RunListPage, RunPage, ViewPage, ViewRunsPage

# How far back a fact is looked for that the newest events do not have.
_PAGES_BACK_MAX: Final = 16
_HELD: Final = frozenset({"starting", "running"})
_ENDED: Final[Mapping[str, str]] = {
    "completed": "It completed",
    "failed": "It failed",
    "timed_out": "It timed out",
    "cancelled": "It was cancelled",
}
_STOPPED: Final[Mapping[str, str]] = {
    "workflowSourceChanged": "The workflow's files changed since the run started",
    "definitionChanged": "The workflow's definition changed since the run started",
    "importError": "The workflow's file can no longer be loaded",
    "runnerNoProgress": "Its runners keep ending without a new step",
}
_PARKED: Final = frozenset(
    {"run.parked", "run.source_changed", "run.worker_no_progress", "run.effect_ambiguous"}
)


@dataclass(frozen=True, slots=True)
class Standing:
    """Why a run is where it is.

    Attributes:
        code: The reason for programs: how it ended, what it waits for, or the error's code.
        sentence: The reason for people.
        command: What helps; None when there is nothing to do.
    """

    code: str
    sentence: str
    command: str | None = None

    def document(self) -> dict[str, Json]:
        """Return the standing as documents have it."""
        document: dict[str, Json] = {"code": self.code, "sentence": self.sentence}
        return document if self.command is None else {**document, "command": self.command}


def standing(reader: Reader, view: RunView, now_ms: int, *, is_live: bool) -> Standing:
    """Say why a run is where it is.

    Args:
        reader: Answers for the run.
        view: The run as it stands.
        now_ms: The time by which durations are told.
        is_live: Whether a server answers: nobody works on the runs of a file.

    Returns:
        The first reason that applies, in the order of the display decision table.

    Raises:
        WorkflowsError: As `ask`.
    """
    return _Look(reader, view, now_ms, is_live).standing()


@dataclass(frozen=True)
class _Look:
    """One look at a run: what is told and where it is read."""

    reader: Reader
    view: RunView
    now_ms: int
    is_live: bool

    def standing(self) -> Standing:
        """Say why the run is where it is."""
        status = self.view.display.status
        doubtful = self._effect("ambiguous")
        if doubtful is not None:
            return self._doubtful(doubtful)
        if status in _ENDED:
            return self._ended(status)
        if status == "paused":
            return self._paused()
        if status == "waiting" or self.view.state.interaction is not None:
            return self._waiting()
        if self.view.display.activity is not None or not self.is_live:
            held = self._held()
            if held is not None:
                return held
        if self.view.queue.status in _HELD:
            return self._lost()
        return self._stopped() if self.view.queue.status == "parked" else self._queued()

    # --- the reasons -----------------------------------------------------------------------------

    def _doubtful(self, effect: EffectItem) -> Standing:
        """Nobody knows whether an effect happened."""
        since, tries = self._since(effect.updated_at), max(1, effect.attempts)
        command = f"effects resolve {effect.effect_id} confirm --evidence 'what you saw'"
        return Standing(
            "effectAmbiguous",
            f"Nobody has known {since} whether the effect {effect.effect_type} of"
            f" {effect.node_path} happened (try {tries}); a person has to confirm,"
            " retry or reject it.",
            f"{PROGRAM} {command}",
        )

    def _ended(self, status: str) -> Standing:
        """It ended."""
        state = self.view.state
        at_ms = state.finished_at or self.now_ms
        took = duration(at_ms - state.created_at)
        how, why = _ENDED[status], ""
        if status == "cancelled":
            item = self._newest("run.cancelled")
            how = f"{how} by {_actor(item)}" if item is not None else how
        elif state.error is not None:
            why = f": {self._error(state.error)}"
        command = None if status == "completed" else self._command("restart")
        code = "timedOut" if status == "timed_out" else status
        when = self._ago(at_ms)
        return Standing(code, f"{how} {when}, {took} after it was asked for{why}.", command)

    def _paused(self) -> Standing:
        """It is paused."""
        item = self._newest("run.paused")
        by = f" by {_actor(item)}" if item is not None else ""
        when = f" {self._ago(item.at)}" if item is not None else ""
        leaves = ""
        if self.view.queue.status in _HELD:
            node = self.view.state.current_node
            leaves = f"; its runner still finishes {node}" if node is not None else ""
        return Standing("paused", f"It was paused{by}{when}{leaves}.", self._command("resume"))

    def _waiting(self) -> Standing:
        """It waits for an answer."""
        request = self.view.state.interaction
        if request is None:
            return Standing("waiting", "It waits for input.")
        contract = whole(self.reader, self.view.run_id, request.contract)
        summary = contract.get("summary") if isinstance(contract, dict) else None
        asks = f": {one_line(summary)}" if isinstance(summary, str) else ""
        command = None
        if request.kind in ("checkpoint", "decision"):
            command = f"{self._command('answer')} {answer_example(contract)}"
        since = self._since(request.created_at)
        sentence = f"{request.node_id} has waited for an answer ({request.kind}) {since}{asks}"
        return Standing("waiting", closed(sentence), command)

    def _held(self) -> Standing | None:
        """A runner has it, or had it when the file was written."""
        view = self.view
        if view.queue.status not in _HELD:
            return None
        claim = self._newest("lease.claimed")
        number = claim.payload.get("generation") if claim is not None else None
        named = f" (claim {number})" if number is not None else ""
        verb = "has" if self.is_live else "had"
        begun = self._newest("attempt.started")
        if view.queue.status == "starting" and claim is not None:
            return Standing(
                "starting", f"A runner{named} was started for it {self._ago(claim.at)}."
            )
        if view.state.current_node is None or begun is None:
            since = f" {self._since(self._items[0].at)}" if self._items else ""
            return Standing("running", f"A runner{named} {verb} had it between two nodes{since}.")
        since = self._since(begun.at)
        return Standing(
            "running",
            f"A runner{named} {verb} worked on {view.state.current_node} {since}{self._effort()}.",
        )

    def _effort(self) -> str:
        """Return the effect that is under way."""
        effect = self._effect("applying")
        if effect is None:
            return ""
        return f", and applies its effect {effect.effect_type} (try {effect.attempts})"

    def _lost(self) -> Standing:
        """Its runner is gone, and nobody has said so yet."""
        return Standing("lost", "Its runner was lost; the server is recovering it.")

    def _stopped(self) -> Standing:
        """It stands still until a person resumes it."""
        item = self._newest(*_PARKED)
        code = self.view.queue.error_code
        since = f" {self._since(item.at)}" if item is not None else ""
        if code is None:
            return Standing("resumable", f"It has stood still{since}.", self._command("resume"))
        detail = item.payload.get("detail") if item is not None else None
        why = f": {one_line(detail)}" if isinstance(detail, str) else ""
        what = _STOPPED.get(code, "It stopped because of an error")
        sentence = f"{what} ({code}), and it has stood still{since}{why}"
        return Standing(code, closed(sentence), self._command("resume"))

    def _queued(self) -> Standing:
        """It waits until it is due, or for a free runner."""
        again_at = self.view.again_at
        if again_at is not None and again_at > self.now_ms:
            return self._delayed(again_at)
        item = self._newest(
            "run.queued", "run.requeued", "run.resume_requested", "request.submitted",
            "lease.released",
        )  # fmt: skip
        since_ms = max(again_at or 0, item.at if item is not None else self.view.state.created_at)
        is_answered = item is not None and item.type == "request.submitted"
        what = "Its answer was accepted, and it has waited" if is_answered else "It has waited"
        sentence = f"{what} for a free runner {self._since(since_ms)}{self._others()}."
        return Standing("answered" if is_answered else "queued", sentence)

    def _delayed(self, again_at: int) -> Standing:
        """It is not due yet."""
        item = self._newest("run.requeued")
        reason = item.payload.get("reason") if item is not None else None
        due = f"{self._clock(again_at)} (in {duration(again_at - self.now_ms)})"
        if reason == "retry":
            settled = self._newest("attempt.settled")
            node = settled.node_id if settled is not None else None
            return Standing("retry", f"{node or 'A node'} is tried again at {due}.")
        if reason == "delay":
            return Standing("delay", f"It goes on by itself at {due}.")
        why = f" ({one_line(reason)})" if isinstance(reason, str) else ""
        return Standing("backoff", f"Its runner was lost{why}; a new one may start at {due}.")

    # --- where facts are read --------------------------------------------------------------------

    @cached_property
    def _items(self) -> tuple[TraceItem, ...]:
        """The newest events, the newest first."""
        return tuple(reversed(self.view.trace_page.items))

    def _newest(self, *types: str) -> TraceItem | None:
        """Return the newest event of some types, as far back as is looked."""
        return next((item for item in self._back() if item.type in types), None)

    def _back(self) -> Iterator[TraceItem]:
        """Yield events, the newest first, page by page."""
        yield from self._items
        start = self.view.trace_page.start
        for _ in range(_PAGES_BACK_MAX):
            if start == 0:
                return
            payload = ViewPage(kind="trace", cursor=start - 1)
            receipt = ask(self.reader, Operation.VIEW_PAGE, payload, run_id=self.view.run_id)
            try:
                page = RunPage.parse(receipt.receipt)
                items = [TraceItem.model_validate(item) for item in page.items]
            except ValidationError:
                raise ProtocolViolation("The server sent a trace that cannot be read.") from None
            yield from (item for item in reversed(items) if item.seq <= start)
            start = min(start - 1, page.start)

    def _effect(self, status: str) -> EffectItem | None:
        """Return the run's oldest effect that stands so."""
        payload = EffectList(run_id=self.view.run_id, status=status)  # type: ignore[arg-type]
        page = EffectItems.parse(ask(self.reader, Operation.EFFECT_LIST, payload).receipt)
        return page.items[0] if page.items else None

    def _others(self) -> str:
        """Return how many other runs wait, and how many are worked on."""
        if not self.is_live:
            return ""
        queued, running = (self._total(status) for status in ("queued", "running"))
        return f"; {plural(max(0, queued - 1), 'other run')} queued, {running:,} running"

    def _total(self, status: str) -> int:
        """Return how many runs stand so."""
        where = RunFilter(status=status)  # type: ignore[arg-type]
        payload = ViewRunsPage(filter=where, limit=1)
        return RunListPage.parse(ask(self.reader, Operation.VIEW_RUNS_PAGE, payload).receipt).total

    def _error(self, stored: Json) -> str:
        """Return a stored error in one line."""
        error = whole(self.reader, self.view.run_id, stored)
        if not isinstance(error, dict):
            return one_line(str(error))
        return f"{one_line(str(error.get('message')))} ({error.get('code')})"

    # --- words -----------------------------------------------------------------------------------

    def _command(self, name: str) -> str:
        """Return a command on the run."""
        return f"{PROGRAM} {name} {quoted(self.view.run_id)}"

    def _since(self, at_ms: int) -> str:
        """Return since when something is so, and for how long."""
        return f"since {self._clock(at_ms)} ({duration(self.now_ms - at_ms)})"

    def _ago(self, at_ms: int) -> str:
        """Return when something was, and how long ago."""
        return f"at {self._clock(at_ms)} ({duration(self.now_ms - at_ms)} ago)"

    def _clock(self, at_ms: int) -> str:
        """Return a moment to the second."""
        return second(at_ms)


def _actor(item: TraceItem) -> str:
    """Return who did something to the run, by class."""
    return actor_words(str(item.payload.get("actor")))
