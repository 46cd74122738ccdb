"""Commands that nobody in his right mind would send now."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.domain.attempt.boundary import FinishAttempt, Requeue, StartAttempt
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.attempt.question import WaitForInput
from pi_workflows.domain.effect.application import BeginEffect, ReserveEffect, SettleEffect
from pi_workflows.domain.effect.recovery import ResolveEffect
from pi_workflows.domain.fact import Command
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import ClaimRun, LoseRunner, MarkReady, ReleaseClaim
from pi_workflows.domain.run.ending import FinishRun, SettleQueue
from tests.kernel.harness import Harness
from tests.kernel.moves import OUTPUTS

_NODES = ("one", "two", "work", "gate", "after", "deploy", "done", "late", "plan", "publish")
_TYPES = ("compute", "action", "checkpoint")
_OUTCOMES = ("ok", "failed", "timed_out", "cancelled")
_VALUES = st.one_of(st.none(), st.sampled_from([Blob.json(value) for value in OUTPUTS]))
_FAILURES = st.sampled_from((None, Failure("nodeFailed", "no")))
_NUMBERS = st.integers(1, 4)
_EFFECTS = st.sampled_from(("deploy", "deploy", "other"))
_RECOVERIES = st.sampled_from(("idempotent", "manual"))
_REQUESTS = st.sampled_from((Blob.json("do it"), Blob.json("do that")))
_REVISIONS = st.sampled_from((None, 1, 2, 3))
_NAMES = st.sampled_from(("answer-a", "answer-b"))
_SOME = st.sampled_from([Blob.json(value) for value in OUTPUTS])
_ENDINGS = st.sampled_from(("completed", "failed", "timed_out"))


def odd_command(bench: Harness, runs: Sequence[str]) -> st.SearchStrategy[Command]:
    """Return a strategy for any command about what is in the database, or is not.

    Args:
        bench: The database.
        runs: The runs that it has.
    """
    run = st.sampled_from((*runs, "run-0"))
    attempts = [str(row[0]) for row in bench.dump("node_attempts")]
    started = st.builds(ids.attempt_id, run, st.sampled_from(_NODES), _NUMBERS)
    attempt = st.one_of(st.sampled_from((*attempts, "attempt-0")), started)
    effects = [str(row[0]) for row in bench.dump("effects")]
    effect = st.sampled_from((*effects, "effect-0"))
    requests = [str(row[0]) for row in bench.dump("interactive_requests")]
    request = st.sampled_from((*requests, "request-0"))
    return st.one_of(
        _of_attempts(run, attempt),
        _of_effects(run, effect),
        st.builds(ReserveEffect, run, attempt, _EFFECTS, _RECOVERIES, _REQUESTS),
        st.builds(AnswerCheckpoint, run, request, _REVISIONS, _NAMES, _NAMES, _SOME),
        st.builds(FinishRun, run, _ENDINGS, _VALUES, _FAILURES),
        st.builds(ClaimRun, run),
        st.builds(MarkReady, run),
        st.builds(ReleaseClaim, run, st.one_of(st.none(), effect)),
        st.builds(LoseRunner, run, st.integers(0, 3), st.booleans(), st.just("killed")),
        st.builds(SettleQueue, run),
    )


def _of_attempts(
    run: st.SearchStrategy[str], attempt: st.SearchStrategy[str]
) -> st.SearchStrategy[Command]:
    """Return a strategy for what runners say about nodes."""
    return st.one_of(
        st.builds(
            _start, run, st.sampled_from(_NODES), _NUMBERS, _NUMBERS, st.sampled_from(_TYPES)
        ),
        st.builds(
            FinishAttempt,
            run,
            attempt,
            st.sampled_from(_OUTCOMES),
            _VALUES,
            _VALUES,
            _FAILURES,
            st.integers(0, 10**10),
        ),
        st.builds(Requeue, run, st.sampled_from((1, 1_000, 2_000, 4_000))),
        st.builds(WaitForInput, run, attempt, st.just("checkpoint"), st.just(Blob.json("Why?"))),
        st.builds(
            RecordUpdate, run, attempt, st.just("progress"), st.just("k"), st.just(Blob.json({}))
        ),
    )


def _of_effects(
    run: st.SearchStrategy[str], effect: st.SearchStrategy[str]
) -> st.SearchStrategy[Command]:
    """Return a strategy for what is said about an effect."""
    return st.one_of(
        st.builds(BeginEffect, run, effect, _NUMBERS, st.just("worker")),
        st.builds(
            SettleEffect,
            run,
            effect,
            _NUMBERS,
            st.sampled_from(("applied", "rejected", "uncertain")),
            _VALUES,
            _FAILURES,
            st.booleans(),
        ),
        st.builds(
            ResolveEffect,
            run,
            effect,
            _NUMBERS,
            st.sampled_from(("confirm", "retry", "reject")),
            st.just("seen"),
        ),
    )


def _start(run_id: str, node: str, visit: int, number: int, node_type: str) -> StartAttempt:
    """Return the start of an attempt under its own name."""
    key = ids.attempt_id(run_id, node, number)
    return StartAttempt(run_id, key, node, visit, number, node_type, 900_000)
