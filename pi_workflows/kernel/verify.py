"""`state verify`: what must hold in a database, checked and reported, never repaired."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from pi_workflows.base.errors import Corrupt, PayloadInvalid
from pi_workflows.kernel import comparison, digests, rules
from pi_workflows.kernel.findings import Findings, Violation
from pi_workflows.kernel.ownership import runs_of
from pi_workflows.kernel.projectors import Projectors
from pi_workflows.kernel.rebuild import Replay
from pi_workflows.kernel.rules import RULES
from pi_workflows.store.scratch import Scratch
from pi_workflows.store.snapshot import Snapshot

__all__ = ["CODES", "Verification", "Violation", "verify"]

_REPLAY: Final = ("replay", "A row is not the one that the log gives")
# What was compared before a snapshot could be read: no database is opened without (section 7).
_OPENED: Final = (
    ("identity", "The file is not of this schema and version"),
    ("shape", "A table, index or other part of the schema is another one"),
)
CODES: Final = dict(
    (
        *_OPENED,
        *((rule.code, rule.explanation) for rule in RULES),
        rules.EVENT_SHAPE,
        digests.JOURNAL_DIGEST,
        digests.BLOB_DIGEST,
        digests.EVENT_DIGEST,
        digests.EVENT_BLOBS,
        _REPLAY,
    )
)
"""Every code with what is wrong where it is violated (state contract, section 5)."""

# What a value does that no column of its type can hold: STRICT is held on writing alone, so that in
# a file that SQLite itself finds broken a column may give anything.
_WRONG_TYPES: Final = (
    AssertionError,
    AttributeError,
    LookupError,
    PayloadInvalid,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of one check.

    Attributes:
        violations: In the order of the checks; none in a sound database.
        checked: The codes that were checked.
        information: Facts that are no violations.
        is_partial: Whether the deadline came before the last check.
    """

    violations: tuple[Violation, ...]
    checked: tuple[str, ...]
    information: dict[str, int] = field(default_factory=dict[str, int])
    is_partial: bool = False

    @property
    def is_valid(self) -> bool:
        """Whether nothing was found."""
        return not self.violations


def verify(
    source: Snapshot,
    *,
    quick: bool,
    scratch: Callable[[], AbstractContextManager[Scratch]],
    projectors: Projectors,
    progress: Callable[[str, int], None] = lambda _name, _count: None,
    is_over: Callable[[], bool] = lambda: False,
) -> Verification:
    """Check everything that must hold in a database.

    Args:
        source: The database, in one consistent read.
        quick: Leave out digests and the replay of the log.
        scratch: Makes an empty database for the replay, and removes it.
        projectors: The ones that the server uses.
        progress: Called with the name of the check under way and the rows it has read.
        is_over: Whether a deadline has passed; what was found until then is the result.

    Returns:
        The result; a damaged database is a result too.

    Raises:
        Unavailable: The file could not be read.
    """
    found = Findings()
    # Several checks may look after one code.
    checked: dict[str, None] = {}
    for check in _checks(source, quick, scratch, projectors):
        if is_over():
            return Verification(found.violations(), tuple(checked), is_partial=True)
        for code in check.codes:
            progress(code, 0)
        name = check.codes[0]
        try:
            check.find(found, partial(progress, name))
        except Corrupt as error:
            # Damage that the check stumbled over: what it could not read is what it found.
            found.add(name, f"The check could not go on: {error.message}")
        except _WRONG_TYPES:
            if "integrity" not in found:
                raise
            found.add(name, "The check could not go on: a value is not of its column's type")
        checked.update(dict.fromkeys(check.codes))
    return Verification(found.violations(), tuple(checked))


class _Check(NamedTuple):
    """One step of a verification.

    Attributes:
        codes: What it looks after; the first is its name.
        find: Notes what it finds, and tells how many rows it has read.
    """

    codes: tuple[str, ...]
    find: Callable[[Findings, Callable[[int], None]], None]


def _checks(
    source: Snapshot,
    quick: bool,  # noqa: FBT001 - passed on
    scratch: Callable[[], AbstractContextManager[Scratch]],
    projectors: Projectors,
) -> Iterator[_Check]:
    """Yield each check, cheap ones first."""
    yield _Check(tuple(code for code, _ in _OPENED), _nothing)
    for rule in RULES:
        yield _Check((rule.code,), partial(_apply, source, rule))
    yield _Check(("eventShape",), partial(rules.check_event_types, source))
    yield _Check(("effectKey",), partial(rules.check_effect_keys, source))
    if quick:
        return
    yield _Check(("viewer",), partial(digests.check_patches, source))
    yield _Check(("journalDigest",), partial(digests.check_journals, source))
    yield _Check(("blobDigest", "blobMedia"), partial(digests.check_blobs, source))
    yield _Check(("eventDigest", "eventShape", "eventBlobs"), partial(digests.check_events, source))
    yield _Check(("replay",), partial(_replay, source, scratch, projectors))


def _nothing(_found: Findings, _progress: Callable[[int], None]) -> None:
    """Note nothing: who has a snapshot has checked it."""


def _apply(
    source: Snapshot, rule: rules.Rule, found: Findings, _progress: Callable[[int], None]
) -> None:
    """Note what violates a rule."""
    rules.apply_rule(source, rule, found)


def _replay(
    source: Snapshot,
    scratch: Callable[[], AbstractContextManager[Scratch]],
    projectors: Projectors,
    found: Findings,
    progress: Callable[[int], None],
) -> None:
    """Note every row that the log does not give again, or the event at which it gives none."""
    with scratch() as target:
        replay = Replay(source, target, projectors)
        try:
            replay.advance(progress=progress)
        except Corrupt as error:
            at = error.field or f"events.{replay.event_seq + 1}"
            found.add(_REPLAY[0], error.message, partial(_failed_at, source, at))
            return

        def compared(_count: int) -> None:
            progress(replay.event_count)

        with target.snapshot() as rebuilt:
            sides = (source, rebuilt)
            for statement in comparison.SQL.values():
                for difference in comparison.differences(*sides, statement, compared):
                    found.add(*_REPLAY, partial(runs_of, sides, statement.name, difference.key))


def _failed_at(source: Snapshot, at: str) -> tuple[str, ...]:
    """Return the runs of what could not be replayed: a run's view, or an event."""
    table, _, key = at.partition(".")
    return (key,) if table == "runs" else digests.runs_at(source, int(key))
