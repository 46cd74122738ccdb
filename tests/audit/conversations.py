"""Runs that talk with a Pi session: what it is told, the turns of its model, and their answers."""

from __future__ import annotations

from typing import Final, Literal

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.domain.attempt.notice import Notify
from pi_workflows.domain.attempt.question import WaitForInput
from pi_workflows.domain.fact import Actor, Command
from pi_workflows.domain.follow_up.queue import QueueFollowUp, RemoveFollowUp
from pi_workflows.domain.message.branch import ReportBranch
from pi_workflows.domain.message.terminal import TellEnd
from pi_workflows.domain.message.turn import EndTurn, ResumeClock, StartTurn, SuspendClock
from pi_workflows.domain.request.closing import ExpireRequest
from pi_workflows.domain.request.submission import JudgeSubmission, SubmitCandidate, SubmitText
from pi_workflows.domain.run.control import CancelRun, ResumeRun
from pi_workflows.domain.run.state import pending_request
from pi_workflows.domain.session_rows import TurnEnd
from pi_workflows.kernel.order import Answer
from tests.audit.lives import Life, Steps
from tests.kernel.moves import runner_move

NOW: Final = 0
_SESSION: Final = Actor("session", "client-2")


class Conversation:
    """A life and its session.

    Attributes:
        life: The run.
        session: Its session.
    """

    def __init__(self, life: Life) -> None:
        self.life = life
        self.session = f"session-{life.run_id}"
        self._count = 0

    def start(self) -> None:
        """Queue the run."""
        self.life.start("talking", session=self.session, title="Talk about it")

    def ask(self, node: str, *, is_again: bool = False) -> None:
        """Begin a node that a model answers, and ask it."""
        life = self.life
        life.runner(life.begin(node, is_again=is_again))
        kind: Literal["agent", "assistant"] = "assistant" if node == "say" else "agent"
        contract: dict[str, Json] = {"kind": kind, "nodeId": node, "prompt": life.text()}
        if kind == "assistant":
            contract["maxChars"] = 80
        attempt_id = life.attempt_id(node)
        life.runner(WaitForInput(life.run_id, attempt_id, kind, Blob.json(contract)))

    def notify(self, node: str) -> None:
        """Begin a notification, and give it."""
        life = self.life
        life.runner(life.begin(node))
        text = Blob.json(life.text())
        life.runner(Notify(life.run_id, life.attempt_id(node), text, "progress"))

    def settle(self) -> None:
        """Let the runner take what became of the question."""
        life = self.life
        with life.bench.store.snapshot() as read:
            command = runner_move(read, life.run_id, life.bench.clock.now_ms(), min)
        assert command is not None
        life.runner(command)

    def say(self, command: Command, outcome: str = "accepted") -> Answer:
        """Send what the session, its client or the server for it says."""
        order = self.life.bench.order(command, name="session", actor=_SESSION)
        answer = self.life.submit(order)
        assert answer.outcome == outcome, (self.life.run_id, command, answer.code, answer.error)
        return answer

    def hear(self) -> str:
        """Let the session's branch hold the next message; return its ID."""
        rows = self.life.bench.dump("workflow_messages")
        pending = [row for row in rows if row[1] == self.life.run_id and row[7] == "pending"]
        message = str(min(pending, key=lambda row: int(str(row[6])))[0])
        self.report(message, self._name("entry"))
        return message

    def report(self, message: str | None, entry: str | None) -> None:
        """Say what the branch of the idle session holds."""
        self.say(
            ReportBranch(
                self.life.run_id,
                self.session,
                message,
                entry,
                is_idle=True,
                has_pending_messages=False,
            )
        )

    def begin_turn(self, message: str) -> str:
        """Let the session's model begin to work for a message; return the turn's ID."""
        turn = self._name("turn")
        self.say(StartTurn(self.life.run_id, self.session, message, turn))
        return turn

    def end_turn(self, message: str, turn: str, reason: TurnEnd = "completed") -> None:
        """Let the turn end."""
        entry = self._name("said") if reason == "completed" else None
        worked_ms = 100 + self.life.chance.randrange(900)
        run_id = self.life.run_id
        self.say(EndTurn(run_id, self.session, message, turn, reason, entry, worked_ms, worked_ms))

    def request(self) -> tuple[str, int]:
        """Return the open question and its revision."""
        with self.life.bench.store.snapshot() as read:
            found = pending_request(read, self.life.run_id)
        assert found is not None
        return found.request_id, found.revision

    def submit(self) -> str:
        """Hand in a candidate; return its ID."""
        request_id, revision = self.request()
        name = self._name("candidate")
        value = Blob.json({"plan": self.life.text()})
        self.say(
            SubmitCandidate(self.life.run_id, request_id, revision, name, name, self.session, value)
        )
        return name

    def judge(self, submission: str, error: str | None = None) -> None:
        """Say what a candidate is worth."""
        value = None if error is not None else Blob.json({"plan": self.life.text(), "n": 1})
        command = JudgeSubmission(
            self.life.run_id, self.request()[0], submission, value, error, elapsed_ms=40
        )
        self.say(command, "accepted" if error is None else "rejected")

    def text(self, said: str, outcome: str = "accepted") -> None:
        """Hand in the text that a turn ended with."""
        request_id, revision = self.request()
        name, entry = self._name("text"), self._name("entry")
        command = SubmitText(
            self.life.run_id, request_id, revision, name, name, self.session, said, entry
        )
        self.say(command, outcome)

    def expire(self) -> None:
        """Let the time for an answer be over."""
        self.say(ExpireRequest(self.life.run_id, self.request()[0], 5_000))

    def queue(self, name: str) -> str:
        """Queue a prompt behind the run; return the follow-up's ID."""
        prompt = Blob.text(f"Then do this: {self.life.text()}")
        answer = self.say(QueueFollowUp(self.life.run_id, f"{name}-{self.session}", prompt))
        return str(answer.events[0].fact.model_dump()["follow_up"]["follow_up_id"])

    def tell_end(self) -> None:
        """Tell the session the run's end."""
        self.say(TellEnd(self.life.run_id))

    def disconnect(self, turn: str, elapsed_ms: int) -> None:
        """Let the session's connection break in a turn, and come back."""
        attempt_id = self.life.attempt_id("plan")
        self.say(SuspendClock(self.life.run_id, attempt_id, elapsed_ms, "disconnected"))
        self.say(ResumeClock(self.life.run_id, turn))

    def _name(self, kind: str) -> str:
        """Return a name that nothing else has."""
        self._count += 1
        return f"{kind}-{self._count}-{self.session}"


def conversed(life: Life) -> Steps:
    """Complete with a step that took three attempts, a notification, a text, and a told end."""
    talk = Conversation(life)
    talk.start()
    yield NOW
    life.boot()
    yield from _unanswered(talk)
    yield from _expired(talk)
    yield from _corrected(talk)
    life.boot()
    talk.settle()
    talk.notify("told")
    talk.ask("say")
    yield NOW
    talk.hear()
    message = talk.hear()
    turn = talk.begin_turn(message)
    talk.text("x" * 81, "rejected")
    yield NOW
    talk.end_turn(message, turn)
    message = talk.hear()
    turn = talk.begin_turn(message)
    talk.text(life.text(30))
    talk.end_turn(message, turn)
    talk.queue("first")
    yield NOW
    life.boot()
    talk.settle()
    life.runner(life.begin("done"))
    life.runner(life.end("done"))
    life.finish("done", "completed")
    talk.tell_end()
    yield NOW
    message = talk.hear()
    turn = talk.begin_turn(message)
    yield NOW
    talk.end_turn(message, turn)


def _unanswered(talk: Conversation) -> Steps:
    """Ask for the first time: three turns end without an answer."""
    talk.ask("plan")
    for reason in ("completed", "error", "completed"):
        yield NOW
        message = talk.hear()
        turn = talk.begin_turn(message)
        yield NOW
        talk.end_turn(message, turn, reason)
    talk.life.boot()
    talk.settle()


def _expired(talk: Conversation) -> Steps:
    """Ask again: the connection breaks in a turn, and the time runs out."""
    talk.ask("plan", is_again=True)
    yield NOW
    turn = talk.begin_turn(talk.hear())
    talk.life.sample("plan", 900)
    talk.disconnect(turn, 5_000)
    yield NOW
    talk.expire()
    talk.life.boot()
    talk.settle()


def _corrected(talk: Conversation) -> Steps:
    """Ask once more: a turn is interrupted, one is lost, and a refused answer is corrected."""
    life = talk.life
    talk.ask("plan", is_again=True)
    # The turn of before is the session's open one still.
    talk.report(None, None)
    message = talk.hear()
    turn = talk.begin_turn(message)
    yield NOW
    talk.end_turn(message, turn, "aborted")
    yield NOW
    life.client(ResumeRun(life.run_id))
    talk.begin_turn(talk.hear())
    yield NOW
    talk.report(message, None)
    message = talk.hear()
    turn = talk.begin_turn(message)
    talk.judge(talk.submit(), "it names no shop")
    yield NOW
    talk.judge(talk.submit())
    talk.end_turn(message, turn)


def abandoned(life: Life) -> Steps:
    """Be cancelled before the session heard of its step, and again while it works on the end."""
    talk = Conversation(life)
    talk.start()
    yield NOW
    life.boot()
    talk.ask("plan")
    talk.queue("first")
    talk.say(RemoveFollowUp(life.run_id, talk.queue("second")))
    yield NOW
    life.client(CancelRun(life.run_id))
    talk.tell_end()
    yield NOW
    talk.begin_turn(talk.hear())
    yield NOW
    life.client(CancelRun(life.run_id))


def talking(life: Life) -> Steps:
    """Stand in the middle of a turn whose answer is being judged."""
    talk = Conversation(life)
    talk.start()
    yield NOW
    life.boot()
    talk.ask("plan")
    yield NOW
    talk.begin_turn(talk.hear())
    life.sample("plan", 300)
    talk.submit()
