"""Two commands that nobody keeps apart, and what each order of them comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from pi_workflows.domain.fact import Actor, Command
from pi_workflows.kernel.order import Answer, Order
from pi_workflows.store.records import Permit
from tests.kernel.harness import Harness

Standing: TypeAlias = Mapping[str, object]


class Tables(Protocol):
    """A database whose rows a test looks at."""

    def dump(self, table: str) -> list[tuple[object, ...]]:
        """Return every row of a table."""
        ...


class Move(NamedTuple):
    """One of two commands.

    Attributes:
        command: The command.
        is_runners: Whether the run's runner sends it, under its claim.
        actor: Who sends it otherwise; None for a control client.
    """

    command: Command
    is_runners: bool = False
    actor: Actor | None = None


class Ending(NamedTuple):
    """What one order of them comes to.

    Attributes:
        winner: What the first is told: its outcome, or the code of a refusal.
        loser: What the second is told.
        standing: What is left, as `standing` names it.
    """

    winner: str
    loser: str
    standing: Standing


class Race(NamedTuple):
    """Two commands for one thing.

    Attributes:
        scene: Brings a run to where both are possible; returns the claim of its runner, if any.
        one: One of them.
        other: The other.
        forth: What comes of them when `one` is first.
        back: What comes of them when `other` is first.
    """

    scene: Callable[[Harness], Permit | None]
    one: Move
    other: Move
    forth: Ending
    back: Ending


def raced(bench: Harness, permit: Permit | None, moves: tuple[Move, Move]) -> tuple[str, str]:
    """Decide two commands one after the other in one transaction, and return what each is told."""
    orders = [_order(bench, permit, move) for move in moves]
    first, second = bench.kernel.commit(orders, bench.clock.now_ms())
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    return told(first), told(second)


def told(answer: Answer) -> str:
    """Return the code of a refusal, else the outcome."""
    return answer.code or str(answer.outcome.value)


def _order(bench: Harness, permit: Permit | None, move: Move) -> Order:
    if move.is_runners:
        assert permit is not None
        return bench.order(move.command, permit=permit)
    if move.actor is not None:
        return bench.order(move.command, actor=move.actor)
    return bench.order(move.command)


def standing(bench: Tables, run_id: str = "run-1") -> dict[str, object]:
    """Return what is left of a run: small words for everything that can be raced for."""
    run = next(row for row in bench.dump("runs") if row[0] == run_id)
    queue = next(row for row in bench.dump("run_queue") if row[0] == run_id)
    return {
        "runs": len(bench.dump("runs")),
        "run": run[14],
        "paused": bool(run[15]),
        "queue": queue[1],
        "requests": [row[7] for row in bench.dump("interactive_requests")],
        "answers": {
            str(row[0]).removeprefix("submission-"): row[5]
            for row in bench.dump("interactive_submissions")
        },
        "messages": [f"{row[3]} {row[7]}" for row in _messages(bench)],
        "turns": {row[0]: row[5] or row[4] for row in bench.dump("workflow_turns")},
        "effects": [row[8] for row in bench.dump("effects") if row[4] == "deploy"],
        "tries": [row[6] for row in bench.dump("effect_attempts")],
        "attempts": [row[6] for row in bench.dump("node_attempts")],
        "intervals": [row[4] is None for row in bench.dump("attempt_active_intervals")],
        "stops": [row[9] for row in _messages(bench) if row[9] is not None],
    }


def _messages(bench: Tables) -> list[tuple[object, ...]]:
    """Return the messages in the order in which they are told."""
    return sorted(bench.dump("workflow_messages"), key=lambda row: int(str(row[6])))
