"""A Pi session that a test plays: it keeps a branch, takes turns, and answers as it is told.

It speaks the public protocol through the public client library, as the extension does: the only
receipt of a message is the entry in its branch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.client.blocking import Client
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.session_mirror import SessionMirror
from pi_workflows.protocol.watching import Watch
from tests.process.installation import DEADLINE_S, Installation


@dataclass(frozen=True, slots=True)
class Told:
    """A message that the session was told, and what its run asks.

    Attributes:
        message: `pi-workflows.session-message.v1`.
        text: Its content.
        interaction: The open question of its run; None when it asks nothing.
    """

    message: dict[str, Json]
    text: str
    interaction: dict[str, Json] | None

    @property
    def message_id(self) -> str:
        """Its identity."""
        return text_of(self.message, "workflowMessageId")

    @property
    def kind(self) -> str:
        """What it is."""
        return text_of(self.message, "kind")


@dataclass
class ScriptedSession:
    """One session under one coordinator.

    Attributes:
        installation: Where its server is.
        session_id: The session.
        act: What its model does in a turn: called with the session and the message.
        branch: Entry IDs by message, in order: what survives a restart of the client.
        told: The messages that it was told, in order.
    """

    installation: Installation
    session_id: str
    act: Callable[[ScriptedSession, Told], str]
    branch: dict[str, str] = field(default_factory=dict[str, str])
    told: list[Told] = field(default_factory=list[Told])
    turns: int = 0
    _keys: list[str] = field(default_factory=list[str])
    _client: Client | None = None
    _watch: Watch[SessionMirror] | None = None

    def serve(self, until: Callable[[dict[str, Json]], bool]) -> dict[str, Json]:
        """Coordinate the session until its view is as wanted, and return that view.

        Args:
            until: Whether a view is the last one.
        """
        with self.installation.client(self.session_id) as client:
            self._client = client
            with client.watch_session(self.session_id, is_coordinator=True) as feed:
                self._watch = feed.watch
                reported = 0
                while True:
                    news = client.next_news(feed.watch, timeout_ms=int(DEADLINE_S * 1_000))
                    assert news is not None, self.view
                    if feed.mirror.is_stale or feed.mirror.view is None:
                        continue
                    if self.epoch != reported:
                        reported = self.epoch
                        self.report(None)
                        continue
                    if until(self.view):
                        return self.view
                    self._step()

    @property
    def view(self) -> dict[str, Json]:
        """The newest view of the session."""
        assert self._watch is not None
        view = self._watch.mirror.view
        assert view is not None
        return view

    @property
    def epoch(self) -> int:
        """The epoch under which it speaks."""
        assert self._watch is not None
        session = self._watch.subscription.session
        assert session is not None
        assert session.epoch is not None
        return session.epoch

    def _step(self) -> None:
        """Do what the view asks for: look for the message, add it, take its turn."""
        message = self.view["workflowMessage"]
        if not isinstance(message, dict):
            return
        message_id = text_of(message, "workflowMessageId")
        if message["deliveryCancelled"] is True:
            return
        is_new = message_id not in self.branch
        if is_new:
            self.branch[message_id] = f"entry-{len(self.branch) + 1}"
        if message["status"] != "sent":
            self.report(message_id)
        if not is_new:
            return
        interaction = self.view["interaction"]
        told = Told(
            message,
            str(message["content"]),
            interaction if isinstance(interaction, dict) else None,
        )
        self.told.append(told)
        if message["triggerTurn"] is True:
            self._turn(told)

    def _turn(self, told: Told) -> None:
        """Take one turn for a message."""
        self.turns += 1
        turn: dict[str, Json] = {
            "workflowMessageId": told.message_id,
            "workflowTurnId": f"{self.session_id}-turn-{self.turns}",
            "runId": told.message["runId"],
        }
        started = self.ask("workflowTurn.report", {"state": "started", **turn}).done()
        if receipt_of(started)["ownership"] != "active":
            return
        reason = self.act(self, told)
        self.branch[f"response-{self.turns}"] = f"entry-{len(self.branch) + 1}"
        ended: dict[str, Json] = {
            "state": "ended",
            **turn,
            "stopReason": reason,
            "responseSessionEntryId": self.branch[f"response-{self.turns}"],
        }
        self.ask("workflowTurn.report", ended)

    def report(self, message_id: str | None) -> Reply:
        """Say what the branch holds of a message; the session is idle."""
        return self.ask(
            "workflowMessage.reportBranch",
            {
                "workflowMessageId": message_id,
                "piSessionEntryId": None if message_id is None else self.branch.get(message_id),
                "isIdle": True,
                "hasPendingMessages": False,
            },
        )

    def submit(self, told: Told, value: Json, name: str) -> Reply:
        """Hand in what the model made of a step."""
        assert told.interaction is not None, told
        payload: dict[str, Json] = {
            "requestId": told.interaction["requestId"],
            "submissionId": name,
            "value": value,
        }
        return self.ask(
            "interaction.submit",
            payload,
            run_id=text_of(told.message, "runId"),
            revision=told.interaction["revision"],
        )

    def say(self, told: Told, text: str, name: str) -> Reply:
        """Hand in the text of the turn."""
        assert told.interaction is not None, told
        payload: dict[str, Json] = {
            "requestId": told.interaction["requestId"],
            "submissionId": name,
            "value": {"text": text, "sessionEntryId": f"said-{name}"},
        }
        return self.ask(
            "interaction.assistant",
            payload,
            run_id=text_of(told.message, "runId"),
            revision=told.interaction["revision"],
        )

    def ask(
        self,
        operation: str,
        payload: dict[str, Json],
        *,
        run_id: str | None = None,
        revision: Json = None,
    ) -> Reply:
        """Ask for something in the session's name; under a new epoch after a lost connection."""
        assert self._client is not None
        key = f"{self.session_id}-{len(self._keys)}"
        self._keys.append(key)
        while True:
            reply = self._client.request(
                Operation(operation),
                {**payload, **self._claim()},
                run_id=run_id,
                expected_revision=revision if isinstance(revision, int) else None,
                key=key,
            )
            if code_of(reply) not in {"notCoordinator", "branchReportRequired"}:
                return reply
            assert operation != "workflowMessage.reportBranch", reply
            self._return()

    def _claim(self) -> dict[str, Json]:
        """Return what a request in the session's name carries."""
        return {"targetSessionId": self.session_id, "coordinatorEpoch": self.epoch}

    def _return(self) -> None:
        """Wait for the epoch of a new connection and say what the branch holds: a turn goes on."""
        assert self._client is not None
        assert self._watch is not None
        while True:
            self._client.next_news(self._watch, timeout_ms=int(DEADLINE_S * 1_000))
            if not self._watch.mirror.is_stale and self.view["branchReportRequired"] is True:
                break
        report: dict[str, Json] = {
            "workflowMessageId": None,
            "piSessionEntryId": None,
            "isIdle": False,
            "hasPendingMessages": False,
        }
        operation = Operation.WORKFLOW_MESSAGE_REPORT_BRANCH
        self._client.request(operation, {**report, **self._claim()}).done()


def code_of(reply: Reply) -> Json:
    """Return the code of a refusal; None when it is none."""
    return reply.receipt.get("code") if isinstance(reply.receipt, dict) else None


def text_of(document: dict[str, Json], name: str) -> str:
    """Return a member that is text."""
    value = document[name]
    assert isinstance(value, str), (name, value)
    return value


def receipt_of(reply: Reply) -> dict[str, Json]:
    """Return a receipt's members."""
    receipt = reply.receipt
    assert isinstance(receipt, dict), reply
    return canonical_copy(receipt)


def canonical_copy(document: dict[str, Json]) -> dict[str, Json]:
    """Return a document as it is read from its bytes."""
    read = canonical.decode(canonical.encode(document))
    assert isinstance(read, dict)
    return read
