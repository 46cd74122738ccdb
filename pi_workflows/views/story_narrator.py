"""What a story's sentences are made with: what is known so far, and what waits to be said."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pi_workflows.base.measures import duration
from pi_workflows.base.sentences import actor_words
from pi_workflows.domain.attempt.events import AttemptSettled, AttemptStarted
from pi_workflows.domain.fact import Event
from pi_workflows.domain.run.events import RunEvent, RunQueued
from pi_workflows.views.story_sentences import Sentence, Told
from pi_workflows.views.story_values import Values


@dataclass(slots=True)
class Attempt:
    """An attempt as the story knows it.

    Attributes:
        node_id: Its node.
        visit: Which entry of the node.
        number: Which execution of the node.
        timeout_ms: Its budget of active time; 0 is unlimited.
        active_ms: Active time that was measured so far.
        asked_at_ms: When it asked for an answer; None unless it did.
    """

    node_id: str
    visit: int
    number: int
    timeout_ms: int
    active_ms: int = 0
    asked_at_ms: int | None = None

    @property
    def name(self) -> str:
        """What the story calls it: `build`, `build (visit 3)`, `build (attempt 2)`."""
        if self.number == 1:
            return self.node_id
        if self.visit == 1:
            return f"{self.node_id} (attempt {self.number})"
        if self.visit == self.number:
            return f"{self.node_id} (visit {self.visit})"
        return f"{self.node_id} (visit {self.visit}, attempt {self.number})"

    @property
    def limit(self) -> str:
        """Its budget, to stand behind a verb."""
        return f" (limit {duration(self.timeout_ms)})" if self.timeout_ms else ""


@dataclass(slots=True)
class Effect:
    """An action's effect as the story knows it.

    Attributes:
        node_id: Its node.
        type: What kind of effect it is.
        tries: How often it was tried.
        doubtful_since_ms: When nobody knew any more whether it happened.
    """

    node_id: str
    type: str
    tries: int = 0
    doubtful_since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """What a session is told, as the story knows it.

    Attributes:
        name: What the story calls it: `the step plan`, `the notification of told`.
        node_id: The node that it is about, if it is about one.
        made_at_ms: When it was made.
    """

    name: str
    node_id: str | None
    made_at_ms: int


@dataclass(frozen=True, slots=True)
class _Held:
    key: str
    sentence: Sentence
    clause: str


class Narrator:
    """Writes sentences, event by event.

    What begins is held back: when nothing happens before its end, one sentence tells both.

    Args:
        values: Looks up what events name.

    Attributes:
        sentences: What was said.
        values: As given.
        attempts: The attempts by their IDs.
        effects: The effects of actions by their IDs.
        asked: The attempts of the questions, by the IDs of these.
        messages: What the session is told, by ID.
        turns: When the turns of its model began, by ID.
        claim: The number of the newest claim.
        began_ms: When the run was asked for.
        queued_ms: Since when the run has waited for a runner.
        stopped_ms: Since when it has stood still, paused or parked.
        last_node: The node that settled last.
    """

    def __init__(self, values: Values) -> None:
        self.values = values
        self.sentences: list[Sentence] = []
        self.attempts: dict[str, Attempt] = {}
        self.effects: dict[str, Effect] = {}
        self.asked: dict[str, Attempt] = {}
        self.messages: dict[str, Message] = {}
        self.turns: dict[str, int] = {}
        self.claim = 0
        self.began_ms = 0
        self.queued_ms = 0
        self.stopped_ms: int | None = None
        self.last_node = ""
        self._told: Told | None = None
        self._before: Event | None = None
        self._held: list[_Held] = []
        self._can_add = False

    def turn_to(self, told: Told) -> None:
        """Begin with the next event.

        Args:
            told: The event.
        """
        earlier = self._told.fact if self._told is not None else None
        is_same = earlier is not None and earlier.command == told.fact.command
        self._before = earlier if is_same else None
        self._can_add = self._can_add and is_same
        self._told = told
        interval = told.fact.interval if isinstance(told.fact, RunEvent | AttemptSettled) else None
        if interval is not None:
            self.attempts[interval.attempt_id].active_ms += interval.elapsed_ms

    @property
    def told(self) -> Told:
        """The event that is told now."""
        assert self._told is not None, "nothing to tell"
        return self._told

    @property
    def before(self) -> Event | None:
        """The event before it, if the same command made both."""
        return self._before

    @property
    def who(self) -> str:
        """Who acted, to begin a sentence: `A local command`."""
        words = actor_words(self.told.actor)
        return f"{words[0].upper()}{words[1:]}"

    def since(self, at_ms: int) -> str:
        """Return the duration from a moment to the event."""
        return duration(self.told.at_ms - at_ms)

    def say(self, text: str, *, node: str | None = None, outcome: str | None = None) -> None:
        """Say a sentence of the event, after all that was held back.

        Args:
            text: The sentence without its full stop.
            node: The node that it is about.
            outcome: How the attempt ended.
        """
        self._flush()
        self.sentences.append(self._sentence(text, node, outcome))
        self._can_add = True

    def add(self, clause: str) -> bool:
        """Add to the sentence that the same command already has; say whether it has one.

        Args:
            clause: Stands behind a semicolon.
        """
        if self._can_add:
            last = self.sentences[-1]
            self.sentences[-1] = replace(last, text=f"{last.text[:-1]}; {clause}.")
        return self._can_add

    def hold(self, key: str, text: str, *, clause: str = "", node: str | None = None) -> None:
        """Keep a sentence back until something else is said, or its sequel takes it over.

        Args:
            key: What it is about; it replaces an earlier one about the same.
            text: The sentence without its full stop.
            clause: The same as a part of a sentence whose subject is its node.
            node: The node.
        """
        self.drop(key)
        self._held.append(_Held(key, self._sentence(text, node, None), clause))

    def drop(self, key: str) -> bool:
        """Give up what was held back about something; say whether there was anything."""
        kept = [each for each in self._held if each.key != key]
        is_dropped = len(kept) < len(self._held)
        self._held = kept
        return is_dropped

    def take_over(self, key: str) -> list[str] | None:
        """Take over all that was held back since something began.

        Args:
            key: What began.

        Returns:
            The clauses of what followed; None when the beginning has been said.
        """
        places = [at for at, each in enumerate(self._held) if each.key == key]
        if not places:
            return None
        taken = self._held[places[0] + 1 :]
        self._held = self._held[: places[0]]
        return [each.clause for each in taken if each.clause]

    def learn(self, fact: Event) -> None:
        """Take over how the run stands after the event."""
        at_ms = self.told.at_ms
        if isinstance(fact, RunQueued):
            self.began_ms = self.queued_ms = at_ms
        elif isinstance(fact, AttemptStarted):
            self.stopped_ms = None
        if not isinstance(fact, RunEvent):
            return
        if fact.queue is not None and fact.queue.status == "queued":
            self.queued_ms = max(at_ms, fact.queue.available_at)
            self.stopped_ms = None
        is_parked = fact.queue is not None and fact.queue.status == "parked"
        is_paused = fact.run is not None and fact.run.paused == 1
        if is_parked or is_paused:
            self.stopped_ms = at_ms

    def restarted(
        self, run_id: str, event_seq: int, at_ms: int, actor: str, event_type: str
    ) -> None:
        """Say that another run started over from this one, which is an event of that run.

        Args:
            run_id: The other run.
            event_seq: The number of its first event.
            at_ms: When that was recorded.
            actor: The class of who asked for it.
            event_type: The event's type.
        """
        words = actor_words(actor)
        text = f"{words[0].upper()}{words[1:]} started it over as {run_id}."
        self.sentences.append(Sentence(event_seq, None, at_ms, actor, event_type, text))

    def end(self) -> None:
        """Say what is still held back: it has not come to its end."""
        self._flush()

    def _flush(self) -> None:
        """Say what was held back."""
        self.sentences.extend(each.sentence for each in self._held)
        self._held.clear()

    def _sentence(self, text: str, node: str | None, outcome: str | None) -> Sentence:
        """Return a sentence of the event."""
        told = self.told
        return Sentence(
            event_seq=told.event_seq,
            seq=told.seq,
            at_ms=told.at_ms,
            actor=told.actor,
            type=type(told.fact).type,
            text=f"{text}.",
            node_id=node,
            outcome=outcome,
        )
