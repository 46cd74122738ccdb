"""The rules that hold between rows: what statements and identities alone can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, get_args

from pi_workflows.base import canonical, ids
from pi_workflows.base.canonical import Json
from pi_workflows.base.sql import Statement, load
from pi_workflows.domain.events import EVENTS
from pi_workflows.domain.fact import ResourceType
from pi_workflows.kernel.findings import Findings
from pi_workflows.kernel.ownership import runs_of
from pi_workflows.kernel.progress import counted
from pi_workflows.store.snapshot import Snapshot

_LOG: Final = load(__package__, "rules_log.sql")
_RUNS: Final = load(__package__, "rules_runs.sql")
_EFFECTS: Final = load(__package__, "rules_effects.sql")
_SESSIONS: Final = load(__package__, "rules_sessions.sql")
_VALUES: Final = load(__package__, "rules_values.sql")
SQL: Final = {**_LOG, **_RUNS, **_EFFECTS, **_SESSIONS, **_VALUES}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that statements can tell: each returned row is a violation.

    Attributes:
        code: Its code (state contract, section 5).
        explanation: What is wrong where it is violated, in one line.
        statements: What finds the violations.
    """

    code: str
    explanation: str
    statements: tuple[Statement, ...]


def _rule(code: str, explanation: str, *names: str) -> Rule:
    return Rule(code, explanation, tuple(SQL[name] for name in names))


RULES: Final = (
    _rule("integrity", "SQLite's own check of the file fails", "integrity"),
    _rule("revisionChain", "A resource's events are not 1 to its revision", "revision_chain"),
    _rule(
        "resourceOwner",
        "A row and its resource do not belong together",
        "owner_of_row",
        "owner_of_resource",
    ),
    _rule("resourceTimes", "A resource's time is not its last event's", "resource_times"),
    _rule(
        "leaseRow", "A lease is missing or contradicts the events", "lease_missing", "lease_row"
    ),
    _rule("sequence", "The counter of event numbers is none, or behind the log", "sequence"),
    _rule(
        "hostState",
        "A stored server epoch is ahead of the server's own",
        "host_row",
        "host_epochs",
    ),
    _rule("definition", "A definition is not the one its digest names", "definition"),
    _rule("queueState", "A run and its queue entry disagree about the end", "queue_state"),
    _rule("queueTimes", "A queue entry's end contradicts its status", "queue_times"),
    _rule(
        "queueSession",
        "A queue entry reserves the wrong session, or two runs share one",
        "queue_session",
        "session_runs",
    ),
    _rule("waitingRequest", "A waiting run asks nothing", "waiting_request"),
    _rule("lineage", "A run does not continue its parent's line", "lineage"),
    _rule("recovery", "A recovery answers nothing, or one too often", "recovery"),
    _rule("terminalWork", "A run that ended keeps work open", "terminal_work"),
    _rule("terminalData", "A run's error contradicts its end", "terminal_data"),
    _rule("runSource", "A run does not say where its workflow came from", "run_source"),
    _rule(
        "attemptState",
        "An attempt's end, number or visit is wrong",
        "attempt_settled",
        "attempt_numbers",
    ),
    _rule("activeClock", "Active time runs for something that does not work", "active_clock"),
    _rule(
        "intervals",
        "An attempt's intervals are not 1 to N, or not closed in order",
        "intervals",
        "interval_order",
    ),
    _rule("steps", "A run's steps are not 0 to N-1, or name the wrong attempts", "steps"),
    _rule("updates", "Progress is not numbered 1 to N, or is ahead of its run", "updates"),
    _rule("settingsBind", "An attempt has settings that were not its scope's", "settings_bind"),
    _rule("pendingRequest", "An open question belongs to nothing that waits", "pending_request"),
    _rule("acceptedRequest", "A settled question has no accepted answer", "accepted_request"),
    _rule(
        "submissions", "An answer contradicts its question", "submissions", "consumed_request"
    ),
    _rule(
        "requestTarget",
        "A question goes to the wrong session, or is no decision that it should be",
        "request_target",
        "decision_request",
    ),
    _rule("sessionTurns", "A session has two open turns", "session_turns"),
    _rule("turnMatch", "A turn does not belong to its message", "turn_match"),
    _rule("messageSource", "A message comes from nothing, or is wanted no more", "message_source"),
    _rule(
        "messageCount",
        "There are more messages of a kind than there may be",
        "terminal_messages",
        "reminders",
        "message_entries",
    ),
    _rule("recoveryStop", "A message that ends no run stops a recovery", "recovery_stop"),
    _rule("decisionRule", "A decision was resolved as its request forbids", "decision_rule"),
    _rule("decisionWinner", "A decision and its winning answer disagree", "decision_winner"),
    _rule("effectState", "An effect, its tries and its times disagree", "effect_state"),
    _rule("effectKey", "An effect is not its own, or settles no queue entry", "settlement"),
    _rule(
        "settingsChain",
        "A scope's changes do not lead from its first value to its last",
        "settings_changes",
        "settings_revision",
    ),
    _rule("followUps", "A run's follow-ups are not 1 to N, or wait in vain", "follow_ups"),
    _rule(
        "capture",
        "A captured session is not as long as it says, or has gaps",
        "segments",
        "segment_rows",
        "run_rows",
    ),
    _rule("entryLinks", "A captured entry is linked to a stranger's attempt", "entry_links"),
    _rule(
        "managed",
        "A managed resource stands twice, or contradicts its runs",
        "managed_names",
        "finalizers",
        "managed_runs",
    ),
    _rule("channel", "A channel confirmed what no effect did", "channel"),
    _rule(
        "viewer", "A run's view cursor or patches are missing or wrong", "viewer_cursor",
        "viewer_deltas",
    ),
    _rule("checkpoints", "A run's replay checkpoints are not each 256 events", "checkpoints"),
    _rule("receipts", "A receipt contradicts its outcome or its run", "receipts"),
    _rule("workers", "A runner's end or claim contradicts its status", "workers"),
    _rule("blobMedia", "A value that is read as JSON is stored as something else", "media"),
)  # fmt: skip

EVENT_SHAPE: Final = ("eventShape", "An event is not one of its type, or not its resource's")
_EXPLANATIONS: Final[Mapping[str, str]] = {rule.code: rule.explanation for rule in RULES}
# What a statement finds that its rule's own words do not say.
_WORDS: Final[Mapping[str, str]] = {"host_row": "The server has no row of its own, or two"}
# What an event is of: its type's first word, and the type of the resource that it stands on.
_FAMILIES: Final[Mapping[str, str]] = {
    "run": "run",
    "attempt": "run",
    "update": "run",
    "request": "run",
    "segment": "session",
    "decision": "decision",
    "settings": "settings",
    "follow_up": "follow_up",
    "message": "message",
    "turn": "message",
    "effect": "effect",
    "controller": "controller",
    "channel": "channel",
}


class Owner(NamedTuple):
    """Whose a violation is: a run's, a resource's, or nobody's."""

    run_id: str | None
    resource_id: str | None = None

    def runs(self, source: Snapshot) -> Iterable[str]:
        """Return the runs that it concerns."""
        if self.run_id is not None:
            return (self.run_id,)
        if self.resource_id is None:
            return ()
        return runs_of((source,), "resources", {"resource_id": self.resource_id})


class _EffectKey(NamedTuple):
    effect_id: str
    source_resource_id: str
    effect_type: str
    key: str


# The two of each kind of event, as one word each: what is read once is compared with all of them.
_KINDS: Final[list[Json]] = [
    f"{event_type} {resource_type}"
    for event_type in EVENTS
    for resource_type in get_args(ResourceType)
    if (family := event_type.partition(".")[0]) == "lease" or _FAMILIES[family] == resource_type
]


def apply_rule(source: Snapshot, rule: Rule, found: Findings) -> None:
    """Note every row that a rule's statements return."""
    for statement in rule.statements:
        words = _WORDS.get(statement.name, rule.explanation)
        for owner in source.each(Owner, statement):
            found.add(rule.code, words, partial(owner.runs, source))


def check_event_types(source: Snapshot, found: Findings, progress: Callable[[int], None]) -> None:
    """Note every event whose type is unknown, or not one of its resource's."""
    kinds = canonical.encode(_KINDS).decode()
    for owner in counted(source.each(Owner, SQL["event_types"], kinds=kinds), progress):
        found.add(*EVENT_SHAPE, partial(owner.runs, source))


def check_effect_keys(source: Snapshot, found: Findings, progress: Callable[[int], None]) -> None:
    """Note every effect whose identity is not derived from its source, type and key."""
    for effect in counted(source.each(_EffectKey, SQL["effect_keys"]), progress):
        derived = ids.effect_id(effect.source_resource_id, effect.effect_type, effect.key)
        if derived != effect.effect_id:
            owner = Owner(None, effect.source_resource_id)
            found.add("effectKey", _EXPLANATIONS["effectKey"], partial(owner.runs, source))
