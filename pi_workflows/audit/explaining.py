"""Telling the story of a run of a database that no server has open."""

from __future__ import annotations

from pathlib import Path

from pi_workflows.audit.damage import damage_of_run
from pi_workflows.store.inactive import open_inactive
from pi_workflows.views.story import Story, story
from pi_workflows.views.story_sentences import Sentence
from pi_workflows.views.story_times import Totals

__all__ = ["Sentence", "Story", "Totals", "explain_file"]


def explain_file(file: Path, *, live_directory: Path | None, run_id: str) -> Story:
    """Tell what happened to a run.

    Args:
        file: The database; nothing is written into it.
        live_directory: The state directory, whose database is refused by any path.
        run_id: The run.

    Returns:
        Its story.

    Raises:
        NotFound: There is no such file, or no such run in it (`runMissing`).
        AuthorityDenied: It is the live database, or is not self-contained.
        Incompatible: It is not our database.
        Corrupt: It is damaged, or what the run's events say contradicts itself.
        Unavailable: The disk failed.
    """
    with open_inactive(file, live_directory=live_directory) as read, damage_of_run(read, run_id):
        return story(read, run_id)
