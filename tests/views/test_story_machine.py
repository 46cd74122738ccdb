"""Whatever happens to runs, their stories can be told, and their times add up."""

from __future__ import annotations

from functools import partial
from typing import Final

from hypothesis import settings
from hypothesis.stateful import invariant

from pi_workflows.views.story import story
from pi_workflows.views.story_times import Totals
from tests.kernel.test_machine import Machine


def parts_ms(totals: Totals) -> int:
    """Return what the parts of a run's time come to together."""
    phases = (
        totals.queued_ms
        + totals.delayed_ms
        + totals.waiting_ms
        + totals.paused_ms
        + totals.parked_ms
        + totals.interrupted_ms
    )
    return totals.active_ms + totals.between_ms + phases - totals.excess_ms


class StoryMachine(Machine):
    """A database under clients, runners, crashes and a clock that jumps, told at every step."""

    @invariant()
    def every_story_can_be_told(self) -> None:
        """Each run has a story in the order of its events, and its times add up."""
        for run_id in self.runs:
            now = self.look(partial(story, run_id=run_id))
            totals = now.totals
            assert parts_ms(totals) == totals.wall_ms, totals
            assert all(isinstance(ms, int) and ms >= 0 for ms in totals.document().values()), totals
            assert not (totals.between_ms and totals.excess_ms), totals
            order = [each.event_seq for each in now.sentences]
            assert order == sorted(set(order))
            assert all(each.text.endswith(".") for each in now.sentences)


_IS_SOAK: Final = settings.get_current_profile_name() == "soak"
TestStories = StoryMachine.TestCase
TestStories.settings = (
    settings(stateful_step_count=60)
    if _IS_SOAK
    else settings(max_examples=5, stateful_step_count=25)
)
