"""How a story tells what people change about a run, and what shall follow it."""

from __future__ import annotations

from pi_workflows.domain.follow_up.events import (
    FollowUpCancelled,
    FollowUpQueued,
    FollowUpRemoved,
)
from pi_workflows.domain.settings.events import (
    AttemptStatusChanged,
    RunSettingsOpened,
    SettingsChanged,
)
from pi_workflows.views.story_narrator import Narrator


def opened(narrator: Narrator, fact: RunSettingsOpened) -> None:
    """Tell that a workflow's settings came to be."""
    mount = fact.settings.mount_path
    whose = f"of {mount} " if mount else ""
    narrator.say(f"The settings {whose}got their first value")


def changed(narrator: Narrator, fact: SettingsChanged) -> None:
    """Tell who changed settings."""
    narrator.say(f"{narrator.who} changed the settings: change {fact.change.change_number}")


def outdated(narrator: Narrator, fact: AttemptStatusChanged) -> None:
    """Tell that a choice did not count."""
    assert fact.attempt is not None, "a stale choice without its attempt"
    narrator.take_over(fact.attempt.attempt_id)
    narrator.say(
        f"The settings changed while {fact.node_id} chose by them: it chooses again",
        node=fact.node_id,
    )


def queued(narrator: Narrator, fact: FollowUpQueued) -> None:
    """Tell who wants something to follow the run."""
    narrator.say(f"{narrator.who} queued follow-up {fact.follow_up.order_number} for its end")


def removed(narrator: Narrator, _fact: FollowUpRemoved) -> None:
    """Tell who took it back."""
    narrator.say(f"{narrator.who} took a follow-up back")


def cancelled(narrator: Narrator, _fact: FollowUpCancelled) -> None:
    """Tell that it does not come."""
    if not narrator.add("a follow-up was cancelled with it"):
        narrator.say("A follow-up was cancelled")
