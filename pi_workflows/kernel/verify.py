"""`state verify`: what must hold in a database, checked and reported, never repaired."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from pi_workflows.base.errors import Corrupt, Unavailable
from pi_workflows.kernel import comparison, decisions, digests, references, rules
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
        references.FOREIGN_KEYS,
        rules.EVENT_SHAPE,
        digests.JOURNAL_DIGEST,
        digests.BLOB_DIGEST,
        digests.EVENT_DIGEST,
        digests.EVENT_BLOBS,
        _REPLAY,
    )
)
"""Every code with what is wrong where it is violated (state contract, section 5)."""

# Of these codes rules look after a part; what reads content looks after the rest.
_PARTLY: Final = frozenset({"viewer", "blobMedia", "effectKey", "decisionRule"})
_CUT_SHORT: Final = "What the check reads is damaged: it could not go on"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of one check.

    Attributes:
        violations: In the order of the checks; none in a sound database.
        checked: The codes of which everything was checked.
        is_partial: Whether the deadline came before the last check.
    """

    violations: tuple[Violation, ...]
    checked: tuple[str, ...]
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
        progress: Called with the name of the check under way and the rows it has read, also while
            SQLite works on one statement; what it raises ends the verification.
        is_over: Whether a deadline has passed, asked as often; what was found until then is the
            result.

    Returns:
        The result; a damaged database is a result too.

    Raises:
        Unavailable: The file could not be read.
    """
    found = Findings()
    # Every code in the order in which each was begun, and whether all of it was checked.
    codes: dict[str, bool] = {}
    watch = _Watch(progress, is_over)
    is_partial = False
    try:
        with source.watched(watch.look):
            for check in _checks(source, quick, scratch, projectors):
                watch.begin(check)
                codes.update((code, False) for code in check.tells if code not in codes)
                if _is_read(check, found, watch):
                    codes.update(dict.fromkeys(check.codes, True))
    except _OverError:
        is_partial = True
    checked = tuple(code for code, is_whole in codes.items() if is_whole)
    return Verification(found.violations(), checked, is_partial=is_partial)


def _is_read(check: _Check, found: Findings, watch: _Watch) -> bool:
    """Note what a check finds. Return whether it could read everything that it looks at.

    Whatever a check meets in a file that a hand has changed, is damage: a column may hold values
    of any type, a payload numbers that no column holds, and a row may break what the schema
    demands. None of it ends the other checks, or the server whose own file it is.
    """
    try:
        check.find(found, watch.at)
    except (Unavailable, OSError, MemoryError, _OverError):
        # The disk, the machine or the deadline, and not the file.
        raise
    except Exception:  # noqa: BLE001 - as above; what it is says less than where it is
        found.add(check.name, _CUT_SHORT)
        return False
    return True


class _OverError(Exception):
    """The deadline has passed."""


class _Watch:
    """Looks around while a check is under way: tells how far it is, and ends it when it must."""

    def __init__(self, progress: Callable[[str, int], None], is_over: Callable[[], bool]) -> None:
        self._progress = progress
        self._is_over = is_over
        self._name = ""
        self._count = 0

    def begin(self, check: _Check) -> None:
        """Look around before a check."""
        self._name, self._count = check.name, 0
        self.look()
        for code in check.tells[1:]:
            self._progress(code, 0)

    def at(self, count: int) -> None:
        """Look around where a check has read so many rows."""
        self._count = count
        self.look()

    def look(self) -> None:
        """Tell how far the check is. Raises _OverError after the deadline."""
        if self._is_over():
            raise _OverError
        self._progress(self._name, self._count)


class _Check(NamedTuple):
    """One step of a verification.

    Attributes:
        name: The code that it looks after first.
        codes: Those of which everything is checked once it is done.
        find: Notes what it finds, and tells how many rows it has read.
    """

    name: str
    codes: tuple[str, ...]
    find: Callable[[Findings, Callable[[int], None]], None]

    @property
    def tells(self) -> tuple[str, ...]:
        """The codes that it looks after, its name before the others."""
        return tuple(dict.fromkeys((self.name, *self.codes)))


def _checks(
    source: Snapshot,
    quick: bool,  # noqa: FBT001 - passed on
    scratch: Callable[[], AbstractContextManager[Scratch]],
    projectors: Projectors,
) -> Iterator[_Check]:
    """Yield each check, cheap ones first."""

    def check(
        find: Callable[[Snapshot, Findings, Callable[[int], None]], None],
        name: str,
        *codes: str,
    ) -> _Check:
        return _Check(name, codes, partial(find, source))

    yield _Check("identity", ("identity", "shape"), _nothing)
    for rule in RULES:
        codes = () if rule.code in _PARTLY else (rule.code,)
        yield _Check(rule.code, codes, partial(_apply, source, rule))
    yield check(references.check_references, "foreignKeys", "foreignKeys")
    yield check(rules.check_event_types, "eventShape")
    yield check(rules.check_effect_keys, "effectKey", "effectKey")
    if quick:
        yield check(digests.check_links, "eventBlobs", "eventBlobs")
        return
    yield check(digests.check_patches, "viewer", "viewer")
    yield check(digests.check_journals, "journalDigest", "journalDigest")
    yield check(decisions.check_decisions, "decisionRule", "decisionRule")
    yield check(digests.check_checkpoints, "checkpoints", "checkpoints")
    yield check(digests.check_blobs, "blobDigest", "blobDigest", "blobMedia")
    yield check(digests.check_events, "eventDigest", "eventDigest", "eventShape", "eventBlobs")
    yield _Check("replay", ("replay",), partial(_replay, source, scratch, projectors))


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
            event_seq = replay.event_seq + 1
            at = error.field or f"events.{event_seq}"
            words = f"The log gives no rows from event {event_seq:,} on"
            found.add(_REPLAY[0], words, partial(_failed_at, source, at))
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
